//! How a proxy's connection ends (on request, by revocation, or because of what its peer sent),
//! and what that leaves behind.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use domain::Refusal;
use domain::session::{Event, Recorded, transcript};
use serde_json::{Value, json};
use tokio::time::Instant;
use wire::native::frames::ResumableListRequest;
use wire::native::{Denied, Question};

use super::{Journal, plain};
use crate::gate::Incoming;
use crate::tests::world::{Peer, SESSION, World, heartbeat, hello, person, report, wish};

/// Nothing of the machine's connection is left.
async fn assert_away(world: &World, watcher: &mut Peer) {
    let down = watcher.hear("session_down").await;
    assert_eq!(down["reason"], "proxy_disconnected");
    assert!(!world.is_reached(SESSION));
    assert_eq!(world.relay.metrics().proxies.load(Ordering::Relaxed), 0);
    let fleet = world.relay.look_at_fleet().await.unwrap();
    assert!(fleet.machines().via(&"attic".into()).is_none());
}

fn notice(text: &str) -> Value {
    json!({ "kind": "info", "text": text })
}

/// The notices that the ledger has of the session.
async fn notices(world: &World) -> Vec<String> {
    let text_of = |recorded: Recorded| {
        let Event::Transcript(transcript::Event::Notice(notice)) = recorded.event else {
            return None;
        };
        Some(notice.text)
    };
    world.ledger(SESSION).await.into_iter().filter_map(text_of).collect()
}

