//! Input that means no good.

use proptest::prelude::*;

use crate::native::relay::Relay;
use crate::native::script::{covers, run};

const HELLO: &str =
    r#"{"type":"connection_hello","protocol_version":1,"peer_role":"browser","client_name":"t"}"#;

fn greeted() -> Relay {
    let mut relay = Relay::new();
    relay.session_up("sess_1", "demo");
    relay.text("a", HELLO);
    relay.clients.get_mut("a").unwrap().heard.clear();
    relay
}

// spec: native/transport.1
#[test]
fn text_that_is_not_json_closes_the_socket() {
    for text in ["", "x", "{", "{\"type\":", "\u{0}"] {
        let mut relay = greeted();
        relay.text("a", text);
        assert_eq!(relay.clients["a"].closed, Some(1007), "{text:?}");
    }
}

// spec: native/transport.4, native/connection_error.1, native/session_identifiers.3
#[test]
fn json_that_makes_no_sense_is_answered_and_the_socket_stays_open() {
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    for (frame, request) in [
        ("[]".to_owned(), None),
        ("{}".to_owned(), None),
        (r#"{"type":7,"protocol_version":1,"request_id":"r"}"#.to_owned(), Some("r")),
        (r#"{"type":"no_such","protocol_version":1,"request_id":"r"}"#.to_owned(), Some("r")),
        (r#"{"type":"agent_interrupt","request_id":"r","session_id":"sess_1"}"#.to_owned(), Some("r")),
        (r#"{"type":"agent_interrupt","protocol_version":2,"request_id":"r","session_id":"sess_1"}"#.to_owned(), Some("r")),
        (r#"{"type":"agent_interrupt","protocol_version":1,"request_id":"r","session_id":"a b"}"#.to_owned(), Some("r")),
        (r#"{"type":"agent_interrupt","protocol_version":1,"request_id":"r","session_id":"\ud800x"}"#.to_owned(), Some("r")),
        (r#"{"type":"agent_interrupt","protocol_version":1,"request_id":"r"}"#.to_owned(), Some("r")),
        (r#"{"type":"agent_set_model","protocol_version":1,"request_id":"r","session_id":"sess_1","model_id":{}}"#.to_owned(), Some("r")),
        (format!(r#"{{"type":"agent_set_model","protocol_version":1,"request_id":"r","session_id":"sess_1","model_id":{deep}}}"#), Some("r")),
    ] {
        let mut relay = greeted();
        relay.text("a", &frame);
        let client = &relay.clients["a"];
        assert_eq!(client.closed, None, "{frame}");
        let [heard] = client.heard.as_slice() else { panic!("{frame}: {:?}", client.heard) };
        let expected = serde_json::json!({"type": "connection_error", "code": "invalid_message"});
        assert!(covers(&expected, heard), "{frame}: {heard}");
        assert_eq!(heard["request_id"].as_str(), request, "{frame}: {heard}");
    }
}

// spec: native/transport.3
#[test]
fn fields_that_nobody_knows_are_ignored_however_deep() {
    let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    let mut relay = greeted();
    relay.text(
        "a",
        &format!(r#"{{"type":"heartbeat","protocol_version":1,"request_id":"h","x":{deep}}}"#),
    );
    assert_eq!(relay.clients["a"].heard[0]["type"], "heartbeat_ack");
}

// spec: native/transport.6, native/connection_roles.1
#[test]
fn older_names_and_the_words_of_proxies_are_not_spoken() {
    for kind in [
        "session_list",
        "send",
        "history",
        "message",
        "status",
        "proxy_message",
        "proxy_status",
        "proxy_session_snapshot",
        "proxy_send_result",
        "session_launch_ack",
        "agent_config",
    ] {
        let mut relay = greeted();
        relay.text(
            "a",
            &format!(r#"{{"type":"{kind}","protocol_version":1,"session_id":"sess_1"}}"#),
        );
        let heard = &relay.clients["a"].heard[0];
        assert_eq!(heard["code"], "invalid_message", "{kind}");
        assert!(heard["message"].as_str().unwrap().contains(kind), "{heard}");
    }
}

#[test]
fn a_script_that_expects_what_is_not_said_fails() {
    let wrong =
        format!("> {HELLO}\n< {{\"type\":\"connection_ack\"}}\n< {{\"type\":\"nonsense\"}}");
    assert!(std::panic::catch_unwind(|| run(&wrong)).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Whatever comes, the machine answers or closes; it neither panics nor falls silent.
    #[test]
    fn any_text_is_answered_or_ends_the_connection(text in "[\\PC\"{}\\[\\]:,a-z0-9_]{0,120}") {
        let mut relay = greeted();
        relay.text("a", &text);
        let client = &relay.clients["a"];
        prop_assert!(client.closed.is_some() || !client.heard.is_empty());
    }

    /// A valid frame with one field replaced by anything is answered or taken, never a panic.
    #[test]
    fn a_frame_with_any_field_spoilt_is_survived(
        which in 0..18_usize, field in 0..6_usize, value in 0..9_usize,
    ) {
        let kinds = ["send_message", "history_request", "launch_session", "close_session",
            "permission_response", "agent_interrupt", "agent_config_request", "agent_set_model",
            "agent_set_permission_mode", "agent_set_effort", "session_rename", "watch",
            "queue_edit", "queue_discard", "queue_move", "queue_resume", "heartbeat",
            "connection_hello"];
        let values = ["null", "true", "-1", "1e999", "\"\\udc00\"", "[]", "{}", "18446744073709551616", "\"\""];
        let mut fields = vec![
            ("request_id", "\"r\""), ("session_id", "\"sess_1\""), ("client_message_id", "\"m\""),
            ("content", "\"hi\""), ("created_at", "\"2026-03-19T10:16:30.000Z\""),
            ("after_sequence", "0"), ("prompt_id", "\"p\""), ("choice_id", "\"yes\""),
            ("model_id", "\"x\""), ("mode", "\"steer\""), ("effort", "\"low\""),
            ("agent_type", "\"demo\""), ("sessions", "[]"), ("position", "0"), ("title", "\"t\""),
        ];
        fields[field].1 = values[value];
        let body: Vec<_> = fields.iter().map(|(k, v)| format!("\"{k}\":{v}")).collect();
        let text = format!(r#"{{"type":"{}","protocol_version":1,{}}}"#, kinds[which], body.join(","));
        let mut relay = greeted();
        relay.text("a", &text);
        let closed = relay.clients["a"].closed;
        prop_assert!(closed.is_none() || closed == Some(1007), "{closed:?}");
    }
}
