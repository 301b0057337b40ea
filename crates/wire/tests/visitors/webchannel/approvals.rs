//! Permission questions across clients and reconnects.

use domain::content::Failure;
use domain::session::prompts::{Detail, Effect};
use domain::session::{Order, Report};
use serde_json::{Value, json};

use super::relay::{Relay, kinds};

fn watched() -> Relay {
    let mut relay = Relay::new();
    relay.opened("o", "token=fh_owner&plain=1");
    relay
}

fn answer(relay: &mut Relay, payload: Value) {
    relay.envelope("o", "approval_response", "p1", payload);
}

/// The button that the machine is told to press.
fn pressed(relay: &Relay) -> Option<(String, Option<String>)> {
    relay.room().session.owed().into_iter().find_map(|order| match order {
        Order::Answer { choice, detail, .. } => {
            let message = detail.and_then(|it| it.open().cloned()).and_then(|it| it.message);
            Some((choice.map_or(String::new(), |choice| choice.to_string()), message))
        }
        Order::Deliver { .. } | Order::Control { .. } => None,
    })
}

// spec: webchannel/approvals.3
#[test]
fn yes_is_this_once_and_no_carries_its_reason() {
    for (payload, expected) in [
        (json!({ "approved": true, "reason": "fine" }), ("yes", None)),
        (json!({ "approved": false }), ("no", None)),
        (json!({ "approved": false, "reason": "never" }), ("no", Some("never"))),
    ] {
        let mut relay = watched();
        relay.asks("p1");
        answer(&mut relay, payload);
        let (choice, message) = pressed(&relay).unwrap();
        assert_eq!((choice.as_str(), message.as_deref()), expected);
        assert_eq!(kinds(&relay.heard("o")), ["approval_request"]);
    }
}

// spec: webchannel/approvals.4
#[test]
fn what_is_no_decision_leaves_the_question_open() {
    let mut relay = watched();
    relay.asks("p1");
    relay.heard("o");
    for payload in [json!({}), json!({ "approved": "yes" }), json!({ "approved": null })] {
        answer(&mut relay, payload);
    }
    answer(&mut relay, json!({ "approved": true, "e2e": { "nonce": "", "ciphertext": "" } }));
    let token = relay.client("o").token.clone();
    relay.json(
        "o",
        &json!({ "v": 1, "type": "approval_response", "session_id": "default",
            "payload": { "access_token": token, "approved": true } }),
    );
    assert_eq!(relay.errors("o"), ["invalid_payload"; 5]);
    assert_eq!(relay.room().session.glance().card.prompts.len(), 1);
}

// spec: webchannel/approvals.5
#[test]
fn a_question_without_a_plain_yes_is_not_answered_by_one() {
    let mut relay = watched();
    relay.asks_with("p1", [Some(Effect::AllowAlways), Some(Effect::Reject), None]);
    relay.heard("o");
    answer(&mut relay, json!({ "approved": true }));
    assert_eq!(relay.errors("o"), ["approval_unsupported"]);
    answer(&mut relay, json!({ "approved": false }));
    assert_eq!(pressed(&relay).unwrap().0, "no");
    // Where the agent does not say what its buttons do, their plain words do.
    let mut relay = watched();
    relay.asks_with("p1", [None, None, None]);
    answer(&mut relay, json!({ "approved": true }));
    assert_eq!(pressed(&relay).unwrap().0, "yes");
}

// spec: webchannel/approvals.8
#[test]
fn questions_that_want_answers_are_not_answered_by_a_yes() {
    let yes = Some(Effect::AllowOnce);
    let option_buttons = [("small", yes), ("large", yes), ("no", Some(Effect::Reject))];
    let form_buttons = [("answer", yes), ("no", Some(Effect::Reject))];
    for choices in [&option_buttons[..], &form_buttons[..]] {
        let mut relay = watched();
        let question = json!([{ "question": "Which?", "options": ["SMALL", "LARGE"] }]);
        let questions = Some(question.to_string());
        relay.asks_about("p1", choices, Detail { questions, ..Detail::default() });
        relay.heard("o");
        answer(&mut relay, json!({ "approved": true }));
        let heard = relay.heard("o").remove(0);
        assert_eq!(heard["payload"]["code"], "approval_unsupported");
        assert!(heard["payload"]["message"].as_str().unwrap().contains("in another client"));
        assert_eq!(pressed(&relay), None);
        answer(&mut relay, json!({ "approved": false }));
        assert_eq!(pressed(&relay).unwrap().0, "no");
    }
}

// spec: webchannel/approvals.6
#[test]
fn a_question_outlives_its_clients_and_is_asked_again() {
    let mut relay = Relay::paired();
    relay.asks("p1");
    let token = relay.client("a").token.clone();
    relay.reopen("a", &format!("token={token}"));
    let heard = relay.heard("a");
    assert_eq!((kinds(&heard), &heard[0]["request_id"]), (vec!["approval_request"], &json!("p1")));
    relay.envelope("a", "approval_response", "p1", json!({ "approved": true }));
    assert_eq!(pressed(&relay).unwrap().0, "yes");
}

// spec: webchannel/approvals.7
#[test]
fn a_question_that_goes_away_ends_everywhere_and_one_that_failed_opens_again() {
    let mut relay = watched();
    relay.asks("p1");
    relay.report(Report::PromptGone("p1".into()));
    let heard = relay.heard("o");
    assert_eq!(kinds(&heard), ["approval_request", "approval_response"]);
    assert_eq!(heard[1]["payload"]["approved"], false);
    answer(&mut relay, json!({ "approved": true }));
    assert_eq!(relay.errors("o"), ["approval_closed"]);

    relay.asks("p2");
    relay.heard("o");
    relay.envelope("o", "approval_response", "p2", json!({ "approved": true }));
    let Some(Order::Answer { request, .. }) = relay.room().session.owed().pop() else {
        panic!("no answer is owed");
    };
    let failure = Some(Failure::new("selector_failure", "no such button"));
    relay.report(Report::ControlResult { request, failure });
    assert_eq!(kinds(&relay.heard("o")), ["approval_request"]);
}
