use domain::Timestamp;
use domain::session::prompts::Expiry;

use super::*;

fn prompt(choices: &[(&str, &str, Option<Effect>)]) -> Prompt {
    let choice = |(id, label, effect): &(&str, &str, Option<Effect>)| Choice {
        id: (*id).into(),
        label: (*label).to_owned(),
        is_default: false,
        effect: *effect,
        wants_answers: false,
    };
    Prompt {
        id: "p1".into(),
        text: Content::Open("Go?".to_owned()),
        choices: choices.iter().map(choice).collect(),
        expiry: Some(Expiry { at: Timestamp(9), timeout_ms: 5_000, choice: None }),
        detected_at: Timestamp(1),
        run: None,
        detail: None,
    }
}

// spec: pi/dialogs.1
#[test]
fn yes_and_no_are_confirmed_whatever_they_are_called() {
    let plain = prompt(&[("y", "Approve", None), ("n", "Decline", None)]);
    assert_eq!(
        request(&plain),
        json!({
            "type": "extension_ui_request", "id": "p1", "method": "confirm",
            "title": "Permission", "message": "Go?", "timeout": 5_000,
        })
    );
    let told =
        prompt(&[("1", "Los", Some(Effect::AllowOnce)), ("2", "Halt", Some(Effect::Reject))]);
    let answer = DialogAnswer { confirmed: Some(false), ..DialogAnswer::default() };
    assert_eq!(verdict(&told, &answer, 0), Ok(Verdict::Press("2".into(), None)));
}

// spec: pi/dialogs.2
#[test]
fn options_that_read_the_same_are_told_apart() {
    let doubled = prompt(&[("a", "Go", None), ("b", "Go", None), ("c", "Stay", None)]);
    assert_eq!(request(&doubled)["options"], json!(["Go (a)", "Go (b)", "Stay"]));
    let choose = |value: &str| {
        let value = Some(value.to_owned());
        verdict(&doubled, &DialogAnswer { value, ..DialogAnswer::default() }, 0)
    };
    assert_eq!(choose("Go (b)"), Ok(Verdict::Press("b".into(), None)));
    assert!(choose("Go").is_err());
}
