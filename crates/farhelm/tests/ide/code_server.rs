//! VS Code's own Chat, in a real code-server.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::guest::everybody;
use crate::ide::dialects::{decide, stop, talk};
use crate::ide::foreign::{ending, fetched, times_said};
use crate::ide::person;
use crate::ide::stage::{Stage, healthy, id, is_now, until_run_ended};
use crate::ide::starting::{Program, free_port};
use crate::support::{Lines, said};

/// The scripted agent of the Chat.
const CHAT: Extension = Extension {
    name: "farhelm.scripted-chat-0.0.1",
    files: &[
        ("package.json", include_str!("extension/package.json")),
        ("extension.js", include_str!("extension/extension.js")),
    ],
};
/// A panel of an extension's own, in a webview.
const WEBVIEW: Extension = Extension {
    name: "me.my-panel-0.0.1",
    files: &[
        ("package.json", include_str!("webview/package.json")),
        ("extension.js", include_str!("webview/extension.js")),
        ("panel.html", include_str!("webview/panel.html")),
    ],
};

struct Extension {
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
}

/// A code-server with an extension: its address and its workspace.
fn code_server(stage: &mut Stage, extension: &Extension) -> (String, PathBuf) {
    let place = &stage.place.path("");
    let folder = place.join("extensions").join(extension.name);
    std::fs::create_dir_all(&folder).unwrap();
    for (name, text) in extension.files {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let (home, workspace) = (place.join("ide-home"), place.join("kite"));
    for folder in [&home, &workspace] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let (program, script, path) = fetched("code-server");
    let mut command = ending(&program);
    command.args(script).env_clear().env("HOME", &home).env("PATH", path);
    command.args(["--bind-addr", "127.0.0.1:0", "--auth", "none", "--disable-telemetry"]);
    command.args(["--disable-update-check", "--disable-workspace-trust", "--user-data-dir"]);
    command.arg(home.join("data")).arg("--extensions-dir").arg(place.join("extensions"));
    command.arg(&workspace).current_dir(&workspace);
    (stage.serve(command), workspace)
}

fn is_said(event: &Value, words: &str) -> bool {
    said(event).is_some_and(|it| it.contains(words))
}

#[test]
#[ignore = "needs code-server: run `cargo xtask ide`"]
fn a_chat_is_a_session_that_is_sent_to_asked_stopped_and_given_another_model() {
    let Some(mut stage) = Stage::new("VS Code's own Chat") else { return };
    let (url, workspace) = code_server(&mut stage, &CHAT);
    stage.up();
    stage.open_url(&format!("{url}?folder={}", workspace.display()));
    let session = stage.session("vscode-chat");
    let told = stage.place.json(&["sessions", "--json"]);
    assert_eq!(told["sessions"][0]["workspace_name"], "kite", "{told}");
    let tail = Lines::of(stage.place.farhelm(&["tail", &session, "--after", "0", "--json"]));

    stage.until("the extension", |_| workspace.join("active").exists().then_some(()));
    // It has no model before its extension was needed, and says so.
    let run = stage.send_for_run(&session, "@script hello");
    until_run_ended(&tail, &run);
    // The participant stays.
    stage.send(&session, "hello again");
    tail.until(|event| is_said(event, "you said hello again to kite-"));

    notes_are_decided_on((&stage, &session, &tail), &workspace, "The line is ", "allow_always");

    let run = stage.send_for_run(&session, "slow 400");
    stage.place.told(&["interrupt", &session]);
    let ended = until_run_ended(&tail, &run);
    assert!(!ended.iter().any(|event| is_said(event, "finished")), "{ended:?}");

    let config = json!({"type": "agent_config_request", "session_id": session,
        "request_id": "config"});
    let config = person::asked(&stage, config, |frame| frame["available_models"].is_array());
    assert_eq!(config["model_id"], "kite-large", "{config}");
    let models = config["available_models"].as_array().unwrap();
    assert!(models.contains(&json!("kite-small")), "{config}");
    person::choose(&stage, &session, "kite-small");
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
    let (url, workspace) = code_server(&mut stage, &CHAT);
    stage.up();
    stage.open_url(&format!("{url}?folder={}", workspace.display()));
    let session = stage.session("vscode-chat");
    stage.until("the extension", |_| workspace.join("active").exists().then_some(()));
    let tail = Lines::of(stage.place.farhelm(&["tail", &session, "--after", "0", "--json"]));
    let run = stage.send_for_run(&session, "@script hello");
    until_run_ended(&tail, &run);
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

#[test]
#[ignore = "needs code-server: run `cargo xtask ide`"]
fn chats_are_opened_wherever_the_panel_is_and_outlive_reloads_and_kills() {
    let Some(mut stage) = Stage::new("chats of VS Code") else { return };
    let (url, workspace) = code_server(&mut stage, &CHAT);
    stage.up();
    let page = format!("{url}?folder=");
    let tab = stage.open_url(&format!("{page}{}", workspace.display()));
    let first = stage.session("vscode-chat");
    stage.until("the extension", |_| workspace.join("active").exists().then_some(()));
    let talk = |stage: &Stage, session: &str, words: &str| {
        let tail = Lines::of(stage.place.farhelm(&["tail", session, "--after", "0", "--json"]));
        stage.send(session, words);
        let bare = words.trim_start_matches("@script ");
        tail.until(|event| is_said(event, &format!("you said {bare} to kite-")))
    };
    // The first words find no model.
    stage.send(&first, "@script wake up");
    let _ = talk(&stage, &first, "@script in the first");

    // By its button.
    let second = id(&stage.place.json(&["launch", "vscode-chat", "--json"]));
    stage.until("the second", |all| healthy(all).filter(|it| *it == second));
    let seen = talk(&stage, &second, "in the second");
    assert_eq!(times_said(&seen, "in the first"), 0, "{seen:#?}");
    // In a panel that is too narrow for the button.
    narrow(&stage, &tab);
    let third = id(&stage.place.json(&["launch", "vscode-chat", "--json"]));
    let seen = talk(&stage, &third, "in the third");
    assert_eq!(times_said(&seen, "in the second"), 0, "{seen:#?}");
    // In a panel that somebody hides, at once and later: by the command palette.
    stage.click(&tab, ".auxiliarybar a.codicon-auxiliarybar-close");
    let fourth = id(&stage.place.json(&["launch", "vscode-chat", "--json"]));
    let _ = talk(&stage, &fourth, "in the fourth");
    stage.click(&tab, ".auxiliarybar a.codicon-auxiliarybar-close");
    stage
        .until("no panel", |all| all.iter().all(|it| it["status"] == "disconnected").then_some(()));
    let fifth = id(&stage.place.json(&["launch", "vscode-chat", "--json"]));
    let seen = talk(&stage, &fifth, "in the fifth");
    assert_eq!(times_said(&seen, "in the fourth"), 0, "{seen:#?}");
    assert_eq!(stage.sessions().len(), 5);

    // The machine is killed in the middle of a run, and comes back.
    stage.send(&fifth, "slow 40");
    stage.kill();
    stage.up();
    stage.until("the session", |all| healthy(all).filter(|it| *it == fifth));
    let tail = Lines::of(stage.place.farhelm(&["tail", &fifth, "--after", "0", "--json"]));
    let seen = tail.until(|event| is_said(event, "finished"));
    assert_eq!((times_said(&seen, "slow 40"), times_said(&seen, "finished")), (1, 1), "{seen:#?}");

    // The window is loaded anew in the middle of a run.
    let run = stage.send_for_run(&fifth, "slow 400");
    stage.reload(&tab);
    // It forgot the run, so what it tells from here on is of the page that came.
    until_run_ended(&tail, &run);
    stage.until("the session", |all| healthy(all).filter(|it| *it == fifth));
    let seen = talk(&stage, &fifth, "after the reload");
    for words in ["in the fifth", "slow 40", "slow 400", "after the reload"] {
        let said = seen.iter().filter(|event| event["message"]["role"] == "user");
        let times = said.filter(|event| event["message"]["content"] == words).count();
        assert_eq!(times, 1, "{words}: {seen:#?}");
    }

    // An IDE that is started for another folder.
    let other = stage.place.path("gull");
    std::fs::create_dir_all(&other).unwrap();
    let program = Program::chromium(&stage.place.path(""), &page);
    let start = program.configured("vscode-chat", free_port());
    stage.kill();
    stage.up_with(&["--ide-start", &start]);
    let other = other.to_str().unwrap();
    let sixth = id(&stage.place.json(&["launch", "vscode-chat", "--workspace", other, "--json"]));
    let sessions = stage.sessions();
    let started = sessions.iter().find(|it| id(it) == sixth).unwrap();
    assert_eq!(started["workspace_path"], other, "{sessions:#?}");
}

#[test]
#[ignore = "needs code-server: run `cargo xtask ide`"]
fn a_panel_in_a_webview_of_an_extension_is_used_by_the_profile_of_the_documentation() {
    let Some(mut stage) = Stage::new("a webview of VS Code") else { return };
    let (url, workspace) = code_server(&mut stage, &WEBVIEW);
    let folder = stage.place.path("profiles");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("my-panel.toml"), documented_profile()).unwrap();
    stage.up_with(&["--ide-profiles", folder.to_str().unwrap()]);
    let tab = stage.open_url(&format!("{url}?folder={}", workspace.display()));
    let session = stage.session("my-panel");
    let tail = Lines::of(stage.place.farhelm(&["tail", &session, "--after", "0", "--json"]));

    let words = "several lines, an emoji 😀\n\nand \"quotes\"";
    stage.send(&session, words);
    tail.until(|event| is_said(event, &format!("you said {words}")));

    notes_are_decided_on((&stage, &session, &tail), &workspace, "May I write ", "allow");

    stage.send(&session, "slow 400");
    stage.place.told(&["interrupt", &session]);
    tail.until(|event| is_said(event, "stopped"));

    // Its extension makes a new panel, and forgets what was said.
    stage.reload(&tab);
    tail.until(|event| is_now(event, "disconnected"));
    tail.until(|event| is_now(event, "healthy"));
    assert_eq!(stage.session("my-panel"), session);
    stage.send(&session, "after the reload");
    let seen = tail.until(|event| is_said(event, "you said after the reload"));
    assert_eq!(times_said(&seen, "after the reload"), 2, "{seen:#?}");
}

/// The example that people start from.
fn documented_profile() -> &'static str {
    let page = include_str!("../../../../docs/ide.md");
    let profile = page.split("```toml\n").find(|it| it.starts_with("id = \"my-panel\""));
    profile.and_then(|it| it.split("```").next()).unwrap()
}

