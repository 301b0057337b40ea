//! The connection of a native client.

mod lag;

use std::sync::atomic::Ordering;

use bytes::Bytes;
use serde_json::{Value, json};

use super::world::{Peer, SESSION, World, delta, hello, send};
use crate::gate::Incoming;

fn numbers(frames: &[Value]) -> Vec<u64> {
    let mut numbers = vec![];
    for frame in frames.iter().filter(|frame| frame["session_id"] == SESSION) {
        if frame["type"] == "message_event" {
            numbers.push(frame["sequence"].as_u64().unwrap());
        }
        // What was missed comes in pages.
        let events = frame["events"].as_array().into_iter().flatten();
        numbers.extend(events.filter_map(|event| event["sequence"].as_u64()));
    }
    numbers
}

#[tokio::test(start_paused = true)]
async fn nothing_is_said_of_a_send_before_its_commit() {
    let world = World::new().await;
    let mut machine = world.machine().await;
    let mut client = world.client("ada").await;
    world.hold_commits();
    client.say(&send("m1", "hi")).await;
    assert_eq!(client.rest().await, [] as [Value; 0]);
    assert_eq!(machine.rest().await, [] as [Value; 0]);
    world.commit_again();
    client.hear("message_accepted").await;
    machine.hear("send_message").await;
}

#[tokio::test(start_paused = true)]
async fn answers_of_one_commit_are_written_together() {
    let world = World::new().await;
    let _machine = world.machine().await;
    let mut client = world.client("ada").await;
    // Refused, so that each has an answer of its own.
    world.hold_commits();
    client.say(&send("m0", "hi")).await;
    for number in 0..40 {
        client
            .say(&json!({
                "type": "permission_response", "protocol_version": 1, "session_id": SESSION,
                "request_id": format!("r{number}"), "prompt_id": "nobody asked", "choice_id": "yes",
            }))
            .await;
    }
    client.rest().await;
    let before = client.writes;
    world.commit_again();
    let told = client.rest().await;
    let answers = told.iter().filter(|frame| frame["type"] == "agent_control_result").count();
    assert_eq!(answers, 40);
    let writes = client.writes - before;
    assert!(writes <= 4, "{writes} writes");
}

