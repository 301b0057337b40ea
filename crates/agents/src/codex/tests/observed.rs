//! What Codex reports without being asked.

use domain::content::{Message, Part, PlanStatus, ToolKind, ToolStatus};
use domain::session::Report;
use serde_json::{Value, json};

use super::bench::{Bench, THREAD, TURN, completed, of_item};
use crate::Output;

fn words(item: &str, delta: &str) -> Value {
    json!({ "threadId": THREAD, "turnId": TURN, "itemId": item, "delta": delta })
}

fn messages(reports: &[Report]) -> Vec<Message> {
    let message = |report: &Report| match report {
        Report::Message { message, .. } => Some(message.clone()),
        _ => None,
    };
    reports.iter().filter_map(message).collect()
}

fn text(message: &Message) -> &str {
    match message.parts.open().map(Vec::as_slice) {
        Some([Part::Text(text) | Part::Thinking(text)]) => text,
        other => panic!("{other:?}"),
    }
}

fn notices(reports: &[Report]) -> Vec<(String, String)> {
    let notice = |report: &Report| match report {
        Report::Notice(notice) => Some((notice.kind.clone(), notice.text.clone())),
        _ => None,
    };
    reports.iter().filter_map(notice).collect()
}

#[test]
fn words_pass_by_as_they_come_and_the_message_is_recorded_once() {
    let mut bench = Bench::running();
    bench.told();
    bench
        .notify("item/started", of_item(json!({ "type": "agentMessage", "id": "a1", "text": "" })));
    bench.notify("item/agentMessage/delta", words("a1", "hel"));
    bench.notify("item/agentMessage/delta", words("a1", "lo"));
    let passed = bench.told();
    assert!(matches!(passed.as_slice(), [Output::Passing(..), Output::Passing(..)]), "{passed:?}");
    let item = json!({ "type": "agentMessage", "id": "a1", "text": "hello" });
    bench.notify("item/completed", of_item(item));
    bench.notify("turn/completed", completed("completed"));
    let messages = messages(&bench.reports());
    assert_eq!(messages.len(), 1);
    assert_eq!((messages[0].id.as_str(), text(&messages[0])), ("a1", "hello"));
    assert!(messages[0].run.is_some());
}

#[test]
fn a_message_that_was_cut_off_is_closed_by_the_next_item() {
    let mut bench = Bench::running();
    bench.notify("item/started", of_item(json!({ "type": "agentMessage", "id": "a1" })));
    bench.notify("item/agentMessage/delta", words("a1", "half"));
    bench.told();
    bench.notify("item/started", of_item(json!({ "type": "agentMessage", "id": "a2" })));
    let messages = messages(&bench.reports());
    assert_eq!(text(&messages[0]), "half");
}

#[test]
fn reasoning_is_thinking() {
    let mut bench = Bench::running();
    bench.told();
    bench.notify("item/started", of_item(json!({ "type": "reasoning", "id": "r1" })));
    let delta = json!({ "threadId": THREAD, "itemId": "r1", "delta": "hm", "summaryIndex": 0 });
    bench.notify("item/reasoning/summaryTextDelta", delta);
    let item = json!({ "type": "reasoning", "id": "r1", "summary": ["hm, yes"], "content": [] });
    bench.notify("item/completed", of_item(item));
    let messages = messages(&bench.reports());
    assert_eq!(messages[0].parts.open(), Some(&vec![Part::Thinking("hm, yes".to_owned())]));
}

#[test]
fn a_command_is_a_tool_call_with_its_output() {
    let mut bench = Bench::running();
    bench.told();
    let item = |status: &str, output: Value, code: Value| {
        json!({
            "type": "commandExecution", "id": "call1", "command": "/bin/bash -lc 'ls a'",
            "cwd": "/w", "status": status, "aggregatedOutput": output, "exitCode": code,
            "commandActions": [{ "type": "listFiles", "command": "ls a", "path": "a" }],
        })
    };
    bench.notify("item/started", of_item(item("inProgress", Value::Null, Value::Null)));
    let reports = bench.reports();
    let Report::ToolCall(call) = &reports[0] else { panic!("{reports:?}") };
    assert_eq!((call.kind, call.status), (ToolKind::Read, ToolStatus::Running));
    assert_eq!(call.detail.open().unwrap().title.as_deref(), Some("ls a"));
    bench.notify("item/commandExecution/outputDelta", words("call1", "one\n"));
    bench.notify("item/completed", of_item(item("failed", "one\ntwo\n".into(), 2.into())));
    let reports = bench.reports();
    let updates: Vec<_> = reports
        .iter()
        .filter_map(|report| match report {
            Report::ToolUpdate(update) => {
                Some((update.status, update.detail.open()?.output.clone()?))
            }
            _ => None,
        })
        .collect();
    let last = "one\ntwo\n[exit code 2]".to_owned();
    let expected = [(ToolStatus::Running, "one\n".to_owned()), (ToolStatus::Failed, last)];
    assert_eq!(updates, expected);
}

