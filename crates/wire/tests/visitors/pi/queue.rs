//! The queue as clients see it.

use domain::session::{Command, Wish};
use domain::{Content, Principal, Role};
use serde_json::json;

use super::relay::{Relay, SESSION, kinds};

fn busy() -> Relay {
    let mut relay = Relay::watched();
    relay.starts("run_1");
    for text in ["one", "two"] {
        let command = json!({ "type": "follow_up", "message": text });
        assert_eq!(relay.ask("a", command)["success"], true);
    }
    relay.heard("a");
    relay
}

fn person(relay: &mut Relay, wish: Wish) {
    let principal = Principal {
        credential: "n".into(),
        role: Role::Operator,
        client: None,
        name: "n".to_owned(),
    };
    relay.say_to(&SESSION.into(), &Command::Person(principal, wish)).unwrap();
}

// spec: pi/queue.1
#[test]
fn a_prompt_that_begins_a_run_at_once_never_shows_as_waiting() {
    let mut relay = Relay::watched();
    relay.ask("a", json!({ "type": "prompt", "message": "x" }));
    relay.obey(Some("run_1"));
    let heard = kinds(&relay.heard("a"));
    assert_eq!(heard, ["agent_start", "turn_start", "message_start/user", "message_end/user"]);
}

// spec: pi/queue.1
#[test]
fn every_change_of_the_queue_is_told() {
    let mut relay = busy();
    let ids: Vec<_> =
        relay.room().session.glance().waiting.iter().map(|send| send.id.clone()).collect();
    let text = Content::Open("one, better".to_owned());
    person(&mut relay, Wish::EditQueued { id: ids[0].clone(), text });
    person(&mut relay, Wish::MoveQueued { id: ids[0].clone(), to: 1 });
    person(&mut relay, Wish::DiscardQueued { id: ids[1].clone() });
    let heard = relay.heard("a");
    let lists: Vec<_> = heard.iter().map(|it| it["followUp"].clone()).collect();
    assert_eq!(
        lists,
        [json!(["one, better", "two"]), json!(["two", "one, better"]), json!(["one, better"])]
    );
    let state = relay.ask("a", json!({ "type": "get_state" }));
    assert_eq!(state["data"]["pendingMessageCount"], 1);
}

// spec: pi/queue.4
#[test]
fn who_joins_hears_what_waits() {
    let mut relay = busy();
    relay.open("b", "session=sess_1");
    let heard = relay.heard("b");
    assert_eq!(kinds(&heard), ["agent_start", "queue_update"]);
    assert_eq!(heard[1]["followUp"], json!(["one", "two"]));
}

// spec: pi/queue.3
#[test]
fn an_empty_queue_is_cleared_at_once() {
    let mut relay = Relay::watched();
    let answer = relay.ask("a", json!({ "type": "clear_queue" }));
    assert_eq!(answer["data"], json!({ "steering": [], "followUp": [] }));
}

// spec: pi/queue.2
#[test]
fn what_waits_goes_on_with_the_next_prompt_after_an_abort() {
    let mut relay = busy();
    assert_eq!(relay.ask("a", json!({ "type": "abort" }))["success"], true);
    relay.obey(None);
    relay.ends("run_1", domain::session::runs::Outcome::Interrupted);
    relay.heard("a");
    assert_eq!(relay.room().session.owed().len(), 0, "nothing goes on by itself");
    assert_eq!(relay.ask("a", json!({ "type": "prompt", "message": "go" }))["success"], true);
    relay.obey(Some("run_2"));
    let heard = relay.heard("a");
    let person = heard.iter().find(|it| it["type"] == "message_start").unwrap();
    assert_eq!(person["message"]["content"], "one");
}

/// The agent can be steered; one message has left for it, another waits for the run's end.
fn steered() -> Relay {
    let mut relay = Relay::watched();
    relay.configures("fake/one", "low");
    relay.starts("run_1");
    relay.ask("a", json!({ "type": "steer", "message": "left" }));
    relay.ask("a", json!({ "type": "follow_up", "message": "later" }));
    relay
}

// spec: pi/queue.5
#[test]
fn the_queue_is_not_said_to_be_cleared_while_the_agent_still_gets_a_message() {
    let mut relay = steered();
    let told = relay.heard("a").into_iter().rfind(|frame| frame["type"] == "queue_update").unwrap();
    assert_eq!((&told["steering"], &told["followUp"]), (&json!(["left"]), &json!(["later"])));
    let answer = relay.ask("a", json!({ "type": "clear_queue" }));
    assert_eq!(answer["success"], false, "{answer}");
    let error = answer["error"].as_str().unwrap();
    assert!(error.contains("\"left\"") && error.contains("Nothing was removed"), "{error}");
    assert_eq!(relay.room().session.glance().waiting.len(), 1, "what waits stays where it is");
    // Once the agent has it, the rest can be taken back.
    relay.obey(None);
    relay.heard("a");
    let answer = relay.ask("a", json!({ "type": "clear_queue" }));
    assert_eq!(answer["data"], json!({ "steering": [], "followUp": ["later"] }));
    assert_eq!(relay.room().session.glance().waiting.len(), 0);
}

// spec: pi/queue.5
#[test]
fn a_message_that_leaves_while_the_queue_is_cleared_is_named_and_no_words_are_lost() {
    let mut relay = busy();
    // The client has not seen that the run is over, and the first message gone.
    relay.falls_behind("a");
    relay.ends("run_1", domain::session::runs::Outcome::Completed);
    let answer = relay.ask("a", json!({ "type": "clear_queue" }));
    assert_eq!(answer["success"], false, "{answer}");
    let error = answer["error"].as_str().unwrap();
    assert!(error.contains("\"one\"") && error.contains("\"two\""), "{error}");
    assert_eq!(answer["data"], json!({ "steering": [], "followUp": ["two"] }));
}

// spec: pi/queue.1
#[test]
fn who_joins_hears_of_a_steering_message_that_the_agent_has_not_taken_yet() {
    let mut relay = steered();
    relay.open("b", "session=sess_1");
    let heard = relay.heard("b");
    assert_eq!(kinds(&heard), ["agent_start", "queue_update"]);
    let (steering, follow_up) = (&heard[1]["steering"], &heard[1]["followUp"]);
    assert_eq!((steering, follow_up), (&json!(["left"]), &json!(["later"])));
}
