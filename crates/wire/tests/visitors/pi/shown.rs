//! What clients see of a run, whenever they came.

use domain::content::{Part, ToolStatus};
use domain::passing::Voice;
use domain::session::Report;
use domain::session::runs::{Cut, Outcome};
use domain::session::transcript::Notice;
use serde_json::{Value, json};

use super::relay::{Relay, kinds};

fn running() -> Relay {
    let mut relay = Relay::watched();
    relay.starts("run_1");
    relay.heard("a");
    relay
}

// spec: pi/messages.2
#[test]
fn thinking_and_words_stream_part_by_part() {
    let mut relay = running();
    relay.passes("m1", 0, Voice::Thinking, 0, "so");
    relay.passes("m1", 0, Voice::Thinking, 2, " then");
    relay.passes("m1", 1, Voice::Text, 0, "Yes");
    relay.calls("t1", "{}");
    relay.says(
        "m1",
        vec![
            Part::Thinking("so then".into()),
            Part::Text("Yes".into()),
            Part::ToolCall("t1".into()),
        ],
    );
    let heard = relay.heard("a");
    assert_eq!(
        kinds(&heard),
        [
            "message_start/assistant",
            "start",
            "thinking_start",
            "thinking_delta",
            "thinking_delta",
            "thinking_end",
            "text_start",
            "text_delta",
            "text_end",
            "toolcall_start",
            "toolcall_delta",
            "toolcall_end",
            "tool_execution_start",
            "done",
            "message_end/assistant",
        ]
    );
    assert_eq!(heard[5]["assistantMessageEvent"]["content"], "so then");
    assert_eq!(heard[9]["assistantMessageEvent"]["contentIndex"], 2);
    assert_eq!(heard[14]["message"]["stopReason"], "toolUse");
}

// spec: pi/messages.4
#[test]
fn the_whole_message_so_far_comes_only_where_it_was_asked_for() {
    let mut relay = running();
    relay.open("f", "session=sess_1&partial=full");
    relay.heard("f");
    relay.passes("m1", 0, Voice::Text, 0, "one");
    relay.passes("m1", 0, Voice::Text, 3, " two");
    let heard = relay.heard("f");
    let last = heard.last().unwrap();
    let content = json!([{ "type": "text", "text": "one two" }]);
    assert_eq!(last["assistantMessageEvent"]["delta"], " two");
    assert_eq!(last["assistantMessageEvent"]["partial"]["content"], content);
    assert_eq!(last["message"]["content"], content);
    let plain = relay.heard("a");
    let last = plain.last().unwrap();
    assert_eq!(last["assistantMessageEvent"]["partial"], json!(null));
    assert_eq!(last["message"], json!({ "role": "assistant", "content": [] }));
}

// spec: pi/late.1
#[test]
fn who_joins_during_a_run_hears_what_was_said_so_far_and_how_it_goes_on() {
    let mut relay = running();
    relay.passes("m1", 0, Voice::Text, 0, "one");
    relay.passes("m1", 0, Voice::Text, 3, " two");
    relay.open("b", "session=sess_1");
    let heard = relay.heard("b");
    assert_eq!(kinds(&heard), ["agent_start", "message_start/assistant", "text_delta"]);
    assert_eq!(heard[2]["assistantMessageEvent"]["delta"], "one two");
    relay.passes("m1", 0, Voice::Text, 7, " three");
    relay.says("m1", vec![Part::Text("one two three".into())]);
    let heard = relay.heard("b");
    assert_eq!(kinds(&heard), ["text_delta", "text_end", "done", "message_end/assistant"]);
    assert_eq!(heard[1]["assistantMessageEvent"]["content"], "one two three");
}

