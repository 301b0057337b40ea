//! The connections of the dialects that look at one session at a time.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use serde_json::{Value, json};
use store::Failure;
use wire::native::Limits;
use wire::{blob, control, pi, webchannel};

use super::world::{Peer, SESSION, World, is_failed, person, wish};
use crate::gate::Incoming;
use crate::ports::Clock as _;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Blob,
    Pi,
    Control,
    Webchannel,
}

const ALL: [Dialect; 4] = [Dialect::Blob, Dialect::Pi, Dialect::Control, Dialect::Webchannel];
/// Those that answer every message of a person. The others show it once the agent has it.
const ANSWERING: [Dialect; 2] = [Dialect::Blob, Dialect::Pi];
/// What one peer may have waiting for its commit.
const UNCOMMITTED_BYTES_MAX: usize = 4 << 20;

impl Dialect {
    /// A connection that has said nothing yet.
    fn dial(self, world: &World, who: Option<&str>) -> Peer {
        let (connection, principal) = (world.ids(), who.map(person));
        let (limits, now) = (Limits::default(), world.clock.now());
        match self {
            Self::Blob => {
                world.visitor(blob::Connection::new(connection, principal, "", limits, now))
            }
            Self::Pi => {
                let query = format!("session={SESSION}");
                world.visitor(pi::Connection::new(connection, principal, &query, limits, now))
            }
            Self::Control => {
                let query = format!("session={SESSION}&partial=1");
                world.visitor(control::Connection::new(connection, principal, &query, limits, now))
            }
            Self::Webchannel => {
                let query = format!("session_id={SESSION}&plain=1");
                let seed = [7; 32];
                let visitor =
                    webchannel::Connection::new(connection, principal, &query, limits, seed, now);
                world.visitor(visitor)
            }
        }
    }

    /// A connection that follows the session.
    async fn join(self, world: &World, who: &str) -> Peer {
        let mut peer = self.dial(world, Some(who));
        if self == Self::Blob {
            peer.say(&request("c", "connect", &json!({ "version": "1" }))).await;
            peer.say(&request("s", "sessions.switch", &json!({ "sessionId": SESSION }))).await;
            peer.until(|frame| frame["event"] == "session_changed").await;
        }
        peer.rest().await;
        peer
    }

    /// A person's message.
    fn message(self, id: &str, text: &str) -> Value {
        match self {
            Self::Blob => request(id, "agent", &json!({ "message": text })),
            Self::Pi => json!({
                "type": "prompt", "id": id, "message": text, "streamingBehavior": "followUp",
            }),
            Self::Control => json!({
                "type": "user", "uuid": id, "message": { "role": "user", "content": text },
                "parent_tool_use_id": null, "session_id": "",
            }),
            Self::Webchannel => json!({
                "v": 1, "type": "user_message", "session_id": SESSION, "request_id": id,
                "payload": { "access_token": "ada", "content": text },
            }),
        }
    }
}

fn request(id: &str, method: &str, params: &Value) -> Value {
    let params = params.as_object().unwrap();
    json!({ "type": "req", "id": id, "method": method, "params": params })
}

fn mentions(frame: &Value, what: &str) -> bool {
    frame.to_string().contains(what)
}

/// The numbers in `word-N.`, one for each time that the frames say it.
fn words(frames: &[Value]) -> Vec<u64> {
    let mut numbers = vec![];
    for frame in frames {
        let text = frame.to_string();
        let found = text.split("word-").skip(1).filter_map(|rest| rest.split('.').next());
        numbers.extend(found.filter_map(|number| number.parse::<u64>().ok()));
    }
    numbers
}

async fn say_words(machine: &mut Peer, numbers: std::ops::RangeInclusive<u64>) {
    for number in numbers.clone() {
        machine.reports(number, &format!("word-{number}.")).await;
    }
    let last = *numbers.end();
    machine.until(|frame| frame["type"] == "link_ack" && frame["through"] == last).await;
}

fn delta(offset: usize, words: &str) -> Value {
    json!({
        "type": "message_delta", "protocol_version": 1, "session_id": SESSION,
        "message_id": "draft", "part": 0, "kind": "text", "offset": offset, "content": words,
    })
}