#[test]
fn the_end_of_a_command_behind_its_run_is_not_told_as_a_new_one() {
    let mut bench = Bench::running();
    let item = |status: &str| json!({ "type": "commandExecution", "id": "call1", "command": "x", "status": status });
    bench.notify("item/started", of_item(item("inProgress")));
    bench.notify("turn/completed", completed("completed"));
    bench.told();
    bench.notify("item/completed", of_item(item("completed")));
    assert_eq!(bench.reports(), []);
}

#[test]
fn the_words_of_a_subagent_belong_to_the_call_that_began_it() {
    let mut bench = Bench::running();
    bench.notify(
        "item/started",
        of_item(json!({
            "type": "collabAgentToolCall", "id": "spawn1", "tool": "spawnAgent",
            "status": "inProgress", "receiverThreadIds": ["child"], "prompt": "look",
        })),
    );
    bench.told();
    let told = |thread: &str| json!({ "threadId": thread, "item": { "type": "agentMessage", "id": "c1", "text": "hi" } });
    bench.notify("item/completed", told("stranger"));
    assert_eq!(bench.reports(), []);
    bench.notify("item/completed", told("child"));
    let messages = messages(&bench.reports());
    assert_eq!(messages[0].parent, Some("spawn1".into()));
}

#[test]
fn plans_are_told_whole() {
    let mut bench = Bench::running();
    bench.told();
    bench.notify(
        "turn/plan/updated",
        json!({ "threadId": THREAD, "turnId": TURN, "plan": [
        { "step": "one", "status": "completed" }, { "step": "two", "status": "inProgress" },
    ] }),
    );
    let reports = bench.reports();
    let [Report::Plan(plan)] = reports.as_slice() else { panic!("{reports:?}") };
    let statuses: Vec<_> = plan.open().unwrap().iter().map(|entry| entry.status).collect();
    assert_eq!(statuses, [PlanStatus::Completed, PlanStatus::InProgress]);
}

#[test]
fn the_same_warning_is_told_once_and_retries_are_notices() {
    let mut bench = Bench::running();
    bench.told();
    for _ in 0..2 {
        bench.notify("warning", json!({ "threadId": THREAD, "message": "mind the gap" }));
    }
    let error = json!({ "message": "overloaded" });
    let retry = json!({ "threadId": THREAD, "error": error, "willRetry": true });
    bench.notify("error", retry);
    let expected = [("warning", "mind the gap"), ("retry", "overloaded")];
    let told = notices(&bench.reports());
    let told: Vec<_> = told.iter().map(|(kind, text)| (kind.as_str(), text.as_str())).collect();
    assert_eq!(told, expected);
}

#[test]
fn a_rate_limit_is_told_when_it_gets_narrow_and_not_at_every_turn() {
    let mut bench = Bench::running();
    bench.told();
    for used in [10, 81, 85, 96] {
        let window = json!({ "usedPercent": used, "windowDurationMins": 300 });
        let limits = json!({ "rateLimits": { "primary": window, "secondary": null } });
        bench.notify("account/rateLimits/updated", limits);
    }
    let told = notices(&bench.reports());
    assert_eq!(told.len(), 2);
    assert_eq!(told[0].1, "81 % of the account's limit for 5 hours used");
}

#[test]
fn unknown_messages_are_told_a_few_times_and_never_fatal() {
    let mut bench = Bench::running();
    bench.told();
    for number in 0..20 {
        bench.notify(&format!("future/{number}"), json!({}));
        bench.notify("item/completed", of_item(json!({ "type": "futureItem", "id": "x" })));
    }
    bench.input(crate::Input::Line("not JSON".to_owned()));
    let told = notices(&bench.reports());
    assert_eq!(told.len(), 5);
    assert!(told.iter().all(|(kind, _)| kind == "unknown_message"));
}

#[test]
fn a_picture_that_was_generated_is_kept() {
    let mut bench = Bench::running();
    bench.told();
    let item = json!({ "type": "imageGeneration", "id": "i1", "status": "completed",
        "result": "AAAA" });
    bench.notify("item/completed", of_item(item));
    let told = bench.told();
    let kept = told.iter().find_map(|output| match output {
        Output::Keep(picture) => Some((picture.name.as_str(), picture.base64.as_str())),
        _ => None,
    });
    assert_eq!(kept, Some(("generated.png", "AAAA")));
}