/// As narrow as somebody can make the side bar of the Chat.
fn narrow(stage: &Stage, tab: &str) {
    let edge = "document.querySelector('.part.auxiliarybar').getBoundingClientRect().left - 2";
    let edge = stage.script(tab, edge).as_f64().unwrap();
    let mouse = |kind: &str, x: f64, buttons: u8| {
        let button = if buttons == 0 { "none" } else { "left" };
        let params = json!({"type": kind, "x": x, "y": 400, "button": button,
            "buttons": buttons, "clickCount": 1});
        ("Input.dispatchMouseEvent", params)
    };
    let moves = [
        mouse("mouseMoved", edge, 0),
        mouse("mousePressed", edge, 1),
        mouse("mouseMoved", edge + 60.0, 1),
        mouse("mouseMoved", edge + 150.0, 1),
        mouse("mouseReleased", edge + 150.0, 1),
    ];
    stage.in_page(tab, &moves);
    let button = "[...document.querySelectorAll(\"a[aria-label^='New Chat']\")]\
                  .some((it) => it.checkVisibility())";
    stage.until("a narrow panel", |_| (stage.script(tab, button) == false).then_some(()));
}

/// A note that is denied is not written, and one that is allowed is.
fn notes_are_decided_on(
    (stage, session, tail): (&Stage, &str, &Lines),
    workspace: &Path,
    asks: &str,
    allow: &str,
) {
    let note = workspace.join("note.txt");
    let asked = |line: &str| {
        stage.send(session, &format!("ask {line}"));
        let prompt = tail.until(|event| event["type"] == "permission_prompt").pop().unwrap();
        let words = prompt["prompt_text"].as_str().unwrap();
        assert!(words.contains(&format!("{asks}{line}")), "{prompt}");
        prompt
    };
    answer(stage, session, &asked("first line"), "deny");
    tail.until(|event| is_said(event, "no note: first line"));
    assert!(!note.exists());
    answer(stage, session, &asked("second line"), allow);
    tail.until(|event| is_said(event, "the note is written: second line"));
    assert_eq!(std::fs::read_to_string(note).unwrap(), "second line");
}

/// Presses the button of this meaning.
fn answer(stage: &Stage, session: &str, prompt: &Value, choice: &str) {
    let id = prompt["prompt_id"].as_str().unwrap();
    stage.place.told(&["answer", session, id, choice]);
}
