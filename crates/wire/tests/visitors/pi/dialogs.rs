//! Permission prompts and other questions.

use domain::content::Failure;
use domain::session::prompts::{Detail, Effect};
use domain::session::{Order, Report};
use serde_json::{Value, json};

use super::relay::{Relay, kinds};

fn chosen(relay: &mut Relay) -> (Option<String>, Option<String>) {
    let owed = relay.room().session.owed();
    let [Order::Answer { choice, detail, .. }] = owed.as_slice() else { return (None, None) };
    let detail = detail.as_ref().and_then(|detail| detail.open().cloned());
    (choice.as_ref().map(ToString::to_string), detail.and_then(|detail| detail.message))
}

fn answer(relay: &mut Relay, fields: &Value) {
    let mut frame = json!({ "type": "extension_ui_response", "id": "p1" });
    for (name, value) in fields.as_object().unwrap() {
        frame[name] = value.clone();
    }
    relay.json("a", &frame);
}

// spec: pi/dialogs.5
#[test]
fn a_cancelled_dialog_says_no_or_its_default_and_never_yes() {
    let reject = [("yes", None), ("later", None), ("never", Some(Effect::Reject))];
    let default = [("one", None), ("later", None), ("three", None)];
    let allows = [("later", Some(Effect::AllowOnce)), ("always", Some(Effect::AllowAlways))];
    for (choices, expected) in
        [(&reject[..], Some("never")), (&default[..], Some("later")), (&allows[..], None)]
    {
        let mut relay = Relay::watched();
        relay.asks("p1", choices);
        relay.heard("a");
        answer(&mut relay, &json!({ "cancelled": true }));
        assert_eq!(chosen(&mut relay).0.as_deref(), expected);
        if expected.is_none() {
            assert_eq!(kinds(&relay.heard("a")), ["extension_ui_request/notify"]);
            assert_eq!(relay.room().session.glance().card.prompts.len(), 1);
        }
    }
}

// spec: pi/dialogs.3
#[test]
fn a_question_for_words_is_an_input_or_an_editor() {
    for (is_long, method, hint) in [(false, "input", "placeholder"), (true, "editor", "prefill")] {
        let mut relay = Relay::watched();
        let question = json!([{ "question": "Name?", "placeholder": "p", "prefill": "f",
            "multiline": is_long }]);
        let detail = Detail { questions: Some(question.to_string()), ..Detail::default() };
        let choices = [("submit", None), ("cancel", Some(Effect::Reject))];
        relay.asks_about("p1", &choices, detail);
        let heard = relay.heard("a");
        assert_eq!((&heard[0]["method"], heard[0][hint].is_string()), (&json!(method), true));
        answer(&mut relay, &json!({ "confirmed": true }));
        assert_eq!(kinds(&relay.heard("a")), ["extension_ui_request/notify"]);
        answer(&mut relay, &json!({ "value": "Ada" }));
        assert_eq!(chosen(&mut relay), (Some("submit".into()), Some("Ada".into())));
    }
}

// spec: pi/dialogs.7
#[test]
fn who_connects_later_is_asked_too_and_hears_when_it_is_over() {
    let mut relay = Relay::watched();
    relay.asks("p1", &[("yes", None), ("no", None)]);
    relay.open("b", "session=sess_1");
    assert_eq!(kinds(&relay.heard("b")), ["extension_ui_request/confirm"]);
    relay.report(Report::PromptGone("p1".into()));
    assert_eq!(relay.heard("b"), [json!({ "type": "extension_ui_resolved", "id": "p1" })]);
}

// spec: pi/dialogs.8
#[test]
fn an_answer_that_the_machine_could_not_give_asks_again() {
    let mut relay = Relay::watched();
    relay.asks("p1", &[("yes", None), ("no", None)]);
    answer(&mut relay, &json!({ "confirmed": true }));
    relay.heard("a");
    let owed = relay.room().session.owed();
    let [Order::Answer { request, .. }] = owed.as_slice() else { panic!("{owed:?}") };
    let failure = Some(Failure::new("x", "the window is gone"));
    relay.report(Report::ControlResult { request: request.clone(), failure });
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard), ["extension_ui_request/notify", "extension_ui_request/confirm"]);
    assert_eq!(heard[1]["id"], "p1");
}

// spec: pi/dialogs.6
#[test]
fn an_answer_to_a_dialog_that_is_not_open_is_ignored() {
    let mut relay = Relay::watched();
    answer(&mut relay, &json!({ "confirmed": true }));
    assert_eq!((relay.heard("a"), relay.wishes), (vec![], 0));
}

// spec: pi/dialogs.1
#[test]
fn an_answer_of_the_wrong_kind_leaves_the_question_open() {
    let mut relay = Relay::watched();
    relay.asks("p1", &[("yes", None), ("no", None)]);
    relay.heard("a");
    answer(&mut relay, &json!({ "value": "YES" }));
    let heard = relay.heard("a");
    assert_eq!(heard[0]["message"], "This question is answered by confirmed: true or false");
    assert_eq!(relay.wishes, 0);
}
