//! Runs: what happens in them, and how they end.

use domain::content::{ToolStatus, Usage};
use domain::session::Report;
use domain::session::controls::Control;
use domain::session::runs::Outcome;
use serde_json::json;

use super::bench::{Bench, pick};
use crate::{Driver, Ended, Output};

#[test]
fn words_and_thoughts_stream_and_are_recorded_once() {
    let mut bench = Bench::ready();
    bench.begin("m1", "think: deep");
    bench.hear(&json!({"type": "message_start", "message": {"role": "assistant", "content": []}}));
    bench.grows(&json!({"type": "thinking_delta", "contentIndex": 0, "delta": "hm"}));
    bench.grows(&json!({"type": "thinking_end", "contentIndex": 0, "content": "hm"}));
    bench.grows(&json!({"type": "text_delta", "contentIndex": 1, "delta": "de"}));
    bench.grows(&json!({"type": "text_delta", "contentIndex": 1, "delta": "ep"}));
    let passing = bench.told.iter().filter(|output| matches!(output, Output::Passing(..))).count();
    assert_eq!(passing, 3);
    let content = json!([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "deep"}]);
    bench.ends(&content, "stop");
    bench.settles();
    assert_eq!(bench.said(), ["(hm)|deep"]);
    assert_eq!(bench.outcome(), Some(Outcome::Completed));
    let usage = pick!(bench.reports(), Report::RunEnded { usage, .. } => usage.clone()).pop();
    let expected = Usage {
        input_tokens: Some(15),
        output_tokens: Some(12),
        cached_tokens: Some(5),
        cost_micro_usd: Some(2_500),
    };
    assert_eq!(usage, Some(Some(expected)));
}

