//! The control dialect: sockets, standard input and output, and the official SDK.

#[path = "control_sdk.rs"]
mod sdk;

use std::io::Write as _;
use std::process::ChildStdin;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::support::{Lines, PATIENCE, Place, Up};

struct Client(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Client {
    async fn open(up: &Up, path: &str, token: &str) -> Result<Self, Error> {
        let host = up.told["url"].as_str().unwrap().strip_prefix("http://").unwrap();
        let join = if path.contains('?') { '&' } else { '?' };
        let token = if token.is_empty() { String::new() } else { format!("{join}token={token}") };
        let opened = connect_async(format!("ws://{host}{path}{token}")).await?;
        Ok(Self(opened.0))
    }

    async fn owner(up: &Up, session: &str) -> Self {
        let path = format!("/ws/control?session={session}");
        Self::open(up, &path, up.told["token"].as_str().unwrap()).await.unwrap()
    }

    async fn say(&mut self, frame: Value) {
        self.0.send(Message::text(frame.to_string())).await.unwrap();
    }

    async fn user(&mut self, uuid: &str, text: &str) {
        self.say(
            json!({ "type": "user", "uuid": uuid, "message": { "role": "user", "content": text } }),
        )
        .await;
    }

    async fn ask(&mut self, id: &str, request: Value) -> Value {
        self.say(json!({ "type": "control_request", "request_id": id, "request": request })).await;
        let is_answer = |frame: &Value| frame["response"]["request_id"] == *id;
        self.until(is_answer).await.pop().unwrap()["response"].take()
    }

    /// Everything up to the frame that fits.
    async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut seen = vec![];
        loop {
            let heard = tokio::time::timeout(PATIENCE, self.0.next()).await;
            let heard = heard.unwrap_or_else(|_| panic!("it never came; seen: {seen:#?}"));
            if let Message::Text(text) = heard.unwrap().unwrap() {
                seen.push(serde_json::from_str(&text).unwrap());
                if seen.last().is_some_and(&fits) {
                    return seen;
                }
            }
        }
    }

    /// Up to the close, and its code.
    async fn closed(&mut self) -> (Vec<Value>, u16) {
        let mut seen = vec![];
        loop {
            let heard = tokio::time::timeout(PATIENCE, self.0.next()).await.unwrap();
            match heard.unwrap().unwrap() {
                Message::Text(text) => seen.push(serde_json::from_str(&text).unwrap()),
                Message::Close(frame) => return (seen, frame.unwrap().code.into()),
                Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }
}

fn demo(place: &Place) -> String {
    let sessions = place.json(&["sessions", "--json"]);
    sessions["sessions"][0]["session_id"].as_str().unwrap().to_owned()
}

fn is(kind: &'static str) -> impl Fn(&Value) -> bool {
    move |frame| frame["type"] == kind
}

fn answer(id: &Value, response: &Value) -> Value {
    json!({ "type": "control_response",
        "response": { "subtype": "success", "request_id": id, "response": response } })
}

// spec: control/credentials.1
#[tokio::test]
async fn the_door_lets_in_who_it_should() {
    let place = Place::new();
    let up = place.up(&[]);
    let session = demo(&place);
    for token in ["", "wrong"] {
        let path = format!("/ws/control?session={session}");
        let Err(Error::Http(response)) = Client::open(&up, &path, token).await else {
            panic!("{token:?} was let in");
        };
        assert_eq!(response.status(), 401);
    }
    let mut nobody = Client::open(&up, "/ws", "").await.unwrap();
    nobody.say(json!({ "type": "control_request", "request_id": "r", "request": {} })).await;
    let (heard, code) = nobody.closed().await;
    assert_eq!((heard[0]["response"]["subtype"].as_str(), code), (Some("error"), 4003));
    let mut lost = Client::owner(&up, "sess_nobody_has").await;
    let (heard, code) = lost.closed().await;
    assert_eq!((heard[0]["is_error"].as_bool(), code), (Some(true), 4004));
    let mut lost = Client::owner(&up, "sess_nobody_has").await;
    let request = json!({ "subtype": "initialize" });
    lost.say(json!({ "type": "control_request", "request_id": "r", "request": request })).await;
    let (heard, code) = lost.closed().await;
    let answer = heard.iter().find(|it| it["type"] == "control_response").unwrap();
    assert_eq!((answer["response"]["subtype"].as_str(), code), (Some("error"), 4004));
    let viewer = place.json(&["token", "create", "--role", "viewer", "--json"]);
    let token = viewer["token"].as_str().unwrap();
    let path = format!("/ws?session={session}");
    let mut viewer = Client::open(&up, &path, token).await.unwrap();
    let response = viewer.ask("r", json!({ "subtype": "interrupt" })).await;
    assert_eq!(response["error"], "this credential is view-only");
}

#[tokio::test]
async fn two_clients_share_a_session_and_one_answers_for_both() {
    let place = Place::new();
    let up = place.up(&[]);
    let session = demo(&place);
    let mut first = Client::owner(&up, &session).await;
    let mut second = Client::owner(&up, &session).await;
    second.ask("ready", json!({ "subtype": "initialize" })).await;
    first.user("u1", "ask: make").await;
    let asked = first.until(is("control_request")).await;
    assert_eq!(asked.iter().find(|it| it["uuid"] == "u1").unwrap()["isReplay"], true);
    let heard = second.until(is("control_request")).await;
    assert!(heard.iter().find(|it| it["uuid"] == "u1").unwrap()["isReplay"].is_null());
    let request = heard.last().unwrap();
    assert_eq!(request["request"]["input"], json!({ "command": "make" }));
    let edited = json!({ "behavior": "allow", "updatedInput": { "command": "make check" } });
    second.say(answer(&request["request_id"], &edited)).await;
    let rest = first.until(is("result")).await;
    assert!(rest.iter().any(|it| it["type"] == "control_cancel_request"));
    assert_eq!(rest.last().unwrap()["result"], "ran: make check");
    let rest = second.until(is("result")).await;
    assert!(rest.iter().all(|it| it["type"] != "control_cancel_request"));
    // What one missed is told when it comes back.
    let seen = asked.iter().find(|it| it["uuid"] == "u1").unwrap()["sequence_num"].clone();
    drop(first);
    let path = format!("/ws/control?session={session}&from_sequence_num={seen}");
    let token = up.told["token"].as_str().unwrap();
    let mut back = Client::open(&up, &path, token).await.unwrap();
    let past = back.until(is("result")).await;
    assert_eq!(past.last().unwrap()["result"], "ran: make check");
    assert!(past.iter().all(|it| it["uuid"] != "u1"));
}

struct Program {
    lines: Lines,
    input: ChildStdin,
}

impl Program {
    fn start(place: &Place, more: &[&str]) -> Self {
        let mut command = place.farhelm(&["control"]);
        command.args(more);
        let (lines, input) = Lines::typing(command);
        Self { lines, input }
    }

    fn say(&mut self, frame: &Value) {
        writeln!(self.input, "{frame}").unwrap();
    }

    fn user(&mut self, text: &str) {
        self.say(&json!({ "type": "user", "message": { "role": "user", "content": text },
            "parent_tool_use_id": null, "session_id": "" }));
    }
}

/// The session is put into a mode by another client.
async fn another_sets(up: &Up, session: &str, mode: &str) {
    let mut other = Client::owner(up, session).await;
    let set = json!({ "subtype": "set_permission_mode", "mode": mode });
    assert_eq!(other.ask("set", set).await["subtype"], "success");
}

// spec: control/stdio.4
#[tokio::test]
async fn a_program_that_names_default_is_asked_although_another_left_the_session_in_bypass() {
    let place = Place::new();
    let up = place.up(&[]);
    let session = demo(&place);
    for flags in [&["--permission-mode=default"][..], &["--permission-mode", "default"]] {
        another_sets(&up, &session, "bypassPermissions").await;
        let mut program = Program::start(&place, &[&["--session", "demo"], flags].concat());
        // Said at once, before the mode can be set.
        program.user("ask: ls");
        let heard = program.lines.until(|it| is("control_request")(it) || is("result")(it));
        assert_eq!(heard.last().unwrap()["request"]["input"], json!({ "command": "ls" }));
        let init = heard.iter().find(|it| it["subtype"] == "init").unwrap();
        assert_eq!(init["permissionMode"], "default");
        let id = &heard.last().unwrap()["request_id"];
        program.say(&answer(id, &json!({ "behavior": "deny", "message": "no" })));
        program.lines.until(is("result"));
    }
}

// spec: control/stdio.4
#[tokio::test]
async fn a_mode_that_the_agent_does_not_have_ends_the_program_before_its_first_message() {
    let place = Place::new();
    let up = place.up(&[]);
    let session = demo(&place);
    another_sets(&up, &session, "bypassPermissions").await;
    let mut watcher = Client::owner(&up, &session).await;
    watcher.ask("ready", json!({ "subtype": "initialize" })).await;
    for mode in ["plan", "acceptEdits", ""] {
        let flag = format!("--permission-mode={mode}");
        let refused = place.run(&["control", "--session", "demo", &flag]);
        assert_eq!(refused.status.code(), Some(1), "{mode:?}");
        let words = String::from_utf8_lossy(&refused.stderr);
        assert!(words.contains("permission mode") && words.contains(mode), "{words}");
        let mut program = Program::start(&place, &["--session", "demo", &flag]);
        program.user("ask: ls");
        assert_eq!(program.lines.running.0.wait().unwrap().code(), Some(1), "{mode:?}");
    }
    let unsaid = place.run(&["control", "--session", "demo", "--permission-mode"]);
    assert_ne!(unsaid.status.code(), Some(0), "a flag without its value names nothing");
    // The agent was told nothing by any of them.
    place.told(&["send", "demo", "say: the first"]);
    let heard = watcher.until(is("result")).await;
    let said: Vec<_> = heard.iter().filter(|it| it["type"] == "user").collect();
    assert_eq!(said.len(), 1, "{said:#?}");
    assert_eq!(said[0]["message"]["content"], "say: the first");
}

// spec: control/stdio.5
#[tokio::test]
async fn a_program_that_names_no_mode_does_not_inherit_bypass() {
    let place = Place::new();
    let up = place.up(&[]);
    let session = demo(&place);
    another_sets(&up, &session, "bypassPermissions").await;
    let mut program = Program::start(&place, &["--session", "demo"]);
    program.user("ask: ls");
    let heard = program.lines.until(|it| is("control_request")(it) || is("result")(it));
    let asked = heard.last().unwrap();
    assert_eq!(asked["request"]["input"], json!({ "command": "ls" }));
    program.say(&answer(&asked["request_id"], &json!({ "behavior": "deny", "message": "no" })));
    program.lines.until(is("result"));
    // One that names it has it, by either of Claude Code's flags.
    for flag in ["--permission-mode=bypassPermissions", "--dangerously-skip-permissions"] {
        another_sets(&up, &session, "default").await;
        let mut program = Program::start(&place, &["--session", "demo", flag]);
        program.user("ask: ls");
        let heard = program.lines.until(|it| is("control_request")(it) || is("result")(it));
        assert_eq!(heard.last().unwrap()["result"], "ran: ls", "{flag}");
    }
}

// spec: control/stdio.6
#[tokio::test]
async fn the_result_of_a_run_that_another_client_began_is_not_the_programs() {
    let place = Place::new();
    let up = place.up(&[]);
    let session = demo(&place);
    let mut other = Client::owner(&up, &session).await;
    let mut program = Program::start(&place, &["--session", "demo"]);
    program.say(&json!({ "type": "control_request", "request_id": "i",
        "request": { "subtype": "initialize" } }));
    program.lines.until(is("control_response"));
    other.user("theirs", "ask: theirs").await;
    let asked = other.until(is("control_request")).await.pop().unwrap();
    program.user("say: mine");
    // It waits for the end of theirs.
    program.lines.until(is("control_request"));
    other.say(answer(&asked["request_id"], &json!({ "behavior": "allow" }))).await;
    let theirs = other.until(is("result")).await.pop().unwrap();
    assert_eq!(theirs["result"], "ran: theirs");
    let mut heard = program.lines.until(is("result"));
    let result = heard.pop().unwrap();
    assert_eq!(result["result"], "mine");
    // What the other run said is shown.
    assert!(heard.iter().any(|it| it["message"]["content"][0]["text"] == "ran: theirs"));
}

// spec: control/stdio.7
#[test]
fn what_the_program_said_comes_back_only_with_the_flag_and_init_comes_first() {
    for (flags, replayed) in [(&[][..], 0), (&["--replay-user-messages"], 1)] {
        let place = Place::new();
        let _up = place.up(&[]);
        let mut program = Program::start(&place, &[&["--session", "demo"], flags].concat());
        for text in ["say: one", "say: two"] {
            program.user(text);
            let heard = program.lines.until(is("result"));
            let messages: Vec<_> = heard.iter().filter(|it| it["type"] == "user").collect();
            assert_eq!(messages.len(), replayed, "{heard:#?}");
            assert!(messages.iter().all(|it| it["isReplay"] == true));
            let begins = heard.iter().position(|it| it["subtype"] == "init").unwrap();
            let of_before = |it: &&Value| it["subtype"] != "session_state_changed";
            assert_eq!(heard[..begins].iter().filter(of_before).count(), 0, "{heard:#?}");
        }
    }
}

// spec: control/stdio.7
#[tokio::test]
async fn nothing_of_the_session_comes_before_the_first_init() {
    let place = Place::new();
    let up = place.up(&[]);
    let session = demo(&place);
    let mut program = Program::start(&place, &["--session", "demo"]);
    program.say(&json!({ "type": "control_request", "request_id": "i",
        "request": { "subtype": "initialize" } }));
    program.lines.until(is("control_response"));
    // A changed mode is told, and begins no run.
    another_sets(&up, &session, "bypassPermissions").await;
    program.user("say: one");
    let heard = program.lines.until(is("result"));
    assert_eq!(heard[0]["subtype"], "init", "{heard:#?}");
    assert!(heard.iter().any(|it| it["permissionMode"] == "bypassPermissions"));
}

// spec: control/stdio.8
#[test]
fn resume_names_the_session_and_a_fork_is_refused() {
    let place = Place::new();
    let _up = place.up(&[]);
    let session = demo(&place);
    for flags in [vec!["--resume", &session], vec!["--session", "demo", "--resume", &session]] {
        let mut program = Program::start(&place, &flags);
        program.user("say: back");
        let heard = program.lines.until(is("result"));
        let result = heard.last().unwrap();
        assert_eq!((&result["result"], &result["session_id"]), (&json!("back"), &json!(session)));
    }
    for (flags, word) in [
        (vec!["--resume", session.as_str(), "--fork-session"], "fork"),
        (vec!["--session", "demo", "--fork-session"], "fork"),
        (vec!["--session", "demo", "--resume", "another"], "another"),
        (vec!["--resume", "another"], "farhelm sessions"),
    ] {
        let refused = place.run(&[&["control"], &flags[..]].concat());
        assert_ne!(refused.status.code(), Some(0), "{flags:?}");
        let words = String::from_utf8_lossy(&refused.stderr);
        assert!(words.contains(word), "{flags:?}: {words}");
    }
}

// spec: control/permissions.14
#[test]
fn a_program_is_asked_the_questions_of_the_agent_and_answers_them() {
    let place = Place::new();
    let _up = place.up(&[]);
    let mut program = Program::start(&place, &["--session", "demo"]);
    program.user("form: kite");
    let asked = program.lines.until(is("control_request")).pop().unwrap();
    assert_eq!(asked["request"]["tool_name"], "AskUserQuestion");
    let questions = &asked["request"]["input"]["questions"];
    let words: Vec<_> =
        questions.as_array().unwrap().iter().map(|it| it["question"].as_str().unwrap()).collect();
    assert_eq!(words, ["Which kite first?", "What belongs to it?", "What is it called?"]);
    assert_eq!(questions[0]["options"][1]["label"], "The large one");
    let mut input = asked["request"]["input"].clone();
    input["answers"] = json!({ words[0]: "The large one", words[2]: "Icarus" });
    let allow = json!({ "behavior": "allow", "updatedInput": input });
    program.say(&answer(&asked["request_id"], &allow));
    let result = program.lines.until(is("result")).pop().unwrap();
    let said = "answered: What is it called? Icarus; Which kite first? The large one";
    assert_eq!(result["result"], said);
}

// spec: control/stdio.1
#[test]
fn standard_input_and_output_end_when_everything_is_answered() {
    let place = Place::new();
    let _up = place.up(&[]);
    let flags = "--output-format stream-json --verbose --input-format stream-json \
        --include-partial-messages --model=demo-large --session demo";
    let words: Vec<_> = flags.split_whitespace().collect();
    let mut program = Program::start(&place, &words);
    program.say(&json!({ "type": "control_request", "request_id": "i",
        "request": { "subtype": "initialize" } }));
    let heard = program.lines.until(is("control_response"));
    assert_eq!(heard.last().unwrap()["response"]["request_id"], "i");
    program.user("say: one two");
    let Program { mut lines, input } = program;
    drop(input);
    let heard = lines.until(is("result"));
    assert_eq!(heard.last().unwrap()["result"], "one two");
    let init = heard.iter().find(|it| it["subtype"] == "init").unwrap();
    assert_eq!(init["model"], "demo-large");
    assert!(heard.iter().any(|it| it["event"]["delta"]["text"] == "two"));
    let status = lines.running.0.wait().unwrap();
    assert!(status.success(), "{status}");
}

#[test]
fn a_relay_that_is_restarted_costs_the_program_nothing() {
    let place = Place::new();
    let mut up = place.up(&[]);
    let mut program = Program::start(&place, &["--session", "demo"]);
    program.user("ask: ls");
    program.lines.until(is("control_request"));
    up.running.kill();
    let _up = place.up(&[]);
    // The demo agent's run was cut; its question is withdrawn, and its end is told.
    let heard = program.lines.until(is("result"));
    assert_eq!(heard.last().unwrap()["subtype"], "error_during_execution");
    program.user("say: back");
    let heard = program.lines.until(is("result"));
    assert_eq!(heard.last().unwrap()["result"], "back");
}

#[test]
fn it_says_which_session_it_acts_on_or_that_there_is_none() {
    let place = Place::new();
    let _up = place.up(&[]);
    let acts = place.run(&["control", "--session", "demo"]);
    let words = String::from_utf8_lossy(&acts.stderr);
    assert!(words.contains(&format!("session {}", demo(&place))), "{words}");
    let unnamed = place.run(&["control", "--output-format", "stream-json"]);
    assert_eq!(unnamed.status.code(), Some(2));
    let unknown = place.run(&["control", "--session", "nobody"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("farhelm sessions"));
}
