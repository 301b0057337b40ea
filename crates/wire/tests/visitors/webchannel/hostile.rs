//! Input that means no good.

use proptest::prelude::*;
use serde_json::json;

use super::relay::{Relay, kinds};

// spec: webchannel/envelope.3
#[test]
fn text_that_is_not_json_closes_the_socket() {
    for text in ["", "x", "{", "\u{0}"] {
        let mut relay = Relay::paired();
        relay.text("a", text);
        assert_eq!(relay.client("a").closed, Some(1007), "{text:?}");
    }
}

// spec: webchannel/envelope.2
#[test]
fn what_is_no_envelope_is_answered_and_changes_nothing() {
    let long = "x".repeat(300);
    for text in [
        "[]".to_owned(),
        "7".to_owned(),
        "{}".to_owned(),
        r#"{"v":1}"#.to_owned(),
        r#"{"v":"1","type":"user_message","session_id":"default"}"#.to_owned(),
        r#"{"v":1,"type":"assistant_final","session_id":"default"}"#.to_owned(),
        r#"{"v":1,"type":"user_message","session_id":"default","payload":[]}"#.to_owned(),
        format!(r#"{{"v":1,"type":"user_message","session_id":"{long}"}}"#),
        format!(r#"{{"v":1,"type":"user_message","session_id":"d","request_id":"{long}"}}"#),
    ] {
        let mut relay = Relay::paired();
        relay.text("a", &text);
        assert_eq!(relay.errors("a"), ["invalid_payload"], "{text}");
        assert_eq!(relay.client("a").closed, None);
    }
}

// spec: webchannel/envelope.4
#[test]
fn unknown_fields_and_a_missing_session_do_no_harm() {
    let mut relay = Relay::new();
    relay.opened("o", "token=fh_owner&plain=1");
    relay.json(
        "o",
        &json!({ "v": 1, "type": "user_message", "weather": "fine", "agent_id": 7,
            "payload": { "content": "hello", "sender_id": "ui-1", "more": [] } }),
    );
    relay.obey(None);
    let heard = relay.heard("o");
    assert_eq!((kinds(&heard), &heard[0]["session_id"]), (vec!["user_message"], &json!("default")));
}

// spec: webchannel/credentials.2
#[test]
fn nothing_of_a_session_is_told_to_whoever_did_not_show_a_token() {
    let mut relay = Relay::new();
    relay.opened("a", "session_id=sess_1");
    relay.user("a", "r1", "hello");
    relay.envelope("a", "approval_response", "p1", json!({ "approved": true }));
    assert_eq!(relay.errors("a"), ["unauthorized", "unauthorized"]);
    relay.asks("p1");
    relay.says_text("m1", "secret");
    relay.streams("m2", 0, "secret");
    assert_eq!(relay.heard("a").len(), 0);
}

// spec: webchannel/limits.2
#[test]
fn a_stranger_that_goes_on_talking_is_closed() {
    let mut relay = Relay::new();
    relay.opened("a", "");
    for _ in 0..32 {
        relay.user("a", "r1", "hello");
    }
    assert_eq!(relay.client("a").closed, None);
    relay.user("a", "r1", "hello");
    assert_eq!(relay.client("a").closed, Some(1008));
    assert_eq!(relay.errors("a").len(), 32);
}

// spec: webchannel/limits.4
#[test]
fn ten_thousand_messages_in_flight_are_bounded_and_each_is_answered() {
    let mut relay = Relay::new();
    relay.opened("o", "token=fh_owner&plain=1");
    relay.is_slow = true;
    for _ in 0..10_000 {
        relay.user("o", "r1", "hello");
    }
    let refused = relay.errors("o").len();
    assert!((9_800..10_000).contains(&refused), "{refused}");
    relay.forget_tokens();
    while refused + relay.room().session.owed().len() + relay.room().session.glance().waiting.len()
        < 10_000
    {
        relay.catch_up();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    // spec: webchannel/envelope.3
    #[test]
    fn any_text_is_survived(text in "[\\PC\"{}\\[\\]:,a-z0-9_]{0,120}") {
        let mut relay = Relay::paired();
        relay.text("a", &text);
        let closed = relay.client("a").closed;
        prop_assert!(closed.is_none() || closed == Some(1007));
    }

    #[test]
    fn any_envelope_is_answered_or_taken(
        kind in "pairing_request|user_message|approval_response|error",
        field in "content|e2e|approved|pairing_code|client_pub|access_token|nonce",
        value in 0..8_usize,
        version in 0..3_u8,
    ) {
        let values = [json!(null), json!(7), json!(""), json!([]), json!({}), json!(true),
            json!({ "nonce": "AAAAAAAAAAAAAAAA", "ciphertext": "" }), json!("x".repeat(5_000))];
        let mut relay = Relay::paired();
        let mut payload = json!({});
        payload[field.as_str()] = values[value].clone();
        relay.envelope("a", &kind, "r1", payload.clone());
        relay.json("a", &json!({ "v": version, "type": kind, "session_id": "default",
            "payload": payload }));
        prop_assert_eq!(relay.client("a").closed, None);
        let heard = relay.heard("a");
        prop_assert!(heard.iter().all(|it| it["type"] == "error"));
    }

    // spec: webchannel/sealing.3
    #[test]
    fn any_ciphertext_is_survived(
        nonce in "[A-Za-z0-9_=-]{0,20}", ciphertext in "[A-Za-z0-9_=-]{0,80}",
    ) {
        let mut relay = Relay::paired();
        let e2e = json!({ "nonce": nonce, "ciphertext": ciphertext });
        relay.envelope("a", "user_message", "r1", json!({ "e2e": e2e }));
        let errors = relay.errors("a");
        prop_assert!(errors == ["e2e_decrypt_failed"] || errors == ["invalid_e2e_payload"]);
    }
}
