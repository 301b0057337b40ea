use domain::content::{Part, ToolStatus, Usage};

use super::*;
use crate::driver::sealed_answer;

fn tool_use(id: &str, name: &str, input: Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": input})
}

fn returned(id: &str, content: &str, is_error: bool) -> Value {
    let block =
        json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error});
    json!({"type": "user", "message": {"role": "user", "content": [block]}, "parent_tool_use_id": null})
}

fn can_use(request: &str, tool: &str) -> Value {
    let request_body = json!({"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "mkdir d"}, "tool_use_id": tool, "permission_suggestions": []});
    json!({"type": "control_request", "request_id": request, "request": request_body})
}

fn answer(prompt: &PromptId, choice: &str, detail: AnswerDetail) -> Order {
    Order::Answer {
        request: "a1".into(),
        prompt: prompt.clone(),
        choice: Some(choice.into()),
        detail: Some(Content::Open(detail)),
    }
}

fn statuses(outputs: &[Output], id: &str) -> Vec<ToolStatus> {
    let of_it = reports(outputs).into_iter().filter_map(|report| match report {
        Report::ToolCall(call) if call.id.as_str() == id => Some(call.status),
        Report::ToolUpdate(update) if update.id.as_str() == id => Some(update.status),
        _ => None,
    });
    of_it.collect()
}

fn outcome(outputs: &[Output]) -> Outcome {
    let ended = reports(outputs).into_iter().find_map(|report| match report {
        Report::RunEnded { outcome, .. } => Some(outcome.clone()),
        _ => None,
    });
    ended.expect("the run ended")
}

/// A run that is at a tool call.
fn at_a_tool() -> (Bench, Vec<Output>) {
    let mut bench = Bench::up();
    bench.begin("m1");
    let mut told =
        bench.hear(&stream(json!({"type": "message_start", "message": {"id": "msg_1"}})));
    told.extend(bench.hear(&said("msg_1", tool_use("t1", "Bash", json!({"command": "mkdir d"})))));
    (bench, told)
}

#[test]
fn words_pass_by_and_the_message_is_recorded_whole() {
    let mut bench = Bench::up();
    bench.begin("m1");
    bench.hear(&stream(json!({"type": "message_start", "message": {"id": "msg_1"}})));
    bench.hear(&stream(json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}})));
    let delta = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}});
    let told = bench.hear(&stream(delta));
    assert!(matches!(told.as_slice(), [Output::Passing(delta, _)] if delta.part == 0));
    bench.hear(&said("msg_1", json!({"type": "thinking", "thinking": "hm"})));
    bench.hear(&stream(json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}})));
    let delta = json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "so"}});
    bench.hear(&stream(delta));
    bench.hear(&said("msg_1", json!({"type": "text", "text": "so it is"})));
    let told = bench.hear(&stream(json!({"type": "message_stop"})));
    let Report::Message { message, .. } = reports(&told)[0] else { panic!("{told:?}") };
    let parts = [Part::Thinking("hm".into()), Part::Text("so it is".into())];
    assert_eq!(message.parts.open().unwrap(), &parts);
    assert_eq!(bench.hear(&said("msg_1", json!({"type": "text", "text": "late"}))), []);
}

#[test]
fn a_turn_tells_what_it_took_and_the_context_is_asked_for() {
    let mut bench = Bench::up();
    bench.begin("m1");
    let usage = json!({"input_tokens": 10, "cache_creation_input_tokens": 1, "cache_read_input_tokens": 5, "output_tokens": 3});
    let told = bench.hear(&result(json!({"usage": usage, "total_cost_usd": 0.5, "model_usage_since_last_result": {"m": {"costUSD": 0.000_21}}})));
    let used = reports(&told).into_iter().find_map(|report| match report {
        Report::RunEnded { usage, .. } => usage.clone(),
        _ => None,
    });
    let expected = Usage {
        input_tokens: Some(16),
        output_tokens: Some(3),
        cached_tokens: Some(5),
        cost_micro_usd: Some(210),
    };
    assert_eq!(used.unwrap(), expected);
    assert_eq!(written(&told)[0]["request"]["subtype"], "get_context_usage");
    assert!(!bench.driver.is_at_rest(), "an answer is awaited");
    let number = bench.driver.requests_asked();
    let told = bench
        .hear(&answered(number, json!({"totalTokens": 20, "maxTokens": 90, "rawMaxTokens": 100})));
    assert!(
        matches!(reports(&told)[0], Report::Context(context) if context.used_tokens == 20 && context.window_tokens == 100)
    );
    assert!(bench.driver.is_at_rest());
}

