//! Input that means no good.

use proptest::prelude::*;
use serde_json::json;

use super::relay::{Relay, SESSION, kinds};

const ASK: &str =
    r#"{"type":"control_request","request_id":"r","request":{"subtype":"initialize"}}"#;

// spec: control/transport.1
#[test]
fn text_that_is_not_json_closes_the_socket() {
    for text in ["", "x", "{", "\u{0}"] {
        let mut relay = Relay::watched();
        relay.text("a", text);
        assert_eq!(relay.client("a").closed, Some(1007), "{text:?}");
    }
}

// spec: control/credentials.2
#[test]
fn without_a_credential_a_request_is_refused_and_the_socket_closed() {
    let mut relay = Relay::new();
    relay.open("n", &format!("session={SESSION}"));
    relay.text("n", ASK);
    let heard = relay.heard("n");
    assert_eq!(heard[0]["response"]["error"], "This connection has no credential");
    assert_eq!(relay.client("n").closed, Some(4003));
}

// spec: control/credentials.4
#[test]
fn a_session_that_is_not_there_is_refused_and_the_socket_closed() {
    for query in ["session=sess_2", "session=sess_2&from_sequence_num=0"] {
        let mut relay = Relay::new();
        relay.is_slow = true;
        relay.open("a", query);
        relay.text("a", ASK);
        relay.text("a", r#"{"type":"user","uuid":"m","message":{"content":"x"}}"#);
        relay.catch_up();
        let heard = relay.heard("a");
        assert_eq!(kinds(&heard), ["control_response", "result/error_during_execution"], "{query}");
        assert_eq!(relay.client("a").closed, Some(4004), "{query}");
    }
}

// spec: control/credentials.4
#[test]
fn a_client_that_named_no_session_gets_the_error_and_its_answer_before_the_close() {
    for query in ["session=sess_2", "session=sess_2&from_sequence_num=0", "", "session=../x"] {
        let mut relay = Relay::new();
        relay.open("a", query);
        let heard = relay.heard("a");
        assert_eq!(kinds(&heard), ["result/error_during_execution"], "{query}");
        assert_eq!(heard[0]["errors"].as_array().map(Vec::len), Some(1), "{query}");
        assert_eq!(relay.client("a").closed, None, "its first request is on its way: {query}");
        relay.text("a", ASK);
        let heard = relay.heard("a");
        assert_eq!(heard[0]["response"]["subtype"], "error", "{query}");
        assert_eq!(relay.client("a").closed, Some(4004), "{query}");
        // One that says nothing is closed as well.
        relay.open("silent", query);
        relay.waits("silent", 1_000);
        assert_eq!(relay.client("silent").closed, None, "{query}");
        relay.waits("silent", 1_000);
        assert_eq!(relay.client("silent").closed, Some(4004), "{query}");
    }
}

// spec: control/limits.1
#[test]
fn too_many_frames_are_answered_in_their_own_words() {
    let mut relay = Relay::watched();
    relay.asks("p1");
    relay.heard("a");
    relay.client("a").gauge.frames_left = Some(0);
    relay.text("a", r#"{"type":"keep_alive"}"#);
    relay.text("a", ASK);
    relay.text("a", r#"{"type":"user","uuid":"m","message":{"content":"x"}}"#);
    relay.json(
        "a",
        &json!({ "type": "control_response", "response": {
        "subtype": "success", "request_id": "p1", "response": { "behavior": "allow" } } }),
    );
    let heard = relay.heard("a");
    assert_eq!(
        kinds(&heard),
        ["control_response", "result/error_during_execution", "system/informational"]
    );
    assert_eq!(relay.room().session.glance().card.prompts.len(), 1, "the question stays open");
    relay.client("a").gauge.frames_left = None;
    relay.client("a").gauge.sends_left = Some(0);
    relay.text("a", r#"{"type":"user","uuid":"m","message":{"content":"x"}}"#);
    assert_eq!(kinds(&relay.heard("a")), ["result/error_during_execution"]);
}

// spec: control/limits.2
#[test]
fn who_says_too_much_before_the_join_is_closed() {
    let mut relay = Relay::new();
    relay.is_slow = true;
    relay.open("a", &format!("session={SESSION}"));
    for _ in 0..65 {
        relay.text("a", ASK);
    }
    assert_eq!(relay.client("a").closed, Some(1008));
}

// spec: control/limits.3
#[test]
fn ten_thousand_requests_are_each_answered_and_nothing_piles_up() {
    let mut relay = Relay::watched();
    for id in 0..10_000 {
        relay.json(
            "a",
            &json!({ "type": "control_request", "request_id": id.to_string(),
            "request": { "subtype": "set_model", "model": "m" } }),
        );
    }
    relay.obey(None);
    assert_eq!(relay.heard("a").len(), 10_000);
    assert_eq!(relay.room().session.owed().len(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_text_is_survived(text in "[\\PC\"{}\\[\\]:,a-z0-9_]{0,120}") {
        let mut relay = Relay::watched();
        relay.text("a", &text);
        let closed = relay.client("a").closed;
        prop_assert!(closed.is_none() || closed == Some(1007));
    }

    #[test]
    fn any_answer_leaves_the_question_open_or_answers_it_once(
        behavior in "allow|deny|maybe|", input in 0..6_usize, rules in 0..4_usize,
    ) {
        let inputs = ["null", "{}", "[]", "7", r#"{"command":"x"}"#, "\"x\""];
        let rules_said = ["null", "[]", r#"[{"type":"setMode"}]"#, "[null, 7]"];
        let mut relay = Relay::watched();
        relay.asks("p1");
        let text = format!(
            r#"{{"type":"control_response","response":{{"subtype":"success","request_id":"p1",
            "response":{{"behavior":"{behavior}","updatedInput":{},"updatedPermissions":{}}}}}}}"#,
            inputs[input], rules_said[rules],
        );
        relay.text("a", &text);
        let open = relay.room().session.glance().card.prompts.len();
        let owed = relay.room().session.owed().len();
        prop_assert_eq!(open + owed, 1);
    }
}