// spec: pi/late.2
#[test]
fn who_joins_while_a_tool_works_hears_its_end_under_its_name() {
    let mut relay = running();
    relay.calls("t1", r#"{"command":"make"}"#);
    relay.tool("t1", ToolStatus::Running, Some("halfway"));
    relay.open("b", "session=sess_1");
    assert_eq!(kinds(&relay.heard("b")), ["agent_start"]);
    relay.tool("t1", ToolStatus::Completed, None);
    let heard = relay.heard("b");
    assert_eq!(
        kinds(&heard),
        ["tool_execution_end", "message_start/toolResult", "message_end/toolResult"]
    );
    assert_eq!(heard[0]["toolName"], "Bash");
    assert_eq!(heard[0]["result"]["content"][0]["text"], "halfway");
}

// spec: pi/late.3
#[test]
fn who_was_too_slow_hears_on_from_where_it_was() {
    let mut relay = running();
    relay.passes("m1", 0, Voice::Text, 0, "1😀");
    relay.heard("a");
    let words = domain::Content::Open(" three".to_owned());
    let delta = domain::passing::Delta {
        message: "m1".into(),
        part: 0,
        voice: Voice::Text,
        offset: 3,
        words,
    };
    relay.room_mut().drafts.take(&delta);
    relay.lags("a");
    relay.lags("a");
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard), ["text_delta"]);
    assert_eq!(heard[0]["assistantMessageEvent"]["delta"], " three");
    // A proxy that came back tells everything once more.
    relay.passes("m1", 0, Voice::Text, 0, "1😀 three");
    relay.passes("m1", 0, Voice::Text, 9, "!");
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard), ["text_delta"]);
    assert_eq!(heard[0]["assistantMessageEvent"]["delta"], "!");
}

// spec: pi/messages.5
#[test]
fn a_second_message_in_the_making_is_told_at_its_end() {
    let mut relay = running();
    relay.passes("m1", 0, Voice::Text, 0, "one");
    relay.heard("a");
    relay.passes("m2", 0, Voice::Text, 0, "other");
    relay.says("m2", vec![Part::Text("other".into())]);
    let heard = kinds(&relay.heard("a"));
    assert_eq!(
        heard,
        [
            "message_start/assistant",
            "start",
            "text_start",
            "text_delta",
            "text_end",
            "done",
            "message_end/assistant",
        ]
    );
    relay.passes("m1", 0, Voice::Text, 3, "!");
    assert_eq!(kinds(&relay.heard("a")), ["text_delta"]);
}

// spec: pi/runs.3
#[test]
fn a_message_that_nobody_finished_ends_with_its_run() {
    let mut relay = running();
    relay.passes("m1", 0, Voice::Text, 0, "half a");
    relay.heard("a");
    relay.ends("run_1", Outcome::Failed("the model is gone".into()));
    let heard = relay.heard("a");
    assert_eq!(
        kinds(&heard),
        ["text_end", "error", "message_end/assistant", "turn_end/assistant", "agent_end"]
    );
    let message = &heard[2]["message"];
    assert_eq!(message["content"], json!([{ "type": "text", "text": "half a" }]));
    assert_eq!(
        (&message["stopReason"], &message["errorMessage"]),
        (&json!("error"), &json!("the model is gone"))
    );
}

// spec: pi/runs.3
#[test]
fn a_run_that_was_cut_off_ends_aborted_and_says_why() {
    let mut relay = running();
    relay.passes("m1", 0, Voice::Text, 0, "half a");
    relay.heard("a");
    let why = "Farhelm stopped on this machine".to_owned();
    relay.ends("run_1", Outcome::Cut(Cut { why: why.clone(), lasted_ms: Some(4_000) }));
    let heard = relay.heard("a");
    let message = &heard.iter().find(|it| it["type"] == "message_end").unwrap()["message"];
    assert_eq!(message["content"], json!([{ "type": "text", "text": "half a" }]));
    assert_eq!(
        (&message["stopReason"], &message["errorMessage"]),
        (&json!("aborted"), &json!(why))
    );
}

