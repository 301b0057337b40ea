use domain::Timestamp;
use domain::session::prompts::Detail;

use super::*;

/// Which of these buttons want answers to these questions.
fn wanting(questions: &Value, choices: &[(&str, Option<Effect>)]) -> Vec<String> {
    let choice = |(label, effect): &(&str, Option<Effect>)| Choice {
        id: (*label).into(),
        label: (*label).to_owned(),
        is_default: false,
        effect: *effect,
        wants_answers: false,
    };
    let detail = Detail { questions: Some(questions.to_string()), ..Detail::default() };
    let prompt = marked(Prompt {
        id: "p1".into(),
        text: Content::Open("Which?".to_owned()),
        choices: choices.iter().map(choice).collect(),
        expiry: None,
        detected_at: Timestamp(0),
        run: None,
        detail: Some(Content::Open(detail)),
    });
    let wanting = prompt.choices.into_iter().filter(|choice| choice.wants_answers);
    wanting.map(|choice| choice.label).collect()
}

const YES: Option<Effect> = Some(Effect::AllowOnce);
const NO: Option<Effect> = Some(Effect::Reject);

// spec: native/permission_response.7
#[test]
fn a_button_that_sends_answers_wants_them_and_one_that_is_an_answer_does_not() {
    let one = json!([{ "question": "Which?", "options": [{ "label": "Red" }, "Blue"] }]);
    let buttons = [("Red", YES), ("Blue", YES), ("Other", YES), ("Skip", NO), ("?", None)];
    assert_eq!(wanting(&one, &buttons), ["Other"]);
    let many = json!([{ "question": "Which?", "multiSelect": true, "options": ["Red", "Blue"] }]);
    assert_eq!(wanting(&many, &buttons), ["Red", "Blue", "Other"]);
    let two = json!([{ "question": "Which?", "options": ["Red"] }, { "question": "Who?" }]);
    assert_eq!(wanting(&two, &[("Red", YES), ("Always", Some(Effect::AllowAlways))]).len(), 2);
    for none in [json!([]), json!(null), json!([{}]), json!("?"), json!({ "properties": {} })] {
        assert_eq!(wanting(&none, &buttons), [] as [String; 0], "{none}");
    }
}

// spec: native/permission_response.7
#[test]
fn a_form_wants_answers_if_one_of_its_fields_is_required() {
    let form = |required: Value| {
        json!({ "type": "object", "properties": { "a": { "type": "string" } },
            "required": required })
    };
    assert_eq!(wanting(&form(json!(["a"])), &[("Accept", YES), ("No", NO)]), ["Accept"]);
    for required in [json!([]), json!(null), json!(["b"])] {
        assert_eq!(wanting(&form(required), &[("Accept", YES), ("No", NO)]), [] as [String; 0]);
    }
}

#[test]
fn answers_become_what_the_fields_of_a_schema_are() {
    let schema = json!({ "properties": {
        "ratio": { "type": "number" },
        "tags": { "type": "array", "items": { "enum": ["x", "y", "z"] } },
        "level": { "type": "integer", "oneOf": [{ "const": 1, "title": "Low" }, { "const": 2 }] },
    } });
    let questions = read(&schema.to_string());
    let given = json!({ "ratio": "0.5", "tags": "z, x", "level": "Low", "other": "as it is" });
    let Value::Object(given) = given else { panic!("an object") };
    let translated = Value::Object(translated(&questions, given));
    // A field that is called by its own name is taken as it is.
    assert_eq!(translated["other"], "as it is");
    assert_eq!(translated["level"], 1);
    assert_eq!(translated["tags"], json!(["z", "x"]));
    assert_eq!(translated["ratio"], 0.5);
}
