//! The pi dialect through the real binary.

use client::{Seen, Speaker};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::support::{PATIENCE, Place, Up};

struct Client {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    count: u64,
}

impl Client {
    async fn open(up: &Up, path: &str, token: &str) -> Result<Self, Error> {
        let host = up.told["url"].as_str().unwrap().strip_prefix("http://").unwrap();
        let join = if path.contains('?') { '&' } else { '?' };
        let token = if token.is_empty() { String::new() } else { format!("{join}token={token}") };
        let opened = connect_async(format!("ws://{host}{path}{token}")).await?;
        Ok(Self { socket: opened.0, count: 0 })
    }

    async fn owner(up: &Up, path: &str) -> Self {
        Self::open(up, path, up.told["token"].as_str().unwrap()).await.unwrap()
    }

    async fn say(&mut self, frame: &Value) {
        self.socket.send(Message::text(frame.to_string())).await.unwrap();
    }

    /// Says a command; gives what came before its answer, and the answer.
    async fn ask_through(&mut self, mut command: Value) -> (Vec<Value>, Value) {
        self.count += 1;
        let id = json!(format!("req_{}", self.count));
        command["id"] = id.clone();
        self.say(&command).await;
        let mut seen = self.until(|frame| frame["id"] == id && frame["type"] == "response").await;
        let answer = seen.pop().unwrap();
        (seen, answer)
    }

    async fn ask(&mut self, command: Value) -> Value {
        self.ask_through(command).await.1
    }

    async fn prompt(&mut self, message: &str) {
        let answer = self.ask(json!({ "type": "prompt", "message": message })).await;
        assert_eq!(answer["success"], true, "{answer}");
    }

