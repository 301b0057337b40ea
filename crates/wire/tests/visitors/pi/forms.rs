//! Questions of an agent that are answered together.

use domain::session::Order;
use domain::session::prompts::{AnswerDetail, Detail, Effect};
use serde_json::{Value, json};

use super::relay::{Relay, kinds};

/// What the agent hears: the button, and what goes with it.
fn answered(relay: &mut Relay) -> Option<(String, AnswerDetail)> {
    let owed = relay.room().session.owed();
    let [Order::Answer { choice, detail, .. }] = owed.as_slice() else { return None };
    let detail = detail.as_ref().and_then(|detail| detail.open().cloned());
    Some((choice.clone()?.to_string(), detail.unwrap_or_default()))
}

/// A prompt with one button that sends the answers to these questions, and one that says no.
fn asks(questions: &Value) -> Relay {
    let mut relay = Relay::watched();
    let detail = Detail { questions: Some(questions.to_string()), ..Detail::default() };
    let choices = [("answer", Some(Effect::AllowOnce)), ("no", Some(Effect::Reject))];
    relay.asks_about("p1", &choices, detail);
    relay
}

fn three() -> Value {
    json!([
        { "question": "Which first?", "options": [
            { "label": "Small", "description": "Done today" }, { "label": "Smaller" },
        ] },
        { "question": "What with it?", "multiSelect": true,
            "options": [{ "label": "Tests" }, { "label": "Documents" }, { "label": "Music" }] },
        { "question": "Its name?" },
    ])
}

/// Answers the dialog that `a` was shown last, and returns what it is shown then.
fn answer(relay: &mut Relay, dialog: &Value, value: &str) -> Vec<Value> {
    relay
        .json("a", &json!({ "type": "extension_ui_response", "id": dialog["id"], "value": value }));
    relay.heard("a")
}

// spec: pi/dialogs.12
#[test]
fn questions_are_asked_one_after_the_other_and_answered_at_once() {
    let mut relay = asks(&three());
    relay.open("b", "session=sess_1");
    relay.heard("b");
    let first = relay.heard("a").remove(0);
    assert_eq!((&first["id"], &first["method"]), (&json!("p1"), &json!("select")));
    assert_eq!(
        first["title"],
        "Question 1 of 3. Answer with a number or a name:\n1. Small: Done today\n2. Smaller\n\n\
         Run this command? ls\nWhich first?"
    );
    let second = answer(&mut relay, &first, "small").remove(0);
    assert_eq!(second["method"], "input");
    assert_eq!(
        second["title"],
        "Question 2 of 3. Answer with numbers or names, separated by commas:\n1. Tests\n\
         2. Documents\n3. Music\n\nWhat with it?"
    );
    let third = answer(&mut relay, &second, "music, 1").remove(0);
    assert_eq!(
        (&third["method"], &third["title"]),
        (&json!("input"), &json!("Question 3 of 3. Its name?"))
    );
    assert_eq!((relay.wishes, relay.heard("b")), (0, vec![]), "nothing is answered in part");
    answer(&mut relay, &third, "Kite");
    let (choice, detail) = answered(&mut relay).unwrap();
    assert_eq!((choice.as_str(), relay.wishes), ("answer", 1));
    let answers: Value = serde_json::from_str(&detail.answers.unwrap()).unwrap();
    assert_eq!(
        answers,
        json!({ "Which first?": "Small", "What with it?": "Tests, Music", "Its name?": "Kite" })
    );
    assert_eq!(kinds(&relay.heard("b")), ["extension_ui_resolved"]);
}

// spec: pi/dialogs.12
#[test]
fn an_answer_that_fits_nothing_asks_the_same_question_again() {
    let mut relay = asks(&three());
    let first = relay.heard("a").remove(0);
    let heard = answer(&mut relay, &first, "tiny");
    assert_eq!(kinds(&heard), ["extension_ui_request/notify", "extension_ui_request/select"]);
    let second = answer(&mut relay, &heard[1], "2").remove(0);
    let heard = answer(&mut relay, &second, "tests, paint");
    assert_eq!(kinds(&heard), ["extension_ui_request/notify", "extension_ui_request/input"]);
    // An earlier dialog still answers its question, and what came after it is asked again.
    let second = answer(&mut relay, &first, "1").remove(0);
    assert!(second["title"].as_str().unwrap().starts_with("Question 2 of 3"), "{second}");
    let third = answer(&mut relay, &second, "2").remove(0);
    answer(&mut relay, &third, "Kite");
    let answers = answered(&mut relay).unwrap().1.answers.unwrap();
    let answers: Value = serde_json::from_str(&answers).unwrap();
    assert_eq!(
        (&answers["Which first?"], &answers["What with it?"]),
        (&json!("Small"), &json!("Documents"))
    );
}

