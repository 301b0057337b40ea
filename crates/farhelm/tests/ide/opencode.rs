//! opencode's own web page, with a scripted model behind it.

use std::path::PathBuf;

use fake_model::homes::{Agent, prepare_home};
use fake_model::{FakeModel, Options, Pace};
use serde_json::{Value, json};

use crate::guest::everybody;
use crate::ide::dialects::{decide, stop, talk};
use crate::ide::foreign::{ending, fetched, times_said};
use crate::ide::person::{asked, choose, upload};
use crate::ide::stage::{Stage, healthy, id, until_run_ended};
use crate::ide::starting::free_port;
use crate::support::{Lines, PATIENCE, said};

const PICTURE: &[u8] = include_bytes!("../agents/picture.png");
/// How a picture of this kind begins, as the services of models are sent them.
const PICTURE_BEGINS: &str = "iVBORw0KGgo";

fn is_said(event: &Value, words: &str) -> bool {
    said(event).is_some_and(|it| it.contains(words))
}

/// Its model, while it runs, and where it is.
struct Opencode {
    workspace: PathBuf,
    session: String,
    tab: String,
    model: FakeModel,
}

/// A page of it that is a session.
fn opencode(stage: &mut Stage) -> Opencode {
    let model = FakeModel::start_with(&Options { port: 0, log_file: None, pace: Pace::QUICK });
    let model = model.unwrap();
    let (home, workspace) = (stage.place.path("opencode-home"), stage.place.path("kite"));
    std::fs::create_dir_all(&workspace).unwrap();
    let environment = prepare_home(Agent::Opencode, &home, &model.base_url()).unwrap();
    let (program, script, path) = fetched("opencode");
    let mut command = ending(&program);
    // For 0 it takes a port that it likes, and another opencode may listen there.
    let port = free_port().to_string();
    command.args(script).args(["serve", "--hostname", "127.0.0.1", "--port", &port]);
    command.env_clear().envs(environment).env("PATH", path).current_dir(&workspace);
    let url = stage.serve(command);
    stage.up();
    let folder = base64url(workspace.to_str().unwrap());
    let tab = stage.open_url(&format!("{}/{folder}/session", url.trim_end_matches('/')));
    let session = stage.session("opencode-web");
    Opencode { workspace, session, tab, model }
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
    let Opencode { workspace, session, tab, model, .. } = &opencode(&mut stage);
    let tail = Lines::of(stage.place.farhelm(&["tail", session, "--after", "0", "--json"]));

    stage.send(session, "hello from afar");
    tail.until(|event| {
        is_said(event, "hello from afar") && event["message"]["role"] == "assistant"
    });

    let run = stage.send_for_run(session, "run: echo kite > flown.txt");
    let asked = tail.until(|event| event["type"] == "permission_prompt");
    answer(&stage, session, asked.last().unwrap(), "deny");
    until_run_ended(&tail, &run);
    assert!(!workspace.join("flown.txt").exists());

    let run = stage.send_for_run(session, "run: echo kite > flown.txt");
    let asked = tail.until(|event| event["type"] == "permission_prompt");
    answer(&stage, session, asked.last().unwrap(), "allow");
    until_run_ended(&tail, &run);
    assert!(workspace.join("flown.txt").exists());

    let run = stage.send_for_run(session, "slow: 400");
    stage.place.told(&["interrupt", session]);
    until_run_ended(&tail, &run);

    choose_a_model(&stage, session, &tail);
    show_a_picture(&stage, session, &tail, model);
    open_chats(&stage, session, tab);
    outlive(&mut stage, tab);
}

fn choose_a_model(stage: &Stage, session: &str, tail: &Lines) {
    let config = json!({"type": "agent_config_request", "session_id": session,
        "request_id": "config"});
    let config = asked(stage, config, |frame| frame["available_models"].is_array());
    assert_eq!(config["model_id"], "fake-a", "{config}");
    assert_eq!(config["available_models"], json!(["fake-a", "fake-b"]), "{config}");
    choose(stage, session, "fake-b");
    tail.until(|event| event["type"] == "agent_config" && event["model_id"] == "fake-b");
    stage.send(session, "who are you");
    tail.until(|event| is_said(event, "echo(fake-b): who are you"));
}

