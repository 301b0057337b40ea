//! Permission requests across clients, viewers and reconnects.

use domain::content::{Failure, ToolDetail, ToolStatus, ToolUpdate};
use domain::session::prompts::Effect;
use domain::session::{Event, Recorded, Report, prompts};
use domain::{Content, Refusal};
use serde_json::json;
use wire::port::Denied;
use wire::visitor::Answer;

use super::relay::{Relay, SESSION, START, kinds};
use crate::visitors::stage::machine;

fn answer(behavior: &str) -> serde_json::Value {
    json!({ "type": "control_response", "response": {
        "subtype": "success", "request_id": "p1", "response": { "behavior": behavior },
    } })
}

fn query() -> String {
    format!("session={SESSION}")
}

// spec: control/permissions.9
#[test]
fn a_request_outlives_its_client_and_is_asked_again() {
    let mut relay = Relay::new();
    relay.asks("p1");
    relay.open("b", &query());
    let heard = relay.heard("b");
    assert_eq!(kinds(&heard), ["system/session_state_changed/requires_action", "control_request"]);
    relay.json(
        "b",
        &json!({ "type": "control_request", "request_id": "i",
        "request": { "subtype": "initialize" } }),
    );
    let response = relay.heard("b").remove(0);
    let pending = &response["response"]["pending_permission_requests"];
    assert_eq!(pending[0], heard[1]);
}

// spec: control/credentials.3
#[test]
fn a_viewers_answer_is_refused_and_the_question_stays_open() {
    let mut relay = Relay::watched();
    relay.open("v", &query());
    relay.asks("p1");
    relay.heard("v");
    relay.json("v", &answer("allow"));
    let heard = relay.heard("v");
    assert_eq!(kinds(&heard), ["system/informational"]);
    assert!(heard[0]["content"].as_str().unwrap().contains("view-only"));
    relay.heard("a");
    relay.json("a", &answer("allow"));
    assert_eq!(kinds(&relay.heard("a")), ["system/session_state_changed/idle"]);
    assert_eq!(relay.heard("v")[0]["type"], "control_cancel_request");
}

// spec: control/permissions.10
#[test]
fn an_error_response_decides_nothing() {
    let mut relay = Relay::watched();
    relay.asks("p1");
    relay.heard("a");
    relay.json(
        "a",
        &json!({ "type": "control_response", "response": {
        "subtype": "error", "request_id": "p1", "error": "the window is closed" } }),
    );
    assert_eq!(kinds(&relay.heard("a")), ["system/informational"]);
    assert_eq!(relay.room().session.glance().card.prompts.len(), 1);
}

// spec: control/permissions.11
#[test]
fn a_question_whose_answer_could_not_be_given_is_asked_again() {
    let mut relay = Relay::watched();
    relay.asks("p1");
    relay.json("a", &answer("allow"));
    relay.heard("a");
    let settled = |it: &Recorded| {
        let Event::Prompt(prompts::Event::Settled { request, .. }) = &it.event else { return None };
        Some(request.clone())
    };
    let request = relay.room().ledger.iter().find_map(settled);
    let failure = Some(Failure::new("selector_failure", "no such button"));
    relay.report(Report::ControlResult { request: request.unwrap(), failure });
    let heard = relay.heard("a");
    assert_eq!(
        kinds(&heard),
        ["system/informational", "control_request", "system/session_state_changed/requires_action"]
    );
    relay.json("a", &answer("deny"));
    assert_eq!(relay.room().session.glance().card.prompts.len(), 0);
}

