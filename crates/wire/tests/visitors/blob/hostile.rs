//! Input that means no good.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::relay::{CONNECT, Relay, SESSION, START, kinds};

// spec: blob/errors.1
#[test]
fn text_that_is_not_json_closes_the_socket_at_any_time() {
    for text in ["", "x", "{", "\u{0}"] {
        let mut relay = Relay::watched();
        relay.text("a", text);
        relay.open("b", "");
        relay.text("b", text);
        assert_eq!((relay.client("a").closed, relay.client("b").closed), (Some(1007), Some(1007)));
        assert_eq!(relay.heard("a"), [] as [Value; 0]);
    }
}

// spec: blob/errors.2
#[test]
fn json_that_is_no_request_is_answered_and_before_the_handshake_also_the_end() {
    let mut relay = Relay::watched();
    for text in ["7", "[]", "{}", r#"{"type":"req","id":"x"}"#] {
        relay.text("a", text);
        assert_eq!(kinds(&relay.heard("a")), ["res!"], "{text}");
        assert_eq!(relay.client("a").closed, None);
        relay.open("b", "");
        relay.text("b", text);
        assert_eq!(kinds(&relay.heard("b")), ["res!"], "{text}");
        assert_eq!(relay.client("b").closed, Some(4001));
    }
    assert_eq!(
        relay.asked("a", "connect", &json!({ "version": "1" }))["error"],
        "Already connected"
    );
}

// spec: blob/connect.3
#[test]
fn a_version_of_any_other_kind_is_refused() {
    for version in [json!("2"), json!(1), json!(null), json!({})] {
        let mut relay = Relay::new();
        relay.open("a", "");
        relay.ask("a", "c", "connect", &json!({ "version": version }));
        let heard = relay.heard("a");
        let words = heard[0]["error"].as_str().unwrap();
        assert!(words.starts_with("Unsupported protocol version: "), "{words}");
        assert_eq!(relay.client("a").closed, Some(1002));
    }
}

// spec: blob/connect.5
#[test]
fn who_says_nothing_is_closed_in_time() {
    let mut relay = Relay::new();
    relay.open("a", "");
    let machine = &mut relay.client("a").machine;
    let until = machine.deadline().unwrap();
    assert_eq!(until, START.plus_ms(10_000));
    assert_eq!(machine.on_tick(START).len(), 0);
    assert_eq!(machine.on_tick(until).len(), 1);
    relay.open("b", "");
    relay.text("b", CONNECT);
    assert_eq!(relay.client("b").machine.deadline(), None);
}

// spec: blob/credentials.1
#[test]
fn without_a_credential_every_request_is_denied() {
    let mut relay = Relay::new();
    relay.open("n", "");
    for method in ["connect", "sessions.list", "agent"] {
        let answer = relay.asked("n", method, &json!({ "version": "1", "message": "x" }));
        assert_eq!((&answer["ok"], &answer["error"]), (&json!(false), &json!("Permission denied")));
    }
    assert_eq!(relay.client("n").closed, None);
}

// spec: blob/limits.1
#[test]
fn too_many_frames_or_sends_are_refused_in_words() {
    let mut relay = Relay::watched();
    relay.client("a").gauge.sends_left = Some(0);
    let answer = relay.asked("a", "agent", &json!({ "message": "x" }));
    assert_eq!(answer["error"], "Rate limit exceeded; try again in a moment");
    relay.ask("a", "c", "agent", &json!({ "message": "/help" }));
    assert_eq!(kinds(&relay.heard("a")), ["res", "message/system"], "a command is no send");
    relay.client("a").gauge.frames_left = Some(0);
    assert_eq!(relay.asked("a", "status", &json!({}))["ok"], false);
    relay.text("a", "7");
    assert_eq!(relay.heard("a"), [] as [Value; 0], "nobody is answered for noise");
}

// spec: blob/limits.2
#[test]
fn ten_thousand_requests_in_flight_are_each_answered_and_nothing_piles_up() {
    let mut relay = Relay::watched();
    relay.is_slow = true;
    for number in 0..10_000 {
        let params = json!({ "sessionId": SESSION, "message": "x" });
        let method = ["status", "sessions.history", "sessions.list", "agent"][number % 4];
        relay.ask("a", &number.to_string(), method, &params);
    }
    let refused =
        relay.heard("a").iter().filter(|it| it["error"] == "Too many requests in flight").count();
    assert!(refused > 8_000, "{refused}");
    while relay.is_slow {
        relay.catch_up();
    }
    let answered = relay.heard("a").iter().filter(|it| it["type"] == "res").count();
    // The sends that were taken were answered at their event, the others when they were refused.
    assert!(answered + refused >= 9_700, "{answered} and {refused}");
}

// spec: blob/limits.2
#[test]
fn what_waits_for_a_switch_is_bounded() {
    let mut relay = Relay::watched();
    relay.is_slow = true;
    relay.ask("a", "s", "sessions.switch", &json!({ "sessionId": SESSION }));
    for number in 0..100 {
        relay.ask("a", &number.to_string(), "sessions.switch", &json!({ "sessionId": SESSION }));
    }
    assert_eq!(relay.heard("a").len(), 36, "64 wait");
    relay.catch_up();
    let answers = relay.heard("a").iter().filter(|it| it["type"] == "res").count();
    assert_eq!(answers, 65);
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
    fn any_parameters_of_any_method_are_answered_once(
        method in 0..8_usize, field in 0..8_usize, value in 0..8_usize,
    ) {
        let methods = ["agent", "agent.cancel", "sessions.list", "sessions.new",
            "sessions.switch", "sessions.history", "status", "connect"];
        let fields = ["sessionId", "message", "runId", "limit", "offset", "title", "before",
            "version"];
        let values = [json!(null), json!(true), json!(-1), json!(1e300), json!(""), json!([]),
            json!({}), json!(u64::MAX)];
        let mut relay = Relay::watched();
        let mut params = json!({ "sessionId": SESSION, "message": "x", "runId": "x" });
        params[fields[field]] = values[value].clone();
        relay.ask("a", "q", methods[method], &params);
        let heard = relay.heard("a");
        let answers = heard.iter().filter(|it| it["type"] == "res").count();
        prop_assert_eq!(answers, 1);
    }
}