#[test]
fn a_tool_is_told_with_its_input_its_output_and_its_place() {
    let mut bench = Bench::ready();
    bench.begin("m1", "run: ls");
    let call =
        json!({"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "ls"}});
    bench.hear(&json!({"type": "message_start", "message": {"role": "assistant", "content": []}}));
    bench.grows(&json!({"type": "toolcall_end", "contentIndex": 0, "toolCall": call}));
    bench.ends(&json!([call]), "toolUse");
    bench.hear(&json!({"type": "tool_execution_start", "toolCallId": "c1", "toolName": "bash",
        "args": {"command": "ls"}}));
    bench.hear(&json!({"type": "tool_execution_update", "toolCallId": "c1", "toolName": "bash",
        "args": {}, "partialResult": {"content": [{"type": "text", "text": "a\n"}]}}));
    bench.hear(&json!({"type": "tool_execution_end", "toolCallId": "c1", "toolName": "bash",
        "result": {"content": [{"type": "text", "text": "a\nb\n"}]}, "isError": false}));
    assert_eq!(bench.said(), ["[c1]"]);
    let calls = bench.reports().into_iter().filter(|r| matches!(r, Report::ToolCall(_))).count();
    assert_eq!(calls, 1);
    let last = pick!(bench.reports(), Report::ToolUpdate(update) => update).pop().unwrap();
    assert_eq!(last.status, ToolStatus::Completed);
    assert_eq!(last.detail.open().unwrap().output.as_deref(), Some("a\nb\n"));
}

#[test]
fn a_picture_that_a_tool_returned_is_kept() {
    let mut bench = Bench::ready();
    bench.begin("m1", "look");
    bench.hear(&json!({"type": "tool_execution_end", "toolCallId": "c1", "toolName": "read",
        "result": {"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]}}));
    let kept = bench
        .told
        .iter()
        .any(|output| matches!(output, Output::Keep(picture) if picture.name == "read.png"));
    assert!(kept, "{:?}", bench.told);
}

#[test]
fn an_interrupt_is_confirmed_when_pi_has_stopped() {
    let mut bench = Bench::ready();
    bench.begin("m1", "slow: 60");
    bench.hear(&json!({"type": "message_start", "message": {"role": "assistant", "content": []}}));
    bench.grows(&json!({"type": "text_delta", "contentIndex": 0, "delta": "w0"}));
    bench.control(Control::Interrupt { run: Some("run-m1-1".into()) });
    assert!(bench.written("abort").is_some());
    assert!(bench.written("clear_queue").is_none());
    assert_eq!(bench.results(), []);
    bench.ends(&json!([{"type": "text", "text": "w0"}]), "aborted");
    bench.settles();
    assert_eq!(bench.outcome(), Some(Outcome::Interrupted));
    assert_eq!(bench.results(), [None]);
    assert_eq!(bench.said(), ["w0"]);
    bench.answer("abort", &json!(null));
    assert_eq!(bench.results(), [None]);
}

#[test]
fn a_run_that_does_not_stop_is_stopped_with_its_program() {
    let mut bench = Bench::ready();
    bench.begin("m1", "slow: 60");
    bench.control(Control::Interrupt { run: None });
    bench.wait_ms(9_999);
    assert!(!bench.told.contains(&Output::End));
    bench.wait_ms(1);
    assert!(bench.told.contains(&Output::End));
    bench.end(Ended::Killed(9));
    assert_eq!(bench.outcome(), Some(Outcome::Interrupted));
    assert_eq!(bench.results(), [None]);
}

#[test]
fn an_interrupt_of_another_run_or_of_none_is_refused() {
    let mut bench = Bench::ready();
    bench.control(Control::Interrupt { run: None });
    bench.begin("m1", "slow: 60");
    bench.control(Control::Interrupt { run: Some("run-m0-1".into()) });
    assert_eq!(bench.results(), [Some("agent_not_active"); 2]);
    assert!(bench.written("abort").is_none());
}

#[test]
fn a_failure_of_the_model_fails_the_run_after_the_last_try() {
    let mut bench = Bench::ready();
    bench.begin("m1", "fail: 500");
    bench.ends(&json!([]), "error");
    bench.hear(&json!({"type": "agent_end", "messages": [], "willRetry": true}));
    bench.hear(&json!({"type": "auto_retry_start", "attempt": 1, "maxAttempts": 3,
        "delayMs": 2000, "errorMessage": "overloaded"}));
    assert_eq!(bench.outcome(), None);
    bench.hear(&json!({"type": "agent_start"}));
    bench.ends(&json!([]), "error");
    bench.hear(&json!({"type": "agent_end", "messages": []}));
    bench.hear(&json!({"type": "auto_retry_end", "success": false, "finalError": "overloaded"}));
    bench.hear(&json!({"type": "agent_settled"}));
    assert_eq!(bench.outcome(), Some(Outcome::Failed("overloaded".to_owned())));
    assert_eq!(bench.notices(), ["retry", "retry"]);
    let runs =
        bench.reports().into_iter().filter(|r| matches!(r, Report::RunStarted { .. })).count();
    assert_eq!(runs, 1);
}

#[test]
fn an_older_pi_is_asked_whether_its_run_is_over() {
    let mut bench = Bench::ready();
    bench.begin("m1", "hello");
    bench.says("hi");
    bench.hear(&json!({"type": "agent_end", "messages": []}));
    assert_eq!(bench.outcome(), None);
    bench.answer("get_state", &json!({"isStreaming": false, "isCompacting": false}));
    assert_eq!(bench.outcome(), Some(Outcome::Completed));
}

#[test]
fn an_older_pi_that_waits_to_try_again_is_still_at_work() {
    let mut bench = Bench::ready();
    bench.begin("m1", "fail: 500");
    bench.ends(&json!([]), "error");
    bench.hear(&json!({"type": "agent_end", "messages": []}));
    bench.hear(&json!({"type": "auto_retry_start", "attempt": 1, "maxAttempts": 3,
        "delayMs": 2000, "errorMessage": "overloaded"}));
    bench.answer("get_state", &json!({"isStreaming": false}));
    assert_eq!(bench.outcome(), None);
    bench.hear(&json!({"type": "agent_start"}));
    bench.says("hi");
    bench.hear(&json!({"type": "auto_retry_end", "success": true, "attempt": 1}));
    bench.hear(&json!({"type": "agent_end", "messages": []}));
    bench.answer("get_state", &json!({"isStreaming": false}));
    assert_eq!(bench.outcome(), Some(Outcome::Completed));
}

#[test]
fn a_run_that_an_extension_began_is_shown_with_what_it_asked() {
    let mut bench = Bench::ready();
    bench.hear(&json!({"type": "agent_start"}));
    bench.user("check the build");
    bench.says("it is green");
    bench.settles();
    assert_eq!(bench.said(), ["check the build", "it is green"]);
    assert_eq!(bench.outcome(), Some(Outcome::Completed));
}

#[test]
fn how_full_the_context_is_and_that_it_was_summarised_is_told() {
    let mut bench = Bench::ready();
    bench.begin("m1", "hello");
    bench.says("hi");
    bench.settles();
    bench.answer(
        "get_session_stats",
        &json!({"contextUsage": {"tokens": 60, "contextWindow": 200}}),
    );
    let context = pick!(bench.reports(), Report::Context(context) => *context).pop();
    assert_eq!(context.map(|c| (c.used_tokens, c.window_tokens)), Some((60, 200)));
    bench.hear(&json!({"type": "compaction_start", "reason": "threshold"}));
    bench.hear(&json!({"type": "compaction_end", "result": {"tokensBefore": 150_000}}));
    assert_eq!(bench.notices(), ["compaction", "compaction"]);
    assert!(bench.pi.is_at_rest());
}

#[test]
fn what_is_not_understood_is_told_a_few_times_and_harms_nothing() {
    let mut bench = Bench::ready();
    bench.begin("m1", "hello");
    for _ in 0..20 {
        bench.hear(&json!({"type": "brand_new"}));
    }
    bench.says("hi");
    bench.settles();
    assert_eq!(bench.notices(), ["unknown_message"; 5]);
    assert_eq!(bench.outcome(), Some(Outcome::Completed));
}