#[test]
fn money_is_the_difference_where_only_the_sum_is_told() {
    let mut bench = Bench::up();
    let mut costs = vec![];
    for (id, sum) in [("m1", 0.5), ("m2", 0.75)] {
        bench.begin(id);
        let told = bench.hear(&result(json!({"usage": {}, "total_cost_usd": sum})));
        costs.extend(reports(&told).into_iter().filter_map(|report| match report {
            Report::RunEnded { usage: Some(usage), .. } => Some(usage.cost_micro_usd),
            _ => None,
        }));
    }
    assert_eq!(costs, [None, Some(250_000)], "what was before the first is not known");
}

#[test]
fn an_error_of_the_service_fails_the_run() {
    let mut bench = Bench::up();
    bench.begin("m1");
    let mut synthetic = said("x", json!({"type": "text", "text": "API Error: 400"}));
    synthetic["is_api_error_message"] = true.into();
    assert_eq!(bench.hear(&synthetic), []);
    let told = bench.hear(&result(
        json!({"is_error": true, "result": "API Error: 400", "terminal_reason": "api_error"}),
    ));
    assert_eq!(outcome(&told), Outcome::Failed("API Error: 400".into()));
}

#[test]
fn a_tool_is_asked_for_allowed_and_done() {
    let (mut bench, mut told) = at_a_tool();
    told.extend(bench.hear(&can_use("q1", "t1")));
    let prompt = asked(&told);
    told.extend(bench.hear(&stream(json!({"type": "message_stop"}))));
    let order = answer(&prompt.id, "yes", AnswerDetail::default());
    let answering = bench.order(&order);
    assert_eq!(failure_of(&answering, "a1"), None);
    let line = &written(&answering)[0];
    assert_eq!(line["response"]["request_id"], "q1");
    assert_eq!(line["response"]["response"]["behavior"], "allow");
    assert_eq!(bench.hear(line), [], "our own answer, echoed");
    told.extend(answering);
    told.extend(bench.hear(&returned("t1", "made", false)));
    let last = statuses(&told, "t1").pop();
    assert_eq!(last, Some(ToolStatus::Completed));
    assert!(statuses(&told, "t1").contains(&ToolStatus::Running));
    let again = bench.order(&order);
    assert_eq!(failure_of(&again, "a1").unwrap().code.as_str(), "prompt_not_found");
}

#[test]
fn a_tool_that_does_not_ask_is_at_work() {
    let (mut bench, told) = at_a_tool();
    assert_eq!(statuses(&told, "t1"), [ToolStatus::Pending]);
    assert_eq!(statuses(&bench.wait_until_due(), "t1"), [ToolStatus::Running]);

    let (mut bench, _) = at_a_tool();
    bench.hear(&can_use("q1", "t1"));
    assert_eq!(bench.wait_until_due(), [], "it asks");
}

#[test]
fn a_denied_tool_is_cancelled_and_the_agent_hears_why() {
    let (mut bench, _) = at_a_tool();
    let prompt = asked(&bench.hear(&can_use("q1", "t1")));
    let detail =
        AnswerDetail { message: Some("not there".into()), stop: true, ..AnswerDetail::default() };
    let told = bench.order(&answer(&prompt.id, "no", detail));
    let response = &written(&told)[0]["response"]["response"];
    assert_eq!(*response, json!({"behavior": "deny", "message": "not there", "interrupt": true}));
    let told = bench.hear(&returned("t1", "rejected", true));
    assert_eq!(statuses(&told, "t1"), [ToolStatus::Cancelled]);
    let told = bench.hear(&result(json!({"is_error": true, "subtype": "error_during_execution", "terminal_reason": "aborted_tools"})));
    assert_eq!(outcome(&told), Outcome::Interrupted);
}