/// More large sends than may wait for their commit.
async fn say_too_much(client: &mut Peer) {
    let large = "x".repeat(90 << 10);
    for number in 10..90 {
        client.say(&send(&format!("m{number}"), &large)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_one_client_has_waiting_for_its_commit_is_bounded() {
    let world = World::new().await;
    let _machine = world.machine().await;
    let mut client = world.client("ada").await;
    let before = client.taken_bytes();
    world.hold_commits();
    let each = send("m00", &"x".repeat(90 << 10)).to_string().len();
    say_too_much(&mut client).await;
    world.rest().await;
    let waiting = client.taken_bytes() - before;
    assert!(waiting <= (4 << 20) + each, "{waiting} bytes");
    assert!(waiting > 2 << 20, "{waiting} bytes");
    world.commit_again();
    for number in 10..90 {
        let accepted = client.hear("message_accepted").await;
        assert_eq!(accepted["client_message_id"], format!("m{number}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_asked_to_leave_is_closed_with_the_reason() {
    let world = World::new().await;
    let mut client = world.client("ada").await;
    client.kick.close(1001, "going down");
    assert_eq!(client.close_code().await, 1001);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_gone_leaves_nothing_behind_also_while_it_does_not_read() {
    let world = World::new().await;
    let mut machine = world.machine().await;
    let clients = || world.relay.metrics().clients.load(Ordering::Relaxed);
    let client = world.client("ada").await;
    assert_eq!((clients(), world.relay.watchers().see(&SESSION.into())), (1, true));
    client.stop_reading();
    machine.reports(1, "words").await;
    machine.hear("link_ack").await;
    drop(client);
    world.rest().await;
    assert_eq!((clients(), world.relay.watchers().see(&SESSION.into())), (0, false));
}

#[tokio::test(start_paused = true)]
async fn what_is_no_text_frame_of_a_fair_size_closes_the_connection() {
    let world = World::new().await;
    for (incoming, code) in [
        (Incoming::Binary, 1003),
        (Incoming::TooLarge, 1009),
        (Incoming::Text(Bytes::from_static(b"\xff\xfe")), 1007),
    ] {
        let mut client = world.client("ada").await;
        client.bring(incoming).await;
        assert_eq!(client.close_code().await, code);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_resumes_is_told_what_it_missed_once() {
    let world = World::new().await;
    let mut machine = world.machine().await;
    for number in 1..=600 {
        machine.reports(number, "words").await;
    }
    machine.is_acknowledged(600).await;
    let head = world.head();
    let mut client = world.stranger("ada");
    let mut greeting = hello(&["paging"]);
    greeting["resume"] =
        json!({ "sessions": [{ "session_id": SESSION, "last_sequence": head - 550 }] });
    client.say(&greeting).await;
    let shown = numbers(&client.rest().await);
    assert!(shown.iter().copied().eq(head - 549..=head), "{shown:?}");
}

#[tokio::test(start_paused = true)]
async fn a_revoked_client_is_disconnected_at_once_even_if_it_does_not_read() {
    for reads in [true, false] {
        let world = World::new().await;
        let mut machine = world.machine().await;
        let mut client = world.client("ada").await;
        let mut other = world.client("bob").await;
        if !reads {
            client.stop_reading();
            machine.reports(1, "unread").await;
            machine.is_acknowledged(1).await;
        }
        world.door.revoke("ada");
        world.rest().await;
        assert_eq!(world.relay.metrics().clients.load(Ordering::Relaxed), 1, "reads: {reads}");
        client.read_again();
        assert_eq!(client.rest().await, [] as [Value; 0], "reads: {reads}");
        if reads {
            assert_eq!(client.close_code().await, 4003);
        }
        assert!(other.is_open());
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_in_progress_finishes_before_a_requested_close() {
    let world = World::new().await;
    let mut machine = world.machine().await;
    let mut client = world.client("ada").await;
    client.stop_reading();
    machine.reports(1, "in hand").await;
    machine.is_acknowledged(1).await;
    client.kick.close(1001, "going down");
    client.rest().await;
    assert!(client.is_open());
    client.read_again();
    assert_eq!(client.hear("message_event").await["message"]["content"], "in hand");
    assert_eq!(client.close_code().await, 1001);
}

#[tokio::test(start_paused = true)]
async fn a_pending_send_is_recorded_even_if_its_client_is_kicked() {
    let world = World::new().await;
    let mut machine = world.machine().await;
    let mut client = world.client("ada").await;
    world.hold_commits();
    client.say(&send("m1", "hi")).await;
    client.rest().await;
    client.kick.close(1001, "going down");
    // The close does not wait for the disk.
    assert_eq!(client.close_code().await, 1001);
    world.commit_again();
    assert_eq!(machine.hear("send_message").await["client_message_id"], "m1");
    assert_eq!(client.rest().await, [] as [Value; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_waits_for_room_can_be_kicked() {
    let world = World::new().await;
    let _machine = world.machine().await;
    let mut client = world.client("ada").await;
    world.hold_commits();
    say_too_much(&mut client).await;
    world.rest().await;
    client.kick.close(1001, "going down");
    assert_eq!(client.close_code().await, 1001);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_waits_for_room_is_still_shown_what_other_sessions_say() {
    let world = World::new().await;
    let mut machine = world.machine_with(&[SESSION, "sess_2"]).await;
    let mut client = world.client("ada").await;
    world.hold_commits();
    say_too_much(&mut client).await;
    client.rest().await;
    let mut words = delta(0, "words");
    words["session_id"] = json!("sess_2");
    machine.say(&words).await;
    let shown = client.rest().await;
    assert_eq!(shown.len(), 1, "{shown:?}");
    assert_eq!(shown[0]["content"], "words");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_waits_for_room_does_not_count_as_silent() {
    let world = World::new().await;
    let _machine = world.machine().await;
    let mut client = world.client("ada").await;
    world.hold_commits();
    say_too_much(&mut client).await;
    client.lives_on_ms(60_000).await;
    assert!(client.is_open());
    world.commit_again();
    client.hear("heartbeat_ack").await;
    assert!(client.is_open());
}
