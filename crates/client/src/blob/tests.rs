use std::borrow::Borrow;

use serde_json::{Value, json};

use super::*;

const METHODS: [&str; 3] = ["agent", "agent.cancel", "sessions.switch"];

fn connected() -> Machine {
    let mut client = Machine::new("sess_1");
    let connect = client.again().1;
    let answer =
        response(&connect["id"], &json!({ "gatewayVersion": "1", "supportedMethods": METHODS }));
    let heard = client.on_text(&answer);
    assert_eq!(heard, [Happening::Connected { gateway_version: "1".to_owned() }]);
    client
}

fn response(id: &Value, payload: &Value) -> String {
    json!({ "type": "res", "id": id, "ok": true, "payload": payload, "error": null }).to_string()
}

fn event(name: &str, payload: &Value) -> String {
    json!({ "type": "event", "event": name, "payload": payload }).to_string()
}

fn seen(client: &mut Machine, name: &str, payload: impl Borrow<Value>) -> Vec<Seen> {
    Speaker::on_text(client, &event(name, payload.borrow())).0
}

// spec: blob/clients.1
#[test]
fn nothing_is_asked_before_the_relay_took_the_connect() {
    let mut client = Machine::new("sess_1");
    assert_eq!(client.request("agent", &json!({})), Err(Unsaid::NotConnected));
    let (lost, connect) = client.again();
    assert_eq!(lost, []);
    assert_eq!(
        (&connect["method"], &connect["params"]["version"]),
        (&json!("connect"), &json!("1"))
    );
    assert_eq!(client.request("agent", &json!({})), Err(Unsaid::NotConnected));
    let mut client = connected();
    assert!(client.request("agent", &json!({ "message": "x" })).is_ok());
    assert_eq!(client.request("status", &json!({})), Err(Unsaid::NotOffered));
}

// spec: blob/clients.2
#[test]
fn a_version_that_the_relay_does_not_speak_ends_the_dialling() {
    let mut client = Machine::new("sess_1");
    let id = client.again().1["id"].clone();
    let words = "Unsupported protocol version: 1. Supported: 2";
    let no = json!({ "type": "res", "id": id, "ok": false, "payload": null, "error": words });
    assert_eq!(client.on_text(&no.to_string()), [Happening::WrongVersion(words.to_owned())]);
    assert!(!client.may_dial());
}

// spec: blob/clients.3
#[test]
fn a_request_is_answered_once_and_by_its_id() {
    let mut client = connected();
    let asked = client.request("agent", &json!({ "message": "x" })).unwrap();
    assert_eq!(client.on_text(&response(&json!("other"), &json!({}))), []);
    let answer = response(&asked["id"], &json!({ "runId": "r" }));
    assert!(
        matches!(&client.on_text(&answer)[..], [Happening::Answered { method, .. }] if method == "agent")
    );
    assert_eq!(client.on_text(&answer), []);
    for text in ["no json", "7", "{}", r#"{"type":"tomorrow"}"#] {
        assert_eq!(client.on_text(text), []);
    }
    for _ in 0..UNANSWERED_MAX {
        client.request("agent", &json!({})).unwrap();
    }
    assert_eq!(client.request("agent", &json!({})), Err(Unsaid::TooMuch));
}

// spec: blob/clients.4
#[test]
fn words_whose_answer_was_lost_are_not_said_again_but_told() {
    let mut client = connected();
    client.request("agent", &json!({ "message": "hello" })).unwrap();
    client.request("agent.cancel", &json!({ "runId": "r" })).unwrap();
    let (lost, connect) = client.again();
    assert_eq!(lost, [Happening::Unknown("hello".to_owned())]);
    assert_eq!(connect["method"], "connect");
}

#[test]
fn a_history_that_is_none_is_not_shown() {
    let mut client = connected();
    for payload in [json!("nothing"), json!([]), json!(null), json!({ "messages": "none" })] {
        assert_eq!(seen(&mut client, "session_changed", payload), []);
    }
}

