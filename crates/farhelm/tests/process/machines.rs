//! What a machine has to start and to go on with, through the real binary.

use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::{PATIENCE, Place};

fn refused(place: &Place, words: &[&str]) -> String {
    let output = place.run(words);
    assert_eq!(output.status.code(), Some(1), "{words:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn agent(catalog: &Value, name: &str) -> Value {
    let agents = catalog["machines"][0]["agents"].as_array().unwrap();
    agents.iter().find(|it| it["agent_type"] == name).cloned().unwrap_or(Value::Null)
}

fn install(place: &Place, name: &str, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(place.path("bin")).unwrap();
    let file = place.path("bin").join(name);
    std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
}

fn keep(place: &Place, id: &str, words: &str, folder: &Path) {
    let below = place.path(".claude/projects/-kite");
    std::fs::create_dir_all(&below).unwrap();
    let record = json!({"type": "user", "uuid": format!("u-{id}"), "sessionId": id, "cwd": folder,
        "timestamp": "2026-01-01T00:00:00.000Z",
        "message": {"role": "user", "content": words}});
    std::fs::write(below.join(format!("{id}.jsonl")), format!("{record}\n")).unwrap();
}

// spec: native/catalog.3
#[test]
fn an_agent_is_offered_when_it_is_there_also_when_it_comes_later() {
    let place = Place::new();
    let _up = place.up(&[]);
    let catalog = place.json(&["launch", "--json"]);
    assert_eq!(agent(&catalog, "demo")["installed"], true);
    assert_eq!(agent(&catalog, "claude")["installed"], false);
    let words = refused(&place, &["launch", "claude"]);
    assert!(words.contains("npm install") && words.contains("agent_not_open"), "{words}");
    assert!(words.contains("Available agents: demo"), "{words}");
    let words = refused(&place, &["launch", "nobody"]);
    assert!(words.contains("launch_not_supported"), "{words}");

    install(&place, "claude", "[ \"$1\" = --version ] && echo '9.8.7 (Claude Code)'; exit 3");
    // It is looked for again because somebody wants it; it is no real one, so it does not start.
    let words = refused(&place, &["launch", "claude"]);
    assert!(!words.contains("is not installed on this machine"), "{words}");
    let begun = Instant::now();
    loop {
        let claude = agent(&place.json(&["launch", "--json"]), "claude");
        if claude["version"] == "9.8.7" {
            assert_eq!(claude["installed"], true);
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{claude}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn earlier_conversations_are_listed_and_folders_are_bounded() {
    let place = Place::new();
    let folder = place.path("src/kite");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::create_dir_all(place.path("elsewhere")).unwrap();
    keep(&place, "thread-1", "Rename the flag", &folder);
    install(&place, "mine", "exit 3");
    let file = place.path("farhelm.toml");
    let roots = place.path("src").display().to_string();
    std::fs::write(
        &file,
        format!(
            "allowed-roots = [\"{roots}\"]\nworkspaces = [\"{roots}/kite\"]\nno-demo = true\n\n\
         [[agents]]\nname = \"mine\"\ncommand = \"mine\"\nargs = [\"acp\"]\n"
        ),
    )
    .unwrap();
    let config = file.display().to_string();
    let _up = place.up(&["--config", &config]);

    let listed = place.json(&["resume", "--agent", "claude", "--json"]);
    let one = &listed["conversations"][0];
    assert_eq!(
        (&one["conversation_id"], &one["title"]),
        (&json!("thread-1"), &json!("Rename the flag"))
    );
    assert_eq!(one["workspace_path"], json!(folder));
    let words = refused(&place, &["resume", "--agent", "claude", "thread-2"]);
    assert!(words.contains("agent_not_open"), "{words}");

    let catalog = place.json(&["launch", "--json"]);
    assert_eq!(agent(&catalog, "mine")["installed"], true);
    assert_eq!(catalog["machines"][0]["workspaces"][0], json!(folder));
    let elsewhere = place.path("elsewhere").display().to_string();
    let words = refused(&place, &["launch", "mine", "--workspace", &elsewhere]);
    assert!(words.contains("path_not_allowed"), "{words}");
    let words = refused(&place, &["launch", "mine", "--workspace", &format!("{roots}/none")]);
    assert!(words.contains("it does not exist"), "{words}");
}

#[test]
fn earlier_conversations_of_an_agent_are_those_of_the_home_that_is_set_for_it() {
    let place = Place::new();
    let folder = place.path("src/kite");
    std::fs::create_dir_all(&folder).unwrap();
    keep(&place, "thread-1", "Of the person", &folder);
    let other = place.path("other");
    std::fs::create_dir_all(&other).unwrap();
    std::fs::rename(place.path(".claude"), other.join(".claude")).unwrap();
    let codex = place.path("codex-home/sessions/2026/01/01");
    std::fs::create_dir_all(&codex).unwrap();
    let meta = json!({"timestamp": "2026-01-01T00:00:00.000Z", "type": "session_meta",
        "payload": {"id": "thread-2", "cwd": folder, "timestamp": "2026-01-01T00:00:00.000Z"}});
    let said = json!({"timestamp": "2026-01-01T00:00:01.000Z", "type": "event_msg",
        "payload": {"type": "user_message", "message": "Of Codex"}});
    let rollout = codex.join("rollout-2026-01-01T00-00-00-thread-2.jsonl");
    std::fs::write(rollout, format!("{meta}\n{said}\n")).unwrap();
    let file = place.path("farhelm.toml");
    let (home, codex_home) = (other.display(), place.path("codex-home"));
    std::fs::write(
        &file,
        format!(
            "no-demo = true\n\n[[agents]]\nname = \"claude\"\ncommand = \"claude\"\n\
             env = {{ HOME = \"{home}\" }}\n\n[[agents]]\nname = \"codex\"\n\
             command = \"codex\"\nenv = {{ CODEX_HOME = \"{}\" }}\n",
            codex_home.display()
        ),
    )
    .unwrap();
    let _up = place.up(&["--config", &file.display().to_string()]);
    for (agent, id) in [("claude", "thread-1"), ("codex", "thread-2")] {
        let listed = place.json(&["resume", "--agent", agent, "--json"]);
        assert_eq!(listed["conversations"][0]["conversation_id"], id, "{agent}: {listed}");
        // It is found there as well: what is missing is only the program.
        let words = refused(&place, &["resume", "--agent", agent, id]);
        assert!(words.contains("agent_not_open"), "{words}");
    }
    let all = place.json(&["resume", "--json"]);
    assert_eq!(all["conversations"].as_array().unwrap().len(), 2, "{all}");
}

#[test]
fn what_is_not_there_is_named_as_what_it_is() {
    let place = Place::new();
    let _up = place.up(&["--machine", "attic"]);
    let words = refused(&place, &["launch", "demo", "--machine", "mars"]);
    assert!(words.contains("no machine named mars") && words.contains("attic"), "{words}");
    for command in [
        &["run", "demo", "--machine", "mars"][..],
        &["resume", "--machine", "mars"],
        &["resume", "--machine", "mars", "--agent", "demo"],
        &["resume", "--machine", "mars", "thread-1"],
        &["resume", "--machine", "mars", "--agent", "demo", "thread-1"],
    ] {
        let words = refused(&place, command);
        assert!(words.contains("no machine named mars") && words.contains("attic"), "{words}");
    }
    let words = refused(&place, &["launch", "demo", "--workspace", "/does/not/exist"]);
    assert!(words.contains("Cannot use the folder /does/not/exist"), "{words}");
    let folder = place.path("").display().to_string();
    place.told(&["launch", "demo", "--machine", "attic", "--workspace", &folder]);
}

#[test]
fn the_doctor_shows_agents_and_guards() {
    let place = Place::new();
    install(&place, "codex", "echo codex-cli 0.1.2");
    let output = place.run(&["doctor", "--agents-max", "3", "--json"]);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = told["checks"].as_array().unwrap();
    let words = |name: &str| -> Vec<&str> {
        let named = checks.iter().filter(|check| check["name"] == name);
        named.map(|check| check["words"].as_str().unwrap()).collect()
    };
    assert!(
        words("agent").iter().any(|it| it.starts_with("Codex") && it.contains("0.1.2")),
        "{told}"
    );
    let claude = checks.iter().find(|it| it["words"] == "Claude Code is not installed");
    assert!(claude.unwrap()["advice"].as_str().unwrap().contains("npm install"), "{told}");
    assert!(words("guards")[0].contains("at most 3 agents"), "{told}");
}

// spec: native/launch_session.8
#[test]
fn an_owner_runs_an_agent_with_arguments_of_its_own_and_nobody_else_does() {
    let place = Place::new();
    let told = place.path("arguments");
    install(&place, "claude", &format!("printf '%s\\n' \"$@\" > '{}'; exit 3", told.display()));
    let _up = place.up(&["--no-demo"]);
    let folder = place.path("").display().to_string();
    let run = ["run", "claude", "--workspace", &folder, "--", "--add-dir", "a b"];
    refused(&place, &run);
    let written = std::fs::read_to_string(&told).unwrap();
    assert!(written.starts_with("--add-dir\na b\n-p\n"), "{written}");

    let operator = place.json(&["token", "create", "--role", "operator", "--name", "o", "--json"]);
    std::fs::remove_file(&told).unwrap();
    let mut words = run.to_vec();
    let token = operator["token"].as_str().unwrap();
    words.splice(2..2, ["--token", token]);
    let said = refused(&place, &words);
    assert!(said.contains("unauthorized") && said.contains("owner"), "{said}");
    assert!(!told.exists());
}
