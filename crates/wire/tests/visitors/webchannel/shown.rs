//! What a client sees of a session.

use domain::content::{Author, Part, Sealed, ToolStatus};
use domain::session::runs::Outcome;
use domain::session::status::DownReason;
use domain::session::{Change, Command};
use domain::{Content, Role};
use serde_json::{Value, json};

use super::relay::{Relay, kinds};

fn watched() -> Relay {
    let mut relay = Relay::new();
    relay.open("o", "token=fh_owner");
    relay
}

fn contents(frames: &[Value]) -> Vec<(&str, &str)> {
    frames
        .iter()
        .map(|it| (it["type"].as_str().unwrap(), it["payload"]["content"].as_str().unwrap()))
        .collect()
}

// spec: webchannel/sealing.2
#[test]
fn each_client_hears_the_same_under_its_own_key_and_never_the_same_nonce() {
    let mut relay = Relay::paired();
    relay.pair("b", Role::Operator);
    relay.open("o", "token=fh_owner");
    relay.streams("m1", 0, "one");
    relay.streams("m1", 3, "two");
    let (a, b, o) = (relay.heard("a"), relay.heard("b"), relay.heard("o"));
    assert_eq!(contents(&o), [("assistant_chunk", "one"), ("assistant_chunk", "two")]);
    let mut nonces = vec![];
    for (name, other, heard) in [("a", "b", &a), ("b", "a", &b)] {
        for (frame, words) in heard.iter().zip(["one", "two"]) {
            let payload = &frame["payload"];
            assert_eq!(relay.client(name).opened(payload).unwrap()["content"], words);
            assert_eq!(relay.client(other).opened(payload), None);
            assert!(payload["content"].is_null());
            nonces.push(payload["e2e"]["nonce"].to_string());
        }
    }
    nonces.sort();
    nonces.dedup();
    assert_eq!(nonces.len(), 4);
}

// spec: webchannel/assistant.3
#[test]
fn who_joins_during_a_message_or_was_too_slow_hears_all_of_it_once() {
    let mut relay = watched();
    relay.streams("m1", 0, "Hello ");
    relay.open("p", "token=fh_owner");
    relay.streams("m1", 6, "wor");
    assert_eq!(
        contents(&relay.heard("p")),
        [("assistant_chunk", "Hello "), ("assistant_chunk", "wor")]
    );
    relay.heard("o");
    // Lost on its way to this client; told when it has caught up.
    relay.room_mut().drafts.take(&domain::passing::Delta {
        message: "m1".into(),
        part: 0,
        voice: domain::passing::Voice::Text,
        offset: 9,
        words: Content::Open("ld".to_owned()),
    });
    relay.lags("o");
    assert_eq!(contents(&relay.heard("o")), [("assistant_chunk", "ld")]);
    relay.says_text("m1", "Hello world");
    assert_eq!(contents(&relay.heard("o")), [("assistant_final", "Hello world")]);
}

// spec: webchannel/assistant.5
#[test]
fn a_run_that_is_cut_ends_what_streamed() {
    let mut relay = watched();
    relay.starts("run_1");
    relay.streams("m1", 0, "Hel");
    relay.ends("run_1", Outcome::Interrupted);
    assert_eq!(contents(&relay.heard("o")), [("assistant_chunk", "Hel"), ("assistant_final", "")]);
    relay.starts("run_2");
    relay.ends("run_2", Outcome::Failed("the model is away".to_owned()));
    assert_eq!(relay.errors("o"), ["agent_error"]);
    relay.starts("run_3");
    relay.ends("run_3", Outcome::Completed);
    assert_eq!(relay.heard("o").len(), 0);
}

// spec: webchannel/assistant.2
#[test]
fn a_message_is_its_text_and_what_has_none_is_not_told() {
    let mut relay = watched();
    let text = |words: &str| Part::Text(words.to_owned());
    let thought = Part::Thinking("hm".to_owned());
    let call = Part::ToolCall("t1".into());
    relay.tells(
        "m1",
        Author::Assistant,
        Content::Open(vec![thought.clone(), text("a"), call.clone(), text("b")]),
    );
    relay.tells("m2", Author::Assistant, Content::Open(vec![thought, call]));
    relay.tells("m3", Author::System, Content::Open(vec![text("a notice")]));
    let (key, nonce, body) = (String::new(), String::new(), String::new());
    relay.tells("m4", Author::Assistant, Content::Sealed(Sealed { key, nonce, body }));
    assert_eq!(
        contents(&relay.heard("o")),
        [("assistant_final", "a\n\nb"), ("assistant_final", "[sealed]")]
    );
}

// spec: webchannel/tools.3
#[test]
fn a_tools_end_is_told_once_it_has_ended_and_bounded() {
    let mut relay = watched();
    relay.calls("t1", None);
    relay.tool("t1", ToolStatus::Running, Some("so far"));
    relay.tool("t1", ToolStatus::Completed, Some(&"é".repeat(50_000)));
    relay.calls("t2", Some("7"));
    relay.tool("t2", ToolStatus::Cancelled, None);
    let heard = relay.heard("o");
    assert_eq!(kinds(&heard), ["tool_call", "tool_result", "tool_call", "tool_result"]);
    assert_eq!(heard[0]["payload"]["arguments"], json!({}));
    let output = heard[1]["payload"]["result"].as_str().unwrap();
    assert!(output.len() < 65_600 && output.ends_with("é…"));
    assert_eq!(heard[2]["payload"]["arguments"], json!({ "input": 7 }));
    assert_eq!(heard[3]["payload"], json!({ "ok": false, "error": "it was cancelled" }));
}

// spec: webchannel/tools.4
#[test]
fn tools_and_questions_are_told_openly_to_a_client_with_a_key_as_the_document_has_it() {
    let mut relay = Relay::paired();
    relay.calls("t1", Some("{}"));
    relay.asks("p1");
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard), ["tool_call", "approval_request"]);
    assert!(heard.iter().all(|it| it["payload"]["e2e"].is_null()));
}

// spec: webchannel/errors.2
#[test]
fn a_machine_that_goes_away_is_told() {
    let mut relay = watched();
    let down =
        Change::Down { connection: Some("proxy_1".into()), reason: DownReason::ProxyDisconnected };
    relay.say(&Command::Relay(down)).unwrap();
    assert_eq!(relay.errors("o"), ["session_not_connected"]);
}
