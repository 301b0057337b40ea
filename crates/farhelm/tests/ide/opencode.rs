//! opencode's own web page, with a scripted model behind it.

use std::path::PathBuf;
use std::process::Command;

use fake_model::homes::{Agent, prepare_home};
use fake_model::{FakeModel, Options, Pace};
use serde_json::Value;

use crate::dialects::{decide, stop, talk};
use crate::foreign::{Served, fetched};
use crate::guest::everybody;
use crate::stage::Stage;
use crate::support::{Lines, said};

fn is_said(event: &Value, words: &str) -> bool {
    said(event).is_some_and(|it| it.contains(words))
}

/// Its server and its model, while they run.
struct Opencode {
    workspace: PathBuf,
    session: String,
    _server: Served,
    _model: FakeModel,
}

/// A page of it that is a session.
fn opencode(stage: &mut Stage) -> Opencode {
    let model = FakeModel::start_with(&Options { port: 0, log_file: None, pace: Pace::QUICK });
    let model = model.unwrap();
    let (home, workspace) = (stage.place.path("opencode-home"), stage.place.path("kite"));
    std::fs::create_dir_all(&workspace).unwrap();
    let environment = prepare_home(Agent::Opencode, &home, &model.base_url()).unwrap();
    let (program, script, path) = fetched("opencode");
    let mut command = Command::new(program);
    command.args(script).args(["serve", "--hostname", "127.0.0.1", "--port", "0"]);
    command.env_clear().envs(environment).env("PATH", path).current_dir(&workspace);
    let server = Served::start(command);
    stage.up();
    let folder = base64url(workspace.to_str().unwrap());
    stage.open_url(&format!("{}/{folder}/session", server.url.trim_end_matches('/')));
    let session = stage.session("opencode-web");
    Opencode { workspace, session, _server: server, _model: model }
}

#[test]
#[ignore = "needs opencode: run `cargo xtask ide`"]
fn clients_of_every_dialect_talk_decide_and_stop_in_it() {
    let Some(mut stage) = Stage::new("opencode's page, all dialects") else { return };
    let Opencode { workspace, session, .. } = &opencode(&mut stage);
    let (host, token) = stage.relay();
    stage.block_on(async {
        let mut guests = everybody((&host, &token), session, "").await;
        let said = talk(&mut guests).await;
        for guest in &guests {
            assert_eq!(guest.people(), said, "{}", guest.dialect);
            assert_eq!(guest.agent().len(), said.len(), "{}: {:?}", guest.dialect, guest.seen);
        }
        for deciding in 0..guests.len() {
            let file = format!("{}.txt", guests[deciding].dialect);
            let allow = deciding % 2 == 0;
            decide(&mut guests, deciding, ("run: ", &format!("touch {file}")), allow).await;
            for guest in &mut guests {
                guest.until_ended().await;
            }
            assert_eq!(workspace.join(&file).exists(), allow, "{file}");
        }
        for stopping in 0..guests.len() {
            stop(&mut guests, stopping, "slow: 400").await;
        }
    });
}

#[test]
#[ignore = "needs opencode: run `cargo xtask ide`"]
fn a_page_of_opencode_is_a_session_that_is_sent_to_asked_and_stopped() {
    let Some(mut stage) = Stage::new("opencode's page") else { return };
    let Opencode { workspace, session, .. } = &opencode(&mut stage);
    let tail = Lines::of(stage.place.farhelm(&["tail", session, "--after", "0", "--json"]));

    stage.send(session, "hello from afar");
    tail.until(|event| {
        is_said(event, "hello from afar") && event["message"]["role"] == "assistant"
    });

    stage.send(session, "run: echo kite > flown.txt");
    let asked = tail.until(|event| event["type"] == "permission_prompt");
    answer(&stage, session, asked.last().unwrap(), "deny");
    tail.until(|event| event["type"] == "run_ended");
    assert!(!workspace.join("flown.txt").exists());

    stage.send(session, "run: echo kite > flown.txt");
    let asked = tail.until(|event| event["type"] == "permission_prompt");
    answer(&stage, session, asked.last().unwrap(), "allow");
    tail.until(|event| event["type"] == "run_ended");
    assert!(workspace.join("flown.txt").exists());

    stage.send(session, "slow: 400");
    tail.until(|event| event["type"] == "run_started");
    stage.place.told(&["interrupt", session]);
    tail.until(|event| event["type"] == "run_ended");
}

/// Presses the button of this meaning.
fn answer(stage: &Stage, session: &str, prompt: &Value, choice: &str) {
    let id = prompt["prompt_id"].as_str().unwrap();
    stage.place.told(&["answer", session, id, choice]);
}

/// As the page writes a folder into its address.
fn base64url(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut written = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            let letter = bits >> (18 - 6 * place) & 63;
            written.push(char::from(LETTERS[usize::try_from(letter).unwrap()]));
        }
    }
    written
}
