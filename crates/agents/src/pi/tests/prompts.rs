//! Questions of the gate and of other extensions.

use domain::content::ToolStatus;
use domain::session::Report;
use domain::session::controls::Control;
use domain::session::prompts::{AnswerDetail, Effect};
use serde_json::{Value, json};

use super::bench::{Bench, setup};
use crate::driver::sealed_answer;

#[test]
fn a_tool_waits_for_a_person_who_sees_what_it_would_do() {
    let mut bench = Bench::ready();
    bench.begin("m1", "edit it");
    let input = json!({"path": "a.rs", "edits": [{"oldText": "x", "newText": "y"}]});
    bench.gate("d1", "edit", &input);
    let prompt = bench.prompts()[0];
    let effects: Vec<_> = prompt.choices.iter().filter_map(|choice| choice.effect).collect();
    assert_eq!(effects, [Effect::AllowOnce, Effect::AllowAlways, Effect::Reject]);
    let detail = prompt.detail.as_ref().unwrap().open().unwrap();
    assert_eq!(detail.tool_call, Some("c1".into()));
    assert_eq!(detail.diffs[0].new_text.as_deref(), Some("y"));
    bench.choose("d1", Some("allow"), AnswerDetail::default());
    assert_eq!(decision(&bench), json!({"decision": "allow"}));
    assert_eq!(bench.results(), [None]);
}

#[test]
fn a_denial_carries_the_person_s_words_and_the_call_is_cancelled() {
    let mut bench = Bench::ready();
    bench.begin("m1", "run: rm x");
    bench.gate("d1", "bash", &json!({"command": "rm x"}));
    let message = Some("use trash".to_owned());
    bench.choose("d1", Some("deny"), AnswerDetail { message, ..AnswerDetail::default() });
    let told = decision(&bench);
    assert_eq!(told["decision"], "deny");
    assert!(told["reason"].as_str().unwrap().contains("use trash"));
    bench.hear(&json!({"type": "tool_execution_end", "toolCallId": "c1", "toolName": "bash",
        "result": {"content": [{"type": "text", "text": "no"}]}, "isError": true}));
    let cancelled = bench.reports().into_iter().any(|report| {
        matches!(report, Report::ToolUpdate(update) if update.status == ToolStatus::Cancelled)
    });
    assert!(cancelled);
}

#[test]
fn always_is_for_this_tool_and_outlives_the_proxy() {
    let mut bench = Bench::ready();
    bench.begin("m1", "run: ls");
    bench.gate("d1", "bash", &json!({"command": "ls"}));
    bench.choose("d1", Some("always"), AnswerDetail::default());
    bench.settles();
    let mut again = bench.again();
    again.deliver("m2", "run: ls", None);
    again.greet();
    again.told.clear();
    again.gate("d2", "bash", &json!({"command": "pwd"}));
    assert_eq!(again.prompts().len(), 0);
    assert_eq!(decision(&again), json!({"decision": "allow"}));
    again.gate("d3", "write", &json!({"path": "a", "content": "b"}));
    assert_eq!(again.prompts().len(), 1);
}

#[test]
fn yolo_asks_nobody() {
    let mut bench = Bench::ready();
    bench.control(Control::SetMode("yolo".to_owned()));
    bench.begin("m1", "run: ls");
    bench.gate("d1", "bash", &json!({"command": "ls"}));
    assert_eq!(bench.prompts().len(), 0);
    assert_eq!(decision(&bench), json!({"decision": "allow"}));
}

