//! Permission prompts and other questions.

use domain::content::Failure;
use domain::session::prompts::{Detail, Effect};
use domain::session::{Order, Report};
use serde_json::{Value, json};
use wire::port::Denied;
use wire::visitor::Answer;

use super::relay::{Relay, START, kinds};
use crate::visitors::stage::machine;

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
            let asked_again = ["extension_ui_request/notify", "extension_ui_request/select"];
            assert_eq!(kinds(&relay.heard("a")), asked_again);
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
        let asked_again = ["extension_ui_request/notify".to_owned(), kinds(&heard)[0].clone()];
        assert_eq!(kinds(&relay.heard("a")), asked_again);
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
    assert_eq!(kinds(&heard), ["extension_ui_request/notify", "extension_ui_request/confirm"]);
    assert_eq!(heard[0]["message"], "Answer this question with confirmed: true or false");
    assert_eq!(relay.wishes, 0);
}

fn three() -> Relay {
    let mut relay = Relay::watched();
    let choices = [
        ("allow", Some(Effect::AllowOnce)),
        ("always allow", Some(Effect::AllowAlways)),
        ("deny", Some(Effect::Reject)),
    ];
    relay.asks("p1", &choices);
    relay
}

// spec: pi/dialogs.9
#[test]
fn a_select_has_its_options_in_the_title_for_pages_that_show_nothing_else() {
    let mut relay = three();
    let heard = relay.heard("a");
    assert_eq!(heard[0]["options"], json!(["ALLOW", "ALWAYS ALLOW", "DENY"]));
    assert_eq!(
        heard[0]["title"],
        "Answer with a number or a name:\n1. ALLOW\n2. ALWAYS ALLOW\n3. DENY\n\nRun this command? ls"
    );
}

// spec: pi/dialogs.10
#[test]
fn a_select_is_answered_without_regard_to_case_by_a_unique_beginning_or_by_number() {
    for (value, expected) in [
        ("DENY", "deny"),
        (" Deny ", "deny"),
        ("allow", "allow"),
        ("d", "deny"),
        ("alw", "always allow"),
        ("1", "allow"),
        ("2", "always allow"),
        ("3.", "deny"),
    ] {
        let mut relay = three();
        answer(&mut relay, &json!({ "value": value }));
        assert_eq!(chosen(&mut relay).0.as_deref(), Some(expected), "{value:?}");
    }
    for value in ["", "  ", "a", "al", "0", "4", "-1", "yes", "allowed", "1 2"] {
        let mut relay = three();
        answer(&mut relay, &json!({ "value": value }));
        assert_eq!(chosen(&mut relay).0, None, "{value:?}");
    }
}

// spec: pi/dialogs.4, pi/dialogs.11
#[test]
fn an_answer_that_matches_nothing_is_explained_and_its_client_asked_again() {
    let mut relay = three();
    relay.open("b", "session=sess_1");
    let original = relay.heard("a").remove(0);
    relay.heard("b");
    answer(&mut relay, &json!({ "value": "maybe" }));
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard), ["extension_ui_request/notify", "extension_ui_request/select"]);
    assert!(heard[0]["message"].as_str().unwrap().contains("\"maybe\""), "{}", heard[0]);
    assert_ne!(heard[1]["id"], original["id"], "a page shows no id twice");
    let (title, options) = (&heard[1]["title"], &heard[1]["options"]);
    assert_eq!((title, options), (&original["title"], &original["options"]));
    assert_eq!(relay.heard("b"), [] as [Value; 0], "only who answered is asked again");
    // Both ids answer it, and both are over when it is.
    let again = heard[1]["id"].clone();
    let frame = json!({ "type": "extension_ui_response", "id": again, "value": "deny" });
    relay.json("a", &frame);
    assert_eq!(chosen(&mut relay).0.as_deref(), Some("deny"));
    let ids: Vec<_> = relay.heard("a").iter().map(|frame| frame["id"].clone()).collect();
    assert_eq!(ids, [json!("p1"), again]);
    assert_eq!(relay.heard("b").len(), 1);
    relay.json("a", &frame);
    assert_eq!((relay.heard("a"), relay.wishes), (vec![], 1), "an id that is over is ignored");
    let mut relay = three();
    answer(&mut relay, &json!({ "value": "maybe" }));
    answer(&mut relay, &json!({ "value": "deny" }));
    assert_eq!(chosen(&mut relay).0.as_deref(), Some("deny"), "the old id still answers it");
}

// spec: pi/dialogs.11
#[test]
fn a_program_that_always_answers_nonsense_is_not_asked_for_ever() {
    let mut relay = three();
    let mut heard = relay.heard("a");
    let mut asked = 0;
    while let Some(dialog) = heard.iter().find(|frame| frame["method"] == "select") {
        asked += 1;
        assert!(asked <= 100, "it is asked for ever");
        let id = dialog["id"].clone();
        let nonsense = json!({ "type": "extension_ui_response", "id": id, "value": "x" });
        relay.json("a", &nonsense);
        heard = relay.heard("a");
    }
    assert_eq!(kinds(&heard), ["extension_ui_request/notify"]);
    assert_eq!(relay.room().session.glance().card.prompts.len(), 1, "others can still answer");
    answer(&mut relay, &json!({ "value": "deny" }));
    assert_eq!(chosen(&mut relay).0.as_deref(), Some("deny"));
}

// spec: pi/dialogs.11
#[test]
fn a_dialog_whose_answer_the_session_did_not_take_is_asked_again() {
    let mut relay = three();
    relay.heard("a");
    relay.down();
    relay.heard("a");
    answer(&mut relay, &json!({ "value": "deny" }));
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard), ["extension_ui_request/notify", "extension_ui_request/select"]);
    relay.open("v", "session=sess_1");
    relay.heard("v");
    relay.json("v", &json!({ "type": "extension_ui_response", "id": "p1", "value": "deny" }));
    let heard = kinds(&relay.heard("v"));
    assert_eq!(heard, ["extension_ui_request/notify"], "a viewer's answer is never taken");
}

// spec: pi/dialogs.11
#[test]
fn a_dialog_is_asked_again_only_while_it_is_open_and_where_that_may_help() {
    let damaged = || Denied::Code("session_damaged".into(), "cannot be read".to_owned());
    let full = || Denied::Failed("the disk is full".to_owned());
    for (denied, is_over, expected) in [
        (damaged(), false, &["extension_ui_request/notify"][..]),
        (full(), false, &["extension_ui_request/notify", "extension_ui_request/select"]),
        (damaged(), true, &[]),
        (full(), true, &[]),
    ] {
        let mut relay = three();
        if !is_over {
            relay.falls_behind("a");
        }
        relay.is_slow = true;
        answer(&mut relay, &json!({ "value": "deny" }));
        relay.heard("a");
        let (_, _, reply) = relay.late.last_mut().unwrap();
        *reply = Answer::Done(Err(denied));
        relay.catch_up();
        assert_eq!(kinds(&relay.heard("a")), expected);
    }
}

// spec: pi/dialogs.5
#[test]
fn a_default_that_reads_like_an_allow_is_not_what_a_cancelled_dialog_chooses() {
    for label in ["always allow bash", "yes, and do not ask again", "approve all", "trust"] {
        let mut relay = Relay::watched();
        let mut prompt =
            machine::prompt("p1", &[(label, None), ("wait", None)], label, None, START);
        prompt.choices[0].label = label.to_owned();
        relay.report(Report::Asked(prompt));
        answer(&mut relay, &json!({ "cancelled": true }));
        assert_eq!(chosen(&mut relay).0, None, "{label}");
    }
}
