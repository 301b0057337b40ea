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
    assert_eq!(lost.closed().await.1, 4004);
    let viewer = place.json(&["token", "create", "--role", "viewer", "--json"]);
    let token = viewer["token"].as_str().unwrap();
    let path = format!("/ws?session={session}");
    let mut viewer = Client::open(&up, &path, token).await.unwrap();
    let response = viewer.ask("r", json!({ "subtype": "interrupt" })).await;
    assert_eq!(response["error"], "this credential may watch, not steer");
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
fn without_a_session_or_with_an_unknown_one_it_says_so() {
    let place = Place::new();
    let _up = place.up(&[]);
    let unnamed = place.run(&["control", "--output-format", "stream-json"]);
    assert_eq!(unnamed.status.code(), Some(2));
    let unknown = place.run(&["control", "--session", "nobody"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("farhelm sessions"));
}
