//! What can be said and done in a panel from afar.

use serde_json::json;

use crate::ide::stage::{Stage, id, until_run_ended};
use crate::support::{Lines, said};

/// Panels whose whole loop is tried: a webview in another process, and pages with other editors.
const LOOPS: [&str; 4] = ["claude-vscode", "codex-vscode", "opencode-web", "vscode-chat"];

/// Speaks ACP in a few lines of shell.
const PROGRAM: &str = r#"
say() { printf '%s\n' "$1"; }
read -r line; say '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
read -r line; say '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"c1"}}'
read -r line
say '{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"echo: from a program"}}}}'
say '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
while read -r line; do :; done
"#;

#[test]
fn a_panel_stands_beside_a_program_and_is_used_by_the_same_commands() {
    let Some(mut stage) = Stage::new("a panel beside a program") else { return };
    let mine = json!({"name": "mine", "command": "sh", "args": ["-c", PROGRAM]}).to_string();
    stage.up_with(&["--agents", &mine]);
    let work = stage.place.path("work");
    std::fs::create_dir(&work).unwrap();
    let words = ["launch", "mine", "--workspace", work.to_str().unwrap(), "--json"];
    let program = id(&stage.place.json(&words));
    stage.open("claude-vscode", "ide", "title=main.rs%20-%20kite%20-%20Visual%20Studio%20Code");
    let panel = stage.session("claude-vscode");

    let listed = stage.place.told(&["sessions"]);
    let line = |session: &str| {
        let mut lines = listed.lines();
        lines.find(|line| line.contains(session)).unwrap_or_else(|| panic!("{listed}")).to_owned()
    };
    assert!(line(&program).contains("mine"), "{listed}");
    assert!(line(&panel).contains("claude-vscode"), "{listed}");
    for session in [&program, &panel] {
        let tail = Lines::of(stage.place.farhelm(&["tail", session, "--after", "0", "--json"]));
        stage.send(session, "from a program");
        tail.until(|event| said(event).is_some_and(|it| it == "echo: from a program"));
        tail.until(|event| event["type"] == "run_ended");
        stage.place.told(&["close", session]);
        tail.until(|event| event["type"] == "session_closed");
    }
}

#[test]
fn a_panel_is_a_session_that_is_sent_to_asked_and_stopped() {
    let Some(mut stage) = Stage::new("panels as sessions") else { return };
    stage.up();
    for panel in LOOPS {
        let tab = stage.open(panel, panel, "");
        let session = stage.session(panel);
        let tail = Lines::of(stage.place.farhelm(&["tail", &session, "--after", "0", "--json"]));

        stage.send(&session, "hello from afar");
        tail.until(|event| said(event).is_some_and(|it| it.contains("echo: hello from afar")));
        stage.noted_exactly(panel, "sent", 1);

        stage.send(&session, "ask: delete everything?");
        let asked = tail.until(|event| event["type"] == "permission_prompt");
        let prompt = asked.last().unwrap();
        assert!(prompt["prompt_text"].as_str().unwrap().contains("delete everything?"), "{prompt}");
        let choices = prompt["choices"].as_array().unwrap();
        let no = choices.iter().find(|it| it["choice_id"] == "deny").unwrap_or(&choices[0]);
        let id = prompt["prompt_id"].as_str().unwrap();
        let choice = no["choice_id"].as_str().unwrap();
        stage.place.told(&["answer", &session, id, choice]);
        tail.until(|event| said(event).is_some_and(|it| it.contains("chose: ")));

        let run = stage.send_for_run(&session, "slow: 200");
        stage.place.told(&["interrupt", &session]);
        until_run_ended(&tail, &run);
        stage.until_noted(panel, "stopped", 1);
        stage.call("Target.closeTarget", json!({"targetId": tab}));
    }
}