// spec: pi/dialogs.12
#[test]
fn a_form_that_is_cancelled_in_its_middle_is_refused() {
    let mut relay = asks(&three());
    let first = relay.heard("a").remove(0);
    let second = answer(&mut relay, &first, "1").remove(0);
    relay.json(
        "a",
        &json!({ "type": "extension_ui_response", "id": second["id"], "cancelled": true }),
    );
    assert_eq!(answered(&mut relay), Some(("no".to_owned(), AnswerDetail::default())));
}

// spec: pi/dialogs.13
#[test]
fn the_fields_of_a_schema_are_questions_and_what_is_optional_may_stay_empty() {
    let schema = json!({ "type": "object", "required": ["count", "colour"], "properties": {
        "count": { "type": "integer", "title": "How many" },
        "colour": { "type": "string", "enum": ["r", "b"], "enumNames": ["Red", "Blue"] },
        "sure": { "type": "boolean", "description": "No way back" },
        "note": { "type": "string" },
    } });
    let mut relay = asks(&schema);
    let mut heard = relay.heard("a");
    for (question, value) in [
        ("colour", "blue"),
        ("How many", "many"),
        ("How many", " "),
        ("How many", "12"),
        ("note", ""),
        ("sure: No way back", "yes"),
    ] {
        let dialog = heard.pop().unwrap();
        assert!(dialog["title"].as_str().unwrap().contains(question), "{dialog}");
        heard = answer(&mut relay, &dialog, value);
    }
    let answers = answered(&mut relay).unwrap().1.answers.unwrap();
    let answers: Value = serde_json::from_str(&answers).unwrap();
    assert_eq!(answers, json!({ "count": 12, "colour": "b", "sure": true }));
}

// spec: pi/dialogs.14
#[test]
fn a_question_for_words_that_wants_an_answer_is_asked_again_after_an_empty_one() {
    let required = json!({ "properties": { "name": { "type": "string" } }, "required": ["name"] });
    for questions in [required, json!([{ "question": "name" }])] {
        let mut relay = asks(&questions);
        let first = relay.heard("a").remove(0);
        let heard = answer(&mut relay, &first, "  ");
        assert_eq!(kinds(&heard), ["extension_ui_request/notify", "extension_ui_request/input"]);
        assert_eq!(answered(&mut relay), None);
        answer(&mut relay, &heard[1], "Ada");
        let answers = answered(&mut relay).unwrap().1.answers;
        assert_eq!(answers.as_deref(), Some(r#"{"name":"Ada"}"#));
    }
}

// spec: pi/dialogs.12
#[test]
fn a_single_question_with_options_is_chosen_from() {
    let question = json!([{ "question": "Which?", "options": ["One", "Two"] }]);
    let mut relay = asks(&question);
    let first = relay.heard("a").remove(0);
    assert_eq!((&first["method"], &first["options"]), (&json!("select"), &json!(["One", "Two"])));
    answer(&mut relay, &first, "two");
    let (choice, detail) = answered(&mut relay).unwrap();
    assert_eq!(
        (choice.as_str(), detail.answers.as_deref()),
        ("answer", Some(r#"{"Which?":"Two"}"#))
    );
    // Where the buttons themselves are the answers, they are chosen from.
    let mut relay = Relay::watched();
    let question = json!([{ "question": "Which?", "options": ["ONE", "TWO"] }]);
    let detail = Detail { questions: Some(question.to_string()), ..Detail::default() };
    let once = Some(Effect::AllowOnce);
    let choices = [("one", once), ("two", once), ("no", Some(Effect::Reject))];
    relay.asks_about("p1", &choices, detail);
    let first = relay.heard("a").remove(0);
    assert_eq!(first["options"], json!(["ONE", "TWO", "NO"]));
    answer(&mut relay, &first, "two");
    assert_eq!(answered(&mut relay), Some(("two".to_owned(), AnswerDetail::default())));
}
