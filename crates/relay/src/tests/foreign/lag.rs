//! A connection that falls behind: what it missed, what waits for that, and what fails meanwhile.

use serde_json::{Value, json};
use store::Failure;

use super::dialect::{ALL, ANSWERING, Dialect, mentions, request, say_words, words};
use crate::tests::world::{SESSION, World, delta, is_failed, says, wish};

#[tokio::test(start_paused = true)]
async fn whoever_was_too_slow_is_shown_what_the_quick_one_was_shown() {
    for dialect in ALL {
        let world = World::new().await;
        let mut machine = world.machine().await;
        let mut quick = dialect.join(&world, "ada").await;
        let mut slow = dialect.join(&world, "bob").await;
        slow.stop_reading();
        say_words(&mut machine, 1..=700).await;
        // Nothing comes after the gap that would show it.
        world.flood().await;
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
    for dialect in ALL {
        let world = World::new().await;
        let mut machine = world.machine().await;
        machine.tells(1, "run_started", &json!({ "run_id": "run_1" })).await;
        machine.is_acknowledged(1).await;
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
        slow.say(&dialect.question("mine")).await;
        slow.read_again();
        let shown = slow.rest().await;
        assert!(world.lagged() > 0, "{dialect:?} never lagged");
        let is_answer = |frame: &Value| dialect.is_answer(frame, "mine");
        let answers = shown.iter().filter(|frame| is_answer(frame)).count();
        assert_eq!(answers, 1, "{dialect:?}");
        let at = shown.iter().position(is_answer).unwrap();
        assert_eq!(words(&shown[..at]).last(), Some(&1_200), "{dialect:?}");
        assert_eq!(words(&shown[at..]), [] as [u64; 0], "{dialect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_reported_after_the_events_that_its_sender_is_catching_up_on() {
    for dialect in ALL {
        let world = World::new().await;
        let mut machine = world.machine().await;
        let mut slow = dialect.join(&world, "ada").await;
        slow.stop_reading();
        say_words(&mut machine, 1..=2).await;
        world.flood().await;
        say_words(&mut machine, 3..=1_200).await;
        // The client knows that it is behind, and the ledger does not answer yet.
        world.hold_commits();
        slow.read_again();
        slow.rest().await;
        assert!(world.lagged() > 0, "{dialect:?} never lagged");
        let id = "5b3a7f0e-0000-4000-8000-000000000001";
        slow.say(&dialect.message(id, "hi")).await;
        assert_eq!(slow.rest().await, [] as [Value; 0], "{dialect:?}");
        world.disk.fail_next(Failure::BeforeCommit);
        world.commit_again();
        let shown = slow.rest().await;
        let at = shown.iter().position(|frame| mentions(frame, id)).unwrap();
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
async fn whoever_follows_a_session_that_was_erased_and_made_again_is_shown_what_comes_after() {
    for dialect in ALL {
        let world = World::new().await;
        let mut machine = world.machine().await;
        say_words(&mut machine, 1..=20).await;
        let mut slow = dialect.join(&world, "bob").await;
        slow.stop_reading();
        say_words(&mut machine, 21..=22).await;
        world.down(SESSION).await;
        world.relay.erase(&SESSION.into()).await.unwrap();
        drop(machine);
        world.up_through(SESSION, "plain", None).await;
        world.report_through(SESSION, "plain", says("x1", "word-23.")).await;
        world.flood().await;
        slow.read_again();
        slow.rest().await;
        assert!(world.lagged() > 0, "{dialect:?} never lagged");
        world.report_through(SESSION, "plain", says("x2", "word-24.")).await;
        let shown = words(&slow.rest().await);
        assert!(shown.contains(&24), "{dialect:?}: {shown:?}");
    }
}
