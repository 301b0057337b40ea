//! A program that is built on the official SDK, steering the demo agent.

use std::process::Command;

use serde_json::json;

use crate::dialects::fetched::{Package, With, fetched, told};
use crate::support::Place;

const SDK: Package = Package {
    name: "@anthropic-ai/claude-agent-sdk",
    version: "0.3.325",
    main: "sdk.mjs",
    with: With::Dependencies,
};
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/dialects/control_sdk.mjs");

// spec: control/stdio.3
#[test]
fn a_program_on_the_official_sdk_steers_the_demo_agent() {
    let Some(sdk) = fetched(&SDK) else { return };
    let place = Place::new();
    let _up = place.up(&[]);
    let mut node = Command::new("node");
    node.arg(SCRIPT).arg(sdk).arg(env!("CARGO_BIN_EXE_farhelm"));
    let told = told(&place, node);
    assert_eq!(told["models"], json!(["demo-small", "demo-large"]));
    assert_eq!(told["hello"], json!(["success", "echo: hello"]));
    assert_eq!(told["allowed"], json!(["success", "ran: ls"]));
    assert_eq!(told["denied"], json!(["success", "denied: rm"]));
    assert_eq!(told["denials"], json!([{ "tool_name": "Bash", "command": "rm" }]));
    assert_eq!(told["edited"], json!(["success", "ran: safe"]));
    assert_eq!(
        told["asked"],
        json!([["Bash", { "command": "ls" }], ["Bash", { "command": "rm" }], ["Bash", { "command": "risky" }]])
    );
    assert_eq!(told["model"], "demo-large");
    assert_eq!(told["mode"], "bypassPermissions");
    assert_eq!(told["free"], json!(["success", "ran: free"]));
    assert!(told["plan"].as_str().unwrap().contains("Unknown mode plan"), "{told}");
    assert_eq!(told["interrupted"][0], "error_during_execution");
    assert_eq!(told["streamed"], true);
    assert_eq!(told["once"], json!(["success", "echo: once"]));
}
