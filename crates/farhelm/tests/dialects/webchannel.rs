//! The webchannel dialect: pairing, sealed words, approvals, revocation, restarts, and a client
//! that has none of our code.

use std::process::{Command, Stdio};

use client::webchannel::{Happening, Machine};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::support::{PATIENCE, Place, Up, ended};

const NODE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/dialects/webchannel_node.mjs");

/// A client machine on a real socket.
struct Client {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    machine: Machine,
}

fn address(up: &Up, path: &str) -> String {
    let host = up.told["url"].as_str().unwrap().strip_prefix("http://").unwrap();
    format!("ws://{host}{path}")
}

fn code(place: &Place) -> String {
    place.json(&["pair", "--json"])["code"].as_str().unwrap().to_owned()
}

impl Client {
    async fn open(up: &Up, path: &str, mut machine: Machine) -> Result<Self, Error> {
        let (socket, _) = connect_async(address(up, path)).await?;
        machine.on_opened();
        Ok(Self { socket, machine })
    }

    /// Paired, with a key of its own.
    async fn paired(place: &Place, up: &Up, path: &str, seed: u8) -> Self {
        let machine = Machine::new("", None, [seed; 32]);
        let mut client = Self::open(up, path, machine).await.unwrap();
        let request = client.machine.pair(&code(place));
        client.say(&request).await;
        let heard = client.until(|it| matches!(it, Happening::Paired(_))).await;
        let Some(Happening::Paired(auth)) = heard.last() else { panic!("{heard:?}") };
        assert!(auth.key.is_some());
        client
    }

    async fn say(&mut self, frame: &Value) {
        self.socket.send(Message::text(frame.to_string())).await.unwrap();
    }

    async fn user(&mut self, text: &str) {
        let frame = self.machine.say(text);
        self.say(&frame).await;
    }

