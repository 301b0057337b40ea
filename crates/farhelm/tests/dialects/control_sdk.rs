//! A program that is built on the official SDK, steering the demo agent.
//!
//! The SDK is fetched once, at a pinned version, into the cache folder of the person. Where it
//! cannot be (no Node, no network), the test says so and checks nothing.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Place, ended};

const PACKAGE: &str = "@anthropic-ai/claude-agent-sdk";
const VERSION: &str = "0.3.325";
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/dialects/control_sdk.mjs");

/// The SDK's main file, fetched if need be; or why there is none.
fn sdk() -> Result<PathBuf, String> {
    let set = |name: &str| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let home = || set("HOME").map(|home| home.join(".cache"));
    let base = set("XDG_CACHE_HOME").filter(|path| path.is_absolute()).or_else(home);
    let base = base.ok_or("no cache folder: set HOME")?.join("farhelm").join("sdk");
    std::fs::create_dir_all(&base).map_err(|error| error.to_string())?;
    let folder = base.join(format!("claude-agent-sdk-{VERSION}"));
    let main = folder.join("node_modules").join(PACKAGE).join("sdk.mjs");
    let lock = std::fs::File::create(base.join("lock")).map_err(|error| error.to_string())?;
    lock.lock().map_err(|error| error.to_string())?;
    if main.exists() {
        return Ok(main);
    }
    let mut npm = Command::new("npm");
    npm.args(["install", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund"]);
    npm.arg("--prefix").arg(&folder).arg(format!("{PACKAGE}@{VERSION}"));
    npm.stdin(Stdio::null()).stdout(Stdio::null());
    let output = npm.output().map_err(|error| format!("npm: {error}"))?;
    if !output.status.success() {
        return Err(format!("npm: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(main)
}

/// What the script tells.
fn told(place: &Place, sdk: &Path) -> Value {
    let mut node = Command::new("node");
    node.arg(SCRIPT).arg(sdk).arg(env!("CARGO_BIN_EXE_farhelm"));
    // Of the machine it sees only its programs: no person's settings, no key.
    node.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    node.env("HOME", place.path("")).env("FARHELM_DATA", place.data()).stdin(Stdio::null());
    let output = ended(node);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"))
}

// spec: control/stdio.3
#[test]
fn a_program_on_the_official_sdk_steers_the_demo_agent() {
    let sdk = match sdk() {
        Ok(sdk) => sdk,
        Err(sentence) => {
            let _ = writeln!(std::io::stderr(), "SKIPPED: the SDK cannot be had: {sentence}");
            return;
        }
    };
    let place = Place::new();
    let _up = place.up(&[]);
    let told = told(&place, &sdk);
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
    assert!(told["plan"].as_str().unwrap().contains("no mode plan"), "{told}");
    assert_eq!(told["interrupted"][0], "error_during_execution");
    assert_eq!(told["streamed"], true);
    assert_eq!(told["once"], json!(["success", "echo: once"]));
}