// spec: pi/runs.4
#[test]
fn a_message_that_a_run_was_stopped_with_ends_aborted_and_no_empty_one_follows() {
    for is_streamed in [true, false] {
        let mut relay = running();
        if is_streamed {
            relay.passes("m1", 0, Voice::Text, 0, "half a");
        }
        assert_eq!(relay.ask("a", json!({ "type": "abort" }))["success"], true);
        relay.heard("a");
        relay.says("m1", vec![Part::Text("half a".into())]);
        relay.obey(None);
        relay.ends("run_1", Outcome::Interrupted);
        let heard = relay.heard("a");
        let all = [
            "message_start/assistant",
            "start",
            "text_start",
            "text_delta",
            "text_end",
            "error",
            "message_end/assistant",
            "turn_end/assistant",
            "agent_end",
        ];
        let expected = if is_streamed { &all[4..] } else { &all[..] };
        assert_eq!(kinds(&heard), expected);
        let end = heard.iter().find(|it| it["type"] == "message_end").unwrap();
        let message = &end["message"];
        assert_eq!(message["content"], json!([{ "type": "text", "text": "half a" }]));
        assert_eq!(
            (&message["stopReason"], &message["errorMessage"]),
            (&json!("aborted"), &json!("The run was interrupted"))
        );
        assert_eq!(heard.last().unwrap()["messages"].as_array().unwrap().len(), 1);
        let read = relay.ask("a", json!({ "type": "get_messages" }));
        let read = read["data"]["messages"].as_array().unwrap();
        assert_eq!(read.len(), 1, "{read:#?}");
        assert_eq!(read[0]["stopReason"], "aborted");
        let stats = relay.ask("a", json!({ "type": "get_session_stats" }));
        assert_eq!(stats["data"]["assistantMessages"], 1);
    }
}

// spec: pi/runs.4
#[test]
fn a_message_after_which_the_run_went_on_all_the_same_ends_as_ever() {
    let mut relay = running();
    relay.ask("a", json!({ "type": "abort" }));
    relay.says("m1", vec![Part::Text("one".into())]);
    relay.heard("a");
    relay.passes("m2", 0, Voice::Text, 0, "two");
    let heard = relay.heard("a");
    let begins = ["done", "message_end/assistant", "turn_end/assistant", "turn_start"];
    assert_eq!(kinds(&heard)[..4], begins);
    assert_eq!(heard[1]["message"]["stopReason"], "stop");
    let read = relay.ask("a", json!({ "type": "get_messages" }));
    assert_eq!(read["data"]["messages"][0]["stopReason"], "stop");
    relay.heard("a");
    relay.says("m2", vec![Part::Text("two".into())]);
    // It cannot be stopped.
    let owed = relay.room().session.owed();
    let [domain::session::Order::Control { request, .. }] = owed.as_slice() else {
        panic!("{owed:?}")
    };
    let failure = Some(domain::content::Failure::new("x", "not now"));
    relay.report(Report::ControlResult { request: request.clone(), failure });
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard)[1..], ["done", "message_end/assistant"]);
}

// spec: pi/messages.7
#[test]
fn what_a_run_took_stands_in_its_last_message_once_it_is_known() {
    let mut relay = running();
    relay.says("m1", vec![Part::Text("one".into())]);
    relay.says("m2", vec![Part::Text("two".into())]);
    relay.calls("t1", "{}");
    relay.tool("t1", ToolStatus::Completed, Some("x"));
    relay.says("m3", vec![Part::Text("three".into())]);
    let heard = relay.heard("a");
    let ends: Vec<_> = heard.iter().filter(|it| it["message"]["usage"].is_object()).collect();
    assert!(ends.iter().all(|it| it["message"]["usage"]["totalTokens"] == 0));
    relay.ends("run_1", Outcome::Completed);
    let heard = relay.heard("a");
    let took = json!({
        "input": 200, "output": 80, "cacheRead": 700, "cacheWrite": 0, "totalTokens": 980,
        "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0.0125 },
    });
    assert_eq!(kinds(&heard), ["turn_end/assistant", "agent_end"]);
    assert_eq!(heard[0]["message"]["usage"], took);
    let read = relay.ask("a", json!({ "type": "get_messages" }));
    for told in [&heard[1]["messages"], &read["data"]["messages"]] {
        let told = told.as_array().unwrap();
        let totals: Vec<_> = told.iter().map(|it| it["usage"]["totalTokens"].as_u64()).collect();
        assert_eq!(totals, [Some(0), Some(0), Some(0), None, Some(980)]);
        assert_eq!(told[4]["usage"], took);
    }
    assert_eq!(relay.ask("a", json!({ "type": "get_session_stats" }))["data"]["cost"], 0.0125);
}

// spec: pi/tools.4
#[test]
fn a_message_of_nothing_but_calls_that_were_told_is_not_told_again() {
    let mut relay = running();
    relay.calls("t1", "{}");
    relay.heard("a");
    relay.says("m1", vec![Part::ToolCall("t1".into())]);
    assert!(relay.heard("a").is_empty());
}