// spec: control/permissions.13
#[test]
fn the_result_of_a_call_that_was_denied_is_what_the_person_said() {
    let denied = |relay: &mut Relay, message: &str, output: Option<&str>| {
        relay.asks("p1");
        relay.json(
            "a",
            &json!({ "type": "control_response", "response": { "subtype": "success",
                "request_id": "p1", "response": { "behavior": "deny", "message": message } } }),
        );
        relay.open("late", &query());
        for name in ["a", "b", "late"] {
            relay.heard(name);
        }
        let output = output.map(str::to_owned);
        relay.report(Report::ToolUpdate(ToolUpdate {
            id: "t1".into(),
            status: ToolStatus::Cancelled,
            detail: Content::Open(ToolDetail { output, ..ToolDetail::default() }),
        }));
        ["a", "b", "late"].map(|name| {
            let heard = relay.heard(name);
            let block = &heard[0]["message"]["content"][0];
            assert_eq!((&block["tool_use_id"], &block["is_error"]), (&json!("t1"), &json!(true)));
            block["content"].as_str().unwrap().to_owned()
        })
    };
    let plain = "The call was cancelled or denied";
    for (message, output, told) in [
        ("not on a Friday", None, ["not on a Friday", "not on a Friday", plain]),
        ("not on a Friday", Some("the agent's words"), ["the agent's words"; 3]),
        ("", None, [plain; 3]),
    ] {
        let mut relay = Relay::watched();
        relay.open("b", &query());
        relay.starts("run_1");
        assert_eq!(denied(&mut relay, message, output), told, "{message} {output:?}");
        // Who comes back hears the same of it.
        relay.open("again", &format!("session={SESSION}&from_sequence_num=0"));
        let heard = relay.heard("again");
        let result = heard.iter().find(|it| it["message"]["content"][0]["type"] == "tool_result");
        assert_eq!(result.unwrap()["message"]["content"][0]["content"], told[0]);
    }
}

#[test]
fn a_question_that_goes_away_is_withdrawn() {
    let mut relay = Relay::watched();
    relay.asks("p1");
    relay.heard("a");
    relay.report(Report::PromptGone("p1".into()));
    assert_eq!(
        kinds(&relay.heard("a")),
        ["control_cancel_request", "system/session_state_changed/idle"]
    );
}

// spec: control/permissions.12
#[test]
fn an_answer_with_fields_of_another_shape_still_counts() {
    for (answer, chosen) in [
        (json!({ "behavior": "deny", "message": null, "interrupt": null }), "no"),
        (json!({ "behavior": "deny", "message": 7 }), "no"),
        (json!({ "behavior": "allow", "updatedInput": null, "updatedPermissions": {} }), "yes"),
        (json!({ "behavior": "allow", "toolUseID": "t", "decisionClassification": 7 }), "yes"),
    ] {
        let mut relay = Relay::watched();
        relay.asks("p1");
        relay.heard("a");
        relay.json(
            "a",
            &json!({ "type": "control_response", "response": {
                "subtype": "success", "request_id": "p1", "response": answer } }),
        );
        let settled = relay.room().ledger.iter().find_map(|it| {
            let Event::Prompt(prompts::Event::Settled { choice, .. }) = &it.event else {
                return None;
            };
            choice.clone()
        });
        assert_eq!(settled, Some(chosen.into()), "{answer}");
    }
    // One that says neither leaves it open, and its sender hears why.
    for answer in [json!({ "behavior": 7 }), json!("allow"), json!(null), json!([])] {
        let mut relay = Relay::watched();
        relay.asks("p1");
        relay.heard("a");
        relay.json(
            "a",
            &json!({ "type": "control_response", "response": {
                "subtype": "success", "request_id": "p1", "response": answer } }),
        );
        assert_eq!(
            kinds(&relay.heard("a")),
            ["system/informational", "control_request"],
            "{answer}"
        );
        assert_eq!(relay.room().session.glance().card.prompts.len(), 1);
    }
}

