use serde_json::{Value, json};

use super::*;
use crate::{Seen, Speaker as _};

fn told(kind: &str, request: Option<&str>, payload: Value) -> String {
    let mut envelope = json!({ "v": 1, "type": kind, "session_id": "default" });
    envelope["payload"] = payload;
    if let Some(request) = request {
        envelope["request_id"] = json!(request);
    }
    envelope.to_string()
}

fn auth() -> Auth {
    Auth { access_token: "fh_1".to_owned(), key: Some([7; 32]), expires_in_s: 60 }
}

/// Paired, on an open socket.
fn paired() -> Machine {
    let mut client = Machine::new("default", Some(auth()), [1; 32]);
    client.on_dial();
    client.on_opened();
    client
}

fn sealed(key: [u8; 32], content: &str) -> Value {
    sealed_matter(&Key::from(key), &json!({ "content": content }))
}

fn sealed_matter(key: &Key, matter: &Value) -> Value {
    let mut buffer = matter.to_string().into_bytes();
    key.seal_in_place([3; 12], &mut buffer);
    json!({ "e2e": { "nonce": seal::encode(&[3; 12]), "ciphertext": seal::encode(&buffer) } })
}

// spec: webchannel/clients.1
#[test]
fn a_client_pairs_with_a_code_and_keeps_token_and_key() {
    let mut client = Machine::new("", None, [1; 32]);
    client.on_dial();
    client.on_opened();
    assert_eq!(client.state(), State::Pairing);
    let asked = client.pair("428913");
    assert_eq!((&asked["v"], &asked["session_id"]), (&json!(1), &json!("default")));
    let public = asked["payload"]["client_pub"].as_str().unwrap();
    let relay = Secret::from([9; 32]);
    let key = Key::agree(&relay, &seal::decode_exactly(public).unwrap()).unwrap();
    let payload = json!({ "ok": true, "access_token": "fh_1", "expires_in": 60,
        "e2e": { "agent_pub": seal::encode(&relay.public()) } });
    let happened = client.on_frame(&told("pairing_result", None, payload));
    let expected = Auth { key: Some(key.bytes()), ..auth() };
    assert_eq!(happened, [Happening::Paired(expected.clone())]);
    assert_eq!((client.state(), client.auth()), (State::Paired, Some(&expected)));
    assert!(client.address().ends_with("&token=fh_1"));
}

// spec: webchannel/clients.12
#[test]
fn credentials_that_come_under_the_new_key_alone_are_taken_as_well() {
    let mut client = Machine::new("default", None, [1; 32]);
    client.on_opened();
    let asked = client.pair("428913");
    let public = asked["payload"]["client_pub"].as_str().unwrap();
    let relay = Secret::from([9; 32]);
    let key = Key::agree(&relay, &seal::decode_exactly(public).unwrap()).unwrap();
    let credentials = json!({ "access_token": "fh_1", "expires_in": 60 });
    let mut e2e = sealed_matter(&key, &credentials)["e2e"].take();
    e2e["agent_pub"] = json!(seal::encode(&relay.public()));
    let payload = json!({ "ok": true, "e2e": e2e });
    let happened = client.on_frame(&told("pairing_result", None, payload));
    assert_eq!(happened, [Happening::Paired(Auth { key: Some(key.bytes()), ..auth() })]);
}

// spec: webchannel/clients.2
#[test]
fn a_pairing_result_that_is_malformed_is_an_error_of_the_client() {
    let key = seal::encode(&[0; 32]);
    for payload in [
        json!({}),
        json!({ "access_token": 7 }),
        json!({ "access_token": "t", "e2e": { "agent_pub": "short" } }),
        json!({ "access_token": "t", "e2e": { "agent_pub": key } }),
    ] {
        let mut client = Machine::new("default", None, [1; 32]);
        client.on_opened();
        client.pair("428913");
        let happened = client.on_frame(&told("pairing_result", None, payload));
        let [Happening::Error { code: Some(code), .. }] = happened.as_slice() else {
            panic!("{happened:?}");
        };
        assert_eq!(code, "malformed_pairing_result");
        assert_eq!((client.auth(), client.state()), (None, State::Pairing));
    }
}

