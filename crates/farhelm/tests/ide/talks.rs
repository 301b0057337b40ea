//! What can be said and done in a panel from afar.

use serde_json::json;

use crate::stage::Stage;
use crate::support::{Lines, said};

/// Panels whose whole loop is tried: a webview in another process, and pages with other editors.
const LOOPS: [&str; 4] = ["claude-vscode", "codex-vscode", "opencode-web", "vscode-chat"];

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
        let sent = stage.panels.journal(panel);
        let sent: Vec<_> = sent.iter().filter(|entry| entry["kind"] == "sent").collect();
        assert_eq!(sent.len(), 1, "{panel}: {sent:?}");

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

        stage.send(&session, "slow: 200");
        tail.until(|event| event["type"] == "run_started");
        stage.place.told(&["interrupt", &session]);
        tail.until(|event| event["type"] == "run_ended");
        stage.until("the stop", |_| {
            let journal = stage.panels.journal(panel);
            journal.iter().any(|entry| entry["kind"] == "stopped").then_some(())
        });
        stage.call("Target.closeTarget", json!({"targetId": tab}));
    }
}