// spec: pi/messages.6
#[test]
fn what_is_hot_is_encoded_once_for_everybody() {
    let mut relay = running();
    relay.open("b", "session=sess_1");
    relay.passes("m1", 0, Voice::Text, 0, "one");
    relay.says("m1", vec![Part::Text("one".into())]);
    relay.calls("t1", "{}");
    relay.tool("t1", ToolStatus::Completed, Some("output"));
    let pointers = |relay: &mut Relay, kind: &str| -> Vec<*const u8> {
        ["a", "b"]
            .map(|name| {
                let frames = &relay.client(name).bytes;
                let is = |frame: &&bytes::Bytes| String::from_utf8_lossy(frame).contains(kind);
                frames.iter().rev().find(is).unwrap().as_ptr()
            })
            .to_vec()
    };
    for kind in ["text_delta", "\"message_end\"", "tool_execution_end", "tool_execution_start"] {
        let told = pointers(&mut relay, kind);
        assert_eq!(told[0], told[1], "{kind}");
    }
}

// spec: pi/notices.1, pi/notices.2
#[test]
fn notices_and_the_machines_coming_and_going_are_notifications() {
    let mut relay = running();
    for (kind, text) in [("rate_limit", "slow down"), ("error", "oh"), ("extension_error", "bad")] {
        relay.report(Report::Notice(Notice { kind: kind.into(), text: text.into() }));
    }
    let heard = relay.heard("a");
    assert_eq!(
        kinds(&heard),
        ["extension_ui_request/notify", "extension_ui_request/notify", "extension_error"]
    );
    assert_eq!(
        (&heard[0]["notifyType"], &heard[1]["notifyType"]),
        (&json!("info"), &json!("error"))
    );
    let down = domain::session::Change::Down {
        connection: None,
        reason: domain::session::status::DownReason::ProxyDisconnected,
    };
    relay.say_to(&"sess_1".into(), &domain::session::Command::Relay(down)).unwrap();
    assert_eq!(relay.heard("a")[0]["message"], "The session's machine is offline");
}

/// What a page of pi shows: `get_messages` replaces everything, and what comes later goes on.
#[derive(Default)]
struct Page {
    messages: Vec<(String, String)>,
    is_open: bool,
}

impl Page {
    fn take(&mut self, frames: &[Value]) {
        for frame in frames {
            let role = || frame["message"]["role"].as_str().unwrap().to_owned();
            match frame["type"].as_str().unwrap() {
                "response" if frame["command"] == "get_messages" => {
                    let messages = frame["data"]["messages"].as_array().unwrap();
                    let row = |it: &Value| (it["role"].as_str().unwrap().to_owned(), text(it));
                    *self = Self { messages: messages.iter().map(row).collect(), is_open: false };
                }
                "message_start" => {
                    assert!(!self.is_open, "a message begins within another: {frame}");
                    self.messages.push((role(), text(&frame["message"])));
                    self.is_open = true;
                }
                "message_update" => {
                    let event = &frame["assistantMessageEvent"];
                    if let (true, Some(delta)) =
                        (event["type"] == "text_delta", event["delta"].as_str())
                    {
                        if !self.is_open {
                            self.messages.push(("assistant".to_owned(), String::new()));
                            self.is_open = true;
                        }
                        self.messages.last_mut().unwrap().1.push_str(delta);
                    }
                }
                "message_end" => {
                    assert_eq!(self.messages.last().unwrap().1, text(&frame["message"]));
                    self.is_open = false;
                }
                _ => {}
            }
        }
    }
}

fn text(message: &Value) -> String {
    let content = &message["content"];
    if let Value::String(words) = content {
        return words.clone();
    }
    let parts = content.as_array().unwrap().iter();
    parts.filter_map(|part| part["text"].as_str()).collect()
}

