//! What the disk no longer gives back whole: what can be made again is, and the rest stays apart.

use domain::content::{ToolCall, ToolDetail, ToolKind, ToolStatus};
use domain::session::status::CloseReason;
use domain::session::{Event, Session, transcript};
use serde_json::{Value, json};
use store::{Retention, Snapshot};

use super::socket::socket;
use super::*;

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
    let mut stage = Stage::new(60_000).await;
    stage.up("s1").await;
    stage.ask("s1", "p1", 3_600_000).await;
    stage.kill();
    stage.spoil("s1", |append, _| append.card = Some(b"not a card".to_vec())).await;
    stage.start().await;
    let card = stage.relay().directory().get(&"s1".into()).unwrap().card;
    assert_eq!(card.prompts.len(), 1);
    assert_eq!(card.status.via(), None, "nobody is connected to a relay that has just started");
    stage.kill();
    let row = stage.disk().await.reader().unwrap().stream(&"s1".into()).unwrap().unwrap();
    assert!(store::codec::decode_card(&row.card.unwrap()).is_ok(), "it is stored again");
}

#[tokio::test(start_paused = true)]
async fn a_state_that_cannot_be_read_is_replayed_from_the_ledger_and_stored_again() {
    for body in ["not a state", r#"{"v":999,"state":{}}"#, "{}"] {
        let mut stage = Stage::new(60_000).await;
        stage.up("s1").await;
        stage.down("s1").await;
        stage.send("s1", "m1").await;
        stage.kill();
        stage.spoil("s1", state(body)).await;
        stage.start().await;
        assert!(matches!(
            stage.try_send("s1", "m1").await,
            Err(Denied::Refused(Refusal::SendRepeated(_)))
        ));
        stage.send("s1", "m2").await;
        stage.kill();
        let lease = stage.disk().await.acquire(&"s1".into(), "test").unwrap();
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
    let mut stage = Stage::new(60_000).await;
    stage.up("s1").await;
    stage.report("s1", Report::RunStarted { run: "r1".into(), cause: None }).await;
    let call = ToolCall {
        id: "t1".into(),
        tool: "Bash".to_owned(),
        kind: ToolKind::Execute,
        status: ToolStatus::Running,
        detail: Content::Open(ToolDetail::default()),
        parent: None,
        run: None,
    };
    stage.report("s1", Report::ToolCall(call)).await;
    let stored = of_version_1(&stage.ledger("s1").await);
    stage.kill();
    stage.spoil("s1", state(&stored)).await;
    stage.start().await;
    stage.up("s1").await;
    let closed = Report::Closed { reason: CloseReason::TargetClosed, request: None };
    stage.report("s1", closed).await;
    let is_cancelled = |recorded: &Recorded| {
        matches!(&recorded.event, Event::Transcript(transcript::Event::ToolUpdate(update))
            if update.id.as_str() == "t1" && update.status == ToolStatus::Cancelled)
    };
    assert!(stage.ledger("s1").await.iter().any(is_cancelled));
    stage.kill();
    let snapshot = stage.disk().await.acquire(&"s1".into(), "test").unwrap().snapshot.unwrap();
    assert!(!store::codec::decode_session(&snapshot.body).unwrap().is_older);
}

#[tokio::test(start_paused = true)]
async fn a_state_that_an_earlier_release_stored_counts_where_retention_took_its_events() {
    let mut stage = Stage::new(60_000).await;
    stage.away("s1").await;
    let stored = of_version_1(&stage.ledger("s1").await);
    stage.kill();
    stage.spoil("s1", state(&stored)).await;
    let retention = Retention { age_ms_max: Some(0), size_bytes_max: None };
    let later = stage.clock.now().plus_ms(1_000);
    while stage.disk().await.maintain(later, &retention).unwrap() {}
    stage.start().await;
    stage.send("s1", "m1").await;
}

#[tokio::test(start_paused = true)]
async fn a_fleet_whose_state_cannot_be_read_is_replayed_from_the_ledger() {
    let mut stage = Stage::new(60_000).await;
    let via = Via { connection: "socket-1".into(), link: None };
    let (machine, offer) = ("attic".into(), fleet::Offer::default());
    stage.relay().fleet(fleet::Command::Connected { via, machine, offer }).await.unwrap();
    stage.kill();
    stage.spoil(fleet::FLEET_STREAM, state("not a state")).await;
    stage.start().await;
    let fleet = stage.relay().look_at_fleet().await.unwrap();
    assert!(fleet.machines().via(&"attic".into()).is_none());
    assert!(fleet.head() > Sequence(0));
}

#[tokio::test(start_paused = true)]
async fn a_session_without_a_readable_state_or_its_first_events_refuses_instead_of_forgetting() {
    let mut stage = Stage::new(60_000).await;
    stage.away("s1").await;
    stage.kill();
    stage.spoil("s1", state("not a state")).await;
    let retention = Retention { age_ms_max: Some(0), size_bytes_max: None };
    let later = stage.clock.now().plus_ms(1_000);
    while stage.disk().await.maintain(later, &retention).unwrap() {}
    stage.start().await;
    assert_eq!(code(stage.try_send("s1", "m1").await), DAMAGED);
}

#[tokio::test(start_paused = true)]
async fn a_damaged_session_says_so_and_shows_that_it_cannot_be_reached() {
    let mut stage = Stage::new(60_000).await;
    stage.up("s1").await;
    stage.kill();
    stage.disk.damage(&"s1".into());
    stage.start().await;
    assert_eq!(code(stage.try_send("s1", "m1").await), DAMAGED);
    let status = stage.relay().directory().get(&"s1".into()).unwrap().card.status.clone();
    assert_eq!(status.via(), None);
    assert!(status.reason().unwrap().contains("damaged"), "{status:?}");
    stage.relay().erase(&"s1".into()).await.unwrap();
    assert!(!stage.relay().directory().knows(&"s1".into()));
}

#[tokio::test(start_paused = true)]
async fn a_damaged_session_does_not_keep_the_others_of_its_machine_away() {
    let mut stage = Stage::new(60_000).await;
    for session in ["sess_1", "sess_2"] {
        stage.away(session).await;
    }
    stage.kill();
    stage.disk.damage(&"sess_1".into());
    stage.start().await;
    let (mut peer, socket) = socket();
    stage.serve_proxy(socket);
    peer.say(&json!({"type": "connection_hello", "protocol_version": 1, "peer_role": "proxy",
        "client_name": "t", "machine_label": "attic"}));
    peer.until("connection_ack").await;
    let session = |id: &str| {
        json!({"session_id": id, "agent_type": "demo", "status": "healthy",
            "target_signature": id})
    };
    peer.say(&json!({"type": "proxy_session_snapshot", "protocol_version": 1,
        "sessions": [session("sess_1"), session("sess_2")]}));
    peer.say(&json!({"type": "heartbeat", "protocol_version": 1}));
    let answer = peer.hear().await.unwrap();
    assert_eq!(answer["type"], "heartbeat_ack", "{answer}");
    let up = |recorded: &Recorded| {
        matches!(&recorded.event, domain::session::Event::Status(
            domain::session::status::Event::Up { via, .. }) if via.connection.as_str() != "socket-1")
    };
    stage.recorded("sess_2", up).await;
    stage.send("sess_2", "m1").await;
    peer.until("send_message").await;
}