/// What became of questions of the agent after this answer: the choice, and what went with it.
fn answered(
    relay: &mut Relay,
    answer: &serde_json::Value,
) -> Option<(domain::ChoiceId, Option<prompts::AnswerDetail>)> {
    relay.json(
        "a",
        &json!({ "type": "control_response", "response": {
            "subtype": "success", "request_id": "q1", "response": answer } }),
    );
    relay.room().ledger.iter().find_map(|it| {
        let Event::Prompt(prompts::Event::Settled { choice, detail, .. }) = &it.event else {
            return None;
        };
        let detail = detail.as_ref().and_then(Content::open).cloned();
        Some((choice.clone().unwrap(), detail))
    })
}

fn asks_questions(
    input: Option<&serde_json::Value>,
    questions: &serde_json::Value,
    choices: &[(&str, Option<Effect>)],
) -> Relay {
    let detail = prompts::Detail {
        tool: Some("AskUserQuestion".to_owned()),
        input: input.map(ToString::to_string),
        questions: Some(questions.to_string()),
        ..prompts::Detail::default()
    };
    let mut relay = Relay::watched();
    let prompt = machine::prompt("q1", choices, "no", Some(detail), START);
    relay.report(Report::Asked(prompt));
    relay
}

// spec: control/permissions.14
#[test]
fn questions_of_the_agent_reach_the_client_and_its_answers_reach_the_agent() {
    let questions = json!([
        { "question": "Which first?", "header": "First",
            "options": [{ "label": "Small" }, { "label": "Large" }] },
        { "question": "What is it called?", "header": "Name" },
    ]);
    let choices = [("answer", Some(Effect::AllowOnce)), ("no", Some(Effect::Reject))];
    // Agents tell their questions beside the input, in it, or both.
    for input in [None, Some(json!({ "questions": questions }))] {
        let mut relay = asks_questions(input.as_ref(), &questions, &choices);
        let heard = relay.heard("a");
        let request = &heard[0]["request"];
        assert_eq!(request["tool_name"], "AskUserQuestion");
        assert_eq!(request["input"], json!({ "questions": questions }));
        let answers = json!({ "Which first?": "Large", "What is it called?": "Kite" });
        let input = json!({ "questions": questions, "answers": answers });
        let allow = json!({ "behavior": "allow", "updatedInput": input });
        let (choice, detail) = answered(&mut relay, &allow).unwrap();
        assert_eq!(choice, "answer".into());
        let detail = detail.unwrap();
        let told: serde_json::Value = serde_json::from_str(&detail.answers.unwrap()).unwrap();
        assert_eq!(told, answers);
        assert_eq!(detail.updated_input, None, "the questions are as they were");
    }
}