#[test]
fn changed_input_is_what_the_tool_gets() {
    let mut bench = Bench::ready();
    bench.begin("m1", "run: ls");
    bench.gate("d1", "bash", &json!({"command": "ls"}));
    let changed = |text: &str| AnswerDetail {
        updated_input: Some(text.to_owned()),
        ..AnswerDetail::default()
    };
    bench.choose("d1", Some("allow"), changed("not JSON"));
    assert_eq!(bench.results(), [Some("invalid_choice")]);
    bench.choose("d1", Some("allow"), changed(r#"{"command":"pwd"}"#));
    assert_eq!(decision(&bench)["input"], json!({"command": "pwd"}));
}

#[test]
fn a_denial_may_stop_the_run() {
    let mut bench = Bench::ready();
    bench.begin("m1", "run: ls");
    bench.gate("d1", "bash", &json!({"command": "ls"}));
    bench.choose("d1", Some("deny"), AnswerDetail { stop: true, ..AnswerDetail::default() });
    assert!(bench.written("abort").is_some());
}

#[test]
fn an_interrupt_withdraws_the_question() {
    let mut bench = Bench::ready();
    bench.begin("m1", "run: ls");
    bench.gate("d1", "bash", &json!({"command": "ls"}));
    bench.control(Control::Interrupt { run: Some("run-m1-1".into()) });
    assert_eq!(bench.written("extension_ui_response").unwrap()["cancelled"], true);
    assert!(bench.reports().contains(&&Report::PromptGone("d1".into())));
    bench.told.clear();
    bench.choose("d1", Some("allow"), AnswerDetail::default());
    assert_eq!(bench.results(), [Some("prompt_not_found")]);
}

#[test]
fn questions_of_other_extensions_are_asked_too() {
    let mut bench = Bench::ready();
    let ask = |bench: &mut Bench, rest: &Value| {
        let mut request = json!({"type": "extension_ui_request", "id": "q", "title": "Which?"});
        for (name, value) in rest.as_object().unwrap() {
            request[name] = value.clone();
        }
        bench.told.clear();
        bench.hear(&request);
    };
    let told = |bench: &Bench| bench.written("extension_ui_response").unwrap();
    ask(&mut bench, &json!({"method": "select", "options": ["red", "blue"], "timeout": 500}));
    assert_eq!(bench.prompts()[0].expiry.as_ref().unwrap().timeout_ms, 500);
    bench.choose("q", Some("option-1"), AnswerDetail::default());
    assert_eq!(told(&bench)["value"], "blue");
    ask(&mut bench, &json!({"method": "confirm", "message": "Sure?"}));
    bench.choose("q", Some("yes"), AnswerDetail::default());
    assert_eq!(told(&bench)["confirmed"], true);
    ask(&mut bench, &json!({"method": "input", "placeholder": "a name"}));
    let answers = Some(r#"{"Which?":"green"}"#.to_owned());
    bench.choose("q", Some("submit"), AnswerDetail { answers, ..AnswerDetail::default() });
    assert_eq!(told(&bench)["value"], "green");
    ask(&mut bench, &json!({"method": "select", "options": ["red"]}));
    bench.choose("q", None, AnswerDetail::default());
    assert_eq!(told(&bench)["cancelled"], true);
    ask(&mut bench, &json!({"method": "notify", "message": "Done"}));
    assert_eq!(bench.notices(), ["notify"]);
}

#[test]
fn a_question_for_words_takes_no_answer_without_any_and_its_prefill_is_none() {
    let mut bench = Bench::ready();
    bench.hear(&json!({"type": "extension_ui_request", "id": "q", "method": "editor",
        "title": "Commit message?", "prefill": "as it was"}));
    let effects: Vec<_> = bench.prompts()[0].choices.iter().map(|choice| choice.effect).collect();
    assert_eq!(effects, [Some(Effect::AllowOnce), Some(Effect::Reject)]);
    for answers in [None, Some("{}".to_owned())] {
        bench.told.clear();
        bench.choose("q", Some("submit"), AnswerDetail { answers, ..AnswerDetail::default() });
        assert_eq!(bench.results(), [Some("invalid_choice")]);
        assert!(bench.written("extension_ui_response").is_none());
    }
    let message = Some("as it is".to_owned());
    bench.choose("q", Some("submit"), AnswerDetail { message, ..AnswerDetail::default() });
    assert_eq!(bench.written("extension_ui_response").unwrap()["value"], "as it is");
}

#[test]
fn an_extension_that_asks_before_the_session_is_there_is_not_waited_for() {
    let mut bench = Bench::of(setup(""));
    bench.hear(&json!({"type": "extension_ui_request", "id": "q", "method": "confirm",
        "title": "Trust this folder?"}));
    assert_eq!(bench.written("extension_ui_response").unwrap()["cancelled"], true);
    assert_eq!(bench.prompts().len(), 0);
}

/// What the gate was told last.
fn decision(bench: &Bench) -> Value {
    let reply = bench.written("extension_ui_response").unwrap();
    serde_json::from_str(reply["value"].as_str().unwrap()).unwrap()
}

#[test]
fn a_sealed_answer_is_refused_and_the_question_stays_open() {
    let mut bench = Bench::ready();
    bench.begin("m1", "run: rm x");
    bench.gate("d1", "bash", &json!({"command": "rm x"}));
    let written = bench.writes().len();
    bench.order(&sealed_answer(&"d1".into(), "allow"));
    assert_eq!(bench.writes().len(), written);
    assert_eq!(bench.results(), [Some("control_not_supported")]);
    bench.choose("d1", Some("deny"), AnswerDetail::default());
    assert_eq!(decision(&bench)["decision"], "deny");
}
