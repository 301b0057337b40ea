//! What the agent does during a run.

use super::*;
use domain::content::{PlanStatus, ToolKind, ToolStatus};
use domain::session::prompts::{AnswerDetail, Effect};

use crate::driver::sealed_answer;

#[test]
fn words_are_streamed_and_recorded_and_the_first_is_the_evidence() {
    let mut bench = Bench::up("gemini");
    bench.deliver("m1", 1, "hello");
    assert_eq!(bench.was_delivered(), 0);
    // Told late by the handshake: no evidence.
    bench.update(json!({"sessionUpdate": "available_commands_update",
        "availableCommands": [{"name": "memory"}]}));
    assert_eq!(bench.was_delivered(), 0);
    bench.says("echo:");
    assert_eq!(bench.was_delivered(), 1);
    bench.says(" hello");
    let usage = json!({"quota": {"token_count": {"input_tokens": 10, "output_tokens": 12}}});
    bench.answer("session/prompt", json!({"stopReason": "end_turn", "_meta": usage}));
    assert_eq!(bench.texts(), ["echo: hello"]);
    assert_eq!(bench.outcomes(), [Outcome::Completed]);
    let tokens = bench.reports().find_map(|report| match report {
        Report::RunEnded { usage: Some(usage), .. } => usage.output_tokens,
        _ => None,
    });
    assert_eq!(tokens, Some(12));
    let passing = bench.told.iter().filter(|output| matches!(output, Output::Passing(..)));
    assert_eq!(passing.count(), 2);
    let told = bench.reports().filter_map(|report| match report {
        Report::Config(config) => config.commands.clone(),
        _ => None,
    });
    let names: Vec<_> = told.last().unwrap().into_iter().map(|command| command.name).collect();
    assert_eq!(names, ["memory"]);
}

#[test]
fn thinking_and_the_answer_after_it_are_one_message_although_named_apart() {
    let mut bench = Bench::up("opencode");
    bench.deliver("m1", 1, "think");
    for (kind, id, text) in [
        ("agent_thought_chunk", "prt_1", "let "),
        ("agent_thought_chunk", "prt_1", "me"),
        ("agent_message_chunk", "msg_1", "done"),
        ("agent_message_chunk", "msg_2", "more"),
    ] {
        bench.update(json!({"sessionUpdate": kind, "messageId": id,
            "content": {"type": "text", "text": text}}));
    }
    bench.answer("session/prompt", json!({"stopReason": "end_turn"}));
    assert_eq!(bench.texts(), ["(let me)done", "more"]);
    assert_eq!(bench.messages()[0].id.as_str(), "prt_1");
}

#[test]
fn a_tool_call_is_put_together_from_its_pieces_and_repeats_are_not_told() {
    let mut bench = Bench::up("opencode");
    bench.deliver("m1", 1, "run");
    bench.says("I will");
    bench.update(json!({"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "bash",
        "kind": "execute", "status": "pending", "rawInput": {}}));
    let running = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1",
        "status": "in_progress", "title": "mkdir d", "rawInput": {"command": "mkdir d"}});
    bench.update(running.clone());
    bench.update(running);
    bench.update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1",
        "status": "completed", "rawOutput": {"output": "made\n", "metadata": {}},
        "content": [{"type": "content", "content": {"type": "text", "text": "made\n"}}]}));
    let [call] = bench.tools()[..] else { panic!("one call") };
    assert_eq!((call.tool.as_str(), call.kind), ("bash", ToolKind::Execute));
    // What was said before the tool is recorded before it.
    let order: Vec<_> = bench
        .reports()
        .filter_map(|report| match report {
            Report::Message { .. } => Some("message"),
            Report::ToolCall(_) => Some("tool"),
            _ => None,
        })
        .collect();
    assert_eq!(order, ["message", "tool"]);
    let updates = bench.tool_updates();
    assert_eq!(updates.len(), 2);
    let first = updates[0].detail.open().unwrap();
    assert_eq!(first.input.as_deref(), Some(r#"{"command":"mkdir d"}"#));
    assert_eq!(updates[1].status, ToolStatus::Completed);
    assert_eq!(updates[1].detail.open().unwrap().output.as_deref(), Some("made\n"));
}

#[test]
fn terminal_output_in_pieces_is_gathered() {
    let mut bench = Bench::up("other");
    bench.deliver("m1", 1, "run");
    bench.update(json!({"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "ls -l",
        "kind": "execute", "status": "in_progress",
        "content": [{"type": "terminal", "terminalId": "t1"}]}));
    for piece in ["one\n", "two\n"] {
        bench.now = bench.now.plus_ms(1_000);
        bench.update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1",
            "_meta": {"terminal_output_delta": {"data": piece}}}));
    }
    bench.update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1",
        "status": "completed"}));
    let outputs: Vec<_> = bench
        .tool_updates()
        .into_iter()
        .filter_map(|update| update.detail.open()?.output.clone())
        .collect();
    assert_eq!(outputs, ["one\n", "one\ntwo\n"]);
}

