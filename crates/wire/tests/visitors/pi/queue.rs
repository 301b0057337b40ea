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
