//! What was said, read back.

use domain::content::{Part, ToolStatus};
use domain::session::runs::Outcome;
use serde_json::{Value, json};

use super::relay::Relay;

fn messages(relay: &mut Relay) -> Vec<Value> {
    let answer = relay.ask("a", json!({ "type": "get_messages" }));
    answer["data"]["messages"].as_array().unwrap().clone()
}

// spec: pi/history.2
#[test]
fn a_call_stands_in_the_message_that_holds_it() {
    let mut relay = Relay::watched();
    relay.starts("run_1");
    relay.calls("t1", r#"{"command":"ls"}"#);
    let parts = vec![Part::Thinking("hm".into()), Part::ToolCall("t1".into())];
    relay.says("m1", parts);
    relay.tool("t1", ToolStatus::Running, Some("printed"));
    relay.tool("t1", ToolStatus::Failed, None);
    relay.ends("run_1", Outcome::Failed("no more".into()));
    let heard = messages(&mut relay);
    assert_eq!(heard.len(), 3, "{heard:#?}");
    assert_eq!(heard[0]["content"][0], json!({ "type": "thinking", "thinking": "hm" }));
    assert_eq!(heard[0]["content"][1]["name"], "Bash");
    assert_eq!(heard[0]["stopReason"], "toolUse");
    assert_eq!(
        (&heard[1]["isError"], &heard[1]["content"][0]["text"]),
        (&json!(true), &json!("printed"))
    );
    assert_eq!(
        (&heard[2]["stopReason"], &heard[2]["errorMessage"]),
        (&json!("error"), &json!("no more"))
    );
}

// spec: pi/history.3
#[test]
fn a_long_history_is_read_page_by_page_up_to_what_was_shown() {
    let mut relay = Relay::watched();
    for number in 0..1_200 {
        relay.says(&format!("m{number}"), vec![Part::Text(number.to_string())]);
    }
    relay.heard("a");
    relay.is_slow = true;
    relay.json("a", &json!({ "id": "h", "type": "get_messages" }));
    // What comes after the question is told live, and not in the answer as well.
    relay.says("later", vec![Part::Text("later".into())]);
    relay.catch_up();
    let heard = relay.heard("a");
    let answer = heard.iter().find(|it| it["id"] == "h").unwrap();
    let told = answer["data"]["messages"].as_array().unwrap();
    assert_eq!(told.len(), 1_200);
    assert_eq!(told[1_199]["content"][0]["text"], "1199");
}

// spec: pi/history.5
#[test]
fn statistics_and_the_last_words_are_read_from_the_same_history() {
    let mut relay = Relay::watched();
    relay.ask("a", json!({ "type": "prompt", "message": "hello" }));
    relay.obey(Some("run_1"));
    relay.calls("t1", "{}");
    relay.tool("t1", ToolStatus::Completed, Some("x"));
    relay.says("m1", vec![Part::Text("the end".into())]);
    relay.ends("run_1", Outcome::Completed);
    let stats = relay.ask("a", json!({ "type": "get_session_stats" }));
    let stats = &stats["data"];
    let counts = ["userMessages", "assistantMessages", "toolCalls", "toolResults", "totalMessages"];
    assert_eq!(counts.map(|name| stats[name].as_u64().unwrap()), [1, 2, 1, 1, 4]);
    assert_eq!(
        stats["tokens"],
        json!({ "input": 200, "output": 80, "cacheRead": 700, "cacheWrite": 0, "total": 980 })
    );
    assert_eq!(stats["cost"], 0.0125);
    let last = relay.ask("a", json!({ "type": "get_last_assistant_text" }));
    assert_eq!(last["data"], json!({ "text": "the end" }));
}

// spec: pi/history.3
#[test]
fn everybody_who_asks_meanwhile_is_answered() {
    let mut relay = Relay::watched();
    relay.says("m1", vec![Part::Text("x".into())]);
    relay.heard("a");
    relay.is_slow = true;
    for id in 0..5 {
        relay.json("a", &json!({ "id": id, "type": "get_messages" }));
    }
    relay.catch_up();
    let heard = relay.heard("a");
    let ids: Vec<_> = heard.iter().map(|it| it["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, [0, 1, 2, 3, 4]);
    assert!(heard.iter().all(|it| it["data"]["messages"].as_array().unwrap().len() == 1));
}

// spec: pi/history.3
#[test]
fn of_a_history_that_is_too_large_the_newest_is_answered() {
    let mut relay = Relay::watched();
    for number in 0..36 {
        let text = format!("{number} {}", "x".repeat(512 << 10));
        relay.says(&format!("m{number}"), vec![Part::Text(text)]);
    }
    relay.heard("a");
    let heard = messages(&mut relay);
    assert!((30..33).contains(&heard.len()), "{}", heard.len());
    let last = heard.last().unwrap()["content"][0]["text"].as_str().unwrap();
    assert!(last.starts_with("35 "));
}