#[test]
fn a_plan_and_the_context_are_told() {
    let mut bench = Bench::up("opencode");
    bench.deliver("m1", 1, "plan");
    bench.update(json!({"sessionUpdate": "plan", "entries": [
        {"content": "A", "priority": "high", "status": "completed"},
        {"content": "B", "status": "in_progress"}]}));
    for (used, cost) in [(10, 0.5), (20, 0.75)] {
        bench.update(json!({"sessionUpdate": "usage_update", "used": used, "size": 100,
            "cost": {"amount": cost, "currency": "USD"}}));
    }
    bench.answer(
        "session/prompt",
        json!({"stopReason": "end_turn",
        "usage": {"inputTokens": 3, "outputTokens": 4, "cachedReadTokens": 2}}),
    );
    let entries = bench.reports().find_map(|report| match report {
        Report::Plan(entries) => entries.open().cloned(),
        _ => None,
    });
    let entries = entries.unwrap();
    assert_eq!(entries[0].status, PlanStatus::Completed);
    assert_eq!(entries[1].text, "B");
    let usage = bench.reports().find_map(|report| match report {
        Report::RunEnded { usage, .. } => usage.clone(),
        _ => None,
    });
    assert_eq!(usage.unwrap().cost_micro_usd, Some(750_000));
    let contexts = bench.reports().filter(|report| matches!(report, Report::Context(_)));
    assert_eq!(contexts.count(), 2);
}

fn permission(bench: &mut Bench, id: u64) {
    bench.line(json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission",
        "params": {"sessionId": "c1",
            "toolCall": {"toolCallId": "write_file__7", "title": "f.txt", "kind": "edit",
                "status": "pending", "rawInput": {"path": "f.txt"},
                "content": [{"type": "diff", "path": "/w/f.txt", "oldText": null,
                    "newText": "hello\n"}]},
            "options": [
                {"optionId": "always", "name": "Always", "kind": "allow_always"},
                {"optionId": "once", "name": "Allow", "kind": "allow_once"},
                {"optionId": "no", "name": "Reject", "kind": "reject_once"}]}}));
}

fn press(bench: &mut Bench, choice: Option<&str>, detail: Option<AnswerDetail>) {
    let prompt = bench.prompts()[0].id.clone();
    bench.order(&Order::Answer {
        request: "r9".into(),
        prompt,
        choice: choice.map(Into::into),
        detail: detail.map(Content::Open),
    });
}

#[test]
fn a_permission_is_asked_with_its_tool_call_and_answered_with_the_option() {
    let mut bench = Bench::up("gemini");
    bench.deliver("m1", 1, "write");
    permission(&mut bench, 0);
    assert_eq!(bench.was_delivered(), 1);
    let [prompt] = bench.prompts()[..] else { panic!("one prompt") };
    let effects: Vec<_> = prompt.choices.iter().map(|choice| choice.effect).collect();
    let expected = [Effect::AllowAlways, Effect::AllowOnce, Effect::Reject].map(Some);
    assert_eq!(effects, expected);
    assert!(prompt.choices.iter().all(|choice| !choice.is_default));
    let detail = prompt.detail.as_ref().and_then(Content::open).unwrap();
    assert_eq!(detail.tool.as_deref(), Some("write_file"));
    assert_eq!(detail.diffs[0].new_text.as_deref(), Some("hello\n"));
    // This agent tells of the call only by asking.
    assert_eq!(bench.tools()[0].tool, "write_file");
    press(&mut bench, Some("once"), None);
    assert_eq!(bench.results(), [None]);
    let answer = bench.written.last().unwrap();
    assert_eq!(answer["id"], 0);
    assert_eq!(answer["result"], json!({"outcome": {"outcome": "selected", "optionId": "once"}}));
    bench.update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "write_file__7",
        "status": "completed", "title": "f.txt", "content": [], "kind": "edit"}));
    assert_eq!(bench.tool_updates()[0].status, ToolStatus::Completed);
}

#[test]
fn a_denied_call_is_cancelled_although_the_agent_does_not_say_so() {
    let mut bench = Bench::up("gemini");
    bench.deliver("m1", 1, "write");
    permission(&mut bench, 3);
    let detail = AnswerDetail { message: Some("not this".into()), ..AnswerDetail::default() };
    press(&mut bench, Some("no"), Some(detail));
    assert_eq!(bench.tool_updates()[0].status, ToolStatus::Cancelled);
    // The protocol has no words with an answer, and the person is told so.
    assert_eq!(bench.notices(), ["answer"]);
    assert_eq!(bench.count("session/cancel"), 0);
}

#[test]
fn a_denial_can_stop_the_run() {
    let mut bench = Bench::up("gemini");
    bench.deliver("m1", 1, "write");
    permission(&mut bench, 3);
    press(&mut bench, Some("no"), Some(AnswerDetail { stop: true, ..AnswerDetail::default() }));
    assert_eq!(bench.count("session/cancel"), 1);
    bench.answer("session/prompt", json!({"stopReason": "cancelled"}));
    assert_eq!(bench.outcomes(), [Outcome::Interrupted]);
}

