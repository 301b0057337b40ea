//! Commands on a session of a plain version 1 machine: it has no journal and reports no runs.

use std::io::Write as _;
use std::time::{Duration, Instant};

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::support::{Lines, PATIENCE, Place, Up};

const SESSION: &str = "sess_plain";

struct Machine(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Machine {
    /// Connected, with one session.
    async fn start(relay: &Up) -> Self {
        let (ws, token) = (relay.told["ws"].as_str(), relay.told["proxy_token"].as_str());
        let address = format!("{}/proxy?token={}", ws.unwrap(), token.unwrap());
        let mut machine = Self(connect_async(address).await.unwrap().0);
        machine
            .say(json!({ "type": "connection_hello", "peer_role": "proxy",
                "client_name": "agent-proxy", "machine_label": "attic" }))
            .await;
        machine.hear("connection_ack").await;
        machine.names_its_session().await;
        machine
    }

    async fn names_its_session(&mut self) {
        self.say(json!({ "type": "proxy_session_snapshot", "sessions": [
            { "session_id": SESSION, "agent_type": "codex", "status": "healthy" }] }))
            .await;
    }

    async fn say(&mut self, mut frame: Value) {
        frame["protocol_version"] = json!(1);
        self.0.send(Message::text(frame.to_string())).await.unwrap();
    }

    /// Says something about its session.
    async fn tell(&mut self, mut frame: Value) {
        frame["session_id"] = json!(SESSION);
        self.say(frame).await;
    }

    async fn is(&mut self, activity: &str) {
        let activity = json!({ "kind": activity, "updated_at": "2026-11-16T10:00:00.000Z" });
        self.tell(json!({ "type": "proxy_status", "status": "healthy", "activity": activity }))
            .await;
    }

    async fn answers(&mut self, words: &str) {
        self.tell(json!({ "type": "proxy_message", "message": { "role": "assistant",
            "content": words, "created_at": "2026-11-16T10:00:00.000Z" } }))
            .await;
    }

    /// The next frame of this type.
    async fn hear(&mut self, kind: &str) -> Value {
        let next = async {
            loop {
                if let Message::Text(text) = self.0.next().await.unwrap().unwrap() {
                    let frame: Value = serde_json::from_str(&text).unwrap();
                    if frame["type"] == kind {
                        return frame;
                    }
                }
            }
        };
        let heard = tokio::time::timeout(PATIENCE, next).await;
        heard.unwrap_or_else(|_| panic!("{kind} never came"))
    }
}

// spec: control/stdio.1
#[tokio::test]
async fn control_ends_with_its_input_when_the_agent_is_idle_again() {
    let place = Place::new();
    let relay = place.serving("relay", &[]);
    let mut machine = Machine::start(&relay).await;
    super::until_there(&place);
    let (mut program, mut input) = Lines::typing(place.farhelm(&["control", "--session", SESSION]));
    let message = json!({ "type": "user", "message": { "role": "user", "content": "hello" } });
    writeln!(input, "{message}").unwrap();
    drop(input);

    let order = machine.hear("send_message").await;
    machine
        .tell(json!({ "type": "proxy_send_result", "result": "delivered",
            "client_message_id": order["client_message_id"] }))
        .await;
    machine.is("generating").await;
    machine.answers("echo: hello").await;
    machine.is("idle").await;

    let seen = program.until(|frame| frame["type"] == "assistant");
    assert_eq!(seen.last().unwrap()["message"]["content"][0]["text"], "echo: hello");
    assert!(program.running.ended().success());
}

#[tokio::test]
async fn attach_stays_in_a_session_that_was_closed_and_opened_again() {
    let place = Place::new();
    let relay = place.serving("relay", &[]);
    let mut machine = Machine::start(&relay).await;
    super::until_there(&place);
    let tail = Lines::of(place.farhelm(&["tail", SESSION, "--after", "0", "--json"]));
    machine.tell(json!({ "type": "session_closed", "reason": "target_closed" })).await;
    tail.until(|event| event["type"] == "session_closed");
    machine.names_its_session().await;
    machine.answers("back again").await;
    let begun = Instant::now();
    loop {
        // One that comes before the session is back ends.
        let tail = Lines::of(place.farhelm(&["tail", SESSION, "--after", "0", "--json"]));
        let is_back = |event: &Value| event["message"]["content"] == "back again";
        if let Ok(seen) = tail.within(Duration::from_secs(1), is_back) {
            assert!(seen.iter().any(|event| event["type"] == "session_closed"), "{seen:#?}");
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "the session does not come back");
    }

    let (mut desk, _keys) = Lines::typing(place.farhelm(&["attach", SESSION]));
    desk.until_line("assistant: back again");
    machine.answers("still here").await;
    desk.until_line("assistant: still here");
    machine.tell(json!({ "type": "session_closed", "reason": "target_closed" })).await;
    assert!(desk.running.ended().success());
}