#[tokio::test(start_paused = true)]
async fn whoever_was_too_slow_is_shown_what_the_quick_one_was_shown() {
    for dialect in ALL {
        let world = World::new().await;
        let mut machine = world.machine().await;
        let mut quick = dialect.join(&world, "ada").await;
        let mut slow = dialect.join(&world, "bob").await;
        slow.stop_reading();
        say_words(&mut machine, 1..=2).await;
        world.flood().await;
        say_words(&mut machine, 3..=700).await;
        assert_eq!(world.lagged(), 0, "{dialect:?}");
        slow.read_again();
        let shown = words(&slow.rest().await);
        assert!(world.lagged() > 0, "{dialect:?} never lagged");
        let mut once = shown.clone();
        once.dedup();
        assert!(once.iter().copied().eq(1..=700), "{dialect:?}: {once:?}");
        assert_eq!(shown, words(&quick.rest().await), "{dialect:?}");

        // It is live again.
        say_words(&mut machine, 701..=702).await;
        let shown = words(&slow.rest().await);
        assert_eq!(shown, words(&quick.rest().await), "{dialect:?}");
        assert!(shown.contains(&702), "{dialect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn words_in_the_making_go_on_where_a_slow_watcher_missed_them() {
    for dialect in [Dialect::Blob, Dialect::Control, Dialect::Webchannel] {
        let world = World::new().await;
        let mut machine = world.machine().await;
        machine
            .say(&json!({
                "type": "run_started", "protocol_version": 1, "session_id": SESSION,
                "run_id": "run_1", "link_number": 1,
            }))
            .await;
        machine.hear("link_ack").await;
        let mut slow = dialect.join(&world, "bob").await;
        machine.say(&delta(0, "word-1.")).await;
        world.rest().await;
        slow.stop_reading();
        machine.say(&delta(7, "word-2.")).await;
        world.rest().await;
        machine.say(&delta(14, "word-3.")).await;
        world.flood().await;
        machine.say(&delta(21, "word-4.")).await;
        world.rest().await;
        slow.read_again();
        machine.say(&delta(28, "word-5.")).await;
        let shown = words(&slow.rest().await);
        assert!(world.lagged() > 0, "{dialect:?} never lagged");
        // Where a client is told the message so far, it is told all of it.
        let again: &[u64] = if dialect == Dialect::Control { &[1, 2] } else { &[] };
        assert_eq!(shown, [again, &[1, 2, 3, 4, 5]].concat(), "{dialect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_comes_after_the_events_that_its_asker_missed() {
    for dialect in ANSWERING {
        let world = World::new().await;
        let mut machine = world.machine().await;
        let mut slow = dialect.join(&world, "ada").await;
        slow.stop_reading();
        say_words(&mut machine, 1..=2).await;
        world.flood().await;
        say_words(&mut machine, 3..=1_200).await;
        slow.say(&dialect.message("mine", "hi")).await;
        slow.read_again();
        let shown = slow.rest().await;
        assert!(world.lagged() > 0, "{dialect:?} never lagged");
        let is_answer = |frame: &Value| {
            frame["id"] == "mine" && (frame["type"] == "res" || frame["type"] == "response")
        };
        let answers = shown.iter().filter(|frame| is_answer(frame)).count();
        assert_eq!(answers, 1, "{dialect:?}");
        let at = shown.iter().position(is_answer).unwrap();
        assert_eq!(words(&shown[..at]).last(), Some(&1_200), "{dialect:?}");
        assert_eq!(words(&shown[at..]), [] as [u64; 0], "{dialect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_waits_for_missed_events_is_given_when_its_asker_goes_elsewhere() {
    let world = World::new().await;
    let mut machine = world.machine_with(&[SESSION, "sess_2"]).await;
    let mut slow = Dialect::Blob.join(&world, "ada").await;
    slow.stop_reading();
    say_words(&mut machine, 1..=2).await;
    world.flood().await;
    say_words(&mut machine, 3..=4_000).await;
    slow.say(&Dialect::Blob.message("mine", "hi")).await;
    slow.read_again();
    // In a task of its own, which is as quick as those of the relay.
    let switching = tokio::spawn(async move {
        slow.until(|frame| mentions(frame, "word-1000.")).await;
        let switch = request("away", "sessions.switch", &json!({ "sessionId": "sess_2" }));
        slow.say(&switch).await;
        slow
    });
    let shown = switching.await.unwrap().rest().await;
    let last = words(&shown).into_iter().max();
    assert!(last < Some(4_000), "it went elsewhere before it had caught up: {last:?}");
    for id in ["mine", "away"] {
        let answers = shown.iter().filter(|frame| frame["type"] == "res" && frame["id"] == id);
        assert_eq!(answers.count(), 1, "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_catches_up_while_a_commit_fails_is_shown_what_comes_after() {
    for dialect in ALL {
        let world = World::new().await;
        let mut machine = world.machine().await;
        let mut slow = dialect.join(&world, "bob").await;
        slow.stop_reading();
        say_words(&mut machine, 1..=2).await;
        world.flood().await;
        say_words(&mut machine, 3..=4).await;
        world.hold_commits();
        let session = SESSION.into();
        let (lost, ()) = tokio::join!(world.relay.command(&session, wish("m1")), async {
            world.rest().await;
            slow.read_again();
            world.rest().await;
            world.disk.fail_next(Failure::BeforeCommit);
            world.commit_again();
        });
        assert!(is_failed(&lost), "{dialect:?}: {lost:?}");
        assert!(world.lagged() > 0, "{dialect:?} never lagged");
        slow.rest().await;
        say_words(&mut machine, 5..=6).await;
        let mut shown = words(&slow.rest().await);
        shown.dedup();
        assert_eq!(shown, [5, 6], "{dialect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_ledger_that_cannot_be_read_closes_the_connection_that_needs_it() {
    for dialect in ALL {
        let world = World::new().await;
        let mut machine = world.machine().await;
        let mut slow = dialect.join(&world, "bob").await;
        slow.stop_reading();
        say_words(&mut machine, 1..=2).await;
        world.flood().await;
        say_words(&mut machine, 3..=4).await;
        world.disk.damage(&SESSION.into());
        slow.read_again();
        assert_eq!(slow.close_code().await, 1011, "{dialect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_shown_before_its_commit() {
    for dialect in ALL {
        let world = World::new().await;
        let mut machine = world.machine().await;
        let mut watcher = dialect.join(&world, "bob").await;
        world.hold_commits();
        machine.reports(1, "word-1.").await;
        watcher.say(&dialect.message("mine", "said it")).await;
        assert_eq!(watcher.rest().await, [] as [Value; 0], "{dialect:?}");
        world.commit_again();
        let shown = watcher.rest().await;
        assert!(words(&shown).contains(&1), "{dialect:?}: {shown:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_could_not_be_recorded_is_refused_to_its_sender_alone() {
    for dialect in ALL {
        let world = World::new().await;
        let mut machine = world.machine().await;
        let mut sender = dialect.join(&world, "ada").await;
        let mut watcher = dialect.join(&world, "bob").await;
        world.disk.fail_next(Failure::BeforeCommit);
        let id = "5b3a7f0e-0000-4000-8000-000000000001";
        sender.say(&dialect.message(id, "said it")).await;
        let told = sender.rest().await;
        assert!(told.iter().any(|frame| mentions(frame, id)), "{dialect:?}: {told:?}");
        let told = watcher.rest().await;
        assert!(told.iter().all(|frame| !mentions(frame, "said it")), "{dialect:?}: {told:?}");
        let told = machine.rest().await;
        assert!(told.iter().all(|frame| frame["type"] != "send_message"), "{dialect:?}: {told:?}");

        // Said again, it is a message like any other.
        sender.say(&dialect.message(id, "said it")).await;
        let order = machine.hear("send_message").await;
        assert_eq!(order["content"], "said it", "{dialect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn answers_of_one_commit_are_written_together() {
    for dialect in ANSWERING {
        let world = World::new().await;
        let _machine = world.machine().await;
        let mut client = dialect.join(&world, "ada").await;
        world.hold_commits();
        for number in 0..40 {
            client.say(&dialect.message(&format!("m{number}"), "hi")).await;
        }
        client.rest().await;
        let before = client.writes;
        world.commit_again();
        let told = client.rest().await;
        let answers =
            told.iter().filter(|it| it["type"] == "res" || it["type"] == "response").count();
        assert_eq!(answers, 40, "{dialect:?}");
        let writes = client.writes - before;
        assert!(writes <= 4, "{dialect:?}: {writes} writes");
    }
}

#[tokio::test(start_paused = true)]
async fn what_one_peer_has_waiting_for_its_commit_is_bounded() {
    for dialect in ALL {
        let world = World::new().await;
        let _machine = world.machine().await;
        let mut client = dialect.join(&world, "ada").await;
        let mut other = dialect.join(&world, "bob").await;
        let before = client.taken_bytes();
        world.hold_commits();
        let large = "x".repeat(90 << 10);
        let each = dialect.message("m00", &large).to_string().len();
        for number in 10..70 {
            client.say(&dialect.message(&format!("m{number}"), &large)).await;
        }
        world.rest().await;
        let waiting = client.taken_bytes() - before;
        assert!(waiting <= UNCOMMITTED_BYTES_MAX + each, "{dialect:?}: {waiting} bytes");
        assert!(waiting > UNCOMMITTED_BYTES_MAX / 2, "{dialect:?}: {waiting} bytes");

        // Others are not held up.
        other.say(&dialect.message("small", "hi")).await;
        world.commit_again();
        world.rest().await;
        assert_eq!(client.taken_bytes() - before, 60 * each, "{dialect:?}");
        let recorded = world.ledger(SESSION).await;
        let is_accepted = |it: &&domain::session::Recorded| {
            use domain::session::{Event, delivery};
            matches!(it.event, Event::Delivery(delivery::Event::Accepted(_)))
        };
        assert_eq!(recorded.iter().filter(is_accepted).count(), 61, "{dialect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_room_is_shown_events_and_can_be_closed() {
    for dialect in ALL {
        let world = World::new().await;
        let mut machine = world.machine().await;
        let mut client = dialect.join(&world, "ada").await;
        say_words(&mut machine, 1..=1).await;
        world.hold_commits();
        let large = "x".repeat(90 << 10);
        for number in 10..70 {
            client.say(&dialect.message(&format!("m{number}"), &large)).await;
        }
        world.rest().await;
        machine.say(&delta(0, "word-2.")).await;
        client.rest().await;
        world.door.revoke("ada");
        assert_eq!(client.close_code().await, 4003, "{dialect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_revoked_credential_is_shown_nothing_more() {
    for dialect in ALL {
        let world = World::new().await;
        let mut machine = world.machine().await;
        let mut client = dialect.join(&world, "ada").await;
        let mut other = dialect.join(&world, "bob").await;
        world.door.revoke("ada");
        assert_eq!(client.close_code().await, 4003, "{dialect:?}");
        say_words(&mut machine, 1..=1).await;
        assert_eq!(words(&client.rest().await), [] as [u64; 0], "{dialect:?}");
        assert!(words(&other.rest().await).contains(&1), "{dialect:?}");
        assert!(other.is_open(), "{dialect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_asked_to_leave_is_closed_with_the_reason() {
    for dialect in ALL {
        let world = World::new().await;
        let _machine = world.machine().await;
        let mut client = dialect.join(&world, "ada").await;
        client.kick.close(1001, "going down");
        assert_eq!(client.close_code().await, 1001, "{dialect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_gone_leaves_nothing_behind() {
    for dialect in ALL {
        let world = World::new().await;
        let _machine = world.machine().await;
        let client = dialect.join(&world, "ada").await;
        let clients = || world.relay.metrics().clients.load(Ordering::Relaxed);
        let is_seen = || world.relay.watchers().see(&SESSION.into());
        assert_eq!((clients(), is_seen()), (1, true), "{dialect:?}");
        drop(client);
        world.rest().await;
        assert_eq!((clients(), is_seen()), (0, false), "{dialect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_text_frame_of_a_fair_size_closes_the_connection() {
    for dialect in ALL {
        let world = World::new().await;
        let _machine = world.machine().await;
        for (incoming, code) in [
            (Incoming::Binary, 1003),
            (Incoming::TooLarge, 1009),
            (Incoming::Text(Bytes::from_static(b"\xff\xfe")), 1007),
        ] {
            let mut client = dialect.join(&world, "ada").await;
            client.bring(incoming).await;
            assert_eq!(client.close_code().await, code, "{dialect:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_does_not_introduce_themselves_in_time_is_closed() {
    let world = World::new().await;
    let _machine = world.machine().await;
    for (dialect, within_ms, who) in
        [(Dialect::Blob, 10_000, Some("ada")), (Dialect::Webchannel, 600_000, None)]
    {
        let mut client = dialect.dial(&world, who);
        world.pass_ms(within_ms - 100).await;
        assert!(client.is_open(), "{dialect:?}");
        world.pass_ms(200).await;
        assert_eq!(client.close_code().await, 4001, "{dialect:?}");
    }
}
