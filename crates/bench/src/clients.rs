//! The frames of a native client that the measurements use.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::process::Ready;
use super::trouble::Outcome;
use super::websocket::Socket;

pub(crate) const CLIENT_PATH: &str = "/ws/native";
/// The session of watchers that stream.
pub(crate) const STREAM_SESSION: &str = "bench-stream";
/// Nobody reads it; it only has to be a time.
pub(crate) const SOME_TIME: &str = "2026-01-01T00:00:00.000Z";
/// What people and agents say in the measurements: a sentence, not a book.
pub(crate) const WORDS: &str = "Please look at the failing test in crates/domain, find out why it \
    fails on the second run only, and tell me before you change anything. Thank you very much!";

/// The first frame of a client; `resume` are sessions with the last event that was seen.
pub(crate) fn hello(client_id: &str, features: &[&str], resume: &[(&str, u64)]) -> String {
    let mut hello = json!({
        "type": "connection_hello", "protocol_version": 1, "peer_role": "browser",
        "client_name": "farhelm-bench", "client_id": client_id,
    });
    if !features.is_empty() {
        hello["features"] = json!(features);
    }
    if !resume.is_empty() {
        let sessions = resume
            .iter()
            .map(|(session, last)| json!({"session_id": session, "last_sequence": last}));
        hello["resume"] = json!({"sessions": sessions.collect::<Vec<_>>()});
    }
    hello.to_string()
}

/// A blob client's first frames: it comes in and goes to the session.
pub(crate) fn blob_hello() -> Vec<String> {
    let request = |id: &str, method: &str, params: Value| {
        json!({"type": "req", "id": id, "method": method, "params": params}).to_string()
    };
    vec![
        request("1", "connect", json!({"version": "1"})),
        request("2", "sessions.switch", json!({"sessionId": STREAM_SESSION})),
    ]
}

/// Looks at one session, and at the others as a list does.
pub(crate) fn watch_only(session: &str) -> String {
    format!(
        "{{\"type\":\"watch\",\"protocol_version\":1,\"sessions\":[\"{session}\"],\
         \"others\":\"cards\"}}"
    )
}

/// A send. Written by hand: it is made within what is measured.
pub(crate) fn send_message(session: &str, id: &str) -> String {
    format!(
        "{{\"type\":\"send_message\",\"protocol_version\":1,\"client_message_id\":\"{id}\",\
         \"session_id\":\"{session}\",\"content\":\"{WORDS}\",\"created_at\":\"{SOME_TIME}\"}}"
    )
}

/// A client that said hello and heard the snapshot of the sessions.
pub(crate) fn connect(ready: &Ready, id: &str, features: &[&str]) -> Outcome<Socket> {
    let mut socket = Socket::connect(ready.address()?, CLIENT_PATH, &ready.token)?;
    socket.send(&hello(id, features, &[]))?;
    socket.next_of("session_snapshot")?;
    Ok(socket)
}

/// Waits until each of these sessions can be reached.
pub(crate) fn wait_for_sessions(ready: &Ready, sessions: &[String]) -> Outcome<()> {
    let mut socket = Socket::connect(ready.address()?, CLIENT_PATH, &ready.token)?;
    socket.send(&hello("bench-waiting", &[], &[]))?;
    let mut missing: BTreeSet<&str> = sessions.iter().map(String::as_str).collect();
    while !missing.is_empty() {
        let frame: Value = serde_json::from_slice(socket.next()?)?;
        for session in reachable(&frame) {
            missing.remove(session);
        }
    }
    Ok(())
}

/// The sessions that this frame tells to be reachable.
pub(crate) fn reachable(frame: &Value) -> Vec<&str> {
    let told: Vec<&Value> = match frame["type"].as_str() {
        Some("session_snapshot") => frame["sessions"].as_array().into_iter().flatten().collect(),
        Some("session_up") => vec![&frame["session"]],
        _ => vec![],
    };
    let up = told.into_iter().filter(|session| session["status"] == "healthy");
    up.filter_map(|session| session["session_id"].as_str()).collect()
}