#[test]
fn a_changed_input_is_shown_with_the_tool() {
    let (mut bench, _) = at_a_tool();
    let prompt = asked(&bench.hear(&can_use("q1", "t1")));
    let input = json!({"command": "mkdir e"}).to_string();
    let detail = AnswerDetail { updated_input: Some(input.clone()), ..AnswerDetail::default() };
    let told = bench.order(&answer(&prompt.id, "yes", detail));
    let shown = reports(&told).into_iter().find_map(|report| match report {
        Report::ToolUpdate(update) => update.detail.open().unwrap().input.clone(),
        _ => None,
    });
    assert_eq!(shown, Some(input));
}

#[test]
fn an_unfit_answer_leaves_the_question_open() {
    let (mut bench, _) = at_a_tool();
    let prompt = asked(&bench.hear(&can_use("q1", "t1")));
    let told = bench.order(&answer(&prompt.id, "always", AnswerDetail::default()));
    assert_eq!(failure_of(&told, "a1").unwrap().code.as_str(), "invalid_choice");
    assert!(bench.driver.scribe.is_asking(&prompt.id));
}

#[test]
fn an_interrupt_is_done_when_the_run_is_over() {
    let (mut bench, _) = at_a_tool();
    let prompt = asked(&bench.hear(&can_use("q1", "t1")));
    let told = bench.control("r1", Control::Interrupt { run: None });
    assert!(reports(&told).is_empty());
    let told = bench.hear(&json!({"type": "control_cancel_request", "request_id": "q1"}));
    assert!(
        reports(&told)
            .iter()
            .any(|report| matches!(report, Report::PromptGone(id) if *id == prompt.id))
    );
    let number = bench.driver.requests_asked();
    bench.hear(&answered(number, json!({"still_queued": [], "cancelled": []})));
    bench.hear(&returned("t1", "rejected", true));
    let told = bench.hear(&result(json!({"is_error": true, "terminal_reason": "aborted_tools"})));
    assert_eq!(failure_of(&told, "r1"), None);
    assert_eq!(outcome(&told), Outcome::Interrupted);
    let told = bench.control("r2", Control::Interrupt { run: None });
    assert_eq!(failure_of(&told, "r2").unwrap().code.as_str(), "agent_not_active");
}

#[test]
fn a_program_that_does_not_stop_is_ended() {
    let (mut bench, _) = at_a_tool();
    bench.control("r1", Control::Interrupt { run: None });
    bench.wait_until_due();
    let told = bench.wait_until_due();
    assert_eq!(told, [Output::End]);
    let told = bench.input(Input::Ended(Ended::Killed(9)));
    assert_eq!(failure_of(&told, "r1"), None);
    assert_eq!(outcome(&told), Outcome::Interrupted);
}

#[test]
fn an_interrupt_of_another_run_stops_nothing() {
    let (mut bench, _) = at_a_tool();
    let told = bench.control("r1", Control::Interrupt { run: Some("run-old".into()) });
    assert_eq!(failure_of(&told, "r1").unwrap().code.as_str(), "agent_not_active");
}

#[test]
fn subagents_speak_below_the_call_that_made_them() {
    let (mut bench, _) = at_a_tool();
    let mut below = said("msg_2", json!({"type": "text", "text": "below"}));
    below["parent_tool_use_id"] = "t1".into();
    bench.hear(&below);
    let mut called = said("msg_2", tool_use("t2", "Read", json!({"file_path": "/a"})));
    called["parent_tool_use_id"] = "t1".into();
    let told = bench.hear(&called);
    let Report::Message { message, .. } = reports(&told)[0] else { panic!("{told:?}") };
    assert_eq!(message.parent, Some("t1".into()));
    assert_eq!(message.parts, Content::Open(vec![Part::Text("below".into())]));
    assert!(
        matches!(reports(&told)[1], Report::ToolCall(call) if call.parent == Some("t1".into()))
    );
    let mut result = returned("t2", "text", false);
    result["parent_tool_use_id"] = "t1".into();
    let told = bench.hear(&result);
    let Report::Message { message, .. } = reports(&told)[0] else { panic!("{told:?}") };
    assert_eq!(message.parent, Some("t1".into()));
    assert_eq!(message.parts, Content::Open(vec![Part::ToolCall("t2".into())]));
}