fn show_a_picture(stage: &Stage, session: &str, tail: &Lines, model: &FakeModel) {
    let picture = json!({"attachment_id": upload(stage, PICTURE), "name": "picture.png",
        "kind": "uploaded_file"});
    let send = json!({"type": "send_message", "session_id": session, "client_message_id": "picture",
        "content": "what is this", "attachments": [picture],
        "created_at": "2026-11-16T10:00:00.000Z"});
    let is_it = |frame: &Value| frame["client_message_id"] == "picture";
    let ends = ["message_delivered", "message_failed"];
    let is_over = |frame: &Value| ends.iter().any(|end| frame["type"] == *end);
    let told = asked(stage, send, |frame| is_it(frame) && is_over(frame));
    assert_eq!(told["type"], "message_delivered", "{told}");
    let has = |body: &Value| body.to_string().contains(PICTURE_BEGINS);
    let seen = stage.block_on(model.wait_for(PATIENCE, |seen| has(&seen.body)));
    assert!(seen.is_some(), "the model never saw the picture");
    // A client that names no features is told of no run.
    let message = tail.until(|event| event["message"]["message_id"] == "picture").pop().unwrap();
    until_run_ended(tail, message["message"]["run_id"].as_str().unwrap());
}

fn open_chats(stage: &Stage, first: &str, tab: &str) {
    let before = stage.script(tab, "location.pathname");
    let second = id(&stage.place.json(&["launch", "opencode-web", "--json"]));
    stage.until("the second", |all| healthy(all).filter(|it| *it == second));
    let tail = Lines::of(stage.place.farhelm(&["tail", &second, "--after", "0", "--json"]));
    stage.send(&second, "in the second chat");
    let seen = tail.until(|event| is_said(event, "echo(fake-b): in the second chat"));
    assert_eq!(times_said(&seen, "who are you"), 0, "{seen:#?}");

    // The page shows the first chat again.
    stage.click(tab, &format!("a[data-titlebar-tab-link][href={before}]"));
    stage.until("the first again", |all| healthy(all).filter(|it| it == first));
    let tail = Lines::of(stage.place.farhelm(&["tail", first, "--after", "0", "--json"]));
    stage.send(first, "in the first again");
    let seen = tail.until(|event| is_said(event, "echo(fake-b): in the first again"));
    assert_eq!(times_said(&seen, "in the second chat"), 0, "{seen:#?}");
    assert_eq!(times_said(&seen, "echo(fake-b): who are you"), 1, "{seen:#?}");
}

/// The machine is killed, and the page loaded anew, each in the middle of a run.
fn outlive(stage: &mut Stage, tab: &str) {
    let session = healthy(&stage.sessions()).unwrap();
    for (number, is_kill) in [true, false].into_iter().enumerate() {
        stage.send(&session, "slow: 40");
        if is_kill {
            stage.kill();
            stage.up();
        } else {
            stage.reload(tab);
        }
        stage.until("the session", |all| healthy(all).filter(|it| *it == session));
        let words = format!("after number {number}");
        let tail = Lines::of(stage.place.farhelm(&["tail", &session, "--after", "0", "--json"]));
        stage.send(&session, &words);
        let seen = tail.until(|event| is_said(event, &format!("echo(fake-b): {words}")));
        for (words, times) in [("who are you", 1), ("slow: 40", number + 1), (&words, 1)] {
            let said = seen.iter().filter(|event| event["message"]["role"] == "user");
            let found = said.filter(|event| event["message"]["content"] == words).count();
            assert_eq!(found, times, "{words}: {seen:#?}");
        }
        assert_eq!(times_said(&seen, "echo(fake-b): who are you"), 1, "{seen:#?}");
    }
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
