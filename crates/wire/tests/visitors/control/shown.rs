//! What clients see of the session: messages, tools, drafts, the past.

use domain::Content;
use domain::content::{
    Author, Message, Part, ToolCall, ToolDetail, ToolKind, ToolStatus, ToolUpdate,
};
use domain::passing::Voice;
use domain::session::runs::{Cut, Outcome};
use domain::session::status::{Activity, Health};
use domain::session::transcript::Notice;
use domain::session::{Report, status};
use serde_json::json;

use super::relay::{INPUT, Relay, SESSION, START, kinds};

fn text(words: &str) -> Vec<Part> {
    vec![Part::Text(words.to_owned())]
}

fn call(id: &str, parent: Option<&str>) -> Report {
    let detail = ToolDetail { input: Some(INPUT.to_owned()), ..ToolDetail::default() };
    Report::ToolCall(ToolCall {
        id: id.into(),
        tool: "Bash".to_owned(),
        kind: ToolKind::Execute,
        status: ToolStatus::Running,
        detail: Content::Open(detail),
        run: None,
        parent: parent.map(Into::into),
    })
}

fn update(id: &str, status: ToolStatus, output: Option<&str>) -> Report {
    let output = output.map(str::to_owned);
    let detail = Content::Open(ToolDetail { output, ..ToolDetail::default() });
    Report::ToolUpdate(ToolUpdate { id: id.into(), status, detail })
}

// spec: control/messages.3
#[test]
fn each_part_is_a_message_and_they_share_an_id() {
    let mut relay = Relay::watched();
    let parts = vec![
        Part::Thinking("hm".to_owned()),
        Part::Text("one".to_owned()),
        Part::ToolCall("t1".into()),
        Part::Text("two".to_owned()),
    ];
    relay.says("msg_1", parts);
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard), ["assistant"; 3]);
    assert!(heard.iter().all(|it| it["message"]["id"] == "msg_1"));
    assert_eq!(heard[0]["message"]["content"][0]["thinking"], "hm");
    assert_eq!(heard[2]["message"]["content"][0]["text"], "two");
    let uuids: std::collections::BTreeSet<_> = heard.iter().map(|it| it["uuid"].as_str()).collect();
    assert_eq!(uuids.len(), 3);
    assert!(heard[0]["sequence_num"].is_null() && heard[2]["sequence_num"].is_u64());
}

// spec: control/messages.4
#[test]
fn a_tool_call_is_a_tool_use_its_end_a_tool_result() {
    let mut relay = Relay::watched();
    relay.report(call("t1", None));
    relay.now = START.plus_ms(3_500);
    relay.report(update("t1", ToolStatus::Running, Some("so far")));
    relay.report(update("t1", ToolStatus::Completed, Some("all of it")));
    relay.report(call("t2", Some("t1")));
    relay.report(update("t2", ToolStatus::Cancelled, None));
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard), ["assistant", "tool_progress", "user", "assistant", "user"]);
    let block = &heard[0]["message"]["content"][0];
    assert_eq!(
        *block,
        json!({ "type": "tool_use", "id": "t1", "name": "Bash", "input": { "command": "ls" } })
    );
    assert_eq!(heard[1]["elapsed_time_seconds"], 3);
    let result = &heard[2]["message"]["content"][0];
    assert_eq!(
        *result,
        json!({ "type": "tool_result", "tool_use_id": "t1", "content": "all of it",
            "is_error": false })
    );
    assert_eq!(heard[3]["parent_tool_use_id"], "t1");
    assert_eq!(heard[4]["parent_tool_use_id"], "t1");
    assert_eq!(heard[4]["message"]["content"][0]["is_error"], true);
}

