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
    let translated = Value::Object(translated(&questions, given).unwrap());
    // A field that is called by its own name is taken as it is.
    assert_eq!(translated["other"], "as it is");
    assert_eq!(translated["level"], 1);
    assert_eq!(translated["tags"], json!(["z", "x"]));
    assert_eq!(translated["ratio"], 0.5);
}

fn fields() -> Vec<Question> {
    let schema = json!({ "properties": {
        "name": { "type": "string", "title": "Your name" },
        "age": { "type": "integer" },
        "ratio": { "type": "number" },
        "sure": { "type": "boolean" },
        "colour": { "type": "string", "enum": ["r", "b"], "enumNames": ["Red", "Blue"] },
        "tags": { "type": "array", "items": { "enum": ["x", "y"] } },
    } });
    read(&schema.to_string())
}

fn given(answers: Value) -> Result<Map<String, Value>, String> {
    let Value::Object(answers) = answers else { panic!("an object") };
    translated(&fields(), answers)
}

// spec: control/permissions.16
#[test]
fn an_answer_that_says_nothing_is_none() {
    for nothing in [json!(null), json!(""), json!(" \n"), json!([]), json!([null, ""])] {
        let answers =
            json!({ "Your name": nothing, "age": nothing, "tags": nothing, "?": nothing });
        assert_eq!(given(answers), Ok(Map::new()), "{nothing}");
    }
    let meant = json!({ "age": 0, "sure": false });
    assert_eq!(given(meant.clone()).map(Value::Object), Ok(meant));
}

// spec: control/permissions.16
#[test]
fn an_answer_that_its_field_cannot_take_is_named_with_the_reason() {
    for (name, answer, why) in [
        ("age", json!("abc"), "\"abc\" is not a whole number"),
        ("age", json!(1.5), "1.5 is not a whole number"),
        ("age", json!(true), "true is not a whole number"),
        ("ratio", json!("half"), "\"half\" is not a number"),
        ("ratio", json!([1]), "[1] is not a number"),
        ("colour", json!("Green"), "\"Green\" is not one of the options"),
        ("sure", json!("perhaps"), "\"perhaps\" is not one of the options"),
        ("sure", json!(1), "1 is not one of the options"),
        ("tags", json!("x, z"), "\"x, z\" is not one of the options"),
        ("tags", json!(["x", "z"]), "\"z\" is not one of the options"),
    ] {
        let told = given(json!({ name: answer, "Your name": "Ada" }));
        assert_eq!(told, Err(format!("{name}: {why}")));
    }
    let both = given(json!({ "age": "abc", "ratio": "half" })).unwrap_err();
    assert!(both.contains("age: ") && both.contains("ratio: "), "{both}");
}

// spec: control/permissions.16
#[test]
fn an_option_is_named_by_its_label_or_by_its_value() {
    for (name, answer, read) in [
        ("colour", json!(" Blue "), json!("b")),
        ("colour", json!("r"), json!("r")),
        ("sure", json!("Yes"), json!(true)),
        ("sure", json!("false"), json!(false)),
        ("sure", json!(true), json!(true)),
        ("tags", json!("y"), json!(["y"])),
        ("tags", json!(["y", "x"]), json!(["y", "x"])),
        ("age", json!(36), json!(36)),
    ] {
        assert_eq!(given(json!({ name: answer })).unwrap()[name], read, "{name}: {answer}");
    }
}
