use super::*;

fn question(asked: Value) -> Question {
    Question::new("r1".into(), serde_json::from_value(asked).unwrap())
}

fn bash() -> Question {
    question(json!({
        "tool_name": "Bash",
        "input": {"command": "mkdir d", "description": "make it"},
        "description": "make it",
        "permission_suggestions": [
            {"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "mkdir *"}], "behavior": "allow", "destination": "localSettings"},
            {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
        ],
        "blocked_path": "/w/d",
        "tool_use_id": "t1",
    }))
}

fn chosen(question: &Question, choice: &str, detail: &AnswerDetail) -> Option<Value> {
    let answer = question.answer(Some(&choice.into()), detail);
    answer.ok().map(|answer| answer.response)
}

fn ids(prompt: &Prompt) -> Vec<&str> {
    prompt.choices.iter().map(|choice| choice.id.as_str()).collect()
}

#[test]
fn a_command_is_asked_for_in_words_with_all_that_always_means() {
    let prompt = bash().prompt("p1".into(), None, Timestamp(1));
    let text = prompt.text.open().unwrap();
    assert_eq!(text, "Run this command?\nmkdir d\nmake it\nAffects /w/d");
    assert_eq!(ids(&prompt), ["yes", "always", "no"]);
    let always = "Yes, and don't ask again for Bash(mkdir *), and switch to the mode acceptEdits";
    assert_eq!(prompt.choices[1].label, always);
    assert!(prompt.choices.iter().all(|choice| !choice.is_default));
}

#[test]
fn an_allowed_call_keeps_its_input_unless_a_person_changed_it() {
    let unchanged = json!({"command": "mkdir d", "description": "make it"});
    let with =
        |input: &str| AnswerDetail { updated_input: Some(input.into()), ..AnswerDetail::default() };
    let plain = chosen(&bash(), "yes", &AnswerDetail::default()).unwrap();
    assert_eq!(plain, json!({"behavior": "allow", "updatedInput": unchanged}));
    let empty = chosen(&bash(), "yes", &with("{}")).unwrap();
    assert_eq!(empty["updatedInput"], unchanged);
    let other = chosen(&bash(), "yes", &with(r#"{"command":"mkdir e"}"#)).unwrap();
    assert_eq!(other["updatedInput"], json!({"command": "mkdir e"}));
    assert_eq!(chosen(&bash(), "yes", &with("[1]")), None);
}

#[test]
fn always_returns_the_agents_own_suggestions() {
    let answer = chosen(&bash(), "always", &AnswerDetail::default()).unwrap();
    assert_eq!(answer["updatedPermissions"].as_array().map(Vec::len), Some(2));
    assert_eq!(answer["updatedPermissions"][1]["mode"], "acceptEdits");
}

#[test]
fn a_denial_carries_words_and_may_stop_the_run() {
    let detail =
        AnswerDetail { message: Some("use a file".into()), stop: true, ..AnswerDetail::default() };
    let answer = chosen(&bash(), "no", &detail).unwrap();
    assert_eq!(answer, json!({"behavior": "deny", "message": "use a file", "interrupt": true}));
    let Ok(nobody) = bash().answer(None, &AnswerDetail::default()) else { panic!() };
    assert_eq!(nobody.response, json!({"behavior": "deny", "message": DECLINED}));
}

#[test]
fn a_question_with_options_has_a_button_for_each() {
    let one = json!({"question": "Which?", "header": "Pick", "multiSelect": false, "options": [
        {"label": "A", "description": "first"}, {"label": "B"}]});
    let asked = json!({"tool_name": "AskUserQuestion", "input": {"questions": [one.clone()]}});
    let single = question(asked);
    let prompt = single.prompt("p1".into(), None, Timestamp(1));
    assert_eq!(prompt.text.open().unwrap(), "Which?\n- A: first\n- B");
    assert_eq!(ids(&prompt), ["option-1", "option-2", "no"]);
    let answer = chosen(&single, "option-2", &AnswerDetail::default()).unwrap();
    assert_eq!(answer["updatedInput"]["answers"], json!({"Which?": "B"}));
    assert_eq!(answer["updatedInput"]["questions"], json!([one]));

    let two = json!({"tool_name": "AskUserQuestion", "input": {"questions": [one.clone(), one]}});
    let several = question(two);
    assert_eq!(ids(&several.prompt("p2".into(), None, Timestamp(1))), ["answer", "no"]);
    assert_eq!(chosen(&several, "answer", &AnswerDetail::default()), None, "answers are missing");
    let given = r#"{"Which?":"own words"}"#.to_owned();
    let detail = AnswerDetail { answers: Some(given), ..AnswerDetail::default() };
    let answer = chosen(&several, "answer", &detail).unwrap();
    assert_eq!(answer["updatedInput"]["answers"], json!({"Which?": "own words"}));
}

#[test]
fn a_choice_that_was_not_offered_is_unfit() {
    let plain = question(json!({"tool_name": "WebFetch", "input": {"url": "http://x"}}));
    assert_eq!(chosen(&plain, "always", &AnswerDetail::default()), None);
    let careful = question(json!({"tool_name": "Write", "input": {}, "default_to_no": true}));
    let prompt = careful.prompt("p1".into(), None, Timestamp(1));
    let defaults: Vec<_> = prompt.choices.iter().filter(|c| c.is_default).collect();
    assert_eq!(defaults.len(), 1);
    assert_eq!(defaults[0].effect, Some(Effect::Reject));
}