// spec: pi/history.6
#[test]
fn a_page_that_is_reloaded_during_a_run_has_the_answer_from_its_first_word() {
    let mut relay = running();
    relay.says("m0", vec![Part::Text("before".into())]);
    relay.streams("m1", 0, "one");
    relay.streams("m1", 3, " two");
    for is_late in [false, true] {
        let name = if is_late { "late" } else { "early" };
        relay.open(name, "session=sess_1");
        let mut page = Page::default();
        page.take(&relay.heard(name));
        let said = relay.room().drafts.replay()[0].words.open().unwrap().clone();
        let at = u64::try_from(said.len()).unwrap();
        if is_late {
            relay.streams("m1", at, ".");
        }
        relay.json(name, &json!({ "id": "q", "type": "get_messages" }));
        relay.streams("m1", at + u64::from(is_late), "!");
        page.take(&relay.heard(name));
        let dot = if is_late { "." } else { "" };
        let expected = [
            ("assistant".to_owned(), "before".to_owned()),
            ("assistant".to_owned(), format!("{said}{dot}!")),
        ];
        assert_eq!(page.messages, expected, "{name}");
        // A client that reads the history later is not told its message once more.
        relay.json(name, &json!({ "id": "q2", "type": "get_messages" }));
        assert_eq!(kinds(&relay.heard(name)), ["response/get_messages"]);
    }
}

// spec: pi/history.6
#[test]
fn what_is_said_while_the_history_is_read_is_on_the_page_once() {
    for is_finished in [false, true] {
        let mut relay = running();
        relay.streams("m1", 0, "one");
        relay.open("b", "session=sess_1");
        let mut page = Page::default();
        page.take(&relay.heard("b"));
        relay.is_slow = true;
        relay.json("b", &json!({ "id": "q", "type": "get_messages" }));
        relay.streams("m1", 3, " two");
        if is_finished {
            relay.says("m1", vec![Part::Text("one two".into())]);
        }
        page.take(&relay.heard("b"));
        relay.catch_up();
        relay.streams(
            if is_finished { "m2" } else { "m1" },
            if is_finished { 0 } else { 7 },
            "three",
        );
        page.take(&relay.heard("b"));
        let said: Vec<_> = page.messages.iter().map(|(_, words)| words.as_str()).collect();
        let expected = if is_finished { &["one two", "three"][..] } else { &["one twothree"] };
        assert_eq!(said, expected);
    }
}

// spec: pi/messages.8
#[test]
fn a_persons_words_never_come_within_a_message_of_the_agent() {
    let mut relay = running();
    let mut page = Page::default();
    relay.configures("fake/one", "low");
    relay.streams("m1", 0, "one");
    relay.ask("a", json!({ "type": "steer", "message": "left" }));
    relay.obey(None);
    relay.streams("m1", 3, " two");
    relay.says("m1", vec![Part::Text("one two".into())]);
    relay.ends("run_1", Outcome::Completed);
    let heard = relay.heard("a");
    page.take(&heard);
    let said: Vec<_> = page.messages.iter().map(|(_, words)| words.as_str()).collect();
    assert_eq!(said, ["one", "left", " two"], "{:#?}", kinds(&heard));
    let end = heard.last().unwrap()["messages"].as_array().unwrap();
    assert_eq!(end.iter().map(text).collect::<Vec<_>>(), ["one", "left", " two"]);
}

// spec: pi/messages.8
#[test]
fn a_message_that_said_all_before_a_persons_words_is_not_told_again_after_them() {
    let mut relay = running();
    let mut page = Page::default();
    relay.configures("fake/one", "low");
    relay.streams("m1", 0, "one");
    relay.ask("a", json!({ "type": "steer", "message": "left" }));
    relay.obey(None);
    relay.says("m1", vec![Part::Text("one".into())]);
    relay.streams("m2", 0, "two");
    page.take(&relay.heard("a"));
    let said: Vec<_> = page.messages.iter().map(|(_, words)| words.as_str()).collect();
    assert_eq!(said, ["one", "left", "two"]);
}

// spec: pi/messages.8
#[test]
fn live_and_reloaded_order_are_the_same_where_the_agent_ends_its_message_first() {
    let mut relay = running();
    let mut live = Page::default();
    relay.configures("fake/one", "low");
    relay.ask("a", json!({ "type": "get_messages" }));
    relay.streams("m1", 0, "one");
    relay.says("m1", vec![Part::Text("one".into())]);
    relay.ask("a", json!({ "type": "steer", "message": "left" }));
    relay.obey(None);
    relay.streams("m2", 0, "two");
    relay.says("m2", vec![Part::Text("two".into())]);
    live.take(&relay.heard("a"));
    let mut reloaded = Page::default();
    reloaded.take(&[relay.ask("a", json!({ "type": "get_messages" }))]);
    assert_eq!(live.messages, reloaded.messages);
    assert_eq!(live.messages.len(), 3);
}
