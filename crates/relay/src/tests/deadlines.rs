//! Deadlines outlive the relay: those that passed while it was down, and those still to come.

use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::session::prompts::Settled;
use domain::session::{Deadlines, Event, Recorded, Session, delivery, prompts, status};
use store::{Failure, Ledger as _, Retention, Snapshot};

use super::world::{SOCKET, Settings, Stopped, World, says};
use crate::ports::Clock as _;

const GRACE_MS: u64 = 2_000;

fn failed(recorded: &Recorded) -> bool {
    matches!(&recorded.event, Event::Delivery(delivery::Event::Failed { .. }))
}

fn expired(recorded: &Recorded) -> bool {
    matches!(
        &recorded.event,
        Event::Prompt(prompts::Event::Settled { settled: Settled::ByExpiry, .. })
    )
}

fn left(recorded: &Recorded) -> bool {
    matches!(&recorded.event, Event::Delivery(delivery::Event::HandedOver { .. }))
}

#[tokio::test(start_paused = true)]
async fn a_send_that_became_overdue_while_the_relay_was_down_fails_and_never_runs() {
    let world = World::with(Settings::with_grace(GRACE_MS)).await;
    world.away("s1").await;
    world.send("s1", "m1").await;
    let stopped = world.kill();
    tokio::time::advance(Duration::from_secs(3_600)).await;
    let world = stopped.start().await;
    world.recorded("s1", failed).await;
    world.up("s1").await;
    assert!(!world.ledger("s1").await.iter().any(left));
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_returns_before_the_session_is_woken_does_not_get_an_overdue_send() {
    let world = World::with(Settings::with_grace(GRACE_MS)).await;
    world.away("s1").await;
    world.send("s1", "m1").await;
    let stopped = world.kill();
    tokio::time::advance(Duration::from_secs(3_600)).await;
    let world = stopped.start().await;
    world.up("s1").await;
    let ledger = world.ledger("s1").await;
    assert!(ledger.iter().any(failed) && !ledger.iter().any(left), "{ledger:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_send_that_waited_behind_a_run_when_the_relay_died_fails_and_never_runs() {
    let world = World::with(Settings::with_grace(GRACE_MS)).await;
    world.up("s1").await;
    world.runs("s1", "r1").await;
    world.send("s1", "m1").await;
    let stopped = world.kill();
    tokio::time::advance(Duration::from_secs(3_600)).await;
    let world = stopped.start().await;
    // Its machine comes back at once.
    world.up("s1").await;
    let ledger = world.ledger("s1").await;
    assert!(ledger.iter().any(failed) && !ledger.iter().any(left), "{ledger:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_restart_that_could_not_be_recorded_at_first_still_counts_from_when_the_relay_ended() {
    for cannot_load in [false, true] {
        let world = World::with(Settings::with_grace(GRACE_MS)).await;
        world.up("s1").await;
        world.runs("s1", "r1").await;
        world.send("s1", "m1").await;
        let stopped = world.kill();
        tokio::time::advance(Duration::from_secs(3_600)).await;
        let world = stopped.start().await;
        if cannot_load {
            world.disk.set_full(true);
        } else {
            world.disk.fail_next(Failure::BeforeCommit);
        }
        world.rest().await;
        world.disk.set_full(false);
        world.up("s1").await;
        let ledger = world.ledger("s1").await;
        assert!(ledger.iter().any(failed) && !ledger.iter().any(left), "{ledger:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_recorded_restart_is_not_recorded_again_after_a_failed_commit() {
    let world = World::with(Settings::with_grace(GRACE_MS)).await;
    world.up("s1").await;
    let stopped = world.kill();
    let world = stopped.start().await;
    world.rest().await;
    world.up("s1").await;
    world.disk.fail_next(Failure::BeforeCommit);
    assert!(world.try_send("s1", "m1").await.is_err());
    world.send("s1", "m1").await;
    let is_down = |it: &&Recorded| matches!(it.event, Event::Status(status::Event::Down { .. }));
    assert_eq!(world.ledger("s1").await.iter().filter(is_down).count(), 1);
    assert!(world.is_reached("s1"));
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_card_is_unreadable_is_down_since_its_last_event() {
    let world = World::with(Settings::with_grace(60_000)).await;
    world.up("s1").await;
    world.runs("s1", "r1").await;
    world.send("s1", "m1").await;
    tokio::time::advance(Duration::from_secs(600)).await;
    world.report_through("s1", SOCKET, says("a1", "still at work")).await;
    let alive_at = world.clock.now();
    let stopped = world.kill();
    stopped.spoil("s1", |append, _| append.card = Some(b"not a card".to_vec())).await;
    tokio::time::advance(Duration::from_secs(30)).await;
    let world = stopped.start().await;
    assert!(!world.ledger("s1").await.iter().any(failed));
    assert_eq!(world.recorded("s1", failed).await.at, alive_at.plus_ms(60_000));
}

#[tokio::test(start_paused = true)]
async fn a_grace_counts_from_the_start_if_nothing_tells_when_the_relay_ended() {
    let world = World::with(Settings::with_grace(60_000)).await;
    world.up("s1").await;
    world.runs("s1", "r1").await;
    world.send("s1", "m1").await;
    let mut session = Session::default();
    world.ledger("s1").await.iter().for_each(|event| session.apply(event));
    let stopped = world.kill();
    stopped
        .spoil("s1", |append, sequence| {
            let body = store::codec::encode_session(&session);
            append.snapshot = Some(Snapshot { sequence, body });
        })
        .await;
    let retention = Retention { age_ms_max: Some(0), size_bytes_max: None };
    let later = stopped.clock.now().plus_ms(1_000);
    while stopped.ledger().await.maintain(later, &retention).unwrap() {}
    tokio::time::advance(Duration::from_secs(3_600)).await;
    let started_at = stopped.clock.now();
    let world = stopped.start().await;
    assert_eq!(world.recorded("s1", failed).await.at, started_at.plus_ms(60_000));
}

#[tokio::test(start_paused = true)]
async fn a_relay_that_is_soon_back_keeps_what_waits_for_as_long_as_if_it_had_not_ended() {
    let world = World::with(Settings::with_grace(60_000)).await;
    world.up("s1").await;
    world.runs("s1", "r1").await;
    world.send("s1", "m1").await;
    tokio::time::advance(Duration::from_secs(600)).await;
    // That the relay lived then is known by another session alone.
    world.up("s2").await;
    let alive_at = world.clock.now();
    let stopped = world.kill();
    tokio::time::advance(Duration::from_secs(30)).await;
    let world = stopped.start().await;
    assert!(!world.ledger("s1").await.iter().any(failed));
    assert_eq!(world.recorded("s1", failed).await.at, alive_at.plus_ms(60_000));
}

#[tokio::test(start_paused = true)]
async fn a_send_that_still_waits_when_the_relay_starts_fails_at_its_time() {
    let world = World::with(Settings::with_grace(60_000)).await;
    world.away("s1").await;
    world.send("s1", "m1").await;
    let accepted_at = world.clock.now();
    let stopped = world.kill();
    tokio::time::advance(Duration::from_secs(30)).await;
    let world = stopped.start().await;
    assert!(!world.ledger("s1").await.iter().any(failed));
    assert_eq!(world.recorded("s1", failed).await.at, accepted_at.plus_ms(60_000));
}

#[tokio::test(start_paused = true)]
async fn a_prompt_with_a_timeout_expires_although_its_machine_was_away_before_the_restart() {
    let world = World::with(Settings::with_grace(GRACE_MS)).await;
    world.up("s1").await;
    world.ask("s1", "p1", 60_000).await;
    let asked_at = world.clock.now();
    world.down("s1").await;
    let stopped = world.kill();
    tokio::time::advance(Duration::from_secs(10)).await;
    let world = stopped.start().await;
    assert_eq!(world.recorded("s1", expired).await.at, asked_at.plus_ms(60_000));
    let card = world.relay.directory().get(&"s1".into()).unwrap().card;
    assert!(card.prompts.is_empty(), "{card:?}");
}

#[tokio::test(start_paused = true)]
async fn only_sessions_whose_time_has_come_are_woken_when_the_relay_starts() {
    let world = World::with(Settings::with_grace(GRACE_MS)).await;
    for number in 0..300 {
        world.away(&format!("s{number}")).await;
    }
    for overdue in ["s7", "s70"] {
        world.send(overdue, "m1").await;
    }
    let stopped = world.kill();
    tokio::time::advance(Duration::from_secs(3_600)).await;
    let world = stopped.start().await;
    for overdue in ["s7", "s70"] {
        world.recorded(overdue, failed).await;
    }
    assert_eq!(world.relay.metrics().owners.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_after_a_start_does_not_wait_until_every_overdue_session_is_loaded() {
    const SESSIONS: i64 = 300;
    for is_reached in [false, true] {
        let world = World::with(Settings::with_grace(GRACE_MS)).await;
        for number in 0..SESSIONS {
            let session = format!("s{number}");
            world.up(&session).await;
            if is_reached {
                world.runs(&session, "r1").await;
            } else {
                world.down(&session).await;
            }
            world.send(&session, "m1").await;
        }
        let stopped = world.kill();
        tokio::time::advance(Duration::from_secs(3_600)).await;
        let world = stopped.start().await;
        world.up("fresh").await;
        let owners = world.relay.metrics().owners.load(Ordering::Relaxed);
        assert!(owners < SESSIONS / 3, "{owners} were loaded first");
        // One that still waits for its turn hears of the restart before its machine is back.
        let last = format!("s{}", SESSIONS - 1);
        world.up(&last).await;
        let ledger = world.ledger(&last).await;
        assert!(ledger.iter().any(failed) && !ledger.iter().any(left), "{ledger:#?}");
        for number in 0..SESSIONS {
            world.recorded(&format!("s{number}"), failed).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_card_does_not_say_its_deadlines_is_woken_once_to_tell_them() {
    let world = World::with(Settings::with_grace(GRACE_MS)).await;
    world.away("s1").await;
    world.send("s1", "m1").await;
    let stopped = world.kill();
    rewrite_card(&stopped, "s1", |card| drop(card.as_object_mut().unwrap().remove("deadlines")))
        .await;
    tokio::time::advance(Duration::from_secs(3_600)).await;
    let world = stopped.start().await;
    world.recorded("s1", failed).await;
    let known = || world.relay.directory().get(&"s1".into()).unwrap().card.deadlines;
    assert_eq!(known(), Some(Deadlines::default()));
}

/// Puts another card in the place of a session's, while no relay runs.
async fn rewrite_card(stopped: &Stopped, session: &str, change: impl Fn(&mut serde_json::Value)) {
    let row = stopped.ledger().await.reader().unwrap().stream(&session.into()).unwrap().unwrap();
    let mut card = serde_json::from_slice(&row.card.unwrap()).unwrap();
    change(&mut card);
    let card = serde_json::to_vec(&card).unwrap();
    stopped.spoil(session, |append, _| append.card = Some(card)).await;
}