#[test]
fn a_question_of_a_subagent_outlives_the_run() {
    let (mut bench, _) = at_a_tool();
    let first = asked(&bench.hear(&can_use("q1", "t9")));
    let told = bench.hear(&result(json!({})));
    let second = asked(&told);
    assert_ne!(first.id, second.id);
    let told = bench.order(&answer(&second.id, "yes", AnswerDetail::default()));
    assert_eq!(written(&told)[0]["response"]["request_id"], "q1");
}

#[test]
fn work_that_nobody_asked_for_is_a_run_of_its_own() {
    let mut bench = Bench::up();
    let told = bench.hear(&stream(json!({"type": "message_start", "message": {"id": "msg_1"}})));
    assert!(matches!(reports(&told)[0], Report::RunStarted { cause: None, .. }));
}

#[test]
fn what_is_not_known_is_shown_a_few_times_and_breaks_nothing() {
    let mut bench = Bench::up();
    let unknown = json!({"type": "from_the_future", "x": 1});
    let told: usize = (0..20).map(|_| bench.hear(&unknown).len()).sum();
    assert_eq!(told, 3);
    let broken = json!({"type": "assistant", "message": 7});
    assert_eq!(bench.hear(&broken), []);
    bench.input(Input::Line("Segmentation fault".into()));
    assert!(bench.driver.scribe.last_complaints().unwrap().contains("Segmentation"));
    assert!(matches!(
        bench.begin("m1").first(),
        Some(Output::Report(Report::SendDelivered { .. }))
    ));
}

#[test]
fn requests_that_are_not_known_are_refused_so_that_nobody_waits() {
    let mut bench = Bench::up();
    let told = bench.hear(
        &json!({"type": "control_request", "request_id": "x", "request": {"subtype": "dance"}}),
    );
    let line = &written(&told)[0];
    assert_eq!(line["response"]["subtype"], "error");
    assert_eq!(line["response"]["request_id"], "x");
}

