//! Damaged data on disk: what can be rebuilt is rebuilt, and the rest affects only its session.

use domain::content::{ToolCall, ToolDetail, ToolKind, ToolStatus};
use domain::session::status::{self, CloseReason, Via};
use domain::session::{Event, Recorded, Report, Session, transcript};
use domain::{Content, Refusal, Sequence, fleet};
use serde_json::{Value, json};
use store::{Append, Ledger as _, Retention, Snapshot};
use wire::native::Denied;

use super::world::{SOCKET, World, heartbeat};
use crate::ports::Clock as _;

const DAMAGED: &str = "session_damaged";

fn code(denied: Result<(), Denied>) -> String {
    match denied {
        Err(Denied::Code(code, _)) => code.to_string(),
        other => panic!("{other:?}"),
    }
}

fn state(body: &str) -> impl FnOnce(&mut Append, Sequence) {
    let body = body.as_bytes().to_vec();
    move |append, head| append.snapshot = Some(Snapshot { sequence: head, body })
}

#[tokio::test(start_paused = true)]
async fn a_card_that_cannot_be_read_is_made_again_from_its_session() {
    let world = World::new().await;
    world.up("s1").await;
    world.ask("s1", "p1", 3_600_000).await;
    let stopped = world.kill();
    stopped.spoil("s1", |append, _| append.card = Some(b"not a card".to_vec())).await;
    let world = stopped.start().await;
    let card = world.relay.directory().get(&"s1".into()).unwrap().card;
    assert_eq!(card.prompts.len(), 1);
    assert_eq!(card.status.via(), None, "nobody is connected to a relay that has just started");
    let stopped = world.kill();
    let row = stopped.ledger().await.reader().unwrap().stream(&"s1".into()).unwrap().unwrap();
    assert!(store::codec::decode_card(&row.card.unwrap()).is_ok(), "it is stored again");
}

#[tokio::test(start_paused = true)]
async fn a_state_that_cannot_be_read_is_replayed_from_the_ledger_and_stored_again() {
    for body in ["not a state", r#"{"v":999,"state":{}}"#, "{}"] {
        let world = World::new().await;
        world.up("s1").await;
        world.down("s1").await;
        world.send("s1", "m1").await;
        let stopped = world.kill();
        stopped.spoil("s1", state(body)).await;
        let world = stopped.start().await;
        assert!(matches!(
            world.try_send("s1", "m1").await,
            Err(Denied::Refused(Refusal::SendRepeated(_)))
        ));
        world.send("s1", "m2").await;
        let stopped = world.kill();
        let lease = stopped.ledger().await.acquire(&"s1".into(), "test").unwrap();
        let snapshot = lease.snapshot.unwrap();
        let stored = store::codec::decode_session(&snapshot.body).unwrap();
        assert_eq!((stored.state.head(), stored.is_older), (snapshot.sequence, false));
    }
}

/// The state as a release stored it that did not know of tool calls at work.
fn of_version_1(events: &[Recorded]) -> String {
    let mut session = Session::default();
    for event in events {
        session.apply(event);
    }
    let mut stored: Value =
        serde_json::from_slice(&store::codec::encode_session(&session)).unwrap();
    stored["v"] = json!(1);
    stored["state"]["transcript"].as_object_mut().unwrap().remove("tools");
    stored.to_string()
}

#[tokio::test(start_paused = true)]
async fn a_state_that_an_earlier_release_stored_lacks_nothing_that_its_events_say() {
    let world = World::new().await;
    world.up("s1").await;
    world.runs("s1", "r1").await;
    let call = ToolCall {
        id: "t1".into(),
        tool: "Bash".to_owned(),
        kind: ToolKind::Execute,
        status: ToolStatus::Running,
        detail: Content::Open(ToolDetail::default()),
        parent: None,
        run: None,
    };
    world.report_through("s1", SOCKET, Report::ToolCall(call)).await;
    let stored = of_version_1(&world.ledger("s1").await);
    let stopped = world.kill();
    stopped.spoil("s1", state(&stored)).await;
    let world = stopped.start().await;
    world.up("s1").await;
    let closed = Report::Closed { reason: CloseReason::TargetClosed, request: None };
    world.report_through("s1", SOCKET, closed).await;
    let is_cancelled = |recorded: &Recorded| {
        matches!(&recorded.event, Event::Transcript(transcript::Event::ToolUpdate(update))
            if update.id.as_str() == "t1" && update.status == ToolStatus::Cancelled)
    };
    assert!(world.ledger("s1").await.iter().any(is_cancelled));
    let stopped = world.kill();
    let snapshot = stopped.ledger().await.acquire(&"s1".into(), "test").unwrap().snapshot.unwrap();
    assert!(!store::codec::decode_session(&snapshot.body).unwrap().is_older);
}