// spec: webchannel/clients.3
#[test]
fn with_a_key_words_are_sealed_and_without_they_are_open() {
    let mut client = paired();
    let said = client.say("hello");
    assert_eq!(client.state(), State::Chatting);
    assert_eq!(said["payload"]["access_token"], "fh_1");
    assert!(!said.to_string().contains("hello"));
    let e2e = &said["payload"]["e2e"];
    let nonce = seal::decode_exactly(e2e["nonce"].as_str().unwrap()).unwrap();
    let ciphertext = seal::decode(e2e["ciphertext"].as_str().unwrap()).unwrap();
    let matter = Key::from([7; 32]).open(nonce, &ciphertext).unwrap();
    let matter: Value = serde_json::from_slice(&matter).unwrap();
    assert_eq!(matter, json!({ "content": "hello", "sender_id": "ui-1" }));
    assert_ne!(client.say("hello")["payload"]["e2e"]["nonce"], e2e["nonce"]);

    let mut plain = Machine::new("default", Some(Auth { key: None, ..auth() }), [1; 32]);
    plain.on_opened();
    assert_eq!(plain.say("hello")["payload"]["content"], "hello");
}

// spec: webchannel/clients.4
#[test]
fn envelopes_that_are_none_are_ignored() {
    let mut client = paired();
    for text in [
        "",
        "7",
        r#"{"v":2,"type":"assistant_final","session_id":"s","payload":{"content":"x"}}"#,
        r#"{"v":1,"type":"news","session_id":"s","payload":{}}"#,
        r#"{"v":1,"type":"assistant_final","session_id":"","payload":{"content":"x"}}"#,
        r#"{"v":1,"type":"assistant_final","payload":{"content":"x"}}"#,
    ] {
        assert_eq!(client.on_frame(text), [], "{text}");
    }
}

// spec: webchannel/clients.5
#[test]
fn what_cannot_be_opened_is_passed_over_and_still_ends_a_message() {
    let mut client = paired();
    client.on_frame(&told("assistant_chunk", None, sealed([7; 32], "Hel")));
    assert_eq!(client.on_frame(&told("assistant_chunk", None, sealed([8; 32], "lo"))), []);
    let broken = json!({ "e2e": { "nonce": "?", "ciphertext": 7 } });
    assert_eq!(client.on_frame(&told("assistant_chunk", None, broken.clone())), []);
    assert_eq!(client.streaming(), Some("Hel"));
    let happened = client.on_frame(&told("assistant_final", None, broken));
    assert_eq!(happened, [Happening::Final(Some("Hel".to_owned()))]);
    assert_eq!(client.streaming(), None);
    let whole = client.on_frame(&told("assistant_final", None, sealed([7; 32], "Hello")));
    assert_eq!(whole, [Happening::Final(Some("Hello".to_owned()))]);
}

// spec: webchannel/clients.6
#[test]
fn a_malformed_error_becomes_an_error_of_the_client() {
    let mut client = paired();
    for payload in
        [json!({}), json!(null), json!({ "message": 7 }), json!({ "message": "x", "code": 7 })]
    {
        let happened = client.on_frame(&told("error", None, payload));
        let [Happening::Error { code, .. }] = happened.as_slice() else { panic!("{happened:?}") };
        assert_eq!(code.as_deref(), Some("malformed_error_payload"));
    }
    let happened = client.on_frame(&told("error", None, json!({ "message": "m", "code": "c" })));
    let (message, code) = ("m".to_owned(), Some("c".to_owned()));
    assert_eq!(happened, [Happening::Error { message, code }]);
    assert!(client.auth().is_some());
}

// spec: webchannel/clients.7
#[test]
fn unauthorized_forgets_the_token_the_key_and_the_session() {
    let mut client = paired();
    client.on_frame(&told("approval_request", Some("p1"), json!({ "action": "run" })));
    let payload = json!({ "message": "revoked", "code": "unauthorized" });
    let happened = client.on_frame(&told("error", None, payload));
    assert_eq!(happened.last(), Some(&Happening::LoggedOut));
    assert_eq!((client.auth(), client.state()), (None, State::Pairing));
    assert_eq!(client.approvals().count(), 0);
    assert_eq!(client.say("x")["payload"]["content"], "x", "the key is gone as well");
    assert_eq!(client.on_closed(), None);
}

// spec: webchannel/clients.8
#[test]
fn a_socket_is_opened_again_only_under_all_conditions() {
    let mut never_in = Machine::new("default", None, [1; 32]);
    never_in.on_opened();
    assert_eq!(never_in.on_closed(), None);

    let mut closed_by_person = paired();
    closed_by_person.close();
    assert_eq!(closed_by_person.on_closed(), None);

    let mut not_wanted = paired();
    not_wanted.should_reconnect = false;
    assert_eq!(not_wanted.on_closed(), None);

    let mut never_open = Machine::new("default", Some(auth()), [1; 32]);
    never_open.on_dial();
    assert_eq!(never_open.on_closed(), None);

    let mut chatting = paired();
    chatting.say("x");
    assert!(chatting.on_closed().is_some());
}

