//! Frames of the native dialect, and commands as the relay's handle takes them.

use domain::session::delivery::Send;
use domain::session::{Command, Wish};
use domain::{Content, Timestamp};
use serde_json::{Value, json};

use super::SESSION;
use super::ports::{BEGINNING_MS, person};

/// The frame with which a peer shows that it is alive.
pub(in crate::tests) fn heartbeat() -> Value {
    json!({ "type": "heartbeat", "protocol_version": 1 })
}

/// A client's hello. Without features it is the one of the document's first version.
pub(in crate::tests) fn hello(features: &[&str]) -> Value {
    let mut hello = json!({
        "type": "connection_hello", "protocol_version": 1, "peer_role": "browser",
        "client_name": "t",
    });
    if !features.is_empty() {
        hello["features"] = json!(features);
    }
    hello
}

/// A person's message.
pub(in crate::tests) fn send(id: &str, text: &str) -> Value {
    json!({
        "type": "send_message", "protocol_version": 1, "session_id": SESSION,
        "client_message_id": id, "content": text, "created_at": "2026-10-01T00:00:00.000Z",
    })
}

/// An agent's message, with its number in the proxy's journal.
pub(in crate::tests) fn report(number: u64, text: &str) -> Value {
    json!({
        "type": "proxy_message", "protocol_version": 1, "session_id": SESSION,
        "link_number": number,
        "message": {
            "message_id": format!("a{number}"), "role": "assistant", "content": text,
            "created_at": "2026-10-01T00:00:00.000Z",
        },
    })
}

/// A few more words of the message that the agent is writing.
pub(in crate::tests) fn delta(offset: usize, words: &str) -> Value {
    json!({
        "type": "message_delta", "protocol_version": 1, "session_id": SESSION,
        "message_id": "draft", "part": 0, "kind": "text", "offset": offset, "content": words,
    })
}

/// A send as the relay's handle takes it.
pub(in crate::tests) fn wish(id: &str) -> Command {
    let send = Send {
        id: id.into(),
        text: Content::Open(format!("the text of {id}")),
        attachments: vec![],
        mode: None,
        by: "ada".to_owned(),
        created_at: Timestamp(BEGINNING_MS),
        digest: None,
    };
    Command::Person(person("ada"), Wish::Send { send, earlier: None })
}
