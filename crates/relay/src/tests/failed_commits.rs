//! A failed commit leaves no trace, and the connection continues from where it was.

use std::sync::Arc;
use std::time::Duration;

use domain::LinkPosition;
use domain::content::Digest;
use domain::fleet;
use domain::session::status::{self, Via};
use domain::session::{Command, Event, Order, Recorded, Report, Wish, Word, delivery};
use store::Failure;
use tokio::sync::mpsc;

use super::world::{
    PATIENCE, SESSION, SOCKET, Settings, World, heartbeat, is_failed, person, says,
};
use crate::hub::Live;
use crate::routes::Errand;

/// A plain proxy names no ids: the edge invents one for each message it passes on.
async fn observe(world: &World, connection: &str, id: &str, text: &str) {
    let mut report = says(id, text);
    if let Report::Message { message, has_own_id, .. } = &mut report {
        message.digest = Some(Digest(text.bytes().map(u64::from).sum()));
        *has_own_id = false;
    }
    world.report_through("s1", connection, report).await;
}

/// The orders of a connection of which there is only the name.
fn orders_of(world: &World, connection: &str) -> mpsc::Receiver<Errand> {
    world.relay.routes().open(&connection.into(), Arc::default())
}

async fn connect_plain(world: &World, connection: &str) {
    world.up_through("s1", connection, None).await;
}

async fn fail_a_commit(world: &World) {
    world.disk.fail_next(Failure::BeforeCommit);
    let rename = Command::Person(person("ada"), Wish::Rename("lost".to_owned()));
    assert!(is_failed(&world.relay.command(&"s1".into(), rename).await));
}

