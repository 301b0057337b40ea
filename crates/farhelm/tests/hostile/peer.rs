//! A peer that says what it likes, and hears everything it is told.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, client_async_with_config};

use crate::support::{PATIENCE, Place, Up};

/// A relay, a plain machine with the session `sess_1`, and nobody else.
pub(crate) struct Scene {
    pub(crate) place: Place,
    pub(crate) up: Up,
    pub(crate) proxy: Peer,
}

impl Scene {
    pub(crate) async fn new(flags: &[&str]) -> Self {
        let place = Place::new();
        let up = place.serving("relay", flags);
        let mut proxy = Peer::open(&up, "/ws/proxy", up.told["proxy_token"].as_str()).await;
        proxy.greet_as_machine("attic").await;
        proxy.name_sessions(&["sess_1"]).await;
        let scene = Self { place, up, proxy };
        let mut client = scene.client().await;
        while client.sessions.iter().all(|session| session != "sess_1") {
            let up = client.hear("session_up").await;
            client.sessions.push(up["session"]["session_id"].as_str().unwrap().to_owned());
        }
        scene
    }

    /// A plain client of the owner, greeted.
    pub(crate) async fn client(&self) -> Peer {
        self.client_of(self.up.told["token"].as_str().unwrap()).await
    }

    pub(crate) async fn client_of(&self, token: &str) -> Peer {
        let mut client = Peer::open(&self.up, "/ws", Some(token)).await;
        client.greet(&json!({})).await;
        client
    }

    /// A new token of this role: its id and its secret.
    pub(crate) fn token(&self, role: &str) -> (String, String) {
        let made = self.place.json(&["token", "create", "--role", role, "--json"]);
        let word = |name: &str| made[name].as_str().unwrap().to_owned();
        (word("id"), word("token"))
    }
}

/// The relay's resident memory.
pub(crate) fn resident_kib(up: &Up) -> u64 {
    let path = format!("/proc/{}/status", up.running.0.id());
    let status = std::fs::read_to_string(path).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// One socket.
pub(crate) struct Peer {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    /// Those of the snapshot.
    pub(crate) sessions: Vec<String>,
    beats: u64,
}

impl Peer {
    pub(crate) async fn open(up: &Up, path: &str, token: Option<&str>) -> Self {
        Self::open_with(up, path, token, None).await
    }

    /// With a receive buffer of its own size, to be full soon.
    pub(crate) async fn open_with(
        up: &Up,
        path: &str,
        token: Option<&str>,
        buffer_bytes: Option<u32>,
    ) -> Self {
        let host = up.told["url"].as_str().unwrap().strip_prefix("http://").unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        if let Some(bytes) = buffer_bytes {
            socket.set_recv_buffer_size(bytes).unwrap();
        }
        let stream = socket.connect(host.parse().unwrap()).await.unwrap();
        let token = token.map(|token| format!("?token={token}")).unwrap_or_default();
        let stream = MaybeTlsStream::Plain(stream);
        let opened = client_async_with_config(format!("ws://{host}{path}{token}"), stream, None);
        let (socket, _) = tokio::time::timeout(PATIENCE, opened).await.unwrap().unwrap();
        Self { socket, sessions: vec![], beats: 0 }
    }

    pub(crate) async fn message(&mut self, message: Message) {
        self.socket.send(message).await.unwrap();
    }

    pub(crate) async fn text(&mut self, text: &str) {
        self.message(Message::text(text)).await;
    }

    /// Says a frame; the version is added.
    pub(crate) async fn say(&mut self, mut frame: Value) {
        frame["protocol_version"] = json!(1);
        self.text(&frame.to_string()).await;
    }

    /// Many frames, written together.
    pub(crate) async fn say_all(&mut self, frames: impl IntoIterator<Item = Value>) {
        for mut frame in frames {
            frame["protocol_version"] = json!(1);
            self.socket.feed(Message::text(frame.to_string())).await.unwrap();
        }
        self.socket.flush().await.unwrap();
    }

    /// Hello with these further fields, up to the snapshot. Gives the ack.
    pub(crate) async fn greet(&mut self, more: &Value) -> Value {
        let mut hello =
            json!({"type": "connection_hello", "peer_role": "browser", "client_name": "hostile"});
        for (name, value) in more.as_object().unwrap() {
            hello[name] = value.clone();
        }
        self.say(hello).await;
        let ack = self.hear("connection_ack").await;
        let snapshot = self.hear("session_snapshot").await;
        let ids = snapshot["sessions"].as_array().unwrap().iter();
        self.sessions = ids.map(|it| it["session_id"].as_str().unwrap().to_owned()).collect();
        ack
    }

    pub(crate) async fn greet_as_machine(&mut self, label: &str) {
        self.say(json!({"type": "connection_hello", "peer_role": "proxy", "client_name": "plain",
            "machine_label": label}))
            .await;
        self.hear("connection_ack").await;
    }

    pub(crate) async fn name_sessions(&mut self, ids: &[&str]) {
        let sessions = ids
            .iter()
            .map(|id| json!({"session_id": id, "agent_type": "codex", "status": "healthy"}))
            .collect::<Vec<_>>();
        self.say(json!({"type": "proxy_session_snapshot", "sessions": sessions})).await;
    }

    /// The next frame, whatever it is.
    pub(crate) async fn next(&mut self) -> Value {
        loop {
            let heard = tokio::time::timeout(PATIENCE, self.socket.next()).await;
            match heard.expect("nothing is said").expect("it ended").unwrap() {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Close(why) => panic!("it was closed: {why:?}"),
                Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }

    /// The next frame of this type; others are passed over.
    pub(crate) async fn hear(&mut self, kind: &str) -> Value {
        self.until(|frame| frame["type"] == kind).await
    }

    pub(crate) async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let frame = self.next().await;
            if fits(&frame) {
                return frame;
            }
        }
    }

    /// Everything that was said before the answer to a heartbeat of now: the socket is open.
    pub(crate) async fn before_a_beat(&mut self) -> Vec<Value> {
        self.beats += 1;
        let beat = format!("beat-{}", self.beats);
        self.say(json!({"type": "heartbeat", "request_id": beat})).await;
        let mut heard = vec![];
        loop {
            let frame = self.next().await;
            if frame["type"] == "heartbeat_ack" && frame["request_id"] == beat.as_str() {
                return heard;
            }
            heard.push(frame);
        }
    }

    /// Why it was closed. What is said before is passed over.
    pub(crate) async fn close_code(&mut self) -> u16 {
        self.ending().await.1
    }

    /// What was said before the close, and its code.
    pub(crate) async fn ending(&mut self) -> (Vec<Value>, u16) {
        let mut heard = vec![];
        loop {
            match tokio::time::timeout(PATIENCE, self.socket.next()).await.expect("still open") {
                Some(Ok(Message::Close(Some(frame)))) => return (heard, frame.code.into()),
                Some(Ok(Message::Text(text))) => heard.push(serde_json::from_str(&text).unwrap()),
                Some(Ok(_)) => {}
                other => panic!("it ended without a reason: {other:?}"),
            }
        }
    }

    /// Whether nothing comes for a moment. Shows that something is not said at once, never that
    /// something else was.
    pub(crate) async fn is_quiet(&mut self) -> bool {
        tokio::time::timeout(Duration::from_millis(200), self.socket.next()).await.is_err()
    }
}

/// A send.
pub(crate) fn send(id: &str, content: &str) -> Value {
    json!({"type": "send_message", "session_id": "sess_1", "client_message_id": id,
        "content": content, "created_at": "2026-03-19T10:16:30.000Z"})
}
