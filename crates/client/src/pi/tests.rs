use serde_json::{Value, json};

use super::*;
use crate::{Seen, Speaker};

fn opened() -> Machine {
    let mut client = Machine::new(Some("sess_1"));
    let (lost, said) = client.opened(0);
    assert_eq!((lost, said.len()), (vec![], 1));
    client.on_text(&history(&[], "req_1"));
    client
}

fn history(messages: &[Value], id: &str) -> String {
    json!({ "type": "response", "command": "get_messages", "id": id, "success": true,
        "data": { "messages": messages } })
    .to_string()
}

fn said(role: &str, words: &str) -> Value {
    json!({ "role": role, "content": [{ "type": "text", "text": words }], "stopReason": "stop" })
}

fn end(message: &Value) -> String {
    json!({ "type": "message_end", "message": message }).to_string()
}

fn dialog(id: &str, method: &str) -> String {
    json!({ "type": "extension_ui_request", "id": id, "method": method, "title": "Go?",
        "options": ["Always allow", "Allow", "Deny"] })
    .to_string()
}

// spec: pi/clients.1
#[test]
fn requests_are_numbered_and_each_answer_is_for_one_of_them() {
    let mut client = opened();
    let first = client.request("get_state", json!({}), 0).unwrap();
    assert_eq!(first, json!({ "id": "req_2", "type": "get_state" }));
    let second = client.request("abort", Value::Null, 0).unwrap();
    assert_eq!(second["id"], "req_3");
    let answer = r#"{"type":"response","id":"req_2","command":"get_state","success":true}"#;
    assert!(matches!(client.on_text(answer).as_slice(), [Happening::Answer(_)]));
    assert_eq!(client.on_text(answer), [], "nobody waits for it any more");
}

// spec: pi/clients.2
#[test]
fn a_request_is_given_up_after_thirty_seconds() {
    let mut client = opened();
    client.request("get_state", json!({}), 1_000).unwrap();
    assert_eq!(client.deadline_ms(), Some(31_000));
    assert_eq!(client.on_tick(30_999), []);
    let given_up =
        Happening::Unanswered { id: "req_2".to_owned(), command: "get_state".to_owned() };
    assert_eq!(client.on_tick(31_000), [given_up]);
    assert_eq!(client.deadline_ms(), None);
}

// spec: pi/clients.3
#[test]
fn each_dialog_is_answered_in_its_own_way_and_once() {
    let mut client = opened();
    for (id, method) in [("c", "confirm"), ("s", "select"), ("i", "input"), ("e", "editor")] {
        let heard = client.on_text(&dialog(id, method));
        assert!(matches!(heard.as_slice(), [Happening::Asked { .. }]), "{method}");
    }
    assert_eq!(client.reply("c", Reply::Value("x".into())), Err(Unsaid::WrongAnswer));
    let frame = client.reply("c", Reply::Confirmed(true)).unwrap();
    assert_eq!(frame, json!({ "type": "extension_ui_response", "id": "c", "confirmed": true }));
    assert_eq!(client.reply("c", Reply::Confirmed(true)), Err(Unsaid::UnknownDialog));
    assert_eq!(client.reply("s", Reply::Value("Perhaps".into())), Err(Unsaid::WrongAnswer));
    let frame = client.reply("s", Reply::Value("Allow".into())).unwrap();
    assert_eq!(frame["value"], "Allow");
    let frame = client.reply("i", Reply::Cancelled).unwrap();
    assert_eq!(frame, json!({ "type": "extension_ui_response", "id": "i", "cancelled": true }));
    let heard = client.on_text(r#"{"type":"extension_ui_resolved","id":"e"}"#);
    assert_eq!(heard[0], Happening::Resolved("e".to_owned()));
    assert_eq!(client.dialogs().count(), 0);
}

// spec: pi/clients.4
#[test]
fn notifications_are_system_messages_and_failures_are_errors() {
    let mut client = opened();
    let notify = r#"{"type":"extension_ui_request","id":"n","method":"notify","message":"hi"}"#;
    assert_eq!(client.on_text(notify), [Happening::System("hi".to_owned())]);
    let editor =
        r#"{"type":"extension_ui_request","id":"n","method":"set_editor_text","text":"t"}"#;
    assert_eq!(client.on_text(editor), [Happening::System("t".to_owned())]);
    let error = r#"{"type":"extension_error","extensionPath":"x","event":"y","error":"bad"}"#;
    assert_eq!(client.on_text(error), [Happening::Trouble("bad".to_owned())]);
    client.request("switch_session", json!({ "sessionPath": "x" }), 0).unwrap();
    let failed = r#"{"type":"response","id":"req_2","command":"switch_session","success":false,
        "error":"Session file not found"}"#;
    let heard = client.on_text(failed);
    assert_eq!(heard[1], Happening::Trouble("Session file not found".to_owned()));
    for odd in ["", "7", "{}", r#"{"type":"tomorrow"}"#] {
        client.on_text(odd);
    }
}