    /// The next envelope.
    async fn next(&mut self) -> Option<Value> {
        loop {
            let heard = tokio::time::timeout(PATIENCE, self.socket.next()).await;
            match heard.unwrap().unwrap().unwrap() {
                Message::Text(text) => return Some(serde_json::from_str(&text).unwrap()),
                Message::Close(frame) => {
                    assert_eq!(u16::from(frame.unwrap().code), 4003);
                    return None;
                }
                Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }

    /// Everything up to what fits.
    async fn until(&mut self, fits: impl Fn(&Happening) -> bool) -> Vec<Happening> {
        let mut seen = vec![];
        loop {
            let envelope = self.next().await.unwrap();
            seen.extend(self.machine.on_frame(&envelope.to_string()));
            if seen.last().is_some_and(&fits) {
                return seen;
            }
        }
    }

    /// The code of the next error.
    async fn error(&mut self) -> String {
        loop {
            let envelope = self.next().await.unwrap();
            if envelope["type"] == "error" {
                return envelope["payload"]["code"].as_str().unwrap().to_owned();
            }
        }
    }
}

fn is_final(happening: &Happening) -> bool {
    matches!(happening, Happening::Final(Some(_)))
}

fn finals(seen: &[Happening]) -> Vec<&str> {
    fn whole(happening: &Happening) -> Option<&str> {
        if let Happening::Final(Some(words)) = happening { Some(words) } else { None }
    }
    seen.iter().filter_map(whole).collect()
}

fn webchannel_ids(place: &Place) -> Vec<String> {
    let listed = place.json(&["token", "list", "--json"]);
    let tokens = listed["tokens"].as_array().unwrap().iter();
    let ours = tokens.filter(|it| it["kind"] == "webchannel");
    ours.map(|it| it["id"].as_str().unwrap().to_owned()).collect()
}

// spec: webchannel/pairing.1, webchannel/tokens.3, webchannel/sealing.5, webchannel/reconnect.1
#[tokio::test]
async fn a_paired_client_talks_sealed_and_goes_on_after_a_restart() {
    let place = Place::new();
    let mut up = place.up(&[]);
    let mut client = Client::paired(&place, &up, "/ws/webchannel", 1).await;
    assert_eq!(webchannel_ids(&place).len(), 1);
    let said = client.machine.say("say: one two");
    client.say(&said).await;
    let heard = client.until(is_final).await;
    assert_eq!(finals(&heard), ["one two"]);
    assert!(heard.contains(&Happening::Person("say: one two".to_owned())));
    assert!(heard.iter().any(|it| matches!(it, Happening::Chunk(_))));

    up.running.kill();
    let up = place.up(&[]);
    let Client { machine, .. } = client;
    // Known by its token alone, whichever path it takes.
    let path = machine.address();
    let mut client = Client::open(&up, &path, machine).await.unwrap();
    client.say(&said).await;
    assert_eq!(client.error().await, "e2e_replay");
    let owner = up.told["token"].as_str().unwrap();
    let (mut other, _) =
        connect_async(address(&up, &format!("/ws/webchannel?token={owner}"))).await.unwrap();
    let hello = json!({ "v": 1, "type": "user_message", "session_id": "default",
        "payload": { "content": "say: again" } });
    other.send(Message::text(hello.to_string())).await.unwrap();
    assert_eq!(finals(&client.until(is_final).await), ["again"]);
}

// spec: webchannel/sealing.2, webchannel/approvals.2
#[tokio::test]
async fn two_clients_with_their_own_keys_share_a_session_and_one_decides_for_both() {
    let place = Place::new();
    let up = place.up(&[]);
    let mut first = Client::paired(&place, &up, "/ws/webchannel", 1).await;
    let mut second = Client::paired(&place, &up, "/ws", 2).await;
    first.user("ask: make").await;
    let is_asked = |it: &Happening| matches!(it, Happening::Asked { .. });
    let heard = second.until(is_asked).await;
    let Some(Happening::Asked { request, action, .. }) = heard.last() else { panic!("{heard:?}") };
    assert_eq!(action, "Run this command? make");
    first.until(is_asked).await;
    let late = first.machine.decide_on(request, false).unwrap();
    let answer = second.machine.decide_on(request, true).unwrap();
    second.say(&answer).await;
    loop {
        let envelope = first.next().await.unwrap();
        if envelope["type"] == "approval_response" {
            assert_eq!(envelope["payload"]["approved"], true);
            break;
        }
    }
    assert_eq!(finals(&second.until(is_final).await), ["ran: make"]);
    first.say(&late).await;
    assert_eq!(first.error().await, "approval_closed");
}

// spec: webchannel/tokens.5
#[tokio::test]
async fn a_revoked_client_is_told_closed_and_stays_out() {
    let place = Place::new();
    let up = place.up(&[]);
    let mut client = Client::paired(&place, &up, "/ws/webchannel", 1).await;
    let mut other = Client::paired(&place, &up, "/ws/webchannel", 2).await;
    let said = client.machine.say("say: hello");
    let path = client.machine.address();
    let id = webchannel_ids(&place).remove(0);
    place.told(&["token", "revoke", &id]);
    assert_eq!(client.error().await, "unauthorized");
    assert_eq!(client.next().await, None);
    let refused = connect_async(address(&up, &path)).await;
    assert!(matches!(refused, Err(Error::Http(response)) if response.status() == 401));
    let machine = Machine::new("", None, [3; 32]);
    let mut again = Client::open(&up, "/ws/webchannel", machine).await.unwrap();
    again.say(&said).await;
    assert_eq!(again.error().await, "unauthorized");
    other.user("say: still here").await;
    assert_eq!(finals(&other.until(is_final).await), ["still here"]);
}

// spec: webchannel/tokens.6
#[tokio::test]
async fn an_access_token_opens_no_other_door() {
    let place = Place::new();
    let up = place.up(&[]);
    let client = Client::paired(&place, &up, "/ws/webchannel", 1).await;
    let token = client.machine.auth().unwrap().access_token.clone();
    for path in ["/ws/native", "/ws/control", "/v1/sessions"] {
        let refused = connect_async(address(&up, &format!("{path}?token={token}"))).await;
        let Err(Error::Http(response)) = refused else { panic!("{path} let it in") };
        assert_eq!(response.status(), 403, "{path}");
    }
    // On `/ws` it is known without a word.
    let (socket, machine) = (format!("/ws?token={token}"), client.machine);
    let mut again = Client::open(&up, &socket, machine).await.unwrap();
    let mut other = Client::paired(&place, &up, "/ws/webchannel", 2).await;
    other.user("say: heard").await;
    assert_eq!(finals(&again.until(is_final).await), ["heard"]);
}

// spec: webchannel/tokens.2
#[tokio::test]
async fn a_machines_token_is_nobodys_here() {
    let place = Place::new();
    let up = place.up(&[]);
    let machine = Machine::new("", None, [1; 32]);
    let mut client = Client::open(&up, "/ws/webchannel", machine).await.unwrap();
    let token = &up.told["proxy_token"];
    let frame = json!({ "v": 1, "type": "user_message", "session_id": "default",
        "payload": { "content": "say: hello", "access_token": token } });
    client.say(&frame).await;
    assert_eq!(client.error().await, "unauthorized");
}

// spec: webchannel/limits.1
#[tokio::test]
async fn a_new_socket_for_every_few_messages_gets_around_no_limit() {
    let place = Place::new();
    let up = place.up(&["--sends-per-10s", "3"]);
    let mut client = Client::paired(&place, &up, "/ws/webchannel", 1).await;
    let mut sockets = vec![];
    for _ in 0..3 {
        let (mut socket, _) = connect_async(address(&up, "/ws/webchannel")).await.unwrap();
        for _ in 0..4 {
            let frame = client.machine.say("say: more");
            socket.feed(Message::text(frame.to_string())).await.unwrap();
        }
        socket.flush().await.unwrap();
        sockets.push(socket);
    }
    let mut refused = 0;
    for socket in &mut sockets {
        // Every message is answered: refused, or heard again by whoever said it.
        let mut answered = 0;
        while answered < 4 {
            let heard = tokio::time::timeout(PATIENCE, socket.next()).await.unwrap();
            let Message::Text(text) = heard.unwrap().unwrap() else { continue };
            let envelope: Value = serde_json::from_str(&text).unwrap();
            if envelope["type"] == "error" {
                assert_eq!(envelope["payload"]["code"], "rate_limited");
                refused += 1;
            }
            let is_own = envelope["type"] == "user_message" && !envelope["request_id"].is_null();
            answered += usize::from(envelope["type"] == "error" || is_own);
        }
    }
    assert_eq!(refused, 9, "of twelve, three were taken");
}

// spec: webchannel/pairing.3
#[tokio::test]
async fn five_wrong_codes_lock_pairing_even_for_the_right_one() {
    let place = Place::new();
    let up = place.up(&[]);
    let right = code(&place);
    let wrong = if right == "000000" { "000001" } else { "000000" };
    let machine = Machine::new("", None, [1; 32]);
    let mut client = Client::open(&up, "/ws/webchannel", machine).await.unwrap();
    for _ in 0..5 {
        let request = client.machine.pair(wrong);
        client.say(&request).await;
        assert_eq!(client.error().await, "pairing_invalid_code");
    }
    let request = client.machine.pair(&right);
    client.say(&request).await;
    assert_eq!(client.error().await, "pairing_locked_out");
}

// spec: webchannel/sealing.1
#[test]
fn a_client_on_webcrypto_pairs_and_talks_sealed() {
    let mut asked = Command::new("node");
    asked.args(["--experimental-websocket", "-e", "if (!WebSocket) throw 1"]);
    let has_node = asked.stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !has_node.is_ok_and(|status| status.success()) {
        fake_panels::untried("a client on WebCrypto", "there is no Node with WebSocket");
        return;
    }
    let place = Place::new();
    let up = place.up(&[]);
    let mut node = Command::new("node");
    node.args(["--no-warnings", "--experimental-websocket", NODE]);
    node.arg(address(&up, "/ws/webchannel")).arg(code(&place)).stdin(Stdio::null());
    let output = ended(node);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["alg"], "x25519-chacha20poly1305-v1");
    assert_eq!(told["own"], json!(["say: Grüße 😀 from Node"]));
    assert_eq!(told["chunks"], "Grüße 😀 from Node");
    assert_eq!(told["final"], json!(["Grüße 😀 from Node"]));
    assert_eq!(told["replay"], json!(["m-2", "e2e_replay"]));
}
