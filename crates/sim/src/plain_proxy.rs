//! A machine whose proxy knows only version 1 of the document: no journal, no runs, no features.
//!
//! It remembers on its disk which sends its agent has, as the document asks of it: what it is
//! offered again it does not deliver again.
//!
//! Some are scrapers: their messages have no ids, the words of people appear in their window as
//! well, and on each connection they tell everything that their window shows once more.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use domain::content::{Author, Message, Part};
use domain::fleet::{Named, Offer};
use domain::session::status::{Health, Meta};
use domain::session::{Order, Report};
use domain::{Content, MessageId, SessionId};
use relay::ports::Clock as _;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use wire::native::proxy_frames::{self, FromRelay, Hello};

use crate::clock::SimClock;
use crate::effects::{Effect, Effects};
use crate::net::End;
use crate::rng::Rng;

/// How often it says that it is alive.
const BEAT: Duration = Duration::from_secs(10);
const HEARTBEAT: &[u8] = br#"{"type":"heartbeat","protocol_version":1,"request_id":"beat"}"#;

/// How a plain proxy tells what is said.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    /// Whether messages have ids of their own.
    has_ids: bool,
    /// Whether it tells everything once more on each connection.
    pub(crate) retells: bool,
    /// Whether it tells the words of people too.
    echoes: bool,
}

impl Style {
    /// Whether what it tells again is told apart from what is new. Without ids that goes by the
    /// order of the window. Where a delivery is reported only after the window showed the answer,
    /// the transcript has the two in the other order, and the answer is recorded once more.
    pub(crate) fn is_recognised(self) -> bool {
        !(self.retells && self.echoes)
    }
}

/// A machine with a plain proxy.
pub(crate) struct PlainProxy {
    name: String,
    session: SessionId,
    pub(crate) style: Style,
    effects: Effects,
    clock: SimClock,
    state: Arc<Mutex<State>>,
    running: Option<(AbortHandle, mpsc::UnboundedSender<End>)>,
}

#[derive(Debug, Default)]
struct State {
    is_connected: bool,
    /// What its agent has, in the order it came.
    received: Vec<(MessageId, String)>,
    /// What its window shows.
    shown: Vec<Message>,
}

impl PlainProxy {
    /// A machine with one session, running and not connected.
    pub(crate) fn new(number: u64, clock: SimClock, effects: Effects, rng: &mut Rng) -> Self {
        let is_scraper = rng.once_in(2);
        let (has_ids, echoes) = (!is_scraper, is_scraper && rng.once_in(2));
        let style = Style { has_ids, retells: rng.once_in(2), echoes };
        let (name, session) = (format!("plain-{number}"), format!("plain-{number}-session"));
        let session = session.as_str().into();
        let (state, running) = (Arc::default(), None);
        let mut node = Self { name, session, style, effects, clock, state, running };
        node.restart();
        node
    }

    /// Its machine's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its session.
    pub(crate) fn session(&self) -> &SessionId {
        &self.session
    }

    /// What its agent received.
    pub(crate) fn received(&self) -> Vec<(MessageId, String)> {
        self.lock().received.clone()
    }

    /// What its agent said.
    pub(crate) fn said(&self) -> Vec<String> {
        let state = self.lock();
        let said = state.shown.iter().filter(|message| message.author == Author::Assistant);
        said.map(words).collect()
    }

    /// Whether it has no connection.
    pub(crate) fn wants_connection(&self) -> bool {
        !self.lock().is_connected
    }

    /// A connection to the relay is open.
    pub(crate) fn dial(&self, end: End) {
        if let Some((_, ends)) = &self.running {
            let _ = ends.send(end);
        }
    }

