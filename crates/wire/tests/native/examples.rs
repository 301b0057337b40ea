//! Every JSON example of the document.

use std::path::PathBuf;

use domain::Timestamp;
use serde_json::Value;
use wire::native::frames::{ClientFrame, RelayFrame};
use wire::native::shapes::{Envelope, Session};

use crate::native::script::covers;

fn fixture(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/native");
    let path = path.join(format!("{name}.json"));
    std::fs::read_to_string(&path).unwrap_or_else(|_| panic!("{} is missing", path.display()))
}

fn same(name: &str, text: &str, written: &[u8]) {
    let (example, written) = (value(text), serde_json::from_slice(written).unwrap());
    assert!(covers(&example, &written), "{name}: {written}");
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

// spec: native/envelope.1, native/transport.2, native/protocol_version.1
#[test]
fn what_clients_say_in_the_document_is_read_and_written_again() {
    for name in [
        "connection_hello_1",
        "heartbeat",
        "send_message",
        "history_request",
        "launch_session",
        "close_session",
        "permission_response",
        "agent_interrupt",
        "agent_config_request",
        "agent_set_model",
    ] {
        let text = fixture(name);
        let (envelope, frame) = ClientFrame::parse(&text).unwrap();
        assert!(name.starts_with(frame.kind()), "{name}");
        assert_eq!(envelope.protocol_version, Some(1), "{name}");
        same(name, &text, &frame.encode(envelope));
    }
}

// spec: native/session_metadata.1
#[test]
fn what_the_relay_says_in_the_document_is_read_and_written_again() {
    for name in [
        "connection_ack_1",
        "connection_ack_2",
        "connection_ack_3",
        "connection_ack_4",
        "connection_error",
        "heartbeat_ack",
        "session_snapshot",
        "session_up",
        "session_down",
        "session_status",
        "message_accepted",
        "message_delivered",
        "message_failed",
        "message_event",
        "history_snapshot",
        "history_delta",
        "session_launching",
        "session_launch_ack",
        "session_launch_failed",
        "session_closed",
        "permission_prompt",
        "permission_prompt_expired",
        "agent_config",
        "agent_control_result_1",
        "agent_control_result_2",
    ] {
        let text = fixture(name);
        let (envelope, frame) = RelayFrame::parse(&text).unwrap();
        assert!(name.starts_with(frame.kind()), "{name}");
        same(name, &text, &frame.encode(envelope));
    }
}

/// The frames of proxies are read in full by their own tests; here, their shared shapes.
#[test]
fn what_proxies_say_in_the_document_has_the_shared_shapes() {
    for name in [
        "connection_hello_2",
        "proxy_session_snapshot",
        "proxy_message",
        "proxy_send_result_1",
        "proxy_send_result_2",
        "proxy_status",
    ] {
        let text = fixture(name);
        assert!(name.starts_with(Envelope::read(&text).unwrap().kind.as_ref()), "{name}");
    }
    let snapshot = value(&fixture("proxy_session_snapshot"));
    let session: Session = serde_json::from_value(snapshot["sessions"][0].clone()).unwrap();
    let named = session.into_named(Timestamp(0));
    assert_eq!(named.meta.signature, Some("sig_abc".into()));
}

// spec: native/session_metadata.1, native/session_metadata.2
#[test]
fn the_session_of_the_document_is_read_with_each_of_its_words() {
    let words = ["healthy", "degraded", "disconnected", "scraping_failed", "agent_ui_changed"];
    let example = fixture("session_metadata");
    for word in words {
        let text = example.replace(&words.join("|"), word);
        let session: Session = serde_json::from_value(value(&text)["session"].clone()).unwrap();
        assert_eq!(session.status.as_str(), word);
        let written = serde_json::to_vec(&session).unwrap();
        same("session_metadata", &value(&text)["session"].to_string(), &written);
    }
}

#[test]
fn the_envelopes_of_the_document_are_read() {
    assert_eq!(Envelope::read(&fixture("envelope")).unwrap().kind, "string");
    let common = fixture("envelope_common").replacen('{', r#"{"type":"x","#, 1);
    let envelope = Envelope::read(&common).unwrap();
    assert_eq!(envelope.request_id, Some("uuid-or-stable-client-id".into()));
    assert_eq!(envelope.server_ts.unwrap().to_string(), "2026-03-19T10:15:30.000Z");
}

#[test]
fn no_example_is_left_out() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/native");
    let source = include_str!("examples.rs");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(stem) = name.strip_suffix(".json") {
            assert!(source.contains(&format!("\"{stem}\"")), "{name} is in no test");
        }
    }
}
