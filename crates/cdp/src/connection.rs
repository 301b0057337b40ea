//! The socket: one task reads and tracks pending calls, one writes.
//!
//! **Invariant:** every accepted call is answered, or fails when its session or the socket ends.
//! Messages are delivered in the order of their arrival, and events before later answers.
//!
//! Not here: where the socket is (`address`), what is called (`browser`).

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::contexts::{Context, Contexts};
use crate::{Fault, SessionId};

/// Calls that wait for the browser; more are refused.
const CALLS_WAITING_MAX: usize = 1024;
/// Events that a listener may be behind; it is told how many it missed.
const EVENTS_BEHIND_MAX: usize = 4096;
/// Calls on their way to the socket; callers wait for room.
const CALLS_QUEUED_MAX: usize = 64;

type Socket = WebSocketStream<TcpStream>;
type Answer = oneshot::Sender<Result<Value, Fault>>;

/// Something that the browser told unasked.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Of which session; the browser's own without one.
    pub session: Option<SessionId>,
    /// `Target.targetCreated`, …
    pub method: String,
    /// What it says.
    pub params: Value,
}

/// The browser's events, from when it was asked for them.
pub struct Events(broadcast::Receiver<Arc<Event>>);

/// What a listener hears.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// This happened.
    Event(Arc<Event>),
    /// So many events were missed: look again at whatever they could have told.
    Missed(u64),
}

impl Events {
    /// The next; `None` when the connection is gone.
    pub async fn next(&mut self) -> Option<Heard> {
        match self.0.recv().await {
            Ok(event) => Some(Heard::Event(event)),
            Err(broadcast::error::RecvError::Lagged(count)) => Some(Heard::Missed(count)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

/// What the reading task is asked.
pub(crate) enum Command {
    /// Call the browser.
    Call { session: Option<SessionId>, method: String, params: Value, answer: Answer },
    /// Which execution contexts a session has.
    Contexts { session: SessionId, answer: oneshot::Sender<Vec<Context>> },
    /// Hear the events from here on.
    Listen { answer: oneshot::Sender<Events> },
}

/// The way to the reading task. The socket is closed when the last one is dropped.
#[derive(Clone)]
pub(crate) struct Handle {
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) is_open: watch::Receiver<bool>,
}

/// Starts the tasks of a socket.
pub(crate) fn start(socket: Socket) -> Handle {
    let (sink, stream) = socket.split();
    let (commands, orders) = mpsc::channel(CALLS_QUEUED_MAX);
    let (outbox, outgoing) = mpsc::channel(CALLS_QUEUED_MAX);
    let (open, is_open) = watch::channel(true);
    tokio::spawn(write(sink, outgoing));
    let (events, _) = broadcast::channel(EVENTS_BEHIND_MAX);
    let reader = Reader {
        outbox,
        events,
        waiting: HashMap::new(),
        contexts: Contexts::default(),
        number: 0,
    };
    tokio::spawn(async move {
        reader.run(stream, orders).await;
        // Whoever hears this finds the calls failed already.
        open.send_replace(false);
    });
    Handle { commands, is_open }
}

async fn write(mut sink: SplitSink<Socket, Message>, mut outgoing: mpsc::Receiver<String>) {
    while let Some(text) = outgoing.recv().await {
        if sink.send(Message::text(text)).await.is_err() {
            return;
        }
    }
    // The reader went away first: it says goodbye, if anybody still listens.
    let _ = sink.close().await;
}

struct Waiting {
    session: Option<SessionId>,
    method: String,
    answer: Answer,
}

struct Reader {
    outbox: mpsc::Sender<String>,
    events: broadcast::Sender<Arc<Event>>,
    waiting: HashMap<u64, Waiting>,
    contexts: Contexts,
    number: u64,
}

impl Reader {
    async fn run(mut self, mut stream: SplitStream<Socket>, mut orders: mpsc::Receiver<Command>) {
        loop {
            let outbox = self.outbox.clone();
            // Taken only when it can be written: else a slow browser would fill our memory.
            let next = async {
                let permit = outbox.reserve().await.ok()?;
                Some((permit, orders.recv().await?))
            };
            tokio::select! {
                biased;
                message = stream.next() => match message {
                    Some(Ok(Message::Text(text))) => self.heard(&text),
                    Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                    Some(Ok(
                        Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_)
                    )) => {}
                },
                next = next => {
                    let Some((permit, command)) = next else { break };
                    if let Some(text) = self.asked(command) {
                        permit.send(text);
                    }
                }
            }
        }
        for (_, waiting) in self.waiting.drain() {
            let _ = waiting.answer.send(Err(Fault::Closed));
        }
    }

    fn asked(&mut self, command: Command) -> Option<String> {
        match command {
            Command::Call { session, method, params, answer } => {
                if self.waiting.len() >= CALLS_WAITING_MAX {
                    // Those who stopped waiting left their seat.
                    self.waiting.retain(|_, waiting| !waiting.answer.is_closed());
                }
                if self.waiting.len() >= CALLS_WAITING_MAX {
                    let _ = answer.send(Err(Fault::Busy(CALLS_WAITING_MAX)));
                    return None;
                }
                self.number += 1;
                let mut frame = json!({"id": self.number, "method": method, "params": params});
                if let Some(session) = &session {
                    frame["sessionId"] = session.0.as_str().into();
                }
                self.waiting.insert(self.number, Waiting { session, method, answer });
                Some(frame.to_string())
            }
            Command::Contexts { session, answer } => {
                let _ = answer.send(self.contexts.of(&session));
                None
            }
            Command::Listen { answer } => {
                let _ = answer.send(Events(self.events.subscribe()));
                None
            }
        }
    }

    fn heard(&mut self, text: &str) {
        let Ok(mut frame) = serde_json::from_str::<Value>(text) else {
            tracing::warn!(bytes = text.len(), "ignored a browser message that is not JSON");
            return;
        };
        if let Some(number) = frame["id"].as_u64() {
            let Some(Waiting { method, answer, .. }) = self.waiting.remove(&number) else { return };
            let outcome = match frame.get("error") {
                None => Ok(frame["result"].take()),
                Some(error) => Err(Fault::Refused {
                    method,
                    code: error["code"].as_i64().unwrap_or_default(),
                    message: error["message"].as_str().unwrap_or_default().to_owned(),
                }),
            };
            let _ = answer.send(outcome);
            return;
        }
        let Some(method) = frame["method"].as_str().map(str::to_owned) else { return };
        let session = frame["sessionId"].as_str().map(|id| SessionId(id.to_owned()));
        let event = Event { session, method, params: frame["params"].take() };
        self.contexts.heard(&event);
        if event.method == "Target.detachedFromTarget" {
            self.ended(&event.params["sessionId"]);
        }
        // Nobody listening is no failure.
        let _ = self.events.send(Arc::new(event));
    }

    /// A session ended, with its page or frame: the browser answers nothing of it any more.
    fn ended(&mut self, session: &Value) {
        let is_its = |waiting: &Waiting| {
            waiting.session.as_ref().is_some_and(|it| session.as_str() == Some(it.0.as_str()))
        };
        for (_, waiting) in self.waiting.extract_if(|_, waiting| is_its(waiting)) {
            let _ = waiting.answer.send(Err(Fault::Gone));
        }
    }
}
