//! Questions and answers.

use domain::session::Report;
use domain::session::prompts::{AnswerDetail, Effect, Prompt};
use domain::{Content, PromptId};
use serde_json::{Value, json};

use super::bench::{Bench, THREAD, TURN, completed, of_item, request};
use crate::driver::sealed_answer;
use crate::{Order, Output};

fn prompt(reports: &[Report]) -> Prompt {
    let asked = reports.iter().find_map(|report| match report {
        Report::Asked(prompt) => Some(prompt.clone()),
        _ => None,
    });
    asked.unwrap_or_else(|| panic!("{reports:?}"))
}

/// Codex asks whether it may run a command.
fn asking() -> (Bench, Prompt) {
    let mut bench = Bench::running();
    bench.told();
    bench.line(&json!({
        "id": 0,
        "method": "item/commandExecution/requestApproval",
        "params": {
            "threadId": THREAD, "turnId": TURN, "itemId": "call1", "reason": "needs to write",
            "command": "/bin/bash -lc 'mkdir a'", "cwd": "/w",
            "commandActions": [{ "type": "unknown", "command": "mkdir a" }],
            "proposedExecpolicyAmendment": ["mkdir"],
            "availableDecisions": [
                "accept",
                { "acceptWithExecpolicyAmendment": { "execpolicy_amendment": ["mkdir"] } },
                "cancel",
            ],
        },
    }));
    let prompt = prompt(&bench.reports());
    (bench, prompt)
}

fn answer(bench: &mut Bench, prompt: &PromptId, choice: &str, detail: AnswerDetail) -> Vec<Value> {
    bench.order(&Order::Answer {
        request: request("r1"),
        prompt: prompt.clone(),
        choice: Some(choice.into()),
        detail: Some(Content::Open(detail)),
    });
    bench.written()
}

fn plainly(bench: &mut Bench, prompt: &PromptId, choice: &str) -> Vec<Value> {
    answer(bench, prompt, choice, AnswerDetail::default())
}

