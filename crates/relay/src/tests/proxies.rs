//! The connection of a proxy.

mod endings;

use std::collections::BTreeSet;

use domain::SessionId;
use serde_json::{Value, json};
use store::Failure;

use super::world::{Peer, SESSION, World, report, wish};
use crate::owner::Reply;
use crate::routes::ORDERS_WAITING_MAX;

/// Whether a machine has a journal, and numbers its reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Journal {
    Kept,
    /// As in version 1 of the document: its reports are neither numbered nor acknowledged.
    None,
}

impl Journal {
    const BOTH: [Self; 2] = [Self::Kept, Self::None];

    /// A machine that has brought up the session.
    async fn machine(self, world: &World) -> Peer {
        match self {
            Self::Kept => world.machine().await,
            Self::None => world.plain_machine().await,
        }
    }

    /// What an agent said, as such a machine reports it.
    fn report(self, number: u64, text: &str) -> Value {
        let mut report = report(number, text);
        if self == Self::None {
            report.as_object_mut().unwrap().remove("link_number");
        }
        report
    }
}

fn kinds(frames: &[Value]) -> Vec<&str> {
    frames.iter().map(|frame| frame["type"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_report_is_acknowledged_after_its_commit_and_shown_then() {
    let world = World::new().await;
    let mut machine = world.machine().await;
    let mut watcher = world.client("bob").await;
    world.hold_commits();
    machine.reports(1, "one").await;
    machine.reports(2, "two").await;
    assert_eq!(machine.rest().await, [] as [Value; 0]);
    assert_eq!(watcher.rest().await, [] as [Value; 0]);
    world.commit_again();
    machine.is_acknowledged(2).await;
    assert_eq!(kinds(&watcher.rest().await), ["message_event", "message_event"]);
}

#[tokio::test(start_paused = true)]
async fn a_report_that_comes_twice_is_recorded_once_and_acknowledged() {
    let world = World::new().await;
    let mut machine = world.machine().await;
    for number in [1, 2, 1, 2, 3] {
        machine.reports(number, &format!("text {number}")).await;
    }
    machine.is_acknowledged(3).await;
    assert_eq!(world.recorded_texts(SESSION).await, ["text 1", "text 2", "text 3"]);
}

#[tokio::test(start_paused = true)]
async fn acknowledgements_of_one_commit_are_one_frame() {
    let world = World::new().await;
    let mut machine = world.machine().await;
    world.hold_commits();
    for number in 1..=200 {
        machine.reports(number, "words").await;
    }
    machine.rest().await;
    let before = machine.writes;
    world.commit_again();
    let told = machine.rest().await;
    assert_eq!(told.last().unwrap()["through"], 200);
    let writes = machine.writes - before;
    assert!(writes <= 4, "{writes} writes");
}

/// Sessions of a plain proxy, which is given everything that waits at once.
async fn plain(world: &World, sessions: usize) -> (Peer, Vec<SessionId>) {
    let mut proxy = world.proxy(None).await;
    let names: Vec<_> = (0..sessions).map(|number| format!("plain_{number}")).collect();
    proxy.name(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    world.rest().await;
    (proxy, names.into_iter().map(Into::into).collect())
}

#[tokio::test(start_paused = true)]
async fn orders_of_one_commit_are_written_together_and_in_their_order() {
    let world = World::new().await;
    let (mut proxy, sessions) = plain(&world, 1).await;
    world.hold_commits();
    let sent = async {
        for number in 0..40 {
            let reply = Reply::Nobody;
            world.relay.tell(&sessions[0], wish(&format!("m{number}")), reply).await;
        }
    };
    sent.await;
    proxy.rest().await;
    let before = proxy.writes;
    world.commit_again();
    let orders = proxy.rest().await;
    let ids: Vec<_> = orders.iter().map(|it| it["client_message_id"].clone()).collect();
    let expected: Vec<_> = (0..40).map(|number| json!(format!("m{number}"))).collect();
    assert_eq!(ids, expected);
    let writes = proxy.writes - before;
    assert!(writes <= 4, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn a_proxy_that_does_not_take_its_orders_is_closed_and_told_them_again() {
    let world = World::new().await;
    let each = domain::session::queue::HANDED_MAX;
    let (mut proxy, sessions) = plain(&world, ORDERS_WAITING_MAX / each + 2).await;
    proxy.stop_reading();
    let mut expected = BTreeSet::new();
    for session in &sessions {
        for number in 0..each {
            let id = format!("{session}_m{number}");
            world.relay.command(session, wish(&id)).await.unwrap();
            expected.insert(id);
        }
    }
    assert!(expected.len() > ORDERS_WAITING_MAX);
    proxy.read_again();
    assert_eq!(proxy.close_code().await, 1013);
    drop(proxy);
    world.rest().await;
    // It comes back with fewer, so that all it is owed has room.
    let (mut proxy, sessions) = plain(&world, ORDERS_WAITING_MAX / each - 2).await;
    expected.retain(|id| sessions.iter().any(|session| id.starts_with(&format!("{session}_"))));
    let told = proxy.rest().await;
    let ids: Vec<_> = told.iter().filter_map(|it| it["client_message_id"].as_str()).collect();
    assert_eq!(ids.len(), expected.len());
    assert_eq!(ids.into_iter().map(str::to_owned).collect::<BTreeSet<_>>(), expected);
}

#[tokio::test(start_paused = true)]
async fn what_one_proxy_has_waiting_for_its_commit_is_bounded() {
    for journal in Journal::BOTH {
        let world = World::new().await;
        let mut machine = journal.machine(&world).await;
        let before = machine.taken_bytes();
        world.hold_commits();
        let large = "x".repeat(1 << 20);
        let each = journal.report(1, &large).to_string().len();
        for number in 1..=9 {
            machine.say(&journal.report(number, &large)).await;
        }
        world.rest().await;
        let waiting = machine.taken_bytes() - before;
        assert!(waiting <= (4 << 20) + each, "{journal:?}: {waiting} bytes");
        assert!(waiting > 3 << 20, "{journal:?}: {waiting} bytes");
        world.commit_again();
        world.rest().await;
        assert_eq!(machine.taken_bytes() - before, 9 * each, "{journal:?}");
        assert_eq!(world.recorded_texts(SESSION).await.len(), 9, "{journal:?}");
        if journal == Journal::Kept {
            machine.is_acknowledged(9).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_report_that_could_not_be_recorded_closes_the_connection_and_is_told_again() {
    for journal in Journal::BOTH {
        let world = World::new().await;
        let mut machine = journal.machine(&world).await;
        world.disk.fail_next(Failure::BeforeCommit);
        machine.say(&journal.report(1, "one")).await;
        assert_eq!(machine.close_code().await, 1011, "{journal:?}");
        assert_eq!(world.recorded_texts(SESSION).await, [] as [String; 0], "{journal:?}");
        drop(machine);
        let mut machine = journal.machine(&world).await;
        machine.say(&journal.report(1, "one")).await;
        machine.rest().await;
        assert_eq!(world.recorded_texts(SESSION).await, ["one"], "{journal:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_send_that_is_under_way_when_the_connection_breaks_is_told_again_to_the_same_journal() {
    let world = World::new().await;
    let mut machine = world.machine().await;
    world.relay.command(&SESSION.into(), wish("m1")).await.unwrap();
    machine.hear("send_message").await;
    drop(machine);
    world.rest().await;
    let mut machine = world.machine().await;
    assert_eq!(machine.hear("send_message").await["client_message_id"], "m1");
    let delivered = json!({ "client_message_id": "m1", "result": "delivered" });
    machine.tells(1, "proxy_send_result", &delivered).await;
    machine.hear("link_ack").await;
    drop(machine);
    world.rest().await;
    // Settled: nobody is told of it any more.
    let mut machine = world.machine().await;
    let told = machine.rest().await;
    assert!(!kinds(&told).contains(&"send_message"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_second_connection_of_a_machine_takes_over_from_the_first() {
    let world = World::new().await;
    let mut first = world.machine().await;
    let mut second = world.machine().await;
    world.rest().await;
    first.reports(1, "from the first").await;
    second.reports(1, "from the second").await;
    second.hear("link_ack").await;
    assert_eq!(world.recorded_texts(SESSION).await, ["from the second"]);
}