#[test]
fn limits_compactions_and_retries_are_noticed() {
    let mut bench = Bench::up();
    let limit = json!({"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "rateLimitType": "five_hour", "resetsAt": 61}});
    let told = bench.hear(&limit);
    assert!(
        matches!(reports(&told)[0], Report::Notice(notice) if notice.text == "Reached the five hour limit; it resets in 1 minutes"),
        "{told:?}"
    );
    assert_eq!(bench.hear(&limit), [], "once is enough");
    let compacted = json!({"type": "system", "subtype": "compact_boundary", "compact_metadata": {"trigger": "auto", "pre_tokens": 9, "post_tokens": 3}});
    assert!(
        matches!(reports(&bench.hear(&compacted))[0], Report::Notice(notice) if notice.kind == "compaction")
    );
    let retry = json!({"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 10, "error_status": 500});
    assert!(
        matches!(reports(&bench.hear(&retry))[0], Report::Notice(notice) if notice.kind == "retry")
    );
}

#[test]
fn a_picture_that_a_tool_returned_is_kept_and_shown_as_a_message() {
    let (mut bench, _) = at_a_tool();
    let source = json!({"type": "base64", "media_type": "image/jpeg", "data": "AAAA"});
    let content = json!([{"type": "text", "text": "look"}, {"type": "image", "source": source}]);
    let block = json!({"type": "tool_result", "tool_use_id": "t1", "content": content});
    let told = bench.hear(&json!({"type": "user",
        "message": {"role": "user", "content": [block]}, "parent_tool_use_id": null}));
    let kept = told.iter().find_map(|output| match output {
        Output::Keep(picture) => Some(picture.clone()),
        _ => None,
    });
    let kept = kept.expect("the picture");
    assert_eq!((kept.name.as_str(), kept.base64.as_str()), ("Bash.jpg", "AAAA"));
    assert_eq!(statuses(&told, "t1"), [ToolStatus::Completed]);
    let told = bench.input(Input::Kept { message: kept.message, outcome: Ok("upl_1".into()) });
    let [Report::Message { message, .. }] = reports(&told)[..] else { panic!("{told:?}") };
    let parts = message.parts.open().unwrap();
    assert!(matches!(parts.as_slice(), [Part::Image(file)] if file.id == "upl_1".into()));
}

/// A subagent at work behind its call, which ended when it began.
fn in_the_background() -> Bench {
    let (mut bench, _) = at_a_tool();
    bench.hear(&json!({"type": "system", "subtype": "background_tasks_changed",
        "tasks": [{"task_id": "b1"}]}));
    let launched = json!({"type": "tool_result", "tool_use_id": "t1", "content": "launched"});
    bench.hear(&json!({"type": "user", "message": {"role": "user", "content": [launched]}}));
    let call = json!({"type": "tool_use", "id": "t2", "name": "Bash", "input": {"command": "ls"}});
    bench.hear(&json!({"type": "assistant", "parent_tool_use_id": "t1",
        "message": {"id": "m2", "content": [call]}}));
    bench
}

fn tool_ends(bench: &mut Bench, id: &str) -> Vec<Output> {
    let block = json!({"type": "tool_result", "tool_use_id": id, "content": "a.rs"});
    bench.hear(&json!({"type": "user", "parent_tool_use_id": "t1",
        "message": {"role": "user", "content": [block]}}))
}

#[test]
fn a_subagent_in_the_background_works_on_when_the_run_ends() {
    let mut bench = in_the_background();
    let told = bench.hear(&result(json!({})));
    assert!(reports(&told).iter().any(|report| matches!(report, Report::RunEnded { .. })));
    assert_eq!(statuses(&told, "t2"), [], "it is at work");
    assert_eq!(statuses(&tool_ends(&mut bench, "t2"), "t2"), [ToolStatus::Completed]);

    // What it leaves open is over with it.
    let mut bench = in_the_background();
    bench.hear(&result(json!({})));
    let told =
        bench.hear(&json!({"type": "system", "subtype": "background_tasks_changed", "tasks": []}));
    assert_eq!(statuses(&told, "t2"), [ToolStatus::Cancelled]);
    let mut bench = in_the_background();
    bench.hear(&result(json!({})));
    let told = bench.input(Input::Ended(Ended::Killed(9)));
    assert_eq!(statuses(&told, "t2"), [ToolStatus::Cancelled]);
}

#[test]
fn a_call_of_the_run_itself_is_cancelled_with_it_whatever_works_in_the_background() {
    let mut bench = in_the_background();
    let call = json!({"type": "tool_use", "id": "t3", "name": "Bash", "input": {"command": "ls"}});
    bench.hear(&said("m3", call));
    let told = bench.hear(&result(json!({})));
    assert_eq!(statuses(&told, "t3"), [ToolStatus::Cancelled]);
    assert_eq!(statuses(&told, "t2"), []);
}

#[test]
fn a_sealed_answer_is_refused_and_the_question_stays_open() {
    let (mut bench, _) = at_a_tool();
    let prompt = asked(&bench.hear(&can_use("q1", "t1")));
    let told = bench.order(&sealed_answer(&prompt.id, "yes"));
    assert_eq!(written(&told), Vec::<Value>::new());
    assert_eq!(failure_of(&told, "sealed").unwrap().code.as_str(), "control_not_supported");
    let told = bench.order(&answer(&prompt.id, "no", AnswerDetail::default()));
    assert_eq!(written(&told)[0]["response"]["response"]["behavior"], "deny");
}