// spec: control/messages.5
#[test]
fn what_is_to_know_is_told_in_words() {
    let mut relay = Relay::watched();
    let notice = Notice { kind: "error".to_owned(), text: "Back at ten".to_owned() };
    relay.report(Report::Notice(notice));
    let message = Message {
        id: "s1".into(),
        author: Author::System,
        parts: Content::Open(text("a notice")),
        created_at: START,
        run: None,
        parent: None,
        digest: None,
    };
    relay.report(Report::Message { message, has_own_id: true, echo: None });
    let reason = status::CloseReason::TargetClosed;
    relay.report(Report::Closed { reason, request: None });
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard), ["system/informational"; 3]);
    assert_eq!(
        (&heard[0]["content"], &heard[0]["level"]),
        (&json!("Back at ten"), &json!("warning"))
    );
}

// spec: control/results.2
#[test]
fn a_run_that_fails_says_why() {
    let mut relay = Relay::watched();
    relay.starts("run_1");
    relay.heard("a");
    relay.ends("run_1", Outcome::Failed("overloaded".to_owned()));
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard)[0], "result/error_during_execution");
    assert_eq!(heard[0]["errors"], json!(["overloaded"]));
}

// spec: control/partial.1, control/partial.2
#[test]
fn words_in_the_making_are_told_to_those_who_ask() {
    let mut relay = Relay::watched();
    relay.open("p", &format!("session={SESSION}&partial=1"));
    relay.passes("msg_1", 0, Voice::Thinking, 0, "hm");
    relay.passes("msg_1", 1, Voice::Text, 0, "Hi ");
    relay.passes("msg_1", 1, Voice::Text, 3, "there");
    relay.says("msg_1", vec![Part::Thinking("hm".to_owned()), Part::Text("Hi there".to_owned())]);
    let heard = relay.heard("p");
    let events: Vec<_> = kinds(&heard);
    assert_eq!(
        events,
        [
            "stream_event/message_start",
            "stream_event/content_block_start",
            "stream_event/content_block_delta",
            "stream_event/content_block_stop",
            "stream_event/content_block_start",
            "stream_event/content_block_delta",
            "stream_event/content_block_delta",
            "stream_event/content_block_stop",
            "stream_event/message_delta",
            "stream_event/message_stop",
            "assistant",
            "assistant",
        ]
    );
    assert_eq!(heard[2]["event"]["delta"], json!({ "type": "thinking_delta", "thinking": "hm" }));
    assert_eq!(heard[6]["event"]["delta"], json!({ "type": "text_delta", "text": "there" }));
    assert_eq!(kinds(&relay.heard("a")), ["assistant", "assistant"]);
}

// spec: control/partial.3
#[test]
fn who_joins_late_hears_the_words_from_their_start() {
    let mut relay = Relay::new();
    relay.starts("run_1");
    relay.passes("msg_1", 0, Voice::Text, 0, "Hi ");
    relay.open("p", &format!("session={SESSION}&partial=1"));
    relay.passes("msg_1", 0, Voice::Text, 3, "there");
    let heard = relay.heard("p");
    assert_eq!(
        kinds(&heard),
        [
            "system/init",
            "system/session_state_changed/running",
            "stream_event/message_start",
            "stream_event/content_block_start",
            "stream_event/content_block_delta",
            "stream_event/content_block_delta",
        ]
    );
    assert_eq!(heard[4]["event"]["delta"]["text"], "Hi ");
}

// spec: control/partial.4
#[test]
fn a_second_message_in_the_making_is_told_whole() {
    let mut relay = Relay::new();
    relay.open("p", &format!("session={SESSION}&partial=1"));
    relay.passes("msg_1", 0, Voice::Text, 0, "one");
    relay.passes("msg_2", 0, Voice::Text, 0, "two");
    relay.says("msg_1", text("one"));
    relay.passes("msg_2", 0, Voice::Text, 3, " more");
    relay.passes("msg_2", 1, Voice::Text, 0, "even more");
    let heard = relay.heard("p");
    let deltas: Vec<_> =
        heard.iter().filter_map(|it| it["event"]["delta"]["text"].as_str()).collect();
    assert_eq!(deltas, ["one"]);
    relay.says("msg_2", text("two more"));
    assert_eq!(kinds(&relay.heard("p")), ["assistant"]);
}

