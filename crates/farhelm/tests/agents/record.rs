//! Makes the recordings of `fixtures/agents`: one conversation with each real program, as its
//! driver saw it (`cargo xtask record`).

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::agents::agent::Agent;
use crate::agents::installed::{Installed, list};
use crate::agents::stage::Stage;

/// Where the recordings go; without it there is nothing to record for.
const FOLDER_VARIABLE: &str = "FARHELM_RECORD_INTO";
/// Longer texts are the agent's own (descriptions, instructions), and no driver reads them.
const TEXT_CHARACTERS_MAX: usize = 120;
/// Longer lists are of tools and commands.
const ITEMS_MAX: usize = 12;

/// Plain words, thinking, a tool allowed, one refused, a failure of the model, an interrupt.
pub(crate) async fn record(agent: &'static Agent) {
    let folder = std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| panic!("run `cargo xtask record`"));
    let notes = tempfile::tempdir().unwrap();
    let variable = ("FARHELM_RECORD_LINES", notes.path().to_str().unwrap());
    let mut stage = Stage::open_with(agent, &[variable]).await;

    stage.exchange("hello there friend").await;
    let sent = stage.send("think: about it").await;
    stage.done(&sent, "completed").await;
    for (answer, name) in [("allow_once", "ok-dir"), ("reject", "bad-dir")] {
        let sent = stage.send(&format!("{}mkdir {name} && echo made", agent.asking)).await;
        let prompt = stage.prompt(sent.mark).await;
        stage.answer(&prompt, answer, &json!({})).await;
        stage.run_ended(sent.mark).await;
    }
    if agent.fails_at_once {
        let sent = stage.send("fail: 400").await;
        stage.run_ended(sent.mark).await;
    }
    let sent = stage.send("slow: 300").await;
    stage.client.wait(sent.mark, "words", |frame| frame["type"] == "message_delta").await;
    stage.interrupt().await;
    stage.done(&sent, "interrupted").await;

    let version = Installed::find(agent.name).version;
    let model = stage.model.base_url();
    let (home, work) = (stage.path("home"), stage.work());
    drop(stage);
    let recorded = only_file(notes.path());
    let text = std::fs::read_to_string(recorded).unwrap();
    let text = text
        .replace(&*work.to_string_lossy(), "<WORK>")
        .replace(&*home.to_string_lossy(), "<HOME>")
        .replace(&model, "<MODEL>")
        .replace(&*list().parent().unwrap().to_string_lossy(), "<AGENTS>");
    let lines: Vec<String> = text.lines().map(shortened).collect();
    let text = with_version(&format!("{}\n", lines.join("\n")), &version);
    std::fs::create_dir_all(&folder).unwrap();
    for entry in std::fs::read_dir(&folder).unwrap().flatten() {
        // What was seen of it goes with a recording.
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(&format!("{}-", agent.name)) {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
    std::fs::write(folder.join(format!("{}-{version}.jsonl", agent.name)), text).unwrap();
}

fn only_file(folder: &Path) -> PathBuf {
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().flatten().collect();
    assert_eq!(files.len(), 1, "one session, one recording");
    files.remove(0).path()
}

/// The first line says whose recording it is.
fn with_version(text: &str, version: &str) -> String {
    let (head, rest) = text.split_once('\n').unwrap();
    let mut head: Value = serde_json::from_str(head.strip_prefix("# ").unwrap()).unwrap();
    head["version"] = json!(version);
    format!("# {head}\n{rest}")
}

/// Long lists (of commands, of tools) and long texts keep their beginning.
fn shortened(line: &str) -> String {
    let (sign, json) = line.split_once(' ').unwrap_or(("", line));
    let Ok(mut value) = serde_json::from_str::<Value>(json) else { return line.to_owned() };
    shorten(&mut value);
    format!("{sign} {value}")
}

fn shorten(value: &mut Value) {
    match value {
        Value::String(text) if text.chars().count() > TEXT_CHARACTERS_MAX => {
            *text = text.chars().take(TEXT_CHARACTERS_MAX / 2).chain(['…']).collect();
        }
        Value::Array(items) => {
            items.truncate(ITEMS_MAX);
            items.iter_mut().for_each(shorten);
        }
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
