//! Panels that are not as they should be.

use serde_json::{Value, json};

use crate::ide::stage::{Stage, id};
use crate::support::{Lines, said};

const PROFILE: &str = include_str!("../../../agents/src/panel/profiles/claude-vscode.toml");

#[test]
fn nothing_is_typed_into_a_panel_that_changed_and_the_doctor_says_what_moved() {
    let Some(mut stage) = Stage::new("a changed panel") else { return };
    stage.up();
    let tab = stage.open("antigravity", "ide", "");
    let session = stage.session("antigravity");
    stage.panel_does(&tab, &json!({"do": "drop-composer"}));
    stage.until("the change", |sessions| {
        (sessions[0]["status"] == "agent_ui_changed").then_some(())
    });
    let why = stage.sessions()[0]["status_reason"].clone();
    assert!(why.as_str().unwrap().contains("input field"), "who comes later is told too: {why}");
    let sent = stage.place.run(&["send", &session, "never", "--timeout-ms", "20000"]);
    assert_eq!(sent.status.code(), Some(1));
    let journal = stage.panels.journal("ide");
    assert!(!journal.iter().any(|entry| entry["kind"] == "sent"), "{journal:?}");

    let port = stage.port.to_string();
    let output = stage.place.run(&["doctor", "cdp", "--ide-ports", &port, "--json"]);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    let text = told.to_string();
    assert!(text.contains("full control"), "{text}");
    assert!(text.contains("composer"), "{text}");
    let kept = stage.place.data().join("panels/skeletons/antigravity.json");
    let kept = std::fs::read_to_string(kept).unwrap();
    assert!(kept.contains("\"profile\":\"antigravity\""), "{kept}");
}

#[test]
fn a_changed_profile_counts_at_once_also_for_a_question_that_waits() {
    let Some(mut stage) = Stage::new("a changed profile") else { return };
    let folder = stage.place.path("profiles");
    std::fs::create_dir(&folder).unwrap();
    stage.up_with(&["--ide-profiles", folder.to_str().unwrap()]);
    stage.open("claude-vscode", "ide", "ask=Delete%20it%3F");
    let session = stage.session("claude-vscode");
    let tail = Lines::of(stage.place.farhelm(&["tail", &session, "--after", "0", "--json"]));
    let is_asked = |event: &Value, choice: &str| {
        event["type"] == "permission_prompt" && event["choices"].to_string().contains(choice)
    };
    tail.until(|event| is_asked(event, "\"deny\""));

    let changed = PROFILE.replace("id = \"deny\"", "id = \"never\"");
    assert_ne!(changed, PROFILE);
    std::fs::write(folder.join("mine.toml"), changed).unwrap();
    let asked = tail.until(|event| is_asked(event, "\"never\""));
    let prompt = asked.last().unwrap()["prompt_id"].as_str().unwrap();
    stage.place.told(&["answer", &session, prompt, "never"]);
    tail.until(|event| said(event).is_some_and(|it| it.contains("chose: No")));
}

#[test]
fn inspection_shows_targets_profiles_and_landmarks() {
    let Some(stage) = Stage::new("inspection") else { return };
    stage.open("claude-vscode", "ide", "");
    let port = stage.port.to_string();
    let begun = std::time::Instant::now();
    let panel = loop {
        let seen = stage.place.json(&["cdp", "inspect", "--ide-ports", &port, "--json"]);
        let targets = seen["ports"][0]["targets"].as_array().unwrap().clone();
        let panels = targets.iter().filter_map(|it| it["panels"].get(0).cloned());
        // The page may still be loading.
        let is_whole = |it: &Value| {
            it["landmarks"]
                .as_array()
                .unwrap()
                .iter()
                .all(|it| it["is_required"] == false || !it["alternative"].is_null())
        };
        let mut panels = panels.filter(|it| it["profile"] == "claude-vscode" && is_whole(it));
        if let Some(panel) = panels.next() {
            break panel;
        }
        assert!(begun.elapsed() < crate::support::PATIENCE, "{seen}");
    };
    let landmarks = panel["landmarks"].as_array().unwrap();
    let composer = landmarks.iter().find(|it| it["name"] == "composer").unwrap();
    assert_eq!((&composer["alternative"], &composer["is_required"]), (&json!(0), &json!(true)));
    let words = stage.place.told(&["cdp", "inspect", "--ide-ports", &port]);
    assert!(words.contains("claude-vscode (revision") && words.contains("composer"), "{words}");

    let nowhere = stage.place.run(&["cdp", "inspect", "--ide-ports", "1"]);
    assert_eq!(nowhere.status.code(), Some(1));
    let wrong = stage.place.run(&["cdp", "inspect", "--ide-ports", "192.168.0.9:9222"]);
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn a_login_page_says_what_to_do_and_is_not_typed_into() {
    let Some(mut stage) = Stage::new("login pages") else { return };
    stage.up();
    stage.open("claude-vscode", "ide", "mutate=login");
    let session = stage.until("the login page", |sessions| {
        let one = sessions.iter().find(|it| it["agent_type"] == "claude-vscode")?;
        (one["status"] == "degraded").then(|| id(one))
    });
    let tail = Lines::of(stage.place.farhelm(&["tail", &session, "--after", "0", "--json"]));
    tail.until(|event| event.to_string().contains("Log in to Claude Code"));
    let sent = stage.place.run(&["send", &session, "never", "--json"]);
    assert_eq!(sent.status.code(), Some(1));
    let words = String::from_utf8_lossy(&sent.stdout).into_owned();
    assert!(words.contains("agent_not_active"), "{words}");
    let journal = stage.panels.journal("ide");
    assert!(journal.iter().all(|it| it["kind"] == "ready"), "{journal:?}");
}
