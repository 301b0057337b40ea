//! A person's client, for what no command does: pictures, and asking what can be chosen.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::ide::stage::Stage;
use crate::support::PATIENCE;

/// Silence after which a client says that it is there.
const BEAT: Duration = Duration::from_secs(5);

/// Says one thing, and waits for what fits.
pub(crate) fn asked(stage: &Stage, mut frame: Value, fits: impl Fn(&Value) -> bool) -> Value {
    let told = &stage.up.as_ref().unwrap().told;
    let text = |name: &str| told[name].as_str().unwrap();
    let url = format!("{}?token={}", text("ws"), text("token"));
    let hello = json!({"type": "connection_hello", "protocol_version": 1, "peer_role": "browser",
        "client_name": "ide-test", "client_id": "ide-test"});
    frame["protocol_version"] = json!(1);
    let mut heard = vec![];
    let talk = async {
        let (mut socket, _) = tokio_tungstenite::connect_async(&url).await.unwrap();
        socket.send(Message::text(hello.to_string())).await.unwrap();
        loop {
            // One who only waits says now and then that they are there.
            let Ok(message) = tokio::time::timeout(BEAT, socket.next()).await else {
                let beat = json!({"type": "heartbeat", "protocol_version": 1, "request_id": "b"});
                socket.send(Message::text(beat.to_string())).await.unwrap();
                continue;
            };
            let Some(Ok(message)) = message else { break };
            let Message::Text(text) = message else { continue };
            let value: Value = serde_json::from_str(&text).unwrap();
            if value["type"] == "session_snapshot" {
                socket.send(Message::text(frame.to_string())).await.unwrap();
            }
            let events = value["events"].as_array().cloned().unwrap_or_default();
            heard.push(value);
            heard.extend(events);
            if let Some(found) = heard.iter().find(|it| fits(it)) {
                return found.clone();
            }
        }
        panic!("the relay left; it said {heard:#?}");
    };
    let within = async { tokio::time::timeout(PATIENCE, talk).await };
    let told = stage.block_on(within).ok();
    told.unwrap_or_else(|| panic!("no answer to {frame}; it said {heard:#?}"))
}

/// Chooses a model. Where that fails, the panel's reason is told.
pub(crate) fn choose(stage: &Stage, session: &str, model: &str) {
    let choose = json!({"type": "agent_set_model", "session_id": session, "model_id": model,
        "request_id": "choose"});
    let is_result =
        |frame: &Value| frame["type"] == "agent_control_result" && frame["request_id"] == "choose";
    let told = asked(stage, choose, is_result);
    assert_eq!(told["result"], "ok", "{told}");
}

/// Every recorded event of a session up to now.
pub(crate) fn recorded(stage: &Stage, session: &str) -> Vec<Value> {
    let (host, token) = stage.relay();
    let (mut events, mut after) = (vec![], 0);
    loop {
        let mut stream = std::net::TcpStream::connect(&host).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(
            stream,
            "GET /v1/sessions/{session}/history?after={after} HTTP/1.1\r\nHost: \
             {host}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 2"), "{answer}");
        let page: Value = serde_json::from_str(body).unwrap();
        events.extend(page["events"].as_array().unwrap().iter().cloned());
        if page["has_more"] == false {
            return events;
        }
        after = page["last_sequence"].as_u64().unwrap();
    }
}

/// Uploads a picture. Gives its id.
pub(crate) fn upload(stage: &Stage, picture: &[u8]) -> String {
    let told = &stage.up.as_ref().unwrap().told;
    let host = told["url"].as_str().unwrap().trim_start_matches("http://");
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(
        stream,
        "POST /v1/uploads?name=picture.png HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer \
         {}\r\nContent-Type: image/png\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        told["token"].as_str().unwrap(),
        picture.len()
    )
    .unwrap();
    stream.write_all(picture).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 2"), "{answer}");
    let told: Value = serde_json::from_str(body).unwrap();
    told["attachment_id"].as_str().unwrap().to_owned()
}
