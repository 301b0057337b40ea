//! VS Code's own Chat, in a real code-server.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::dialects::{decide, stop, talk};
use crate::foreign::{Served, fetched};
use crate::guest::everybody;
use crate::person;
use crate::stage::Stage;
use crate::support::{Lines, said};

const PACKAGE: &str = include_str!("extension/package.json");
const EXTENSION: &str = include_str!("extension/extension.js");

/// A code-server with the scripted agent, and its workspace.
fn code_server(place: &Path) -> (Served, PathBuf) {
    let extension = place.join("extensions/farhelm.scripted-chat-0.0.1");
    std::fs::create_dir_all(&extension).unwrap();
    std::fs::write(extension.join("package.json"), PACKAGE).unwrap();
    std::fs::write(extension.join("extension.js"), EXTENSION).unwrap();
    let (home, workspace) = (place.join("ide-home"), place.join("kite"));
    for folder in [&home, &workspace] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let (program, script, path) = fetched("code-server");
    let mut command = Command::new(program);
    command.args(script).env_clear().env("HOME", &home).env("PATH", path);
    command.args(["--bind-addr", "127.0.0.1:0", "--auth", "none", "--disable-telemetry"]);
    command.args(["--disable-update-check", "--disable-workspace-trust", "--user-data-dir"]);
    command.arg(home.join("data")).arg("--extensions-dir").arg(place.join("extensions"));
    command.arg(&workspace).current_dir(&workspace);
    (Served::start(command), workspace)
}

fn is_said(event: &Value, words: &str) -> bool {
    said(event).is_some_and(|it| it.contains(words))
}

#[test]
#[ignore = "needs code-server: run `cargo xtask ide`"]
fn a_chat_is_a_session_that_is_sent_to_asked_stopped_and_given_another_model() {
    let Some(mut stage) = Stage::new("VS Code's own Chat") else { return };
    let (server, workspace) = code_server(&stage.place.path(""));
    stage.up();
    stage.open_url(&format!("{}?folder={}", server.url, workspace.display()));
    let session = stage.session("vscode-chat");
    let told = stage.place.json(&["sessions", "--json"]);
    assert_eq!(told["sessions"][0]["workspace_name"], "kite", "{told}");
    let tail = Lines::of(stage.place.farhelm(&["tail", &session, "--after", "0", "--json"]));

    stage.until("the extension", |_| workspace.join("active").exists().then_some(()));
    // It has no model before its extension was needed, and says so.
    stage.send(&session, "@script hello");
    tail.until(|event| event["type"] == "run_ended");
    // The participant stays.
    stage.send(&session, "hello again");
    tail.until(|event| is_said(event, "you said hello again to kite-"));

    stage.send(&session, "ask first line");
    let asked = tail.until(|event| event["type"] == "permission_prompt");
    let prompt = asked.last().unwrap();
    let words = prompt["prompt_text"].as_str().unwrap();
    assert!(words.contains("The line is first line"), "{prompt}");
    answer(&stage, &session, prompt, "deny");
    tail.until(|event| is_said(event, "no note: "));
    assert!(!workspace.join("note.txt").exists());

    stage.send(&session, "ask second line");
    let asked = tail.until(|event| event["type"] == "permission_prompt");
    answer(&stage, &session, asked.last().unwrap(), "allow_always");
    tail.until(|event| is_said(event, "the note is written: second line"));
    assert_eq!(std::fs::read_to_string(workspace.join("note.txt")).unwrap(), "second line");

    stage.send(&session, "slow 400");
    tail.until(|event| event["type"] == "run_started");
    stage.place.told(&["interrupt", &session]);
    let ended = tail.until(|event| event["type"] == "run_ended");
    assert!(!ended.iter().any(|event| is_said(event, "finished")), "{ended:?}");

    let config = json!({"type": "agent_config_request", "session_id": session,
        "request_id": "config"});
    let config = person::asked(&stage, config, |frame| frame["available_models"].is_array());
    assert_eq!(config["model_id"], "kite-large", "{config}");
    let models = config["available_models"].as_array().unwrap();
    assert!(models.contains(&json!("kite-small")), "{config}");
    let (_attached, mut typed) = Lines::typing(stage.place.farhelm(&["attach", &session]));
    writeln!(typed, "/model kite-small").unwrap();
    tail.until(|event| event["type"] == "agent_config" && event["model_id"] == "kite-small");
    stage.send(&session, "hello small one");
    tail.until(|event| is_said(event, "you said hello small one to kite-small"));

    let long = "a line with an emoji 😀 and \"quotes\"\n\n".repeat(200);
    stage.send(&session, long.trim_end());
    tail.until(|event| is_said(event, "you said a line with an emoji 😀 and \"quotes\""));
}

#[test]
#[ignore = "needs code-server: run `cargo xtask ide`"]
fn clients_of_every_dialect_talk_decide_and_stop_in_it() {
    let Some(mut stage) = Stage::new("VS Code's own Chat, all dialects") else { return };
    let (server, workspace) = code_server(&stage.place.path(""));
    stage.up();
    stage.open_url(&format!("{}?folder={}", server.url, workspace.display()));
    let session = stage.session("vscode-chat");
    stage.until("the extension", |_| workspace.join("active").exists().then_some(()));
    let tail = Lines::of(stage.place.farhelm(&["tail", &session, "--after", "0", "--json"]));
    stage.send(&session, "@script hello");
    tail.until(|event| event["type"] == "run_ended");
    let (host, token) = stage.relay();
    stage.block_on(async {
        let mut guests = everybody((&host, &token), &session, "").await;
        let said = talk(&mut guests).await;
        for guest in &guests {
            assert_eq!(guest.people(), said, "{}", guest.dialect);
            assert_eq!(guest.agent().len(), said.len(), "{}: {:?}", guest.dialect, guest.seen);
        }
        // It shows no button that allows just once: a plain yes has nothing to press.
        for deciding in 0..guests.len() {
            let line = format!("line of {}", guests[deciding].dialect);
            decide(&mut guests, deciding, ("ask ", &line), false).await;
            for guest in &mut guests {
                guest.until_said(&format!("no note: {line}")).await;
            }
        }
        for stopping in 0..guests.len() {
            stop(&mut guests, stopping, "slow 400").await;
        }
    });
}

/// Presses the button of this meaning.
fn answer(stage: &Stage, session: &str, prompt: &Value, choice: &str) {
    let id = prompt["prompt_id"].as_str().unwrap();
    stage.place.told(&["answer", session, id, choice]);
}