#[tokio::test(start_paused = true)]
async fn a_state_that_an_earlier_release_stored_counts_where_retention_took_its_events() {
    let world = World::new().await;
    world.away("s1").await;
    let stored = of_version_1(&world.ledger("s1").await);
    let stopped = world.kill();
    stopped.spoil("s1", state(&stored)).await;
    let retention = Retention { age_ms_max: Some(0), size_bytes_max: None };
    let later = stopped.clock.now().plus_ms(1_000);
    while stopped.ledger().await.maintain(later, &retention).unwrap() {}
    let world = stopped.start().await;
    world.send("s1", "m1").await;
}

#[tokio::test(start_paused = true)]
async fn a_fleet_whose_state_cannot_be_read_is_replayed_from_the_ledger() {
    let world = World::new().await;
    let via = Via { connection: SOCKET.into(), link: None };
    let (machine, offer) = ("attic".into(), fleet::Offer::default());
    world.relay.fleet(fleet::Command::Connected { via, machine, offer }).await.unwrap();
    let stopped = world.kill();
    stopped.spoil(fleet::FLEET_STREAM, state("not a state")).await;
    let world = stopped.start().await;
    let fleet = world.relay.look_at_fleet().await.unwrap();
    assert!(fleet.machines().via(&"attic".into()).is_none());
    assert!(fleet.head() > Sequence(0));
}

#[tokio::test(start_paused = true)]
async fn a_session_without_a_readable_state_or_its_first_events_refuses_instead_of_forgetting() {
    let world = World::new().await;
    world.away("s1").await;
    let stopped = world.kill();
    stopped.spoil("s1", state("not a state")).await;
    let retention = Retention { age_ms_max: Some(0), size_bytes_max: None };
    let later = stopped.clock.now().plus_ms(1_000);
    while stopped.ledger().await.maintain(later, &retention).unwrap() {}
    let world = stopped.start().await;
    assert_eq!(code(world.try_send("s1", "m1").await), DAMAGED);
}

#[tokio::test(start_paused = true)]
async fn a_damaged_session_says_so_and_shows_that_it_cannot_be_reached() {
    let world = World::new().await;
    world.up("s1").await;
    let stopped = world.kill();
    stopped.disk.damage(&"s1".into());
    let world = stopped.start().await;
    assert_eq!(code(world.try_send("s1", "m1").await), DAMAGED);
    let status = world.relay.directory().get(&"s1".into()).unwrap().card.status.clone();
    assert_eq!(status.via(), None);
    assert!(status.reason().unwrap().contains("damaged"), "{status:?}");
    world.relay.erase(&"s1".into()).await.unwrap();
    assert!(!world.relay.directory().knows(&"s1".into()));
}

#[tokio::test(start_paused = true)]
async fn a_damaged_session_does_not_keep_the_others_of_its_machine_away() {
    let world = World::new().await;
    for session in ["sess_1", "sess_2"] {
        world.away(session).await;
    }
    let stopped = world.kill();
    stopped.disk.damage(&"sess_1".into());
    let world = stopped.start().await;
    let mut machine = world.proxy(None).await;
    machine.name(&["sess_1", "sess_2"]).await;
    machine.say(&heartbeat()).await;
    assert_eq!(machine.next().await["type"], "heartbeat_ack");
    let is_up = |recorded: &Recorded| {
        matches!(&recorded.event, Event::Status(status::Event::Up { via, .. })
            if via.connection.as_str() != SOCKET)
    };
    world.recorded("sess_2", is_up).await;
    world.send("sess_2", "m1").await;
    machine.hear("send_message").await;
}