#[test]
fn a_command_is_asked_about_with_its_words_and_codexs_own_rule() {
    let (_, prompt) = asking();
    assert_eq!(
        prompt.text,
        Content::Open("Codex wants to run: mkdir a\nReason: needs to write".to_owned())
    );
    let effects: Vec<_> = prompt.choices.iter().filter_map(|choice| choice.effect).collect();
    let expected = [Effect::AllowOnce, Effect::AllowAlways, Effect::Reject, Effect::Reject];
    assert_eq!(effects, expected);
    assert!(prompt.choices.iter().all(|choice| !choice.is_default));
    let detail = prompt.detail.unwrap();
    let detail = detail.open().unwrap();
    assert_eq!(detail.tool_call, Some("call1".into()));
    assert_eq!(detail.suggestions.as_deref(), Some(r#"["mkdir"]"#));
}

#[test]
fn each_button_says_what_codex_wants_to_hear() {
    let rule = json!({ "acceptWithExecpolicyAmendment": { "execpolicy_amendment": ["mkdir"] } });
    for (choice, decision) in [
        ("accept", json!("accept")),
        ("accept_always", rule),
        ("decline", json!("decline")),
        ("cancel", json!("cancel")),
    ] {
        let (mut bench, prompt) = asking();
        let expected = json!({ "id": 0, "result": { "decision": decision } });
        assert_eq!(plainly(&mut bench, &prompt.id, choice), [expected]);
        assert_eq!(plainly(&mut bench, &prompt.id, choice), [] as [Value; 0], "answered once");
    }
}

#[test]
fn a_no_may_stop_the_run_or_carry_words() {
    let (mut bench, asked) = asking();
    let stop = AnswerDetail { stop: true, ..AnswerDetail::default() };
    let written = answer(&mut bench, &asked.id, "decline", stop);
    assert_eq!(written, [json!({ "id": 0, "result": { "decision": "cancel" } })]);
    let (mut bench, asked) = asking();
    let words = AnswerDetail { message: Some("not there".to_owned()), ..AnswerDetail::default() };
    let written = answer(&mut bench, &asked.id, "decline", words);
    assert_eq!(written[0]["result"]["decision"], "decline");
    assert_eq!(written[1]["method"], "turn/steer");
    assert_eq!(written[1]["params"]["input"][0]["text"], "not there");
}

#[test]
fn a_question_that_is_over_is_declined_so_that_codex_does_not_wait_for_ever() {
    let (mut bench, asked) = asking();
    bench.order(&Order::Answer {
        request: request("r1"),
        prompt: asked.id,
        choice: None,
        detail: None,
    });
    assert_eq!(bench.written(), [json!({ "id": 0, "result": { "decision": "decline" } })]);
}

#[test]
fn a_button_that_does_not_exist_leaves_the_question_open() {
    let (mut bench, asked) = asking();
    assert_eq!(plainly(&mut bench, &asked.id, "maybe"), [] as [Value; 0]);
    assert_eq!(plainly(&mut bench, &asked.id, "accept").len(), 1);
}

#[test]
fn a_question_that_codex_takes_back_is_gone_and_so_is_one_of_a_run_that_ends() {
    let (mut bench, asked) = asking();
    bench.notify("serverRequest/resolved", json!({ "threadId": THREAD, "requestId": 0 }));
    assert!(bench.reports().contains(&Report::PromptGone(asked.id)));
    let (mut bench, asked) = asking();
    bench.notify("turn/completed", completed("interrupted"));
    assert!(bench.reports().contains(&Report::PromptGone(asked.id.clone())));
    assert_eq!(plainly(&mut bench, &asked.id, "accept"), [] as [Value; 0]);
}

#[test]
fn a_change_of_files_is_asked_about_with_what_would_change() {
    let mut bench = Bench::running();
    bench.notify(
        "item/started",
        of_item(json!({
            "type": "fileChange", "id": "call2", "status": "inProgress",
            "changes": [{ "path": "/w/f.txt", "kind": { "type": "add" }, "diff": "hello\n" }],
        })),
    );
    bench.told();
    bench.line(&json!({
        "id": "q1",
        "method": "item/fileChange/requestApproval",
        "params": { "threadId": THREAD, "turnId": TURN, "itemId": "call2", "reason": null },
    }));
    let prompt = prompt(&bench.reports());
    assert_eq!(prompt.text, Content::Open("Codex wants to change: f.txt".to_owned()));
    let detail = prompt.detail.clone().unwrap();
    assert_eq!(detail.open().unwrap().diffs[0].new_text.as_deref(), Some("hello\n"));
    let written = plainly(&mut bench, &prompt.id, "accept_for_session");
    assert_eq!(written, [json!({ "id": "q1", "result": { "decision": "acceptForSession" } })]);
}

#[test]
fn questions_of_the_model_are_answered_by_name() {
    let mut bench = Bench::running();
    bench.told();
    bench.line(&json!({
        "id": 3,
        "method": "item/tool/requestUserInput",
        "params": { "threadId": THREAD, "turnId": TURN, "itemId": "call3", "questions": [
            { "id": "q1", "header": "Colour", "question": "Which colour?",
              "options": [{ "label": "red", "description": "" }] },
        ] },
    }));
    let prompt = prompt(&bench.reports());
    let answers = Some(r#"{"Which colour?":"red"}"#.to_owned());
    let detail = AnswerDetail { answers, ..AnswerDetail::default() };
    let written = answer(&mut bench, &prompt.id, "answer", detail);
    let expected = json!({ "id": 3, "result": { "answers": { "q1": { "answers": ["red"] } } } });
    assert_eq!(written, [expected]);
}

#[test]
fn what_is_not_known_is_refused_and_told() {
    let mut bench = Bench::running();
    bench.told();
    bench.line(&json!({ "id": 5, "method": "item/tool/call", "params": {} }));
    let told = bench.told();
    assert!(format!("{told:?}").contains("-32601"), "{told:?}");
    assert!(format!("{told:?}").contains("unknown_message"), "{told:?}");
}

#[test]
fn a_sealed_answer_is_refused_and_the_question_stays_open() {
    let (mut bench, prompt) = asking();
    bench.order(&sealed_answer(&prompt.id, "accept"));
    let told = bench.told();
    assert!(!told.iter().any(|output| matches!(output, Output::Write(_))), "{told:?}");
    assert_eq!(failure_code(&told), Some("control_not_supported".to_owned()));
    let written = plainly(&mut bench, &prompt.id, "accept");
    assert_eq!(written[0]["result"]["decision"], "accept");
}

fn failure_code(told: &[Output]) -> Option<String> {
    told.iter().find_map(|output| match output {
        Output::Report(Report::ControlResult { failure: Some(failure), .. }) => {
            Some(failure.code.as_str().to_owned())
        }
        _ => None,
    })
}
