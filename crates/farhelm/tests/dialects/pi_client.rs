//! pi's own client for programs, `RpcClient`, on a session of the demo agent.

use std::process::Command;

use serde_json::json;

use crate::dialects::fetched::{Package, With, fetched, told};
use crate::support::Place;

const PI: Package = Package {
    name: "@mariozechner/pi-coding-agent",
    version: "0.73.1",
    main: "dist/modes/rpc/rpc-client.js",
    with: With::Nothing,
};
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/dialects/pi_client.mjs");

// spec: pi/responses.1, pi/runs.4, pi/prompts.2
#[test]
fn pis_own_client_prompts_steers_asks_and_aborts() {
    let Some(client) = fetched(&PI) else { return };
    let place = Place::new();
    let up = place.up(&[]);
    let word = |name: &str| up.told[name].as_str().unwrap().to_owned();
    let host = word("url").replacen("http", "ws", 1);
    let mut node = Command::new("node");
    node.arg(SCRIPT).arg(client).arg(format!("{host}/ws/pi?token={}", word("token")));
    let told = told(&place, node);
    assert_eq!(told["first"], json!([0, false]));
    assert_eq!(
        told["events"],
        json!([
            "agent_start",
            "turn_start",
            "message_start",
            "message_end",
            "message_start",
            "start",
            "text_start",
            "text_delta",
            "text_delta",
            "text_end",
            "done",
            "message_end",
            "turn_end",
            "agent_end"
        ])
    );
    assert_eq!(told["last"], "one two");
    assert_eq!(told["models"], json!(["farhelm/demo-small", "farhelm/demo-large"]));
    assert_eq!(told["model"], "demo-large");
    assert!(told["busy"].as_str().unwrap().starts_with("Agent is already processing."));
    assert_eq!(told["queued"], json!({ "steering": [], "followUp": ["say: later"] }));
    let aborted = told["aborted"].as_array().unwrap();
    assert_eq!(aborted[0], "aborted");
    // As far as it had come.
    assert!(aborted[1].as_str().unwrap().starts_with("word"), "{aborted:?}");
    assert_eq!(told["asked"], json!(["select", "ran: ls"]));
    assert_eq!(told["name"], "tried");
    // What people said (3) and the agent (3), and the result of its tool.
    assert_eq!(told["count"], 7);
    assert_eq!(told["impossible"], "compact is not supported through Farhelm");
}
