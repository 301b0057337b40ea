//! Slash commands and permission questions.

use serde_json::{Value, json};

use super::relay::{MADE, Relay, SESSION, kinds};

fn types(relay: &mut Relay, name: &str, text: &str) -> Vec<Value> {
    relay.ask(name, "c", "agent", &json!({ "message": text }));
    let heard = relay.heard(name);
    assert_eq!(heard[0]["payload"], json!({ "status": "command_processed" }), "{text}");
    heard
}

fn told(heard: &[Value]) -> &str {
    heard.last().unwrap()["payload"]["content"].as_str().unwrap()
}

// spec: blob/commands.1, blob/commands.2
#[test]
fn a_command_is_answered_at_once_and_told_to_its_writer_alone() {
    let mut relay = Relay::watched();
    relay.join("b");
    relay.says_text("m1", "hello");
    relay.heard("a");
    relay.heard("b");
    assert!(told(&types(&mut relay, "a", "/help")).contains("/sessions"));
    assert_eq!(told(&types(&mut relay, "a", "/history 5")), "[assistant] hello");
    assert!(told(&types(&mut relay, "a", "/status")).contains("1 messages, 0 waiting, at rest"));
    assert_eq!(relay.heard("b"), [] as [Value; 0]);
    assert_eq!(relay.room().session.owed().len(), 0, "nothing of it went to the agent");
    relay.sends("a", "r", "/compact");
    assert_eq!(relay.room().session.owed().len(), 1, "the agent may have commands of its own");
}

// spec: blob/commands.3
#[test]
fn after_a_list_a_number_goes_to_a_session() {
    let mut relay = Relay::watched();
    for number in 0..12 {
        relay.make(&format!("sess_{number:02}"));
    }
    let first = types(&mut relay, "a", "/sessions");
    assert!(told(&first).ends_with("Page 1 of 2; a number goes there"), "{}", told(&first));
    let second = types(&mut relay, "a", "/sessions next");
    assert!(told(&second).contains("4. "));
    let heard = types(&mut relay, "a", "1");
    assert_eq!(kinds(&heard), ["res", "session_changed"]);
    assert_eq!(heard[1]["payload"]["sessionId"], "sess_08");
    let found = types(&mut relay, "a", "/sessions search ARCHITECTURE");
    assert!(told(&found).starts_with("1. AI architecture discussion"), "{}", told(&found));
    // Only right after the list.
    relay.sends("a", "r", "one");
    relay.heard("a");
    relay.sends("a", "r", "1");
    assert_eq!(kinds(&relay.heard("a")), ["res", "queued", "message/user"]);
    let heard = types(&mut relay, "a", &format!("/switch {SESSION}"));
    assert_eq!(heard[1]["payload"]["sessionId"], SESSION);
    assert_eq!(told(&types(&mut relay, "a", "/switch nowhere")), "Session not found: nowhere");
}

// spec: blob/commands.4
#[test]
fn a_new_session_by_command_is_gone_to() {
    let mut relay = Relay::watched();
    let heard = types(&mut relay, "a", "/new my project");
    assert_eq!(kinds(&heard), ["res", "session_changed"]);
    assert_eq!(
        (&heard[1]["payload"]["sessionId"], &heard[1]["payload"]["title"]),
        (&json!(MADE), &json!("my project"))
    );
    relay.shell.has_machine = false;
    assert_eq!(
        told(&types(&mut relay, "a", "/new")),
        "No session was made: No machine is connected"
    );
}

// spec: blob/prompts.1, blob/prompts.2, blob/prompts.3
#[test]
fn a_permission_question_is_shown_to_all_and_answered_by_one() {
    let mut relay = Relay::watched();
    relay.join("b");
    relay.starts("run_1");
    relay.heard("a");
    relay.heard("b");
    relay.asks("p1");
    relay.asks("p2");
    let heard = relay.heard("b");
    assert_eq!(kinds(&heard)[..2], ["status/executing_tool", "message/system"]);
    assert_eq!(
        heard[1]["payload"]["prompt"],
        json!({ "id": "p1", "state": "open", "text": "Run this command? ls" })
    );
    relay.heard("a");
    types(&mut relay, "a", "/approve");
    let heard = relay.heard("b");
    assert_eq!(
        heard[0]["payload"]["prompt"],
        json!({ "id": "p1", "state": "closed", "choice": "yes" })
    );
    assert_eq!(told(&heard), "Permission answered by a's phone: YES");
    types(&mut relay, "b", "/deny p2");
    assert!(told(&relay.heard("a")).ends_with(": NO"));
    assert_eq!(told(&types(&mut relay, "a", "/deny")), "No such permission question is open");
    relay.refuse("stuck");
    let heard = relay.heard("a");
    assert_eq!(heard[0]["payload"]["prompt"]["state"], "open", "an answer that was not applied");
}

// spec: blob/prompts.4
#[test]
fn who_joins_late_is_asked_too() {
    let mut relay = Relay::watched();
    relay.asks("p1");
    relay.connect("b");
    relay.ask("b", "s", "sessions.switch", &json!({ "sessionId": SESSION }));
    let heard = relay.heard("b");
    assert_eq!(kinds(&heard), ["res", "session_changed", "message/system"]);
    assert_eq!(heard[2]["payload"]["prompt"]["id"], "p1");
    relay.starts("run_1");
    relay.connect("c");
    relay.ask("c", "s", "sessions.switch", &json!({ "sessionId": SESSION }));
    let expected = ["res", "session_changed", "status/executing_tool", "message/system"];
    assert_eq!(kinds(&relay.heard("c")), expected);
}
