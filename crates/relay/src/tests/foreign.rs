//! The connections of the dialects that show one session at a time.

mod dialect;
mod lag;

use std::sync::atomic::Ordering;

use bytes::Bytes;
use serde_json::Value;
use store::Failure;

use super::world::{SESSION, World, delta};
use crate::gate::Incoming;
use dialect::{ALL, ANSWERING, Dialect, mentions, say_words, words};

/// What one peer may have waiting for its commit.
const UNCOMMITTED_BYTES_MAX: usize = 4 << 20;

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
        let ids: Vec<_> = (0..40).map(|number| format!("m{number}")).collect();
        world.hold_commits();
        for id in &ids {
            client.say(&dialect.question(id)).await;
        }
        client.rest().await;
        let before = client.writes;
        world.commit_again();
        let told = client.rest().await;
        for id in &ids {
            let answers = told.iter().filter(|frame| dialect.is_answer(frame, id));
            assert_eq!(answers.count(), 1, "{dialect:?}: {id}");
        }
        let writes = client.writes - before;
        assert!(writes <= 4, "{dialect:?}: {writes} writes");
    }
}

#[tokio::test(start_paused = true)]
async fn failures_of_one_commit_are_written_together() {
    for dialect in ALL {
        let world = World::new().await;
        let _machine = world.machine().await;
        let mut client = dialect.join(&world, "ada").await;
        let id = |number| format!("5b3a7f0e-0000-4000-8000-0000000000{number}");
        world.hold_commits();
        for number in 10..50 {
            client.say(&dialect.message(&id(number), "hi")).await;
        }
        client.rest().await;
        let before = client.writes;
        world.disk.fail_next(Failure::BeforeCommit);
        world.commit_again();
        let told = client.rest().await;
        for number in 10..50 {
            let is_told = told.iter().any(|frame| mentions(frame, &id(number)));
            assert!(is_told, "{dialect:?}: {number}");
        }
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
async fn a_write_in_progress_finishes_before_a_requested_close() {
    for dialect in ALL {
        let world = World::new().await;
        let mut machine = world.machine().await;
        let mut client = dialect.join(&world, "ada").await;
        client.stop_reading();
        say_words(&mut machine, 1..=1).await;
        client.kick.close(1001, "going down");
        client.rest().await;
        assert!(client.is_open(), "{dialect:?}");
        client.read_again();
        assert_eq!(client.close_code().await, 1001, "{dialect:?}");
        assert!(words(&client.rest().await).contains(&1), "{dialect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pending_message_is_recorded_even_if_its_sender_is_kicked() {
    for dialect in ALL {
        let world = World::new().await;
        let mut machine = world.machine().await;
        let mut client = dialect.join(&world, "ada").await;
        world.hold_commits();
        client.say(&dialect.message("mine", "said it")).await;
        client.rest().await;
        client.kick.close(1001, "going down");
        // The close does not wait for the disk.
        assert_eq!(client.close_code().await, 1001, "{dialect:?}");
        world.commit_again();
        assert_eq!(machine.hear("send_message").await["content"], "said it", "{dialect:?}");
        assert_eq!(client.rest().await, [] as [Value; 0], "{dialect:?}");
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
