//! `prompt`, `steer` and `follow_up`.

use domain::content::Failure;
use domain::session::{Order, Report};
use serde_json::json;

use super::relay::{Relay, kinds};

fn prompt(message: &str) -> serde_json::Value {
    json!({ "type": "prompt", "message": message })
}

// spec: pi/prompts.2
#[test]
fn a_second_prompt_before_the_first_has_begun_is_refused_as_well() {
    let mut relay = Relay::watched();
    assert_eq!(relay.ask("a", prompt("one"))["success"], true);
    let refused = relay.ask("a", prompt("two"));
    assert!(refused["error"].as_str().unwrap().starts_with("Agent is already processing."));
    assert_eq!(relay.room().session.glance().waiting.len(), 0);
}

// spec: pi/prompts.2
#[test]
fn a_second_prompt_before_the_first_is_answered_is_refused_as_well() {
    let mut relay = Relay::watched();
    relay.is_slow = true;
    relay.json(
        "a",
        &json!({ "id": 1, "type": "prompt", "message": "first",
            "images": [{ "type": "image", "mimeType": "image/png", "data": "eA==" }] }),
    );
    relay.json("a", &json!({ "id": 2, "type": "prompt", "message": "second" }));
    let heard = relay.heard("a");
    assert_eq!((&heard[0]["id"], &heard[0]["success"]), (&json!(2), &json!(false)));
    assert!(heard[0]["error"].as_str().unwrap().starts_with("Agent is already processing."));
    relay.catch_up();
    let heard = relay.heard("a");
    assert_eq!((&heard[0]["id"], &heard[0]["success"]), (&json!(1), &json!(true)));
    assert_eq!(relay.room().session.glance().waiting.len(), 0);
}

// spec: pi/prompts.8
#[test]
fn of_two_clients_that_prompt_at_the_same_moment_one_is_refused() {
    let mut relay = Relay::watched();
    relay.open("b", "session=sess_1");
    relay.falls_behind("b");
    assert_eq!(relay.ask("a", prompt("one"))["success"], true);
    let refused = relay.ask("b", prompt("two"));
    assert_eq!(refused["success"], false);
    assert!(refused["error"].as_str().unwrap().starts_with("Agent is already processing."));
    // Who said what to do meanwhile is not refused.
    let said = json!({ "type": "prompt", "message": "three", "streamingBehavior": "followUp" });
    assert_eq!(relay.ask("b", said)["success"], true);
    relay.comes_after("b");
    assert_eq!(relay.room().session.glance().waiting.len(), 1);
    relay.obey(Some("run_1"));
    relay.ends("run_1", domain::session::runs::Outcome::Completed);
    relay.obey(Some("run_2"));
    relay.ends("run_2", domain::session::runs::Outcome::Completed);
    assert_eq!(relay.ask("b", prompt("four"))["success"], true);
}

// spec: pi/prompts.2
#[test]
fn a_prompt_after_one_that_was_refused_is_taken() {
    let mut relay = Relay::watched();
    let unsound = json!({ "type": "prompt", "message": "x", "images": [
        { "type": "image", "mimeType": "image/png", "data": "?" }] });
    assert_eq!(relay.ask("a", unsound)["success"], false);
    assert_eq!(relay.ask("a", prompt("two"))["success"], true);
}

// spec: pi/prompts.3
#[test]
fn when_the_agent_rests_a_streaming_behavior_is_ignored() {
    for behavior in ["steer", "followUp"] {
        let mut relay = Relay::watched();
        let command = json!({ "type": "prompt", "message": "x", "streamingBehavior": behavior });
        assert_eq!(relay.ask("a", command)["success"], true);
        let owed = relay.room().session.owed();
        let [Order::Deliver { send, .. }] = owed.as_slice() else { panic!("{owed:?}") };
        assert_eq!(send.mode, None, "{behavior}");
    }
    let mut relay = Relay::watched();
    let command = json!({ "type": "prompt", "message": "x", "streamingBehavior": "sometime" });
    assert_eq!(relay.ask("a", command)["success"], false);
}