// spec: control/resume.1, control/resume.2
#[test]
fn the_past_is_told_before_the_present() {
    let mut relay = Relay::new();
    relay.starts("run_1");
    for count in 0..1_200 {
        relay.says(&format!("msg_{count}"), text(&count.to_string()));
    }
    relay.ends("run_1", Outcome::Completed);
    relay.is_slow = true;
    relay.open("b", &format!("session={SESSION}&from_sequence_num=2"));
    relay.text("b", r#"{"type":"control_request","request_id":"r","request":{"subtype":"x"}}"#);
    relay.says("late", text("while it joins"));
    for _ in 0..8 {
        relay.catch_up();
        relay.is_slow = true;
        relay.says("later", text("while it joins"));
    }
    relay.catch_up();
    let heard = relay.heard("b");
    let numbers: Vec<_> = heard.iter().filter_map(|it| it["sequence_num"].as_u64()).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "each once, in order: {numbers:?}");
    assert_eq!(numbers.first(), Some(&3));
    assert_eq!(numbers.last(), Some(&relay.room().session.head().0));
    assert!(heard.iter().any(|it| it["type"] == "result" && it["result"] == "1199"));
    let answer = heard.iter().filter(|it| it["type"] == "control_response");
    assert_eq!(answer.count(), 1, "what was asked meanwhile is answered");
}

// spec: control/resume.3
#[test]
fn a_past_that_is_no_longer_kept_is_said_so() {
    let mut relay = Relay::new();
    relay.says("m1", text("one"));
    relay.says("m2", text("two"));
    relay.room_mut().forgotten = 2;
    relay.open("b", &format!("session={SESSION}&from_sequence_num=0"));
    let heard = relay.heard("b");
    assert_eq!(kinds(&heard), ["system/informational", "assistant"]);
}

// spec: control/messages.6
#[test]
fn everybody_gets_the_same_bytes_whenever_they_joined() {
    let mut relay = Relay::watched();
    relay.starts("run_1");
    relay.report(call("t1", None));
    relay.open("b", &format!("session={SESSION}"));
    relay.client("a").bytes.clear();
    relay.client("b").bytes.clear();
    relay.says("m1", text("one"));
    relay.asks("p1");
    relay.report(update("t1", ToolStatus::Completed, Some("x")));
    let (first, second) = (relay.client("a").bytes.clone(), relay.client("b").bytes.clone());
    assert_eq!(first, second);
    // Not only equal: encoded once.
    assert!(first.iter().zip(&second).all(|(a, b)| a.as_ptr() == b.as_ptr()));
}

// spec: control/messages.1
#[test]
fn what_is_told_again_has_the_uuid_that_it_had() {
    let mut relay = Relay::watched();
    relay.starts("run_1");
    relay.report(call("t1", None));
    relay.report(update("t1", ToolStatus::Completed, Some("x")));
    relay.says("m1", text("one"));
    relay.ends("run_1", Outcome::Completed);
    relay.open("b", &format!("session={SESSION}&from_sequence_num=0"));
    let uuids = |heard: Vec<serde_json::Value>| -> Vec<_> {
        let said = heard.into_iter().filter(|it| it["type"] != "system");
        said.map(|it| (it["type"].clone(), it["uuid"].clone())).collect()
    };
    let (live, again) = (uuids(relay.heard("a")), uuids(relay.heard("b")));
    assert_eq!(live.len(), 4);
    assert_eq!(live, again);
}

// spec: control/results.3
#[test]
fn who_joins_during_a_run_hears_how_long_it_took_from_its_beginning() {
    let mut relay = Relay::watched();
    relay.starts("run_1");
    relay.now = relay.now.plus_ms(4_000);
    relay.open("b", &format!("session={SESSION}"));
    relay.now = relay.now.plus_ms(1_500);
    relay.ends("run_1", Outcome::Completed);
    for name in ["a", "b"] {
        let heard = relay.heard(name);
        let result = heard.iter().find(|it| it["type"] == "result").unwrap();
        assert_eq!(result["duration_ms"], 5_500, "{name}");
    }
}