// spec: webchannel/clients.9
#[test]
fn the_wait_doubles_from_one_second_to_thirty_with_jitter_and_begins_anew() {
    let mut client = paired();
    let mut jitters = vec![];
    for whole_ms in [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000] {
        let delay_ms = client.on_closed().unwrap();
        assert!((whole_ms / 2..=whole_ms).contains(&delay_ms), "{delay_ms} of {whole_ms}");
        jitters.push(delay_ms * 1_000 / whole_ms);
        client.on_dial();
    }
    jitters.dedup();
    assert!(jitters.len() > 1);
    client.on_opened();
    assert!(client.on_closed().unwrap() <= 1_000);
    for _ in 0..100 {
        client.on_dial();
        assert!(client.on_closed().unwrap() <= RECONNECT_LONGEST_MS);
    }
}

// spec: webchannel/clients.10
#[test]
fn a_tool_result_without_a_known_call_goes_to_the_latest_open_one() {
    let mut client = paired();
    for (request, name) in [("t1", "Bash"), ("t2", "Read"), ("t3", "Edit")] {
        client.on_frame(&told(
            "tool_call",
            Some(request),
            json!({ "name": name, "arguments": {} }),
        ));
    }
    let mut of = |request| {
        let text = told("tool_result", request, json!({ "ok": true, "result": 7 }));
        let Some(Happening::ToolResult { request, name, .. }) = client.on_frame(&text).pop() else {
            panic!("no result");
        };
        (request.unwrap_or_default(), name)
    };
    assert_eq!(of(Some("t2")), ("t2".to_owned(), "Read".to_owned()));
    assert_eq!(of(None), ("t3".to_owned(), "Edit".to_owned()));
    assert_eq!(of(None), ("t1".to_owned(), "Bash".to_owned()));
    assert_eq!(of(None), (String::new(), "unknown_tool".to_owned()));
    for number in 0..1_000 {
        client.on_frame(&told("tool_call", Some(&number.to_string()), json!({ "name": "x" })));
    }
    assert_eq!(client.tools.len(), TOOLS_OPEN_MAX);
}

// spec: webchannel/clients.11
#[test]
fn a_question_is_asked_once_and_decided_once() {
    let mut client = paired();
    let asked = told("approval_request", Some("p1"), json!({ "action": "run", "reason": "why" }));
    assert_eq!(client.on_frame(&asked).len(), 1);
    assert_eq!(client.on_frame(&asked), []);
    let answer = client.decide_on("p1", true).unwrap();
    assert_eq!(
        (&answer["request_id"], &answer["payload"]["approved"]),
        (&json!("p1"), &json!(true))
    );
    assert_eq!(answer["payload"]["access_token"], "fh_1");
    assert_eq!(client.decide_on("p1", false), None);
    client.on_frame(&told("approval_request", Some("p2"), json!({ "action": "run" })));
    let decided = told("approval_response", Some("p2"), json!({ "approved": false }));
    let (request, approved) = ("p2".to_owned(), false);
    assert_eq!(client.on_frame(&decided), [Happening::Decided { request, approved }]);
    assert_eq!(client.decide_on("p2", true), None);
}

#[test]
fn in_common_words_it_tells_what_it_heard() {
    let mut client = Machine::let_in("sess_1", [1; 32]);
    assert_eq!(client.path(), "/ws/webchannel?session_id=sess_1&plain=1");
    assert_eq!(client.on_open(), [] as [String; 0]);
    assert_eq!(client.interrupt(), [] as [String; 0]);
    assert!(client.send("hello")[0].contains("hello"));
    let mut seen = |text: String| client.on_text(&text).0.pop();
    let words = |words: &str| json!({ "content": words });
    assert_eq!(seen(told("user_message", None, words("a"))), Some(Seen::Person("a".to_owned())));
    assert_eq!(seen(told("assistant_chunk", None, words("b"))), Some(Seen::Piece("b".to_owned())));
    assert_eq!(
        seen(told("assistant_final", None, words("bc"))),
        Some(Seen::Agent("bc".to_owned()))
    );
    assert_eq!(
        seen(told("tool_call", Some("t"), json!({ "name": "T" }))),
        Some(Seen::Tool("T".to_owned()))
    );
    let (id, what) = ("p".to_owned(), "run".to_owned());
    assert_eq!(
        seen(told("approval_request", Some("p"), json!({ "action": "run" }))),
        Some(Seen::Asked { id: id.clone(), what })
    );
    assert_eq!(
        seen(told("approval_response", Some("p"), json!({ "approved": true }))),
        Some(Seen::Settled { id })
    );
    let error = |code: &str| told("error", None, json!({ "message": "m", "code": code }));
    assert_eq!(seen(error("agent_error")), Some(Seen::Ended(Some("m".to_owned()))));
    assert_eq!(seen(error("rate_limited")), Some(Seen::Trouble("m".to_owned())));
}