    /// Dies and starts again on what its disk has.
    pub(crate) fn restart(&mut self) {
        if let Some((task, _)) = self.running.take() {
            task.abort();
        }
        self.lock().is_connected = false;
        let (ends, inbox) = mpsc::unbounded_channel();
        let process = Process {
            name: self.name.clone(),
            session: self.session.clone(),
            style: self.style,
            effects: self.effects.clone(),
            clock: self.clock.clone(),
            state: self.state.clone(),
            end: None,
        };
        let task = tokio::spawn(process.run(inbox));
        self.running = Some((task.abort_handle(), ends));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Process {
    name: String,
    session: SessionId,
    style: Style,
    effects: Effects,
    clock: SimClock,
    state: Arc<Mutex<State>>,
    end: Option<End>,
}

impl Process {
    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<End>) {
        let mut beat_at = Instant::now();
        loop {
            let said = tokio::select! {
                biased;
                end = inbox.recv() => {
                    let Some(end) = end else { return };
                    self.end = Some(end);
                    self.greet()
                }
                frame = receive(self.end.as_mut()) => if let Some(frame) = frame {
                    self.hear(&frame)
                } else {
                    self.end = None;
                    vec![]
                },
                () = tokio::time::sleep_until(beat_at) => {
                    beat_at = Instant::now() + BEAT;
                    vec![Bytes::from_static(HEARTBEAT)]
                }
            };
            let sent = said.iter().try_for_each(|frame| match self.end.as_mut() {
                Some(end) => end.send(frame),
                None => Ok(()),
            });
            if sent.is_err() {
                self.end = None;
            }
            self.lock().is_connected = self.end.is_some();
        }
    }

    fn greet(&self) -> Vec<Bytes> {
        let hello = Hello {
            client_name: self.name.clone(),
            client_version: None,
            machine: Some(self.name.as_str().into()),
            features: vec![],
            link: None,
            offer: Offer::default(),
        };
        vec![proxy_frames::hello(&hello)]
    }

    fn hear(&self, frame: &Bytes) -> Vec<Bytes> {
        match proxy_frames::read_from_relay(&String::from_utf8_lossy(frame)) {
            Ok(FromRelay::Ack(_)) => {
                let named = Named {
                    session: Some(self.session.clone()),
                    meta: Meta::of_agent("parrot".into()),
                    health: Health::Healthy,
                    activity: None,
                    is_over: false,
                };
                let mut said = vec![proxy_frames::encode_snapshot(&[named])];
                if self.style.retells {
                    let shown = self.lock().shown.clone();
                    self.effects.count_times(Effect::Retold, shown.len() as u64);
                    said.extend(shown.into_iter().map(|message| self.tell(message)));
                }
                said
            }
            Ok(FromRelay::Order(session, order)) if session == self.session => match *order {
                Order::Deliver { send, .. } => self.deliver(&send.id, &send.text),
                Order::Answer { .. } | Order::Control { .. } => vec![],
            },
            Ok(
                FromRelay::Order(..)
                | FromRelay::Error(_)
                | FromRelay::HeartbeatAck
                | FromRelay::LinkAck(_)
                | FromRelay::Launch(_)
                | FromRelay::Resumable(..)
                | FromRelay::Other(_),
            )
            | Err(_) => vec![],
        }
    }

    /// The agent gets it, unless it has it, and says it back.
    fn deliver(&self, id: &MessageId, text: &Content<String>) -> Vec<Bytes> {
        let text = text.open().cloned().unwrap_or_default();
        let (now, mut said) = (self.clock.now(), vec![]);
        let is_known = self.lock().received.iter().any(|(known, _)| known == id);
        if !is_known {
            self.lock().received.push((id.clone(), text.clone()));
            if self.style.echoes {
                said.push(self.show(&format!("window-{id}"), Author::User, text.clone()));
            }
        }
        let delivered = Report::SendDelivered { id: id.clone(), attempt: None, run: None };
        said.push(proxy_frames::encode_report(&self.session, &delivered, None, None, now));
        if !is_known {
            let answer = format!("parrot: {text}");
            said.push(self.show(&format!("parrot-{id}"), Author::Assistant, answer));
        }
        said
    }

    /// Its window shows something new.
    fn show(&self, id: &str, author: Author, text: String) -> Bytes {
        let message = Message {
            id: id.into(),
            author,
            parts: Content::Open(vec![Part::Text(text)]),
            created_at: self.clock.now(),
            run: None,
            parent: None,
            digest: None,
        };
        self.lock().shown.push(message.clone());
        self.tell(message)
    }

    fn tell(&self, message: Message) -> Bytes {
        let report = Report::Message { message, has_own_id: self.style.has_ids, echo: None };
        proxy_frames::encode_report(&self.session, &report, None, None, self.clock.now())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn receive(end: Option<&mut End>) -> Option<Bytes> {
    match end {
        Some(end) => end.receive().await,
        None => std::future::pending().await,
    }
}

fn words(message: &Message) -> String {
    let parts = message.parts.open().into_iter().flatten();
    let texts = parts.filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        Part::Thinking(_) | Part::Image(_) | Part::File(_) | Part::ToolCall(_) => None,
    });
    texts.collect()
}