// spec: control/permissions.14
#[test]
fn an_answer_that_is_one_of_the_options_presses_it_and_none_presses_nothing() {
    let questions = json!([{ "question": "Which?", "header": "Which",
        "options": [{ "label": "SMALL" }, { "label": "LARGE" }] }]);
    let once = Some(Effect::AllowOnce);
    let choices = [("small", once), ("large", once), ("no", Some(Effect::Reject))];
    let ask = || asks_questions(Some(&json!({ "questions": questions })), &questions, &choices);
    let allow = |answers: &serde_json::Value| {
        let input = json!({ "questions": questions, "answers": answers });
        json!({ "behavior": "allow", "updatedInput": input })
    };
    let (choice, detail) = answered(&mut ask(), &allow(&json!({ "Which?": "LARGE" }))).unwrap();
    assert_eq!(choice, "large".into());
    assert_eq!(detail.unwrap().answers.as_deref(), Some(r#"{"Which?":"LARGE"}"#));
    // Words of the person's own are an answer as well.
    let (_, detail) = answered(&mut ask(), &allow(&json!({ "Which?": "Neither" }))).unwrap();
    assert_eq!(detail.unwrap().answers.as_deref(), Some(r#"{"Which?":"Neither"}"#));
    for silent in [
        json!({ "behavior": "allow" }),
        allow(&json!({})),
        allow(&json!("LARGE")),
        allow(&json!({ "Which?": null })),
        allow(&json!({ "Which?": " " })),
    ] {
        let mut relay = ask();
        relay.heard("a");
        assert_eq!(answered(&mut relay, &silent), None, "{silent}");
        assert_eq!(kinds(&relay.heard("a")), ["system/informational", "control_request"]);
    }
}

// spec: control/permissions.15
#[test]
fn a_request_whose_answer_was_not_taken_is_sent_again_under_its_id_and_not_for_ever() {
    let questions = json!([{ "question": "Name?", "options": [] }]);
    let choices = [("answer", Some(Effect::AllowOnce)), ("no", Some(Effect::Reject))];
    let mut relay = asks_questions(None, &questions, &choices);
    relay.open("b", &query());
    let mut heard = relay.heard("a");
    let original = heard.remove(0);
    let mut asked = 0;
    loop {
        assert_eq!(answered(&mut relay, &json!({ "behavior": "allow" })), None);
        let heard = relay.heard("a");
        assert_eq!(heard[0]["subtype"], "informational");
        let Some(again) = heard.get(1) else { break };
        assert_eq!(*again, original, "the same request under the same id");
        asked += 1;
        assert!(asked < 100, "it is sent for ever");
    }
    assert!(asked > 1);
    assert_eq!(relay.heard("b").len(), 2, "the others were asked once");
    let answers = json!({ "answers": { "Name?": "Kite" } });
    let allow = json!({ "behavior": "allow", "updatedInput": answers });
    assert_eq!(answered(&mut relay, &allow).unwrap().0, "answer".into());
}

/// What a client is told when its answer is denied like this.
fn told_after(relay: &mut Relay, denied: Denied) -> Vec<serde_json::Value> {
    let (_, _, answer) = relay.late.last_mut().unwrap();
    *answer = Answer::Done(Err(denied));
    relay.catch_up();
    relay.heard("a")
}

// spec: control/permissions.15
#[test]
fn a_request_is_sent_again_only_where_that_may_help() {
    let damaged = Denied::Code("session_damaged".into(), "cannot be read".to_owned());
    let full = Denied::Failed("the disk is full".to_owned());
    for (denied, expected) in [
        (damaged, &["system/informational"][..]),
        (full, &["system/informational", "control_request"]),
    ] {
        // The session is not the client's concern here: nothing of the answer is recorded.
        let mut relay = Relay::watched();
        relay.asks("p1");
        relay.falls_behind("a");
        relay.is_slow = true;
        relay.json("a", &answer("allow"));
        relay.heard("a");
        assert_eq!(kinds(&told_after(&mut relay, denied)), expected);
    }
}

#[test]
fn an_answer_that_is_denied_after_its_question_is_over_is_not_spoken_of() {
    for denied in [
        Denied::Failed("the disk is full".to_owned()),
        Denied::Refused(Refusal::NoProxyConnected),
        Denied::Code("session_damaged".into(), "cannot be read".to_owned()),
    ] {
        let mut relay = Relay::watched();
        relay.asks("p1");
        relay.is_slow = true;
        relay.json("a", &answer("allow"));
        relay.heard("a");
        assert_eq!(kinds(&told_after(&mut relay, denied)), [] as [&str; 0]);
    }
}

// spec: control/permissions.15
#[test]
fn a_request_that_was_answered_while_its_machine_was_away_is_sent_again_when_it_is_back() {
    let mut relay = Relay::watched();
    relay.asks("p1");
    relay.down();
    relay.heard("a");
    relay.json("a", &answer("allow"));
    assert_eq!(kinds(&relay.heard("a")), ["system/informational"]);
    relay.up(Some("link"));
    assert_eq!(kinds(&relay.heard("a")), ["system/informational", "control_request"]);
    relay.json("a", &answer("allow"));
    assert_eq!(relay.room().session.glance().card.prompts.len(), 0);
}

// spec: control/permissions.16
#[test]
fn the_fields_of_a_schema_are_questions_and_their_answers_go_by_the_fields_names() {
    let schema = json!({ "type": "object", "required": ["count"], "properties": {
        "count": { "type": "integer", "title": "How many" },
        "colour": { "type": "string", "enum": ["r", "b"], "enumNames": ["Red", "Blue"] },
        "sure": { "type": "boolean", "title": "Sure", "description": "No way back" },
    } });
    let choices = [("accept", Some(Effect::AllowOnce)), ("decline", Some(Effect::Reject))];
    let ask = || {
        let tool = Some("files".to_owned());
        let questions = Some(schema.to_string());
        let detail = prompts::Detail { tool, questions, ..prompts::Detail::default() };
        let mut relay = Relay::watched();
        let prompt = machine::prompt("q1", &choices, "no", Some(detail), START);
        relay.report(Report::Asked(prompt));
        let request = relay.heard("a").remove(0);
        (relay, request["request"].clone())
    };
    let (mut relay, request) = ask();
    assert_eq!(request["tool_name"], "AskUserQuestion");
    let questions = request["input"]["questions"].as_array().unwrap().clone();
    let texts: Vec<_> = questions.iter().map(|it| it["question"].as_str().unwrap()).collect();
    assert_eq!(texts, ["colour", "How many", "Sure: No way back"]);
    assert_eq!(questions[0]["options"][1]["label"], "Blue");
    let answers = json!({ "How many": "12", "colour": "Blue", "Sure: No way back": "No" });
    let input = json!({ "questions": questions, "answers": answers });
    let allow = json!({ "behavior": "allow", "updatedInput": input });
    let (choice, detail) = answered(&mut relay, &allow).unwrap();
    assert_eq!(choice, "accept".into());
    let detail = detail.unwrap();
    let told: serde_json::Value = serde_json::from_str(&detail.answers.unwrap()).unwrap();
    assert_eq!(told, json!({ "count": 12, "colour": "b", "sure": false }));
    assert_eq!(detail.updated_input, None);
    for (answers, why) in [
        (json!({}), "no answer to How many"),
        (json!({ "colour": "Red" }), "no answer to How many"),
        (json!({ "count": null, "colour": "Red" }), "no answer to How many"),
        (json!({ "How many": "" }), "no answer to How many"),
        (json!({ "How many": "abc" }), "How many: \"abc\" is not a whole number"),
        (json!({ "count": 1, "colour": "Green" }), "colour: \"Green\" is not one of the options"),
    ] {
        let (mut relay, _) = ask();
        let allow = json!({ "behavior": "allow", "updatedInput": { "answers": answers } });
        assert_eq!(answered(&mut relay, &allow), None, "{answers}");
        let heard = relay.heard("a");
        assert_eq!(kinds(&heard), ["system/informational", "control_request"]);
        let told = heard[0]["content"].as_str().unwrap();
        assert!(told.contains(why), "{told}");
    }
    // What may stay without an answer, and does, is not told to the agent.
    let (mut relay, _) = ask();
    let answers = json!({ "count": 12, "colour": "", "sure": null });
    let allow = json!({ "behavior": "allow", "updatedInput": { "answers": answers } });
    let (_, detail) = answered(&mut relay, &allow).unwrap();
    assert_eq!(detail.unwrap().answers.as_deref(), Some(r#"{"count":12}"#));
}

// spec: control/permissions.14
#[test]
fn questions_of_an_agent_that_names_no_effects_are_answered_too() {
    let questions = json!([{ "question": "Name?", "placeholder": "p" }]);
    let choices = [("submit", None), ("cancel", Some(Effect::Reject))];
    let mut relay = asks_questions(None, &questions, &choices);
    let input = json!({ "answers": { "Name?": "Kite" } });
    let allow = json!({ "behavior": "allow", "updatedInput": input });
    let (choice, detail) = answered(&mut relay, &allow).unwrap();
    assert_eq!(choice, "submit".into());
    assert_eq!(detail.unwrap().answers.as_deref(), Some(r#"{"Name?":"Kite"}"#));
}
