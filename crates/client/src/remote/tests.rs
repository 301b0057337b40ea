use std::collections::VecDeque;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use tokio::io::DuplexStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::*;
use crate::machine::Settings;

type Line = WebSocketStream<DuplexStream>;

/// Gives out prepared sockets, then none.
struct Prepared(VecDeque<Line>);

impl Dial for Prepared {
    type Socket = Line;
    async fn dial(&mut self) -> Result<Line, DialFault> {
        self.0.pop_front().ok_or_else(|| DialFault::Away("nobody there".to_owned()))
    }
}

async fn line() -> (Line, Line) {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let near = WebSocketStream::from_raw_socket(near, Role::Client, None).await;
    let far = WebSocketStream::from_raw_socket(far, Role::Server, None).await;
    (near, far)
}

async fn hears(far: &mut Line) -> Value {
    serde_json::from_str(far.next().await.unwrap().unwrap().to_text().unwrap()).unwrap()
}

async fn says(far: &mut Line, frame: Value) {
    far.send(Message::text(frame.to_string())).await.unwrap();
}

// spec: native/send_message.1, native/send_message.2
#[tokio::test(start_paused = true)]
async fn a_send_outlives_its_connection_and_is_repeated_on_the_next() {
    let ((near_1, mut far_1), (near_2, mut far_2)) = (line().await, line().await);
    let machine = Machine::new(Settings::plain("test"));
    let mut remote = Remote::new(machine, Prepared([near_1, near_2].into()));
    remote.send("sess", "m1", "hello", "2026-01-01T00:00:00.000Z");
    let relay = tokio::spawn(async move {
        assert_eq!(hears(&mut far_1).await["type"], "connection_hello");
        says(&mut far_1, json!({"type": "connection_ack"})).await;
        assert_eq!(hears(&mut far_1).await["client_message_id"], "m1");
        drop(far_1);
        assert_eq!(hears(&mut far_2).await["type"], "connection_hello");
        says(&mut far_2, json!({"type": "connection_ack"})).await;
        assert_eq!(hears(&mut far_2).await["client_message_id"], "m1");
        let accepted = json!({"type": "message_accepted", "session_id": "sess", "sequence": 1,
            "client_message_id": "m1"});
        says(&mut far_2, accepted).await;
        far_2
    });

    let mut lost = 0;
    loop {
        match remote.next().await {
            Heard::Happening(Happening::Event(event)) => {
                assert_eq!(event.kind, "message_accepted");
                break;
            }
            Heard::Lost { failures, .. } => {
                assert_eq!(failures, 0);
                lost += 1;
            }
            Heard::Happening(_) => {}
            Heard::Refused(words) => panic!("{words}"),
        }
    }
    assert_eq!((lost, remote.machine().unconfirmed()), (1, 0));
    relay.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_send_that_the_relay_could_not_record_is_repeated_on_the_same_connection() {
    let (near, mut far) = line().await;
    let mut remote = Remote::new(Machine::new(Settings::plain("test")), Prepared([near].into()));
    remote.send("sess", "m1", "hello", "2026-01-01T00:00:00.000Z");
    let relay = tokio::spawn(async move {
        let mut heard = vec![];
        let ack = json!({"type": "connection_ack", "heartbeat_interval_ms": 1000});
        loop {
            let frame = hears(&mut far).await;
            let kind = frame["type"].as_str().unwrap().to_owned();
            match kind.as_str() {
                "connection_hello" => says(&mut far, ack.clone()).await,
                "heartbeat" => says(&mut far, json!({"type": "heartbeat_ack"})).await,
                _ if !heard.contains(&kind) => {
                    let trouble = json!({"type": "connection_error", "code": "internal",
                        "message": "The disk is full", "client_message_id": "m1"});
                    says(&mut far, trouble).await;
                }
                _ => {
                    let accepted = json!({"type": "message_accepted", "session_id": "sess",
                        "sequence": 1, "client_message_id": frame["client_message_id"]});
                    says(&mut far, accepted).await;
                    return (heard, far);
                }
            }
            heard.push(kind);
        }
    });

    loop {
        match remote.next().await {
            Heard::Happening(Happening::Event(event)) => {
                assert_eq!(event.frame["client_message_id"], "m1");
                break;
            }
            Heard::Happening(_) => {}
            lost @ (Heard::Lost { .. } | Heard::Refused(_)) => panic!("{lost:?}"),
        }
    }
    assert_eq!(remote.machine().unconfirmed(), 0);
    // Once after the hello, and again only after a whole heartbeat.
    let (heard, _far) = relay.await.unwrap();
    assert_eq!(heard, ["connection_hello", "send_message", "heartbeat", "heartbeat"]);
}

#[tokio::test(start_paused = true)]
async fn a_relay_that_is_away_is_tried_again_with_growing_pauses() {
    let mut remote = Remote::new(Machine::new(Settings::plain("test")), Prepared([].into()));
    let begun = Instant::now();
    for number in 1..=10 {
        let Heard::Lost { failures, .. } = remote.next().await else { panic!() };
        assert_eq!(failures, number);
    }
    let waited = begun.elapsed();
    assert!(waited >= Duration::from_secs(5) && waited <= Duration::from_secs(30), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_relay_that_says_nothing_is_taken_for_dead() {
    let (near, mut far) = line().await;
    let mut remote = Remote::new(Machine::new(Settings::plain("test")), Prepared([near].into()));
    says(&mut far, json!({"type": "connection_ack", "heartbeat_interval_ms": 1000})).await;
    let Heard::Happening(Happening::Connected(_)) = remote.next().await else { panic!() };

    let Heard::Lost { words, failures } = remote.next().await else { panic!() };
    assert_eq!((words.as_str(), failures), ("the relay stopped responding", 0));
    let mut heartbeats = 0;
    while let Some(Ok(Message::Text(text))) = far.next().await {
        heartbeats += usize::from(text.as_str().contains(r#""heartbeat""#));
    }
    assert!(heartbeats >= 3, "{heartbeats}");
}

#[tokio::test(start_paused = true)]
async fn a_revoked_client_does_not_come_back() {
    use tokio_tungstenite::tungstenite::protocol::CloseFrame;
    let (near, mut far) = line().await;
    let mut remote = Remote::new(Machine::new(Settings::plain("test")), Prepared([near].into()));
    let frame = CloseFrame { code: CLOSED_FORBIDDEN.into(), reason: "revoked".into() };
    far.send(Message::Close(Some(frame))).await.unwrap();

    for _ in 0..2 {
        assert_eq!(remote.next().await, Heard::Refused("revoked".to_owned()));
    }
}