#[tokio::test(start_paused = true)]
async fn a_failed_commit_does_not_disturb_a_proxy_that_re_sends_its_history() {
    let world = World::new().await;
    connect_plain(&world, SOCKET).await;
    for (id, text) in [("x1", "Looking."), ("x2", "Done."), ("x3", "Bye.")] {
        observe(&world, SOCKET, id, text).await;
    }
    connect_plain(&world, "socket-2").await;
    observe(&world, "socket-2", "y1", "Looking.").await;
    fail_a_commit(&world).await;
    for (id, text) in [("y2", "Done."), ("y3", "Bye."), ("y4", "Done.")] {
        observe(&world, "socket-2", id, text).await;
    }
    let texts = world.recorded_texts("s1").await;
    assert_eq!(texts, ["Looking.", "Done.", "Bye.", "Done."]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_commit_does_not_make_an_old_message_of_a_new_one() {
    let world = World::new().await;
    connect_plain(&world, SOCKET).await;
    observe(&world, SOCKET, "x1", "Done.").await;
    fail_a_commit(&world).await;
    observe(&world, SOCKET, "x2", "Done.").await;
    assert_eq!(world.recorded_texts("s1").await, ["Done.", "Done."]);
}

#[tokio::test(start_paused = true)]
async fn a_word_is_not_recorded_without_the_one_before_it_for_which_the_ledger_could_not_be_read() {
    let world = World::new().await;
    let said = |connection: &str, number: u64| {
        let position = Some(LinkPosition { link: "journal-1".into(), number });
        let report = says(&format!("x{number}"), &number.to_string());
        Command::Proxy(Word { connection: connection.into(), position, report })
    };
    world.up("s1").await;
    fail_a_commit(&world).await;
    world.disk.set_full(true);
    let first = world.relay.command(&"s1".into(), said(SOCKET, 1)).await;
    assert!(is_failed(&first), "{first:?}");
    world.disk.set_full(false);
    let second = world.relay.command(&"s1".into(), said(SOCKET, 2)).await;
    assert!(is_failed(&second), "{second:?}");
    // The next connection tells both again.
    world.up_through("s1", "socket-2", Some("journal-1")).await;
    for number in [1, 2] {
        world.tell("s1", said("socket-2", number)).await;
    }
    assert_eq!(world.recorded_texts("s1").await, ["1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn a_machine_whose_going_could_not_be_recorded_is_away_once_commits_work_again() {
    let world = World::with(Settings::with_grace(2_000)).await;
    let machine = world.machine().await;
    world.disk.set_full(true);
    drop(machine);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(world.is_reached(SESSION), "its going was lost");
    world.disk.set_full(false);
    let is_down = |it: &Recorded| matches!(it.event, Event::Status(status::Event::Down { .. }));
    world.recorded(SESSION, is_down).await;
    // What is sent now waits for the machine no longer than it may.
    world.send(SESSION, "m1").await;
    let has_failed =
        |it: &Recorded| matches!(it.event, Event::Delivery(delivery::Event::Failed { .. }));
    world.recorded(SESSION, has_failed).await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_whose_going_the_fleet_could_not_record_is_not_launched_on() {
    let world = World::new().await;
    let machine = world.proxy(None).await;
    let is_there = async || {
        let fleet = world.relay.look_at_fleet().await.unwrap();
        fleet.machines().all().any(|(_, machine)| machine.via.is_some())
    };
    assert!(is_there().await);
    world.disk.fail_next(Failure::BeforeCommit);
    let begun = tokio::time::Instant::now();
    drop(machine);
    while is_there().await {
        assert!(begun.elapsed() < PATIENCE, "it still seems to be there");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_restart_could_not_be_recorded_is_away_once_commits_work_again() {
    let world = World::with(Settings::with_grace(2_000)).await;
    world.up("s1").await;
    let stopped = world.kill();
    stopped.disk.fail_next(Failure::BeforeCommit);
    let world = stopped.start().await;
    world.recorded("s1", |it| matches!(it.event, Event::Status(status::Event::Down { .. }))).await;
}

#[tokio::test(start_paused = true)]
async fn a_first_commit_that_was_reported_as_failed_is_shown_before_the_next_one() {
    let world = World::new().await;
    let mut machine = world.proxy(Some("link_1")).await;
    let mut watcher = world.client("bob").await;
    // The claim is recorded first; the session comes up in the next commit.
    world.hold_commits_after(1);
    machine.name(&[SESSION]).await;
    // A machine that takes no answer keeps its connection open although it is to be closed.
    machine.stop_reading();
    machine.say(&heartbeat()).await;
    world.rest().await;
    world.disk.fail_next(Failure::AfterCommit);
    world.commit_again();
    watcher.hear("session_up").await;
    assert!(world.is_reached(SESSION));
    assert_eq!(world.head(), 1);
    machine.read_again();
    assert_eq!(machine.close_code().await, 1011);
    watcher.hear("session_down").await;
}

#[tokio::test(start_paused = true)]
async fn looking_at_a_session_after_a_failed_commit_repairs_a_lost_disconnect() {
    let world = World::new().await;
    let machine = world.machine().await;
    // The first fails for the fleet, the second for the session.
    world.disk.fail_next(Failure::BeforeCommit);
    world.disk.fail_next(Failure::BeforeCommit);
    drop(machine);
    world.rest().await;
    assert!(world.is_reached(SESSION), "its disconnect was lost");
    let joined = world.relay.glance(&SESSION.into()).await.unwrap();
    assert!(!world.is_reached(SESSION));
    assert_eq!(joined.head.0, world.head());
}

#[tokio::test(start_paused = true)]
async fn an_order_that_left_before_a_failed_commit_does_not_leave_again() {
    let world = World::new().await;
    let mut orders = orders_of(&world, SOCKET);
    connect_plain(&world, SOCKET).await;
    world.send("s1", "m1").await;
    assert!(matches!(orders.try_recv(), Ok(Errand::Order(_, Order::Deliver { .. }))));
    fail_a_commit(&world).await;
    world.send("s1", "m2").await;
    let Ok(Errand::Order(_, Order::Deliver { send, .. })) = orders.try_recv() else { panic!() };
    assert_eq!(send.id.as_str(), "m2");
    assert!(orders.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn an_order_whose_commit_was_recorded_but_reported_as_failed_leaves_once() {
    let world = World::new().await;
    let mut orders = orders_of(&world, SOCKET);
    connect_plain(&world, SOCKET).await;
    world.disk.fail_next(Failure::AfterCommit);
    assert!(world.try_send("s1", "m1").await.is_err());
    world.send("s1", "m2").await;
    let mut left = vec![];
    while let Ok(Errand::Order(_, Order::Deliver { send, .. })) = orders.try_recv() {
        left.push(send.id.to_string());
    }
    assert_eq!(left, ["m1", "m2"]);
}

#[tokio::test(start_paused = true)]
async fn a_launch_that_was_recorded_but_reported_as_failed_reaches_its_machine_and_its_asker() {
    let world = World::new().await;
    let mut orders = orders_of(&world, SOCKET);
    let via = Via { connection: SOCKET.into(), link: None };
    let (machine, offer) = ("attic".into(), fleet::Offer::default());
    world.relay.fleet(fleet::Command::Connected { via, machine, offer }).await.unwrap();
    let mut watch = world.relay.watch();
    world.disk.fail_next(Failure::AfterCommit);
    let wish = fleet::LaunchWish {
        request: "r1".into(),
        agent: "demo".into(),
        workspace_path: None,
        window_title: None,
        machine: Some("attic".into()),
        model: None,
        permission_mode: None,
        has_worktree: false,
        earlier: None,
        arguments: vec![],
    };
    let told = world.relay.fleet(fleet::Command::Launch(person("ada"), Box::new(wish))).await;
    assert!(is_failed(&told), "{told:?}");
    let sent = tokio::time::timeout(PATIENCE, orders.recv()).await.unwrap();
    assert!(matches!(sent, Some(Errand::Launch(launch)) if launch.request.as_str() == "r1"));
    let shown = watch.recv().await.unwrap();
    assert!(matches!(shown.first(), Some(Live::Fleet(_))));
}