    /// Everything up to the frame that fits.
    async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut seen = vec![];
        loop {
            let heard = tokio::time::timeout(PATIENCE, self.socket.next()).await;
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
            let heard = tokio::time::timeout(PATIENCE, self.socket.next()).await.unwrap();
            match heard.unwrap().unwrap() {
                Message::Text(text) => seen.push(serde_json::from_str(&text).unwrap()),
                Message::Close(frame) => return (seen, frame.unwrap().code.into()),
                Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }
}

fn is(kind: &'static str) -> impl Fn(&Value) -> bool {
    move |frame| frame["type"] == kind
}

/// The agent's words of a run, by its deltas and by its message.
fn words(frames: &[Value]) -> (String, String) {
    let deltas = frames.iter().map(|it| &it["assistantMessageEvent"]);
    let deltas = deltas.filter(|event| event["type"] == "text_delta");
    let streamed = deltas.filter_map(|event| event["delta"].as_str()).collect();
    let is_end = |it: &&Value| it["type"] == "message_end" && it["message"]["role"] == "assistant";
    let ends = frames.iter().filter(is_end).map(|it| &it["message"]["content"]);
    let texts = ends.flat_map(|content| content.as_array().unwrap());
    (streamed, texts.filter_map(|part| part["text"].as_str()).collect())
}

// spec: pi/credentials.1, pi/transport.1
#[tokio::test]
async fn the_door_lets_in_who_it_should() {
    let place = Place::new();
    let up = place.up(&[]);
    for token in ["", "wrong"] {
        let Err(Error::Http(response)) = Client::open(&up, "/ws/pi", token).await else {
            panic!("{token:?} was let in");
        };
        assert_eq!(response.status(), 401);
    }
    let (ws, token) = (up.told["url"].as_str().unwrap(), up.told["token"].as_str().unwrap());
    let url = format!("{}/ws/pi?token={token}", ws.replace("http://", "ws://"));
    let mut foreign = url.into_client_request().unwrap();
    foreign.headers_mut().insert("origin", "https://evil.example".parse().unwrap());
    let Err(Error::Http(response)) = connect_async(foreign).await else {
        panic!("a foreign page was let in");
    };
    assert_eq!(response.status(), 403);
    let mut nobody = Client::open(&up, "/ws", "").await.unwrap();
    nobody.say(&json!({ "id": "r", "type": "get_state" })).await;
    let (heard, code) = nobody.closed().await;
    assert_eq!((&heard[0]["success"], code), (&json!(false), 4003));
    let viewer = place.json(&["token", "create", "--role", "viewer", "--json"]);
    let mut viewer = Client::open(&up, "/ws", viewer["token"].as_str().unwrap()).await.unwrap();
    let state = viewer.ask(json!({ "type": "get_state" })).await;
    assert_eq!(state["data"]["isStreaming"], false);
    let refused = viewer.ask(json!({ "type": "prompt", "message": "x" })).await;
    assert_eq!(refused["error"], "this credential is view-only");
    let mut owner = Client::owner(&up, "/ws/pi").await;
    owner.say(&json!("not an object")).await;
    assert_eq!(owner.until(is("response")).await[0]["command"], "parse");
    owner.socket.send(Message::binary(vec![1])).await.unwrap();
    assert_eq!(owner.closed().await.1, 1003);
}

#[tokio::test]
async fn two_clients_share_a_run_and_a_third_joins_it() {
    let place = Place::new();
    let up = place.up(&[]);
    let mut first = Client::owner(&up, "/ws/pi").await;
    let mut second = Client::owner(&up, "/ws/pi").await;
    second.ask(json!({ "type": "get_state" })).await;
    first.prompt("slow: 100").await;
    let seen = second.until(is("message_update")).await;
    let kinds: Vec<_> = seen.iter().filter_map(|it| it["type"].as_str()).collect();
    let expected = ["agent_start", "turn_start", "message_start", "message_end", "message_start"];
    assert_eq!(kinds[kinds.len() - 6..kinds.len() - 1], expected);
    let is_word = |it: &Value| it["assistantMessageEvent"]["delta"].is_string();
    for _ in 0..4 {
        second.until(is_word).await;
    }
    let mut third = Client::owner(&up, "/ws/pi?partial=full").await;
    let joined = third.until(is("message_update")).await;
    let kinds: Vec<_> = joined.iter().filter_map(|it| it["type"].as_str()).collect();
    assert_eq!(kinds, ["agent_start", "message_start", "message_update"]);
    let so_far = joined[2]["assistantMessageEvent"]["delta"].as_str().unwrap();
    assert!(so_far.split_whitespace().count() >= 4, "{so_far:?}");
    let busy = second.ask(json!({ "type": "prompt", "message": "x" })).await;
    assert!(busy["error"].as_str().unwrap().starts_with("Agent is already processing."));
    let mut all = joined;
    all.extend(third.until(is("agent_end")).await);
    let (streamed, said) = words(&all);
    assert_eq!(streamed, said, "nothing is missing and nothing is there twice");
    let last = all.iter().rev().find(|it| !it["assistantMessageEvent"]["partial"].is_null());
    let partial = &last.unwrap()["assistantMessageEvent"]["partial"]["content"][0]["text"];
    assert_eq!(*partial, said);
    let seen = first.until(is("agent_end")).await;
    assert_eq!(words(&seen), (said.clone(), said.clone()));
    let history = first.ask(json!({ "type": "get_messages" })).await;
    let messages = history["data"]["messages"].as_array().unwrap();
    assert_eq!(messages[0]["content"], "slow: 100");
    assert_eq!(messages[1]["content"][0]["text"], said);
}

#[tokio::test]
async fn a_dialog_is_answered_by_one_for_all() {
    let place = Place::new();
    let up = place.up(&[]);
    let mut first = Client::owner(&up, "/ws/pi").await;
    let mut second = Client::owner(&up, "/ws/pi").await;
    second.ask(json!({ "type": "get_state" })).await;
    first.prompt("ask: make").await;
    let asked = first.until(is("extension_ui_request")).await;
    let called = asked.iter().find(|it| it["type"] == "tool_execution_start").unwrap();
    assert_eq!(called["args"], json!({ "command": "make" }));
    let heard = second.until(is("extension_ui_request")).await;
    let request = heard.last().unwrap();
    let (id, options) = (&request["id"], request["options"].as_array());
    // One who comes later is asked too.
    let mut third = Client::owner(&up, "/ws/pi").await;
    let late = third.until(is("extension_ui_request")).await;
    assert_eq!(late.last().unwrap()["id"], *id);
    let mut answer = json!({ "type": "extension_ui_response", "id": id });
    match options {
        Some(options) => {
            answer["value"] = json!("Perhaps");
            second.say(&answer).await;
            let refused = second.until(is("extension_ui_request")).await;
            assert_eq!(refused.last().unwrap()["method"], "notify");
            // It is asked again, and a page answers with what it was shown to type.
            let again = second.until(is("extension_ui_request")).await.pop().unwrap();
            assert_ne!(again["id"], *id);
            assert!(again["title"].as_str().unwrap().contains("\n1. "), "{again}");
            answer["id"] = again["id"].clone();
            answer["value"] = json!(options[0].as_str().unwrap().to_uppercase());
        }
        None => answer["confirmed"] = json!(true),
    }
    second.say(&answer).await;
    for client in [&mut first, &mut second, &mut third] {
        let rest = client.until(is("agent_end")).await;
        assert!(rest.iter().any(|it| it["type"] == "extension_ui_resolved" && it["id"] == *id));
        let end = rest.iter().find(|it| it["type"] == "tool_execution_end").unwrap();
        assert_eq!((&end["toolName"], &end["isError"]), (&json!("Bash"), &json!(false)));
        assert_eq!(words(&rest).1, "ran: make");
    }
}

// spec: pi/history.6
#[tokio::test]
async fn a_page_that_is_reloaded_during_a_run_misses_no_word() {
    let place = Place::new();
    let up = place.up(&[]);
    let mut first = Client::owner(&up, "/ws/pi").await;
    first.prompt("slow: 60").await;
    let is_word = |it: &Value| it["assistantMessageEvent"]["delta"].is_string();
    for _ in 0..4 {
        first.until(is_word).await;
    }
    let mut page = Client::owner(&up, "/ws/pi").await;
    let history = page.ask(json!({ "type": "get_messages" })).await;
    let messages = history["data"]["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 1, "what streams is not in it: {messages:#?}");
    // What came before the answer is no longer on the page.
    let (streamed, said) = words(&page.until(is("agent_end")).await);
    assert_eq!(streamed, said);
}

#[tokio::test]
async fn an_abort_keeps_the_queue_until_it_is_cleared() {
    let place = Place::new();
    let up = place.up(&[]);
    let mut client = Client::owner(&up, "/ws/pi").await;
    client.prompt("slow: 1000").await;
    client.until(is("message_update")).await;
    let later = json!({ "type": "prompt", "message": "later", "streamingBehavior": "followUp" });
    let (before, answer) = client.ask_through(later).await;
    assert_eq!(answer["success"], true);
    let update = before.iter().find(|it| it["type"] == "queue_update").unwrap();
    assert_eq!(update["followUp"], json!(["later"]));
    let (mut seen, answer) = client.ask_through(json!({ "type": "abort" })).await;
    assert_eq!(answer["success"], true);
    seen.extend(client.until(is("agent_end")).await);
    let messages = seen.last().unwrap()["messages"].as_array().unwrap();
    assert_eq!(messages.last().unwrap()["stopReason"], "aborted");
    let cleared = client.ask(json!({ "type": "clear_queue" })).await;
    assert_eq!(cleared["data"], json!({ "steering": [], "followUp": ["later"] }));
    client.prompt("say: next").await;
    let seen = client.until(is("agent_end")).await;
    assert_eq!(words(&seen).1, "next");
}

#[tokio::test]
async fn pictures_models_names_and_sessions() {
    let place = Place::new();
    let up = place.up(&[]);
    let mut client = Client::owner(&up, "/ws/pi").await;
    let picture = json!({ "type": "image", "mimeType": "image/png", "data": "cGljdHVyZQ==" });
    let answer =
        client.ask(json!({ "type": "prompt", "message": "look", "images": [picture] })).await;
    assert_eq!(answer["success"], true, "{answer}");
    let seen = client.until(is("agent_end")).await;
    assert!(words(&seen).1.contains("image-1.png, 7 bytes"), "{}", words(&seen).1);
    let history = client.ask(json!({ "type": "get_messages" })).await;
    assert_eq!(history["data"]["messages"][0]["content"][1], picture);
    let models = client.ask(json!({ "type": "get_available_models" })).await;
    let model = models["data"]["models"].as_array().unwrap().last().unwrap().clone();
    let set = json!({ "type": "set_model", "provider": model["provider"], "modelId": model["id"] });
    assert_eq!(client.ask(set).await["data"]["id"], model["id"]);
    let state = client.ask(json!({ "type": "get_state" })).await;
    assert_eq!(state["data"]["model"]["id"], model["id"]);
    client.ask(json!({ "type": "set_session_name", "name": "Pictures" })).await;
    let old = state["data"]["sessionFile"].clone();
    let created = client.ask(json!({ "type": "new_session" })).await;
    assert_eq!(created["data"], json!({ "cancelled": false }), "{created}");
    let changed = client.until(is("session_changed")).await.pop().unwrap();
    assert_eq!((&changed["reason"], changed["sessionFile"] != old), (&json!("new"), true));
    client.prompt("say: over here").await;
    client.until(is("agent_end")).await;
    let listed = client.ask(json!({ "type": "list_sessions" })).await;
    let sessions = listed["data"]["sessions"].as_array().unwrap();
    let row = |path: &Value| sessions.iter().find(|it| it["path"] == *path).unwrap();
    assert_eq!(
        (&row(&old)["name"], &row(&old)["firstMessage"]),
        (&json!("Pictures"), &json!("look"))
    );
    assert_eq!(row(&changed["sessionFile"])["firstMessage"], "say: over here");
    let back = client.ask(json!({ "type": "switch_session", "sessionPath": old })).await;
    assert_eq!(back["success"], true);
    let changed = client.until(is("session_changed")).await.pop().unwrap();
    assert_eq!((&changed["sessionFile"], &changed["sessionName"]), (&old, &json!("Pictures")));
    let lost = client.ask(json!({ "type": "switch_session", "sessionPath": "sess_x" })).await;
    assert_eq!(lost["error"], "Session file not found");
}

/// A client machine over real sockets.
struct Live {
    machine: client::pi::Machine,
    client: Client,
}

impl Live {
    async fn dial(up: &Up, mut machine: client::pi::Machine) -> Self {
        let mut client = Client::owner(up, &machine.path()).await;
        for frame in machine.on_open() {
            client.socket.send(Message::text(frame)).await.unwrap();
        }
        Self { machine, client }
    }

    async fn until(&mut self, fits: impl Fn(&Seen) -> bool) -> Vec<Seen> {
        let mut seen = vec![];
        loop {
            let heard = tokio::time::timeout(PATIENCE, self.client.socket.next()).await;
            let heard = heard.unwrap_or_else(|_| panic!("it never came; seen: {seen:#?}"));
            let Message::Text(text) = heard.unwrap().unwrap() else { continue };
            let told = Speaker::on_text(&mut self.machine, &text).0;
            let is_there = told.iter().any(&fits);
            seen.extend(told);
            if is_there {
                return seen;
            }
        }
    }

    async fn say(&mut self, frames: Vec<String>) {
        for frame in frames {
            self.client.socket.send(Message::text(frame)).await.unwrap();
        }
    }
}

// spec: pi/clients.6
#[tokio::test]
async fn a_client_that_comes_back_hears_what_it_missed_and_how_the_run_goes_on() {
    let place = Place::new();
    let up = place.up(&[]);
    let mut live = Live::dial(&up, client::pi::Machine::new(None)).await;
    let frames = live.machine.send("say: one");
    live.say(frames).await;
    live.until(|seen| matches!(seen, Seen::Ended(None))).await;
    let Live { machine, client } = live;
    drop(client);
    let mut other = Client::owner(&up, "/ws/pi").await;
    other.prompt("say: two").await;
    other.until(is("agent_end")).await;
    other.prompt("slow: 100").await;
    let is_word = |it: &Value| it["assistantMessageEvent"]["delta"].is_string();
    other.until(is_word).await;
    let mut live = Live::dial(&up, machine).await;
    let seen = live.until(|seen| matches!(seen, Seen::Ended(None))).await;
    let told: Vec<_> =
        seen.iter().filter(|it| matches!(it, Seen::Person(_) | Seen::Agent(_))).cloned().collect();
    assert_eq!(told[..2], [Seen::Person("say: two".into()), Seen::Agent("two".into())]);
    assert_eq!(told[2], Seen::Person("slow: 100".into()));
    let pieces: String = seen
        .iter()
        .filter_map(|it| if let Seen::Piece(words) = it { Some(words.as_str()) } else { None })
        .collect();
    assert_eq!(told[3..], [Seen::Agent(pieces)], "from the start of the message, and once");
    let frames = live.machine.send("ask: ls");
    live.say(frames).await;
    let asked = live.until(|seen| matches!(seen, Seen::Asked { .. })).await;
    let Some(Seen::Asked { id, .. }) = asked.last() else { panic!("{asked:?}") };
    let frames = live.machine.decide(id, false);
    live.say(frames).await;
    let seen = live.until(|seen| matches!(seen, Seen::Ended(_))).await;
    assert!(seen.contains(&Seen::Settled { id: id.clone() }));
    assert!(seen.contains(&Seen::Agent("denied: ls".into())), "{seen:?}");
}
