//! A person's client over a real socket, which remembers everything it heard.
//!
//! A test waits for something *since a mark*, never for the next frame: what two sides do at the
//! same time may come in any order.

use std::time::{Duration, Instant};

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Anything that takes longer has failed. Real agents start slowly on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(150);
/// Silence after which a client says that it is there.
const BEAT: Duration = Duration::from_secs(5);
/// Characters of a frame that are shown when a test failed.
const SHOWN_CHARACTERS_MAX: usize = 400;
/// Everything that a relay may speak; what it does not know it ignores.
const FEATURES: [&str; 15] = [
    "deltas",
    "tools",
    "runs",
    "queue",
    "prompt_resolved",
    "prompt_detail",
    "modes",
    "session_rename",
    "paging",
    "context",
    "plan",
    "resume",
    "catalog",
    "tool_output",
    "watch",
];

/// One socket.
pub(crate) struct Client {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    heard: Vec<Value>,
    begun: Instant,
    /// When it said something last.
    said_at: tokio::time::Instant,
    asked: u64,
}

/// A place in what a client heard.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark(usize);

impl Mark {
    /// Before everything.
    pub(crate) const START: Self = Self(0);
}

impl Client {
    pub(crate) async fn connect(url: &str) -> Self {
        let (socket, _) = connect_async(url).await.unwrap();
        let (begun, said_at) = (Instant::now(), tokio::time::Instant::now());
        let mut client = Self { socket, heard: vec![], begun, said_at, asked: 0 };
        client
            .say(json!({"type": "connection_hello", "peer_role": "browser",
                "client_name": "agents-test", "client_id": "agents-test", "features": FEATURES}))
            .await;
        client.wait(Mark(0), "the snapshot", |frame| frame["type"] == "session_snapshot").await;
        client
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark(self.heard.len())
    }

    /// What was heard since.
    pub(crate) fn since(&self, mark: Mark) -> &[Value] {
        &self.heard[mark.0..]
    }

    /// For ids that this client has not used.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.asked += 1;
        self.asked
    }

    /// A request with an id of its own, which is returned.
    pub(crate) async fn ask(&mut self, mut frame: Value) -> String {
        let id = format!("ask-{}", self.next_number());
        frame["request_id"] = json!(id);
        self.say(frame).await;
        id
    }

    pub(crate) async fn say(&mut self, mut frame: Value) {
        frame["protocol_version"] = json!(1);
        self.said_at = tokio::time::Instant::now();
        self.socket.send(Message::text(frame.to_string())).await.unwrap();
    }

    /// The first frame since the mark that fits, now or later.
    pub(crate) async fn wait(
        &mut self,
        since: Mark,
        what: &str,
        fits: impl Fn(&Value) -> bool,
    ) -> Value {
        self.find(since, what, PATIENCE, fits).await.unwrap_or_else(|| {
            panic!("{what} never came; this did:\n{}", self.shown());
        })
    }

    /// The same, for what need not come.
    pub(crate) async fn find(
        &mut self,
        since: Mark,
        what: &str,
        within: Duration,
        fits: impl Fn(&Value) -> bool,
    ) -> Option<Value> {
        let mut next = since.0;
        let until = tokio::time::Instant::now() + within;
        loop {
            if let Some(frame) = self.heard[next..].iter().find(|frame| fits(frame)) {
                return Some(frame.clone());
            }
            next = self.heard.len();
            // Counted from what was said last: who waits briefly and often would never beat.
            let beat = self.said_at + BEAT;
            match tokio::time::timeout_at(beat.min(until), self.hear()).await {
                Ok(true) => {}
                Ok(false) => panic!("closed while waiting for {what}:\n{}", self.shown()),
                Err(_) if beat <= until => self.beat().await,
                Err(_) => return None,
            }
        }
    }

    /// A client that only waits is not to be taken for a dead one.
    async fn beat(&mut self) {
        self.ask(json!({"type": "heartbeat"})).await;
    }

    /// Takes one frame. False when the socket is closed.
    async fn hear(&mut self) -> bool {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => {
                    let mut frame: Value = serde_json::from_str(&text).unwrap();
                    let page = frame.as_object_mut().unwrap().remove("events");
                    let at = json!(self.begun.elapsed().as_millis());
                    for mut inner in page.and_then(|p| p.as_array().cloned()).unwrap_or_default() {
                        inner["heard_ms"] = at.clone();
                        self.heard.push(inner);
                    }
                    frame["heard_ms"] = at;
                    self.heard.push(frame);
                    return true;
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Binary(_) | Message::Close(_) | Message::Frame(_)) | Err(_))
                | None => return false,
            }
        }
    }

    /// Everything that was heard, for the person who mends it.
    pub(crate) fn shown(&self) -> String {
        let line = |frame: &Value| {
            let text = frame.to_string();
            let cut: String = text.chars().take(SHOWN_CHARACTERS_MAX).collect();
            format!("  {:>7} {cut}\n", frame["heard_ms"])
        };
        self.heard.iter().map(line).collect()
    }
}
