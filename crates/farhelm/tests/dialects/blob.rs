//! The blob dialect through sockets, with the demo agent.

use client::{Seen, Speaker as _};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::support::{PATIENCE, Place, Up};

struct Client(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Client {
    async fn open(up: &Up, path: &str, token: &str) -> Result<Self, Error> {
        let host = up.told["url"].as_str().unwrap().strip_prefix("http://").unwrap();
        let token = if token.is_empty() { String::new() } else { format!("?token={token}") };
        let opened = connect_async(format!("ws://{host}{path}{token}")).await?;
        Ok(Self(opened.0))
    }

    /// The owner, connected, in no session.
    async fn owner(up: &Up) -> Self {
        let token = up.told["token"].as_str().unwrap();
        let mut client = Self::open(up, "/ws/blob", token).await.unwrap();
        assert_eq!(client.ask("connect", json!({ "version": "1" })).await["ok"], true);
        client
    }

    /// The owner in this session.
    async fn inside(up: &Up, session: &str) -> Self {
        let mut client = Self::owner(up).await;
        client.ask("sessions.switch", json!({ "sessionId": session })).await;
        client.until(event("session_changed")).await;
        client
    }

    async fn say(&mut self, text: &str) {
        self.0.send(Message::text(text.to_owned())).await.unwrap();
    }

    /// Asks, and takes the answer; what else is heard before it is passed over.
    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let frame = json!({ "type": "req", "id": method, "method": method, "params": params });
        self.say(&frame.to_string()).await;
        self.until(|frame| frame["id"] == *method).await.pop().unwrap()
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

fn event(name: &'static str) -> impl Fn(&Value) -> bool {
    move |frame| frame["event"] == name
}

fn words(heard: &[Value]) -> String {
    let tokens = heard.iter().filter(|frame| frame["event"] == "token");
    tokens.map(|frame| frame["payload"]["content"].as_str().unwrap()).collect()
}

fn demo(place: &Place) -> String {
    let sessions = place.json(&["sessions", "--json"]);
    sessions["sessions"][0]["session_id"].as_str().unwrap().to_owned()
}

// spec: blob/credentials.1, blob/credentials.3
#[tokio::test]
async fn the_door_lets_in_who_it_should() {
    let place = Place::new();
    let up = place.up(&[]);
    let Err(Error::Http(response)) = Client::open(&up, "/ws/blob", "wrong").await else {
        panic!("a wrong token was let in");
    };
    assert_eq!(response.status(), 401);
    for path in ["/ws/blob", "/ws"] {
        let mut nobody = Client::open(&up, path, "").await.unwrap();
        let answer = nobody.ask("connect", json!({ "version": "1" })).await;
        assert_eq!(answer["error"], "Permission denied", "{path}");
    }
    let viewer = place.json(&["token", "create", "--role", "viewer", "--json"]);
    let mut viewer = Client::open(&up, "/ws", viewer["token"].as_str().unwrap()).await.unwrap();
    assert_eq!(viewer.ask("connect", json!({ "version": "1" })).await["ok"], true);
    let listed = viewer.ask("sessions.list", json!({})).await;
    assert_eq!(listed["payload"]["total"], 1);
    let answer = viewer.ask("agent", json!({ "message": "hello" })).await;
    assert_eq!(answer["error"], "Permission denied");
    viewer.say("no json").await;
    assert_eq!(viewer.closed().await.1, 1007);
    let token = up.told["token"].as_str().unwrap();
    let mut tomorrow = Client::open(&up, "/ws/blob", token).await.unwrap();
    tomorrow.say(r#"{"type":"req","id":"c","method":"connect","params":{"version":"2"}}"#).await;
    let (heard, code) = tomorrow.closed().await;
    assert_eq!((heard[0]["ok"].as_bool(), code), (Some(false), 1002));
}

#[tokio::test]
async fn two_clients_share_a_session_its_line_and_its_history() {
    let place = Place::new();
    let up = place.up(&[]);
    let session = demo(&place);
    let mut first = Client::inside(&up, &session).await;
    let mut second = Client::inside(&up, &session).await;
    let slow = first.ask("agent", json!({ "message": "slow: 200" })).await["payload"].take();
    assert_eq!(slow["status"], "accepted");
    first.until(event("token")).await;
    let waits = second.ask("agent", json!({ "message": "say: one two" })).await["payload"].take();
    assert_eq!(waits["status"], "queued");
    let heard = first.until(event("message")).await;
    let queued = heard.iter().find(|frame| frame["event"] == "queued").unwrap();
    assert_eq!(
        (&queued["payload"]["position"], &queued["payload"]["runId"]),
        (&json!(1), &waits["runId"])
    );
    assert_eq!(heard.last().unwrap()["payload"]["fromSelf"], false);
    let status = second.ask("status", json!({})).await;
    assert_eq!(status["payload"]["session"]["activeRun"], slow["runId"]);
    assert_eq!(status["payload"]["session"]["queuedRequests"], 1);
    // Whoever cancels, everybody hears it, and what waits goes on.
    let answer = second.ask("agent.cancel", json!({ "runId": slow["runId"] })).await;
    assert_eq!(answer["payload"]["message"], "Cancellation requested");
    for client in [&mut first, &mut second] {
        let heard = client.until(event("cancelled")).await;
        assert_eq!(heard.last().unwrap()["payload"]["runId"], slow["runId"]);
        let heard = client.until(event("final")).await;
        assert_eq!(words(&heard), "one two");
        assert_eq!(heard.last().unwrap()["payload"]["runId"], waits["runId"]);
        let of_slow = heard.iter().filter(|it| it["payload"]["runId"] == slow["runId"]);
        assert_eq!(of_slow.count(), 0, "cancelled is its last event");
    }
    // Who comes back finds what was said.
    let mut back = Client::owner(&up).await;
    let history = back.ask("sessions.history", json!({ "sessionId": session })).await;
    let said = history["payload"]["messages"].as_array().unwrap();
    let last: Vec<_> =
        said.iter().rev().take(2).map(|row| row["content"].as_str().unwrap()).collect();
    assert_eq!(last, ["one two", "say: one two"]);
    let echoed = waits["runId"].as_str().unwrap();
    assert_eq!(said[said.len() - 2]["id"], echoed);
}

#[tokio::test]
async fn a_question_is_answered_by_a_command_and_a_delivery_may_fail() {
    let place = Place::new();
    let up = place.up(&[]);
    let session = demo(&place);
    let mut first = Client::inside(&up, &session).await;
    let mut second = Client::inside(&up, &session).await;
    first.ask("agent", json!({ "message": "ask: make" })).await;
    let is_asked = |frame: &Value| frame["payload"]["prompt"]["state"] == "open";
    let heard = second.until(is_asked).await;
    assert!(heard.iter().any(|frame| frame["payload"]["toolName"] == "Bash"));
    let answer = second.ask("agent", json!({ "message": "/approve" })).await;
    assert_eq!(answer["payload"], json!({ "status": "command_processed" }));
    let heard = first.until(event("final")).await;
    assert!(heard.iter().any(|frame| frame["payload"]["prompt"]["state"] == "closed"));
    assert_eq!(words(&heard), "ran: make");
    assert!(heard.last().unwrap()["payload"]["totalTokens"].as_u64().unwrap() > 0);
    first.ask("agent", json!({ "message": "fail: send_rejected" })).await;
    let heard = second.until(event("error")).await;
    assert_eq!(heard.last().unwrap()["payload"]["errorCode"], "DELIVERY_FAILED");
}

#[tokio::test]
async fn a_new_session_is_made_and_two_sessions_stay_apart() {
    let place = Place::new();
    let up = place.up(&[]);
    let session = demo(&place);
    let mut first = Client::inside(&up, &session).await;
    let made = first.ask("sessions.new", json!({ "title": "my own" })).await;
    assert_eq!(made["payload"]["title"], "my own", "{made}");
    let other = made["payload"]["sessionId"].as_str().unwrap();
    let listed = first.ask("sessions.list", json!({ "limit": 1 })).await;
    assert_eq!(
        (&listed["payload"]["total"], &listed["payload"]["sessions"][0]["title"]),
        (&json!(2), &json!("my own"))
    );
    let mut second = Client::owner(&up).await;
    let sent =
        second.ask("agent", json!({ "sessionId": other, "message": "say: over there" })).await;
    assert_eq!(sent["ok"], true);
    assert_eq!(words(&second.until(event("final")).await), "over there");
    first.ask("agent", json!({ "message": "say: here" })).await;
    let heard = first.until(event("final")).await;
    assert_eq!(words(&heard), "here", "and nothing of the other");
}

#[tokio::test]
async fn the_client_half_survives_a_restart_of_the_relay() {
    let place = Place::new();
    let mut up = place.up(&[]);
    let mut machine = client::blob::Machine::new(&demo(&place));
    let mut heard = vec![];
    {
        let mut socket = dial(&up, &mut machine).await;
        for text in machine.send("say: one") {
            socket.say(&text).await;
        }
        follow(&mut socket, &mut machine, &mut heard, |it| *it == Seen::Ended(None)).await;
    }
    up.running.kill();
    let up = place.up(&[]);
    // Somebody else goes on meanwhile.
    let mut other = Client::inside(&up, &demo(&place)).await;
    other.ask("agent", json!({ "message": "say: two" })).await;
    other.until(event("final")).await;
    let mut socket = dial(&up, &mut machine).await;
    let is_two = |it: &Seen| *it == Seen::Agent("two".to_owned());
    follow(&mut socket, &mut machine, &mut heard, is_two).await;
    let whole = |it: &&Seen| matches!(it, Seen::Person(_) | Seen::Agent(_));
    let told: Vec<_> = heard.iter().filter(whole).cloned().collect();
    let (person, agent) =
        (|it: &str| Seen::Person(it.to_owned()), |it: &str| Seen::Agent(it.to_owned()));
    assert_eq!(told, [person("say: one"), agent("one"), person("say: two"), agent("two")]);
}

async fn dial(up: &Up, machine: &mut client::blob::Machine) -> Client {
    let token = up.told["token"].as_str().unwrap();
    let mut socket = Client::open(up, &machine.path(), token).await.unwrap();
    for text in machine.on_open() {
        socket.say(&text).await;
    }
    socket
}

async fn follow(
    socket: &mut Client,
    machine: &mut client::blob::Machine,
    heard: &mut Vec<Seen>,
    fits: impl Fn(&Seen) -> bool,
) {
    while !heard.iter().any(&fits) {
        let frame = socket.until(|_| true).await.remove(0);
        let (seen, said) = client::Speaker::on_text(machine, &frame.to_string());
        heard.extend(seen);
        for text in said {
            socket.say(&text).await;
        }
    }
}