// spec: control/results.2, control/results.3
#[test]
fn a_run_that_was_cut_off_says_why_and_counts_no_time_in_which_nobody_knew_of_it() {
    for (lasted_ms, told) in [(Some(4_000), 4_000), (None, 0)] {
        let mut relay = Relay::watched();
        relay.starts("run_1");
        relay.heard("a");
        relay.now = relay.now.plus_ms(60_000);
        relay.ends("run_1", Outcome::Cut(Cut { why: "Farhelm stopped".to_owned(), lasted_ms }));
        let heard = relay.heard("a");
        assert_eq!(kinds(&heard)[0], "result/error_during_execution");
        assert_eq!(heard[0]["errors"], json!(["Farhelm stopped"]));
        assert_eq!(heard[0]["terminal_reason"], "aborted_streaming");
        assert_eq!(
            (&heard[0]["duration_ms"], &heard[0]["duration_api_ms"]),
            (&json!(told), &json!(told))
        );
    }
}

// spec: control/messages.7
#[test]
fn init_comes_before_the_message_that_begins_a_run_and_once() {
    let mut relay = Relay::watched();
    relay.open("b", &format!("session={SESSION}"));
    let user = |uuid: &str| json!({ "type": "user", "uuid": uuid, "message": { "content": "x" } });
    relay.json("a", &user("m1"));
    relay.obey(None);
    // Whoever comes now hears of the run that it begins.
    relay.open("late", &format!("session={SESSION}"));
    relay.starts("run_1");
    let whole = ["system/init", "user", "system/session_state_changed/running"];
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard), whole);
    assert_eq!(heard[0]["model"], "unknown");
    let numbers: Vec<_> = heard.iter().map(|it| it["sequence_num"].is_u64()).collect();
    assert_eq!(numbers, [false, true, true]);
    assert_eq!(kinds(&relay.heard("b")), whole);
    assert_eq!(
        kinds(&relay.heard("late")),
        ["system/init", "system/session_state_changed/running"]
    );
    // During a run a message is one more of it.
    relay.tells("m2", Author::User, Content::Open(text("and this")));
    assert_eq!(kinds(&relay.heard("a")), ["user"]);
    relay.ends("run_1", Outcome::Completed);
    relay.heard("a");
    // A run that nobody's message began.
    relay.starts("run_2");
    assert_eq!(kinds(&relay.heard("a")), ["system/init", "system/session_state_changed/running"]);
}

// spec: control/messages.8
#[test]
fn the_activity_of_a_machine_that_reports_no_runs_is_the_state() {
    let doing = |kind: &str| Report::Status {
        health: Health::Healthy,
        activity: Some(Activity {
            kind: kind.to_owned(),
            label: None,
            updated_at: domain::Timestamp(1),
        }),
        reason: None,
    };
    let mut relay = Relay::watched();
    relay.report(doing("generating"));
    assert_eq!(kinds(&relay.heard("a")), [] as [&str; 0], "its machine reports runs");
    relay.down();
    relay.up(None);
    relay.heard("a");
    relay.report(doing("thinking"));
    let running = ["system/session_state_changed/running"];
    assert_eq!(kinds(&relay.heard("a")), running);
    relay.report(doing("running_command"));
    assert_eq!(kinds(&relay.heard("a")), [] as [&str; 0], "it still works");
    // Whoever comes now sees the same.
    relay.open("late", &format!("session={SESSION}"));
    assert_eq!(kinds(&relay.heard("late")), running);
    let idle = ["system/session_state_changed/idle"];
    relay.report(doing("idle"));
    assert_eq!(kinds(&relay.heard("a")), idle);
    assert_eq!(kinds(&relay.heard("late")), idle);
    // While a question is open, it is the state.
    relay.asks("p1");
    relay.heard("a");
    relay.report(doing("waiting_for_user"));
    assert_eq!(kinds(&relay.heard("a")), [] as [&str; 0]);
    relay.report(Report::PromptGone("p1".into()));
    assert_eq!(kinds(&relay.heard("a")), ["control_cancel_request", running[0]]);
    relay.down();
    assert_eq!(
        kinds(&relay.heard("a")),
        ["system/informational", "system/session_state_changed/idle"],
        "nothing is known of its work any more"
    );
}