#[test]
fn an_interrupt_withdraws_the_open_question_and_tells_the_agent() {
    let mut bench = Bench::up("opencode");
    bench.deliver("m1", 1, "write");
    permission(&mut bench, 2);
    bench.control(Control::Interrupt { run: None });
    let answer = bench.written.last().unwrap();
    assert_eq!(answer["result"], json!({"outcome": {"outcome": "cancelled"}}));
    assert_eq!(bench.tool_updates()[0].status, ToolStatus::Cancelled);
    assert!(bench.reports().any(|report| matches!(report, Report::PromptGone(_))));
    press(&mut bench, Some("once"), None);
    assert_eq!(bench.results(), [Some("prompt_not_found".to_owned())]);
}

#[test]
fn a_second_message_waits_for_the_first_to_end() {
    let mut bench = Bench::up("gemini");
    bench.deliver("m1", 1, "one");
    bench.deliver("m2", 2, "two");
    assert_eq!(bench.count("session/prompt"), 1);
    bench.answer("session/prompt", json!({"stopReason": "end_turn"}));
    assert_eq!(bench.count("session/prompt"), 2);
    assert_eq!(bench.written.last().unwrap()["params"]["prompt"][0]["text"], "two");
}

#[test]
fn an_error_of_the_provider_fails_the_run_and_a_refused_prompt_fails_the_send() {
    let mut bench = Bench::up("gemini");
    bench.deliver("m1", 1, "fail");
    bench.refuse("session/prompt", 400, "scripted failure");
    assert_eq!(bench.was_delivered(), 1);
    let outcomes = bench.outcomes();
    let [Outcome::Failed(reason)] = &outcomes[..] else { panic!("one failure") };
    assert!(reason.contains("scripted failure"), "{reason}");
    bench.take();
    bench.deliver("m2", 2, "bad");
    bench.refuse("session/prompt", -32_602, "Invalid params");
    assert_eq!(bench.was_delivered(), 0);
    assert_eq!(bench.failed(), ["send_rejected"]);
}

#[test]
fn what_nobody_knows_is_answered_and_kept() {
    let mut bench = Bench::up("opencode");
    bench.deliver("m1", 1, "hello");
    bench.line(json!({"id": "x", "method": "made/up"}));
    assert_eq!(bench.written.last().unwrap()["error"]["code"], -32_601);
    for _ in 0..10 {
        bench.update(json!({"sessionUpdate": "made_up", "x": 1}));
    }
    assert_eq!(bench.notices(), ["unknown_message"; 5]);
    bench.line(json!({"method": "_own/thing"}));
    bench.line(json!("nonsense"));
    bench.says("still here");
    assert_eq!(bench.was_delivered(), 1);
}

#[test]
fn words_outside_of_a_run_are_recorded_after_a_while() {
    let mut bench = Bench::up("other");
    bench.says("by the way");
    assert_eq!(bench.texts(), Vec::<String>::new());
    bench.pass(1_000);
    assert_eq!(bench.texts(), ["by the way"]);
}

#[test]
fn a_todo_list_given_to_a_tool_is_a_plan() {
    let mut bench = Bench::up("opencode");
    bench.deliver("m1", 1, "plan");
    bench.update(json!({"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "todowrite",
        "status": "pending", "rawInput": {}}));
    for status in ["in_progress", "completed"] {
        bench.update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1",
            "title": "1 todo", "status": status,
            "rawInput": {"todos": [{"content": "A", "status": "in_progress"}]}}));
    }
    let plans = bench.reports().filter(|report| matches!(report, Report::Plan(_)));
    assert_eq!(plans.count(), 1);
}

#[test]
fn a_tool_that_ends_because_of_an_interrupt_was_cut_off() {
    let mut bench = Bench::up("gemini");
    bench.deliver("m1", 1, "run");
    bench.update(json!({"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "sleep 9",
        "kind": "execute", "status": "in_progress"}));
    bench.control(Control::Interrupt { run: None });
    bench.update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1",
        "status": "completed", "content": [
            {"type": "content", "content": {"type": "text", "text": "stopped"}}]}));
    let [update] = bench.tool_updates()[..] else { panic!("one update") };
    assert_eq!(update.status, ToolStatus::Cancelled);
    assert_eq!(update.detail.open().unwrap().output.as_deref(), Some("stopped"));
}

#[test]
fn a_sealed_answer_is_refused_and_the_question_stays_open() {
    let mut bench = Bench::up("gemini");
    bench.deliver("m1", 1, "write");
    permission(&mut bench, 3);
    let (prompt, written) = (bench.prompts()[0].id.clone(), bench.written.len());
    bench.order(&sealed_answer(&prompt, "once"));
    assert_eq!(bench.written.len(), written);
    assert_eq!(bench.results(), [Some("control_not_supported".to_owned())]);
    press(&mut bench, Some("no"), None);
    let answer = bench.written.last().unwrap();
    assert_eq!(answer["result"], json!({"outcome": {"outcome": "selected", "optionId": "no"}}));
}
