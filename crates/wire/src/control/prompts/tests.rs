use domain::Timestamp;

use super::*;

fn prompt(choices: &[(&str, Option<Effect>)], detail: Option<Detail>) -> Prompt {
    let choice = |(id, effect): &(&str, Option<Effect>)| Choice {
        id: (*id).into(),
        label: format!("Label {id}"),
        is_default: false,
        effect: *effect,
        wants_answers: false,
    };
    Prompt {
        id: "p1".into(),
        text: Content::Open("Which?".to_owned()),
        choices: choices.iter().map(choice).collect(),
        expiry: None,
        detected_at: Timestamp(0),
        run: None,
        detail: detail.map(Content::Open),
    }
}

fn tool_prompt() -> Prompt {
    let choices = [
        ("always", Some(Effect::AllowAlways)),
        ("once", Some(Effect::AllowOnce)),
        ("never", Some(Effect::Reject)),
    ];
    let input = Some(r#"{"command":"ls"}"#.to_owned());
    let suggestions = Some(r#"[{"type":"setMode","mode":"acceptEdits"}]"#.to_owned());
    let tool = Some("Bash".to_owned());
    prompt(&choices, Some(Detail { tool, input, suggestions, ..Detail::default() }))
}

fn answer(text: &str) -> Permission {
    serde_json::from_str(text).unwrap()
}

fn pressed(prompt: &Prompt, text: &str) -> Result<String, String> {
    verdict(prompt, &answer(text)).map(|(choice, _)| choice.to_string())
}

// spec: control/permissions.3
#[test]
fn the_agents_own_suggestions_are_offered_unchanged() {
    let request = request(&tool_prompt());
    let suggestions = &request["request"]["permission_suggestions"];
    assert_eq!(*suggestions, json!([{ "type": "setMode", "mode": "acceptEdits" }]));
}

// spec: control/permissions.4
#[test]
fn an_allow_is_once_unless_rules_come_with_it() {
    let prompt = tool_prompt();
    assert_eq!(pressed(&prompt, r#"{"behavior":"allow"}"#).as_deref(), Ok("once"));
    let always = r#"{"behavior":"allow","updatedPermissions":[{"type":"setMode","mode":"x"}]}"#;
    assert_eq!(pressed(&prompt, always).as_deref(), Ok("always"));
    let denying = r#"{"behavior":"allow","updatedPermissions":
        [{"type":"addRules","behavior":"deny","rules":[]}]}"#;
    assert_eq!(pressed(&prompt, denying).as_deref(), Ok("once"), "a rule that forbids");
    let always_only = self::prompt(&[("always", Some(Effect::AllowAlways))], None);
    assert!(pressed(&always_only, r#"{"behavior":"allow"}"#).is_err(), "never more than it says");
}

// spec: control/permissions.4
#[test]
fn an_input_is_edited_only_by_another_one() {
    let prompt = tool_prompt();
    let detail = |text: &str| verdict(&prompt, &answer(text)).unwrap().1;
    for same in ["{}", r#"{"command":"ls"}"#, "null"] {
        let text = format!(r#"{{"behavior":"allow","updatedInput":{same}}}"#);
        assert_eq!(detail(&text), None, "{same}");
    }
    let edited = detail(r#"{"behavior":"allow","updatedInput":{"command": "ls -l"}}"#).unwrap();
    assert_eq!(edited.updated_input.as_deref(), Some(r#"{"command": "ls -l"}"#), "as written");
}

// spec: control/permissions.5
#[test]
fn a_deny_carries_its_words_and_may_stop_the_run() {
    let prompt = tool_prompt();
    let text = r#"{"behavior":"deny","message":"not now","interrupt":true}"#;
    let (choice, detail) = verdict(&prompt, &answer(text)).unwrap();
    let detail = detail.unwrap();
    assert_eq!((choice.as_str(), detail.message.as_deref()), ("never", Some("not now")));
    assert!(detail.stop);
    assert!(pressed(&prompt, r#"{"behavior":"maybe"}"#).is_err());
}

// spec: control/permissions.8
#[test]
fn buttons_without_a_meaning_are_read_by_their_plain_words() {
    let plain = prompt(&[("yes", None), ("no", None)], None);
    assert_eq!(pressed(&plain, r#"{"behavior":"allow"}"#).as_deref(), Ok("yes"));
    assert_eq!(pressed(&plain, r#"{"behavior":"deny"}"#).as_deref(), Ok("no"));
    assert_eq!(request(&plain)["request"]["tool_name"], "Permission");
    assert_eq!(request(&plain)["request"]["input"], json!({ "prompt": "Which?" }));
}

// spec: control/permissions.8
#[test]
fn other_buttons_are_a_question_with_options() {
    let question = prompt(&[("red", None), ("blue", None)], None);
    let asked = request(&question);
    assert_eq!(asked["request"]["tool_name"], "AskUserQuestion");
    let options = &asked["request"]["input"]["questions"][0]["options"];
    assert_eq!(options[1]["label"], "Label blue");
    let picked = r#"{"behavior":"allow","updatedInput":{"answers":{"Which?":"Label blue"}}}"#;
    assert_eq!(pressed(&question, picked).as_deref(), Ok("blue"));
    assert!(pressed(&question, r#"{"behavior":"allow"}"#).is_err());
    assert!(pressed(&question, r#"{"behavior":"deny"}"#).is_err(), "no button says no");
}