// spec: blob/clients.5
#[test]
fn what_was_missed_is_found_in_the_history_and_told_once() {
    let mut client = connected();
    let row =
        |id: &str, role: &str| json!({ "id": id, "role": role, "content": id, "timestamp": "" });
    let changed = |rows: &[Value]| json!({ "sessionId": "sess_1", "messages": rows });
    assert_eq!(seen(&mut client, "session_changed", changed(&[row("old", "user")])), []);
    let message = json!({ "role": "user", "content": "m1", "messageId": "m1" });
    assert_eq!(seen(&mut client, "message", message.clone()), [Seen::Person("m1".to_owned())]);
    seen(&mut client, "status", json!({ "runId": "m1", "status": "thinking" }));
    let token = json!({ "runId": "m1", "content": "a1", "messageId": "a1", "delta": true });
    seen(&mut client, "token", token);
    seen(&mut client, "final", json!({ "runId": "m1", "messageId": "a1" }));
    client.on_open();
    let rows = [
        row("old", "user"),
        row("m1", "user"),
        row("a1", "assistant"),
        row("m2", "user"),
        row("a2", "assistant"),
    ];
    let missed = seen(&mut client, "session_changed", changed(&rows));
    assert_eq!(missed, [Seen::Person("m2".to_owned()), Seen::Agent("a2".to_owned())]);
    assert_eq!(seen(&mut client, "message", message), []);
}

#[test]
fn a_run_in_the_common_words() {
    let mut client = Machine::new("sess_1");
    assert_eq!(client.path(), "/ws/blob");
    let connect: Value = serde_json::from_str(&client.on_open()[0]).unwrap();
    assert_eq!(client.send("hello"), [] as [String; 0], "it waits for the connect");
    let answer = response(&connect["id"], &json!({ "supportedMethods": METHODS }));
    let said = Speaker::on_text(&mut client, &answer).1;
    let methods: Vec<Value> =
        said.iter().map(|it| serde_json::from_str::<Value>(it).unwrap()["method"].take()).collect();
    assert_eq!(methods, ["sessions.switch", "agent"]);
    assert_eq!(client.interrupt(), [] as [String; 0], "nothing runs");
    seen(&mut client, "status", json!({ "runId": "r", "status": "thinking" }));
    let token =
        |words: &str| json!({ "runId": "r", "content": words, "messageId": "a", "delta": true });
    assert_eq!(seen(&mut client, "token", token("on")), [Seen::Piece("on".to_owned())]);
    seen(&mut client, "token", token("e"));
    let called = seen(&mut client, "tool_call", json!({ "runId": "r", "toolName": "Bash" }));
    assert_eq!(called, [Seen::Agent("one".to_owned()), Seen::Tool("Bash".to_owned())]);
    let prompt = |state: &str| json!({ "role": "system", "content": "?", "messageId": "p", "prompt": { "id": "p", "state": state, "text": "ls?" } });
    let asked = [Seen::Asked { id: "p".to_owned(), what: "ls?".to_owned() }];
    assert_eq!(seen(&mut client, "message", prompt("open")), asked);
    assert!(client.decide("p", true)[0].contains("/approve p"));
    assert_eq!(
        seen(&mut client, "message", prompt("closed")),
        [Seen::Settled { id: "p".to_owned() }]
    );
    assert!(client.interrupt()[0].contains(r#""runId":"r""#));
    let stopped = seen(&mut client, "cancelled", json!({ "runId": "r", "message": "stopped" }));
    assert_eq!(stopped, [Seen::Ended(Some("stopped".to_owned()))]);
    assert_eq!(seen(&mut client, "final", json!({ "runId": "other", "messageId": null })), []);
    assert_eq!(client.run(), None);
}

// spec: blob/clients.4
#[test]
fn a_lost_connection_is_told_in_the_common_words_too() {
    let mut client = connected();
    client.send("hello");
    let prompt = json!({ "role": "system", "content": "?", "messageId": "p", "prompt": { "id": "p", "state": "open", "text": "" } });
    seen(&mut client, "message", prompt);
    client.on_open();
    let told = seen(&mut client, "status", json!({}));
    assert_eq!(
        told,
        [
            Seen::Trouble("may not have been sent: hello".to_owned()),
            Seen::Settled { id: "p".to_owned() }
        ]
    );
}
