//! The owner of a session: its guarantees when commits wait, fail, or succeed after all.

use domain::Refusal;
use domain::session::{Command, Wish};
use serde_json::json;
use store::Failure;
use wire::native::Denied;

use super::world::{SESSION, World, is_failed, send, wish};
use crate::owner::{APPENDS_IN_FLIGHT_MAX, NAP_MS_MAX};

/// The grace of a send that no machine comes for.
const GRACE_MS: u64 = 30_000;
/// How long a session that nobody reaches stays in memory.
const ASLEEP_AFTER_MS: u64 = 600_000;

/// The kinds of the recorded events, as they are named on the wire.
async fn kinds(world: &World) -> Vec<String> {
    let events = world.ledger(SESSION).await;
    let form = wire::native::Form::Full;
    let frames = events.iter().filter_map(|recorded| {
        wire::native::encode_event(&SESSION.into(), recorded, form)
            .map(|frame| serde_json::from_slice::<serde_json::Value>(&frame).unwrap())
    });
    frames.map(|frame| frame["type"].as_str().unwrap().to_owned()).collect()
}

fn resume_queue() -> Command {
    Command::Person(super::world::person("ada"), Wish::ResumeQueue)
}

#[tokio::test(start_paused = true)]
async fn a_failed_commit_leaves_no_trace_and_whoever_waits_is_told() {
    let world = World::new().await;
    let _machine = world.machine().await;
    let mut watcher = world.client("bob").await;
    let (before, session) = (world.head(), SESSION.into());
    world.hold_commits();
    world.disk.fail_next(Failure::BeforeCommit);
    let (one, two, ()) = tokio::join!(
        world.relay.command(&session, wish("m1")),
        world.relay.command(&session, wish("m2")),
        async {
            world.rest().await;
            world.commit_again();
        },
    );
    assert!(is_failed(&one) && is_failed(&two), "{one:?} {two:?}");
    assert_eq!(watcher.rest().await, [] as [serde_json::Value; 0]);
    assert_eq!(world.head(), before);
    assert_eq!(world.ledger(SESSION).await.len() as u64, before);

    // The same ids are sends like any other, and the sequence has no gap.
    let accepted = world.relay.command(&session, wish("m1")).await.unwrap();
    assert_eq!(accepted[0].recorded.sequence.0, before + 1);
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_happened_although_it_was_reported_as_failed_is_shown_without_being_asked_for()
 {
    let world = World::new().await;
    let mut machine = world.machine().await;
    let mut watcher = world.client("bob").await;
    world.disk.fail_next(Failure::AfterCommit);
    let answer = world.relay.command(&SESSION.into(), wish("m1")).await;
    assert!(is_failed(&answer), "{answer:?}");
    let shown = watcher.hear("message_accepted").await;
    assert_eq!(shown["client_message_id"], "m1");
    assert_eq!(machine.hear("send_message").await["client_message_id"], "m1");

    // Its sender asks again, and is told how it stands: it is not sent twice.
    let again = world.relay.command(&SESSION.into(), wish("m1")).await;
    assert!(matches!(again, Err(Denied::Refused(Refusal::SendRepeated(_)))), "{again:?}");
    world.pass_ms(1_000).await;
    let repeats = machine.rest().await;
    assert!(repeats.iter().all(|frame| frame["type"] != "send_message"), "{repeats:?}");
}

#[tokio::test(start_paused = true)]
async fn a_message_that_comes_while_its_session_is_erased_does_not_bring_it_back() {
    let world = World::new().await;
    world.away(SESSION).await;
    let session = SESSION.into();
    // Its end and its erasure are recorded, and the ledger still has it.
    world.hold_commits_after(2);
    let (erased, said, ()) = tokio::join!(
        world.relay.erase(&session),
        async {
            world.pass_ms(10).await;
            world.try_send(SESSION, "m1").await
        },
        async {
            world.pass_ms(20).await;
            world.commit_again();
        },
    );
    erased.unwrap();
    let is_unknown = matches!(said, Err(Denied::Refused(Refusal::SessionUnknown)));
    assert!(is_unknown, "{said:?}");
    world.rest().await;
    assert!(!world.relay.directory().knows(&session));
    let streams = world.relay.books().streams().await.unwrap();
    assert!(streams.iter().all(|row| row.id != session), "{streams:?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_full_disk_refused_is_taken_once_there_is_room() {
    let world = World::new().await;
    let _machine = world.machine().await;
    world.disk.set_full(true);
    assert!(is_failed(&world.relay.command(&SESSION.into(), wish("m1")).await));
    assert!(is_failed(&world.relay.command(&SESSION.into(), wish("m1")).await));
    world.disk.set_full(false);
    world.relay.command(&SESSION.into(), wish("m1")).await.unwrap();
    let accepted = kinds(&world).await.iter().filter(|kind| *kind == "message_accepted").count();
    assert_eq!(accepted, 1);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_damaged_refuses_and_the_others_go_on() {
    let world = World::new().await;
    let _machine = world.machine_with(&[SESSION, "sess_2"]).await;
    world.disk.damage(&SESSION.into());
    for id in ["m1", "m2"] {
        let answer = world.relay.command(&SESSION.into(), wish(id)).await;
        let Err(Denied::Code(code, _)) = answer else { panic!("{answer:?}") };
        assert_eq!(code.as_str(), "session_damaged");
    }
    world.relay.command(&"sess_2".into(), wish("m1")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_refusal_waits_for_the_commit_of_what_it_was_decided_on() {
    let world = World::new().await;
    let _machine = world.machine().await;
    let mut client = world.client("ada").await;
    world.hold_commits();
    client.say(&send("m1", "once")).await;
    client.say(&send("m1", "once")).await;
    client
        .say(&json!({
            "type": "permission_response", "protocol_version": 1, "request_id": "r1",
            "session_id": SESSION, "prompt_id": "nobody asked", "choice_id": "yes",
        }))
        .await;
    assert_eq!(client.rest().await, [] as [serde_json::Value; 0]);
    world.commit_again();
    let told: Vec<_> = client.rest().await.iter().map(|it| it["type"].clone()).collect();
    // The repeat is answered by the event itself.
    assert!(told.contains(&json!("message_accepted")), "{told:?}");
    assert!(told.contains(&json!("agent_control_result")), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_was_decided_on_a_commit_that_failed_is_no_refusal() {
    let world = World::new().await;
    let _machine = world.machine().await;
    let session = SESSION.into();
    world.hold_commits();
    world.disk.fail_next(Failure::BeforeCommit);
    let (first, repeat, ()) = tokio::join!(
        world.relay.command(&session, wish("m1")),
        world.relay.command(&session, wish("m1")),
        async {
            world.rest().await;
            world.commit_again();
        },
    );
    assert!(is_failed(&first), "{first:?}");
    // "You sent that already" would be a lie: nothing was recorded.
    assert!(is_failed(&repeat), "{repeat:?}");
}

#[tokio::test(start_paused = true)]
async fn a_join_is_answered_after_the_commit_before_it_and_not_at_all_if_that_fails() {
    let world = World::new().await;
    let _machine = world.machine().await;
    let (before, session) = (world.head(), SESSION.into());
    for fails in [false, true] {
        world.hold_commits();
        if fails {
            world.disk.fail_next(Failure::BeforeCommit);
        }
        let id = format!("m_{fails}");
        let (sent, joined, ()) = tokio::join!(
            world.relay.command(&session, wish(&id)),
            world.relay.join(&session),
            async {
                world.rest().await;
                world.commit_again();
            },
        );
        assert_eq!(is_failed(&sent), fails);
        match joined {
            Some(joined) => assert!(!fails && joined.head.0 > before, "{joined:?}"),
            None => assert!(fails),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn reports_are_not_recorded_without_the_one_before_them_that_was_lost() {
    let world = World::new().await;
    let mut machine = world.machine().await;
    machine.reports(1, "one").await;
    assert_eq!(machine.hear("link_ack").await["through"], 1);
    world.hold_commits();
    machine.reports(2, "two").await;
    world.rest().await;
    world.disk.fail_next(Failure::BeforeCommit);
    world.commit_again();
    // It was said before the proxy could know.
    machine.reports(3, "three").await;
    assert_eq!(machine.close_code().await, 1011);
    assert_eq!(world.recorded_texts(SESSION).await, ["one"]);
    let acks = machine.rest().await;
    assert!(acks.iter().all(|frame| frame["type"] != "link_ack"), "{acks:?}");
    drop(machine);

    // The next connection tells everything again that was not acknowledged.
    let mut machine = world.machine().await;
    machine.reports(2, "two").await;
    machine.reports(3, "three").await;
    machine.until(|frame| frame["type"] == "link_ack" && frame["through"] == 3).await;
    assert_eq!(world.recorded_texts(SESSION).await, ["one", "two", "three"]);
}

#[tokio::test(start_paused = true)]
async fn a_report_that_is_told_again_after_a_lost_acknowledgement_is_recorded_once() {
    let world = World::new().await;
    let mut machine = world.machine().await;
    world.disk.fail_next(Failure::AfterCommit);
    machine.reports(1, "one").await;
    assert_eq!(machine.close_code().await, 1011);
    drop(machine);
    let mut machine = world.machine().await;
    machine.reports(1, "one").await;
    machine.reports(2, "two").await;
    machine.until(|frame| frame["type"] == "link_ack" && frame["through"] == 2).await;
    assert_eq!(world.recorded_texts(SESSION).await, ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn a_send_that_no_machine_comes_for_fails_when_its_grace_is_over() {
    let world = World::new().await;
    drop(world.machine().await);
    let mut client = world.client("ada").await;
    client.say(&send("m1", "hi")).await;
    client.hear("message_accepted").await;
    client.lives_on_ms(GRACE_MS - 100).await;
    let early = client.rest().await;
    assert!(early.iter().all(|frame| frame["type"] != "message_failed"), "{early:?}");
    world.pass_ms(200).await;
    let failed = client.hear("message_failed").await;
    assert_eq!(failed["error"]["code"], "session_not_connected");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_a_clock_jumped_over_is_kept_within_one_nap() {
    let world = World::new().await;
    drop(world.machine().await);
    let mut client = world.client("ada").await;
    client.say(&send("m1", "hi")).await;
    client.hear("message_accepted").await;
    world.clock.jump(3_600_000);
    client.say(&json!({ "type": "heartbeat", "protocol_version": 1 })).await;
    world.pass_ms(NAP_MS_MAX + 1).await;
    client.hear("message_failed").await;
}

#[tokio::test(start_paused = true)]
async fn a_deadline_whose_commit_fails_is_kept_all_the_same() {
    let world = World::new().await;
    drop(world.machine().await);
    let mut client = world.client("ada").await;
    client.say(&send("m1", "hi")).await;
    client.hear("message_accepted").await;
    world.disk.fail_next(Failure::BeforeCommit);
    client.lives_on_ms(GRACE_MS + 1_000).await;
    client.hear("message_failed").await;
    let failures = kinds(&world).await.iter().filter(|kind| *kind == "message_failed").count();
    assert_eq!(failures, 1);
}

#[tokio::test(start_paused = true)]
async fn few_appends_wait_at_once_and_everything_is_answered_in_its_order() {
    let world = World::new().await;
    let _machine = world.machine().await;
    let mut client = world.client("ada").await;
    world.hold_commits();
    for number in 0..40 {
        client.say(&send(&format!("m{number}"), "hi")).await;
        // Each is taken by itself: those that wait together share an append.
        world.rest().await;
    }
    let waiting = &world.relay.metrics().appends_waiting;
    let waiting = waiting.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(u64::try_from(waiting).unwrap(), APPENDS_IN_FLIGHT_MAX);
    world.commit_again();
    for number in 0..40 {
        let accepted = client.hear("message_accepted").await;
        assert_eq!(accepted["client_message_id"], format!("m{number}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_nobody_reaches_falls_asleep_and_wakes_where_it_was() {
    let world = World::new().await;
    drop(world.machine().await);
    let owners = || world.relay.metrics().owners.load(std::sync::atomic::Ordering::Relaxed);
    let awake = owners();
    assert!(awake > 0);
    let head = world.head();
    world.pass_ms(ASLEEP_AFTER_MS * 2).await;
    assert_eq!(owners(), awake - 1);
    let woken = world.relay.command(&SESSION.into(), wish("m1")).await.unwrap();
    assert_eq!(woken[0].recorded.sequence.0, world.head());
    assert!(world.head() > head);
}

#[tokio::test(start_paused = true)]
async fn a_session_is_brought_back_from_its_last_state_and_the_events_after_it() {
    let world = World::new().await;
    let mut machine = world.machine().await;
    for number in 1..=700 {
        machine.reports(number, &format!("word {number}")).await;
    }
    machine.until(|frame| frame["type"] == "link_ack" && frame["through"] == 700).await;
    world.relay.command(&SESSION.into(), wish("m1")).await.unwrap();
    let head = world.head();
    world.disk.fail_next(Failure::BeforeCommit);
    assert!(is_failed(&world.relay.command(&SESSION.into(), wish("m2")).await));

    // It still knows the send, who reaches it, and how far the journal was heard.
    let again = world.relay.command(&SESSION.into(), wish("m1")).await;
    assert!(matches!(again, Err(Denied::Refused(Refusal::SendRepeated(_)))), "{again:?}");
    machine.reports(700, "word 700").await;
    machine.reports(701, "word 701").await;
    machine.until(|frame| frame["type"] == "link_ack" && frame["through"] == 701).await;
    assert_eq!(world.head(), head + 1);
    assert_eq!(world.recorded_texts(SESSION).await.len(), 701);
    let resumed = world.relay.command(&SESSION.into(), resume_queue()).await.unwrap();
    assert!(resumed.is_empty());
}