// spec: pi/clients.5
#[test]
fn a_scheduled_message_leaves_the_schedule_when_it_is_in_the_conversation() {
    let mut client = opened();
    client.on_text(r#"{"type":"agent_start"}"#);
    client.prompt("one", 0).unwrap();
    assert_eq!(client.scheduled(), ["one"]);
    client.on_text(r#"{"type":"queue_update","steering":["left"],"followUp":["one"]}"#);
    assert_eq!(client.scheduled(), ["left", "one"]);
    client.on_text(r#"{"type":"message_start","message":{"role":"user","content":"left"}}"#);
    assert_eq!(client.scheduled(), ["one"]);
}

// spec: pi/clients.6
#[test]
fn what_was_missed_is_told_once_and_before_what_comes_live() {
    let mut client = opened();
    client.on_text(&end(&said("user", "one")));
    client.prompt("was it heard?", 0).unwrap();
    let (lost, asked) = client.opened(0);
    assert!(
        matches!(lost.as_slice(), [Happening::Unanswered { command, .. }] if command == "prompt")
    );
    assert_eq!((asked.len(), &asked[0]["type"]), (1, &json!("get_messages")));
    assert_eq!(client.on_text(&end(&said("user", "three"))), [], "it waits for the history");
    let past = [said("user", "one"), said("assistant", ""), said("assistant", "two")];
    let heard = client.on_text(&history(&past, asked[0]["id"].as_str().unwrap()));
    assert_eq!(heard[0], Happening::Missed(said("assistant", "two")));
    assert!(
        matches!(&heard[1], Happening::Event(event) if event["message"] == said("user", "three"))
    );
    assert_eq!(heard.len(), 2);
    // Nothing is told twice after one more loss.
    let (_, asked) = client.opened(0);
    let past = [&past[..], &[said("user", "three")]].concat();
    assert_eq!(client.on_text(&history(&past, asked[0]["id"].as_str().unwrap())), []);
}

// spec: pi/clients.6
#[test]
fn of_messages_that_a_run_was_stopped_with_only_the_finished_ones_are_in_the_history() {
    let mut client = opened();
    let mut finished = said("assistant", "whole");
    finished["errorMessage"] = json!("The run was interrupted");
    let unfinished = finished.clone();
    finished["responseId"] = json!("m1");
    client.on_text(&end(&unfinished));
    let (_, asked) = client.opened(0);
    let past = [finished.clone(), said("user", "on")];
    let heard = client.on_text(&history(&past, asked[0]["id"].as_str().unwrap()));
    let missed = past.map(Happening::Missed);
    assert_eq!(heard, missed);
    client.on_text(&end(&finished));
    let (_, asked) = client.opened(0);
    let past = [finished.clone(), said("user", "on"), finished];
    assert_eq!(client.on_text(&history(&past, asked[0]["id"].as_str().unwrap())), []);
}

#[test]
fn nobody_waits_for_more_than_can_be_remembered() {
    let mut client = opened();
    for _ in 0..UNANSWERED_MAX {
        client.request("get_state", json!({}), 0).unwrap();
    }
    assert_eq!(client.request("get_state", json!({}), 0), Err(Unsaid::TooMuch));
    for id in 0..100 {
        client.on_text(&dialog(&id.to_string(), "confirm"));
    }
    assert_eq!(client.dialogs().count(), DIALOGS_MAX);
}

#[test]
fn it_speaks_the_common_words() {
    let mut client = Machine::new(Some("farhelm/sess_1.jsonl"));
    let speaker: &mut dyn Speaker = &mut client;
    assert_eq!(speaker.path(), "/ws/pi?session=farhelm%2Fsess_1.jsonl");
    assert_eq!(speaker.on_open(), [r#"{"id":"req_1","type":"get_messages"}"#]);
    speaker.on_text(&history(&[], "req_1"));
    assert!(speaker.send("hello")[0].contains(r#""message":"hello""#));
    let aborted = json!({ "role": "assistant", "content": [], "stopReason": "aborted",
        "errorMessage": "The run was interrupted" });
    let mut seen = vec![];
    for frame in [
        json!({ "type": "agent_start" }),
        json!({ "type": "message_start", "message": { "role": "user", "content": "hello" } }),
        json!({ "type": "message_update", "assistantMessageEvent":
            { "type": "text_delta", "contentIndex": 0, "delta": "Hi" } }),
        json!({ "type": "message_end", "message": said("assistant", "Hi") }),
        json!({ "type": "tool_execution_start", "toolName": "Bash", "toolCallId": "t" }),
        serde_json::from_str(&dialog("p", "select")).unwrap(),
    ] {
        seen.extend(speaker.on_text(&frame.to_string()).0);
    }
    let answer = speaker.decide("p", true);
    assert!(answer[0].contains(r#""value":"Allow""#), "{answer:?}");
    for frame in [
        json!({ "type": "extension_ui_resolved", "id": "p" }),
        json!({ "type": "message_end", "message": aborted }),
        json!({ "type": "agent_end", "messages": [] }),
    ] {
        seen.extend(speaker.on_text(&frame.to_string()).0);
    }
    assert_eq!(
        seen,
        [
            Seen::Person("hello".to_owned()),
            Seen::Piece("Hi".to_owned()),
            Seen::Agent("Hi".to_owned()),
            Seen::Tool("Bash".to_owned()),
            Seen::Asked { id: "p".to_owned(), what: "Go?".to_owned() },
            Seen::Settled { id: "p".to_owned() },
            Seen::Ended(Some("The run was interrupted".to_owned())),
        ]
    );
    assert!(speaker.interrupt()[0].contains("abort"));
}

// spec: pi/clients.6
#[test]
fn a_message_that_streams_while_the_history_is_asked_for_is_told_once() {
    let begin = json!({ "type": "message_start", "message": said("assistant", "") }).to_string();
    let more = |words: &str| {
        let event = json!({ "type": "text_delta", "contentIndex": 0, "delta": words });
        json!({ "type": "message_update", "message": said("assistant", ""),
            "assistantMessageEvent": event })
        .to_string()
    };
    let mut client = Machine::new(Some("sess_1"));
    client.opened(0);
    let pieces = |told: Vec<Seen>| -> Vec<Seen> {
        told.into_iter().filter(|it| matches!(it, Seen::Piece(_))).collect()
    };
    // Told at the join, and again after the history.
    for frame in [&begin, &more("one")] {
        assert_eq!(Speaker::on_text(&mut client, frame).0, []);
    }
    let answered = Speaker::on_text(&mut client, &history(&[], "req_1")).0;
    assert_eq!(pieces(answered), []);
    let mut told = vec![];
    for frame in [&begin, &more("one"), &more(" two")] {
        told.extend(Speaker::on_text(&mut client, frame).0);
    }
    assert_eq!(pieces(told), [Seen::Piece("one".into()), Seen::Piece(" two".into())]);
}