#[tokio::test(start_paused = true)]
async fn a_kicked_machine_is_closed_with_the_reason_and_its_sessions_go_down() {
    for journal in Journal::BOTH {
        let world = World::new().await;
        let mut watcher = world.client("bob").await;
        let mut machine = journal.machine(&world).await;
        machine.kick.close(1001, "going down");
        assert_eq!(machine.close_code().await, 1001, "{journal:?}");
        assert_away(&world, &mut watcher).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_in_progress_finishes_before_a_requested_close() {
    for journal in Journal::BOTH {
        let world = World::new().await;
        let mut machine = journal.machine(&world).await;
        machine.stop_reading();
        world.relay.command(&SESSION.into(), wish("m1")).await.unwrap();
        world.rest().await;
        machine.kick.close(1001, "going down");
        machine.rest().await;
        assert!(machine.is_open(), "{journal:?}");
        machine.read_again();
        assert_eq!(machine.hear("send_message").await["client_message_id"], "m1", "{journal:?}");
        assert_eq!(machine.close_code().await, 1001, "{journal:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn pending_reports_are_recorded_once_even_if_their_machine_is_kicked() {
    let world = World::new().await;
    let mut machine = world.machine().await;
    world.hold_commits();
    // Notices have no ids: their numbers alone tell that they are repeats.
    machine.tells(1, "notice", &notice("one")).await;
    machine.tells(2, "notice", &notice("two")).await;
    machine.rest().await;
    machine.kick.close(1001, "going down");
    // The close does not wait for the disk.
    assert_eq!(machine.close_code().await, 1001);
    world.commit_again();
    assert_eq!(machine.rest().await, [] as [Value; 0]);
    assert_eq!(notices(&world).await, ["one", "two"]);
    drop(machine);

    // Nothing was acknowledged, so the next connection reports everything again.
    let mut machine = world.machine().await;
    for (number, text) in [(1, "one"), (2, "two"), (3, "three")] {
        machine.tells(number, "notice", &notice(text)).await;
    }
    machine.is_acknowledged(3).await;
    assert_eq!(notices(&world).await, ["one", "two", "three"]);
}

#[tokio::test(start_paused = true)]
async fn orders_that_wait_for_a_kicked_machine_go_to_its_next_connection() {
    let world = World::new().await;
    let (mut machine, sessions) = plain(&world, 1).await;
    machine.stop_reading();
    for id in ["m1", "m2", "m3"] {
        world.relay.command(&sessions[0], wish(id)).await.unwrap();
    }
    machine.kick.close(1001, "going down");
    machine.read_again();
    assert_eq!(machine.close_code().await, 1001);
    drop(machine);
    world.rest().await;
    let (mut machine, _) = plain(&world, 1).await;
    let told = machine.rest().await;
    let ids: Vec<_> = told.iter().filter_map(|it| it["client_message_id"].as_str()).collect();
    assert_eq!(ids, ["m1", "m2", "m3"]);
}

/// A machine that has named a new session, which is not recorded yet.
async fn with_an_unrecorded_session(world: &World) -> Peer {
    let mut machine = world.proxy(Some("link_1")).await;
    // The claim is recorded first; the session comes up in the next commit.
    world.hold_commits_after(1);
    machine.name(&[SESSION]).await;
    world.rest().await;
    assert!(!world.relay.directory().knows(&SESSION.into()));
    machine
}

#[tokio::test(start_paused = true)]
async fn a_new_session_goes_down_if_its_machine_leaves_before_it_is_recorded() {
    let world = World::new().await;
    let machine = with_an_unrecorded_session(&world).await;
    drop(machine);
    world.rest().await;
    world.commit_again();
    world.rest().await;
    assert!(world.relay.directory().knows(&SESSION.into()));
    assert!(!world.is_reached(SESSION));
}

#[tokio::test(start_paused = true)]
async fn a_new_session_goes_down_if_its_machine_drops_it_before_it_is_recorded() {
    let world = World::new().await;
    let mut machine = with_an_unrecorded_session(&world).await;
    machine.name(&[]).await;
    world.rest().await;
    world.commit_again();
    world.rest().await;
    assert!(world.relay.directory().knows(&SESSION.into()));
    assert!(!world.is_reached(SESSION));
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_leaves_does_not_bring_back_its_erased_session() {
    let world = World::new().await;
    let machine = world.machine().await;
    world.down(SESSION).await;
    world.relay.erase(&SESSION.into()).await.unwrap();
    drop(machine);
    world.rest().await;
    assert!(!world.relay.directory().knows(&SESSION.into()));
    let streams = world.relay.books().streams().await.unwrap();
    assert!(streams.iter().all(|row| row.id.as_str() != SESSION), "{streams:?}");
}

/// More than may wait for its commit.
async fn report_too_much(journal: Journal, machine: &mut Peer) {
    let large = "x".repeat(1 << 20);
    for number in 1..=9 {
        machine.say(&journal.report(number, &large)).await;
    }
    machine.rest().await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_waits_for_room_can_be_kicked() {
    for journal in Journal::BOTH {
        let world = World::new().await;
        let mut machine = journal.machine(&world).await;
        world.hold_commits();
        report_too_much(journal, &mut machine).await;
        machine.kick.close(1001, "going down");
        assert_eq!(machine.close_code().await, 1001, "{journal:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_waits_for_room_is_still_asked_what_needs_no_commit() {
    for journal in Journal::BOTH {
        let world = World::new().await;
        let mut machine = journal.machine(&world).await;
        world.hold_commits();
        report_too_much(journal, &mut machine).await;
        let (ada, question) = (person("ada"), Question::Resumable(ResumableListRequest::default()));
        tokio::select! {
            answer = world.relay.answer(&ada, &question) => {
                panic!("{journal:?}: it was not asked: {answer:?}")
            },
            _ = machine.hear("resumable_list") => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_to_a_machine_that_is_kicked_fails_at_once() {
    for journal in Journal::BOTH {
        let world = World::new().await;
        let mut machine = journal.machine(&world).await;
        let (ada, question) = (person("ada"), Question::Resumable(ResumableListRequest::default()));
        let asked_at = Instant::now();
        let (answer, ()) = tokio::join!(world.relay.answer(&ada, &question), async {
            machine.hear("resumable_list").await;
            machine.kick.close(1001, "going down");
        });
        let is_away = matches!(answer, Err(Denied::Refused(Refusal::NoProxyConnected)));
        assert!(is_away, "{journal:?}: {answer:?}");
        assert!(asked_at.elapsed() < Duration::from_millis(10), "{journal:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_revoked_machine_is_disconnected_at_once_even_if_it_does_not_read() {
    let both = |journal| [(journal, true), (journal, false)];
    for (journal, reads) in Journal::BOTH.into_iter().flat_map(both) {
        let world = World::new().await;
        let mut watcher = world.client("bob").await;
        let mut machine = journal.machine(&world).await;
        if !reads {
            machine.stop_reading();
            world.relay.command(&SESSION.into(), wish("m1")).await.unwrap();
            world.rest().await;
        }
        world.door.revoke("attic");
        machine.say(&journal.report(1, "too late")).await;
        assert_away(&world, &mut watcher).await;
        if reads {
            assert_eq!(machine.close_code().await, 4003, "{journal:?}");
        }
        machine.read_again();
        assert_eq!(machine.rest().await, [] as [Value; 0], "{journal:?}, reads: {reads}");
        assert_eq!(
            world.recorded_texts(SESSION).await,
            [] as [String; 0],
            "{journal:?}, reads: {reads}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_frame_that_is_not_text_or_too_large_closes_the_connection() {
    for journal in Journal::BOTH {
        for (incoming, code) in [
            (Incoming::Binary, 1003),
            (Incoming::TooLarge, 1009),
            (Incoming::Text(Bytes::from_static(b"\xff\xfe")), 1007),
            (Incoming::Text(Bytes::from_static(b"words")), 1007),
        ] {
            let world = World::new().await;
            let mut watcher = world.client("bob").await;
            let mut machine = journal.machine(&world).await;
            machine.bring(incoming).await;
            machine.say(&journal.report(1, "too late")).await;
            assert_eq!(machine.close_code().await, code, "{journal:?}");
            assert_away(&world, &mut watcher).await;
            assert_eq!(
                world.recorded_texts(SESSION).await,
                [] as [String; 0],
                "{journal:?}: {code}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_proxy_that_does_not_introduce_itself_as_one_is_closed() {
    let world = World::new().await;
    let mut newer = hello(&[]);
    newer["peer_role"] = json!("proxy");
    newer["protocol_version"] = json!(2);
    for first in [heartbeat(), report(1, "early"), hello(&[]), newer] {
        let mut proxy = world.strange_proxy();
        proxy.say(&first).await;
        assert_eq!(proxy.hear("connection_error").await["type"], "connection_error");
        assert_eq!(proxy.close_code().await, 1002, "{first}");
    }
    let mut silent = world.strange_proxy();
    world.pass_ms(9_900).await;
    assert!(silent.is_open());
    world.pass_ms(200).await;
    assert_eq!(silent.close_code().await, 4001);
    assert!(world.relay.look_at_fleet().await.unwrap().machines().all().next().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_malformed_report_is_answered_and_does_not_hold_up_the_next() {
    let world = World::new().await;
    let mut machine = world.machine().await;
    machine.reports(1, "one").await;
    machine.tells(2, "proxy_message", &json!({ "message": 7 })).await;
    machine.tells(3, "no_such_report", &json!({})).await;
    for _ in [2, 3] {
        assert_eq!(machine.hear("connection_error").await["code"], "invalid_message");
    }
    machine.is_acknowledged(3).await;
    machine.reports(4, "four").await;
    machine.is_acknowledged(4).await;
    assert!(machine.is_open());
    assert_eq!(world.recorded_texts(SESSION).await, ["one", "four"]);
}

#[tokio::test(start_paused = true)]
async fn a_report_about_a_session_that_the_machine_did_not_name_is_acknowledged_but_not_recorded() {
    let world = World::new().await;
    let mut machine = world.machine().await;
    world.up("sess_2").await;
    let mut foreign = report(1, "of somebody else's session");
    foreign["session_id"] = json!("sess_2");
    machine.say(&foreign).await;
    machine.reports(2, "mine").await;
    machine.is_acknowledged(2).await;
    assert_eq!(world.recorded_texts("sess_2").await, [] as [String; 0]);
    assert_eq!(world.recorded_texts(SESSION).await, ["mine"]);
}
