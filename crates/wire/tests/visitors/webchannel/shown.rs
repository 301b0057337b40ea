//! What a client sees of a session.

use domain::content::{Author, Part, Sealed, ToolStatus};
use domain::session::runs::{Cut, Outcome};
use domain::session::status::DownReason;
use domain::session::{Change, Command};
use domain::{Content, Role};
use serde_json::{Value, json};

use wire::webchannel::seal::{self, Secret};

use super::relay::{CODE, Relay, kinds};

fn watched() -> Relay {
    let mut relay = Relay::new();
    relay.opened("o", "token=fh_owner&plain=1");
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
    relay.opened("o", "token=fh_owner&plain=1");
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
    relay.opened("p", "token=fh_owner&plain=1");
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
    let why = "Farhelm stopped".to_owned();
    relay.starts("run_cut");
    relay.ends("run_cut", Outcome::Cut(Cut { why: why.clone(), lasted_ms: Some(4_000) }));
    let [cut] = &relay.heard("o")[..] else { panic!() };
    assert_eq!(
        (&cut["payload"]["code"], &cut["payload"]["message"]),
        (&json!("agent_error"), &json!(why))
    );
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
    assert_eq!(heard[3]["payload"], json!({ "ok": false, "error": "the tool call was cancelled" }));
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

// spec: webchannel/reconnect.2
#[test]
fn every_opening_ends_what_streamed_when_the_connection_was_cut() {
    let mut relay = Relay::paired();
    relay.starts("run_1");
    relay.streams("m1", 0, "Hel");
    assert_eq!(kinds(&relay.heard("a")), ["assistant_chunk"]);
    let token = relay.client("a").token.clone();
    for query in [String::new(), format!("token={token}"), "session_id=sess_1".to_owned()] {
        let own = relay.clients.remove("a").unwrap().own;
        relay.open("a", &query);
        relay.client("a").own = own;
        let heard = relay.heard("a");
        // Whoever it is: it says nothing of the session.
        assert_eq!(heard[0]["type"], "assistant_final", "{query}");
        assert_eq!(heard[0]["payload"], json!({ "content": "" }), "{query}");
        let rest: Vec<_> = heard[1..].iter().map(|it| &it["payload"]["e2e"]).collect();
        assert_eq!(rest.len(), usize::from(query.starts_with("token=")), "{query}");
        assert!(rest.iter().all(|it| it.is_object()));
    }
}

// spec: webchannel/sealing.8
#[test]
fn a_client_with_a_key_hears_nothing_openly_by_whatever_token_its_socket_is_opened() {
    let mut relay = Relay::paired();
    relay.starts("run_1");
    relay.streams("m1", 0, "sec");
    relay.heard("a");
    relay.reopen("a", "token=fh_owner");
    relay.streams("m1", 3, "ret");
    relay.calls("t1", Some("{}"));
    relay.says_text("m1", "secret");
    relay.streams("m2", 0, "more ");
    assert_eq!(relay.heard("a"), [] as [Value; 0], "nobody knows yet who this is");
    relay.asks("p1");
    assert_eq!(kinds(&relay.heard("a")), ["approval_request"], "questions are never sealed");
    // It says who it is, and hears the message in the making from its start, under its key.
    relay.user("a", "r1", "here I am");
    relay.streams("m2", 5, "secrets");
    let heard = relay.heard("a");
    let opened: Vec<_> = heard
        .iter()
        .map(|it| relay.client("a").opened(&it["payload"]).unwrap()["content"].take())
        .collect();
    assert_eq!(opened, ["more ", "secrets"]);
    assert!(heard.iter().all(|it| it["payload"]["content"].is_null()));
}

// spec: webchannel/sealing.8
#[test]
fn a_client_that_pairs_on_a_socket_that_another_token_opened_stays_with_its_session() {
    let mut relay = Relay::new();
    relay.opened("a", "token=fh_owner&session_id=sess_1");
    relay.asks("p1");
    relay.streams("m1", 0, "words");
    assert_eq!(kinds(&relay.heard("a")), ["approval_request"]);
    let secret = [b'a'; 32];
    relay.client("a").secret = Some(secret);
    let public = Secret::from(secret).public();
    relay.json(
        "a",
        &json!({ "v": 1, "type": "pairing_request", "session_id": "default",
            "payload": { "pairing_code": CODE, "client_pub": seal::encode(&public) } }),
    );
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard), ["pairing_result", "assistant_chunk"], "p1 is asked already");
    assert_eq!(relay.client("a").opened(&heard[1]["payload"]).unwrap()["content"], "words");
}

// spec: webchannel/tokens.7
#[test]
fn a_client_without_a_key_is_spoken_to_from_its_first_message_or_when_its_address_says_so() {
    let mut relay = Relay::new();
    relay.opened("o", "token=fh_owner");
    relay.opened("p", "token=fh_owner&plain=1");
    relay.says_text("m1", "one");
    assert_eq!(contents(&relay.heard("p")), [("assistant_final", "one")]);
    assert_eq!(relay.heard("o").len(), 0);
    relay.json(
        "o",
        &json!({ "v": 1, "type": "user_message", "session_id": "default",
            "payload": { "content": "hello" } }),
    );
    relay.says_text("m2", "two");
    assert_eq!(contents(&relay.heard("o")), [("assistant_final", "two")]);
}