// spec: pi/prompts.4
#[test]
fn a_prompt_that_fails_later_is_an_extension_error_to_all_and_no_second_answer() {
    let mut relay = Relay::watched();
    relay.open("b", "session=sess_1");
    relay.ask("a", prompt("hello"));
    let owed = relay.room().session.owed();
    let [Order::Deliver { send, attempt }] = owed.as_slice() else { panic!("{owed:?}") };
    let failure = Failure::new("send_injection_failed", "The agent did not take it");
    let (id, attempt) = (send.id.clone(), Some(*attempt));
    relay.report(Report::SendFailed { id, attempt, failure });
    for name in ["a", "b"] {
        let heard = relay.heard(name);
        let told = json!({
            "type": "extension_error", "extensionPath": "farhelm", "event": "prompt",
            "error": "The agent did not take it (send_injection_failed)",
        });
        assert_eq!(heard, [told], "{name}");
    }
}

// spec: pi/prompts.6
#[test]
fn what_cannot_be_sent_is_refused_with_the_reason() {
    let mut relay = Relay::watched();
    let image = |kind: &str, data: &str| json!({ "type": "image", "mimeType": kind, "data": data });
    let many: Vec<_> = (0..17).map(|_| image("image/png", "")).collect();
    for (command, words) in [
        (json!({ "type": "prompt" }), "message is missing"),
        (prompt(""), "The message is empty"),
        (prompt(&"x".repeat(1_001)), "The message is too large: at most 1000 bytes"),
        (
            json!({ "type": "prompt", "message": "x", "images": [image("text/plain", "")] }),
            "An image's mimeType must begin with image/",
        ),
        (
            json!({ "type": "steer", "message": "x", "images": [image("image/png", "?")] }),
            "An image is not valid base64",
        ),
        (
            json!({ "type": "follow_up", "message": "x", "images": many }),
            "A message can have at most 16 images",
        ),
    ] {
        let answer = relay.ask("a", command);
        assert_eq!((&answer["success"], &answer["error"]), (&json!(false), &json!(words)));
    }
    assert_eq!(relay.wishes, 0);
}

// spec: pi/prompts.5, pi/prompts.7
#[test]
fn sends_reach_the_relay_in_order_while_a_picture_is_put_away() {
    let mut relay = Relay::watched();
    relay.configures("fake/one", "low");
    relay.starts("run_1");
    relay.heard("a");
    relay.is_slow = true;
    relay.json(
        "a",
        &json!({ "id": 1, "type": "follow_up", "message": "first",
            "images": [{ "type": "image", "mimeType": "image/png", "data": "eA==" }] }),
    );
    relay.json("a", &json!({ "id": 2, "type": "follow_up", "message": "second" }));
    assert!(relay.heard("a").is_empty());
    relay.catch_up();
    let waiting = relay.room().session.glance().waiting;
    let texts: Vec<_> = waiting.iter().map(|send| send.text.open().unwrap().as_str()).collect();
    assert_eq!(texts, ["first", "second"]);
    assert_eq!(waiting[0].attachments[0].media_type.as_deref(), Some("image/png"));
    assert_eq!(relay.stored, ["x"]);
    let heard = relay.heard("a");
    let answers: Vec<_> = heard.iter().filter(|it| it["type"] == "response").collect();
    assert_eq!((&answers[0]["id"], &answers[1]["id"]), (&json!(1), &json!(2)));
}

// spec: pi/prompts.7
#[test]
fn steer_and_follow_up_are_prompts_with_their_behavior() {
    let mut relay = Relay::watched();
    relay.configures("fake/one", "low");
    relay.starts("run_1");
    relay.heard("a");
    relay.ask("a", json!({ "type": "steer", "message": "left" }));
    relay.ask("a", json!({ "type": "follow_up", "message": "later" }));
    let heard = relay.heard("a");
    assert_eq!(kinds(&heard), ["queue_update", "queue_update"]);
    assert_eq!(heard[1]["steering"], json!(["left"]));
    assert_eq!(heard[1]["followUp"], json!(["later"]));
}
