//! User messages.

use domain::content::Failure;
use domain::session::delivery::Mode;
use domain::session::{Order, Report};
use serde_json::{Value, json};

use super::relay::{Relay, SESSION, kinds};

fn user(uuid: &str, content: &Value) -> Value {
    json!({ "type": "user", "uuid": uuid, "message": { "role": "user", "content": content } })
}

fn picture() -> Value {
    json!({ "type": "image",
        "source": { "type": "base64", "media_type": "image/png", "data": "aGVsbG8=" } })
}

fn failed(relay: &mut Relay, frame: &Value) -> Value {
    relay.json("a", frame);
    let mut heard = relay.heard("a");
    assert_eq!(kinds(&heard), ["result/error_during_execution"], "{frame}");
    heard.remove(0)
}

// spec: control/user.3
#[test]
fn pictures_are_put_away_first_and_the_order_stays() {
    let mut relay = Relay::watched();
    relay.is_slow = true;
    relay.json("a", &user("m1", &json!([{ "type": "text", "text": "look" }, picture()])));
    relay.json("a", &user("m2", &json!("and then")));
    assert_eq!(relay.room().session.glance().waiting.len(), 0, "the second waits for the first");
    relay.catch_up();
    assert_eq!(relay.stored, ["hello".as_bytes()]);
    relay.obey(Some("run_1"));
    relay.ends("run_1", domain::session::runs::Outcome::Completed);
    relay.obey(Some("run_2"));
    let heard = relay.heard("a");
    let said: Vec<_> = heard.iter().filter(|it| it["type"] == "user").collect();
    assert_eq!((said[0]["uuid"].as_str(), said[1]["uuid"].as_str()), (Some("m1"), Some("m2")));
    let shown = &said[0]["message"]["content"];
    assert_eq!(shown[1], json!({ "type": "text", "text": "[image: image-1.png]" }));
}

// spec: control/user.4
#[test]
fn what_cannot_be_sent_is_a_result_for_its_sender() {
    let mut relay = Relay::watched();
    relay.open("b", &format!("session={SESSION}"));
    let long = "x".repeat(1_001);
    let block = |kind: &str| json!([{ "type": kind }]);
    let mut unasked = user("m1", &json!("x"));
    unasked["shouldQuery"] = json!(false);
    let link = json!([{ "type": "image", "source": { "type": "url", "url": "http://x" } }]);
    let spoilt = json!([{ "type": "image", "source": { "type": "base64", "data": "%" } }]);
    for frame in [
        user("m1", &json!("")),
        user("m1", &json!(long)),
        user("m1", &json!(7)),
        user("m1", &block("tool_result")),
        user("m1", &link),
        user("m1", &spoilt),
        user("m1", &json!(vec![picture(); 17])),
        unasked,
    ] {
        let told = failed(&mut relay, &frame);
        assert_eq!(told["user_message_uuid"], "m1");
        assert_eq!(
            (&told["is_error"], told["errors"].as_array().unwrap().len()),
            (&json!(true), 1)
        );
    }
    assert_eq!(relay.heard("b"), [] as [Value; 0]);
}

// spec: control/user.4
#[test]
fn a_send_that_fails_later_is_told_to_its_sender_alone() {
    let mut relay = Relay::watched();
    relay.open("b", &format!("session={SESSION}"));
    relay.json("a", &user("m1", &json!("hello")));
    let Some(Order::Deliver { attempt, .. }) = relay.room().session.owed().pop() else { panic!() };
    let failure = Failure::new("send_rejected", "no");
    relay.report(Report::SendFailed { id: "m1".into(), attempt: Some(attempt), failure });
    assert_eq!(relay.heard("a")[0]["errors"], json!(["no (send_rejected)"]));
    assert_eq!(relay.heard("b"), [] as [Value; 0]);
}

// spec: control/user.5
#[test]
fn the_same_uuid_again_changes_nothing_and_is_told_how_it_stands() {
    let mut relay = Relay::watched();
    relay.json("a", &user("m1", &json!("hello")));
    relay.json("a", &user("m1", &json!("hello")));
    assert_eq!(relay.heard("a"), [] as [Value; 0]);
    relay.obey(None);
    assert_eq!(kinds(&relay.heard("a")), ["system/init", "user"]);
    relay.open("a", &format!("session={SESSION}"));
    relay.json("a", &user("m1", &json!("hello")));
    let heard = relay.heard("a");
    assert_eq!((heard.len(), &heard[0]["isReplay"]), (1, &json!(true)));
    assert_eq!(relay.room().session.owed(), []);
}

// spec: control/user.6
#[test]
fn priority_says_whether_a_message_waits_for_the_run() {
    let mut relay = Relay::watched();
    relay.starts("run_1");
    for (id, priority) in [("m1", "now"), ("m2", "next"), ("m3", "later"), ("m4", "?")] {
        let mut frame = user(id, &json!("x"));
        frame["priority"] = json!(priority);
        relay.json("a", &frame);
    }
    let modes: Vec<_> =
        relay.room().session.glance().waiting.iter().map(|send| send.mode).collect();
    assert_eq!(modes, [Some(Mode::Steer), Some(Mode::Steer), Some(Mode::FollowUp), None]);
}

// spec: control/user.2
#[test]
fn a_message_without_a_uuid_gets_one_and_comes_back_as_the_senders_own() {
    let mut relay = Relay::watched();
    for text in ["one", "two"] {
        relay.json("a", &json!({ "type": "user", "message": { "content": text } }));
    }
    relay.obey(None);
    relay.obey(None);
    let mut heard = relay.heard("a");
    heard.retain(|it| it["type"] == "user");
    assert_eq!(heard.len(), 2);
    assert!(heard.iter().all(|it| it["isReplay"] == true));
    assert_ne!(heard[0]["uuid"], heard[1]["uuid"]);
    assert_eq!(heard[1]["message"]["content"], "two");
}

// spec: control/credentials.3
#[test]
fn a_viewer_cannot_send() {
    let mut relay = Relay::watched();
    relay.open("v", &format!("session={SESSION}"));
    relay.json("v", &user("m1", &json!("hello")));
    assert_eq!(relay.heard("v")[0]["errors"], json!(["this credential is view-only"]));
}
