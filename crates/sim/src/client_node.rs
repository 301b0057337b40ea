//! A person of the simulated world: the real client machine, with somebody impatient behind it.
//!
//! It remembers everything it was shown, so that the check at the end can hold it against the
//! ledger.
//!
//! Not here: pages of histories (`pages`).

mod pages;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use client::{Event, Happening, Machine, Settings};
use domain::{Principal, Role, Timestamp};
use relay::ports::Clock;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::clock::SimClock;
use crate::credentials::Credentials;
use crate::net::End;

pub(crate) use pages::{Content, Page, REPEAT_REQUEST};

/// How long a client waits for any frame before it believes that the connection is gone.
const SILENCE_MS_MAX: u64 = 30_000;

/// What a person does.
#[derive(Debug, Clone)]
pub(crate) enum Deed {
    /// A connection is open.
    Dial(DialedEnd),
    /// Says something.
    Send {
        /// To which session.
        session: String,
        /// Under which id.
        id: String,
        /// What.
        text: String,
    },
    /// Says something else, once.
    Control(Value),
    /// Wants to see one more session from its beginning, and dials again for it.
    Follow(String),
    /// Requests a stretch of a session's history that it was shown before.
    ReadAgain {
        /// Which session.
        session: String,
        /// The id of the request.
        request: String,
        /// How many events before the last one shown the stretch begins.
        back: u64,
    },
    /// Answers whatever prompt it sees.
    Answer,
    /// Drops the connection.
    HangUp,
}

/// An end that can travel through a channel of cloneable deeds.
#[derive(Debug, Clone)]
pub(crate) struct DialedEnd(pub(crate) Arc<Mutex<Option<End>>>);

/// Everything a client was shown.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// In the order it was shown, by session.
    pub(crate) events: BTreeMap<String, Vec<Event>>,
    /// Prompts that are open on the screen.
    pub(crate) prompts: BTreeMap<(String, String), Vec<String>>,
    /// Whether the last connection is alive.
    pub(crate) connected: bool,
    /// Sends whose fate the relay has not told.
    pub(crate) unconfirmed: usize,
    /// The cursor after each session's last frame.
    pub(crate) cursors: BTreeMap<String, u64>,
    /// Where histories began anew, because the relay no longer had what was missed.
    pub(crate) anew: Vec<Anew>,
    /// Launches: the session that each led to, or the code of its failure, as last told.
    pub(crate) launches: BTreeMap<String, Result<String, String>>,
    /// What was told first of each send: `accepted`, or the code of its refusal.
    fates: BTreeMap<(String, String), String>,
    /// How often each send left, with what the network repeated.
    pub(crate) sent: BTreeMap<(String, String), usize>,
    /// Sends that were refused, with the code. What came of a failed commit is unknown, and no
    /// refusal.
    pub(crate) refused: BTreeMap<(String, String), String>,
    /// How many events had been shown each time when a session's history could not be read.
    pub(crate) unread: BTreeMap<String, Vec<usize>>,
    /// Requests for a history: `told` once the last page is there, or the code of the error.
    pub(crate) read: BTreeMap<String, String>,
    /// Every page of a history, in the order it was told.
    pub(crate) pages: Vec<Page>,
    /// The event after which each request for a history asked to read.
    asked_after: BTreeMap<String, u64>,
    /// From here on nothing may be heard.
    pub(crate) is_cut_off: bool,
    /// Frames that were heard all the same.
    pub(crate) heard_too_much: usize,
}

impl Seen {
    /// What was told first of a send.
    pub(crate) fn fate_of(&self, session: &str, send: &str) -> Option<String> {
        self.fates.get(&(session.to_owned(), send.to_owned())).cloned()
    }

    fn note_fate(&mut self, frame: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let fate = match frame["type"].as_str() {
            Some("message_accepted" | "message_delivered") => "accepted".to_owned(),
            Some("message_failed") => text(&frame["error"]["code"]),
            Some(_) | None => return,
        };
        self.fates.entry(key_of(frame)).or_insert(fate);
    }

    /// A failure that is recorded has a place in the ledger; a refusal has none.
    fn note_refusal(&mut self, frame: &Value) {
        let code = match frame["type"].as_str() {
            Some("message_failed") if frame["sequence"].is_null() => &frame["error"]["code"],
            Some("connection_error") if frame["client_message_id"].is_string() => &frame["code"],
            Some(_) | None => return,
        };
        if let Some(code) = code.as_str().filter(|code| *code != "internal") {
            self.refused.insert(key_of(frame), code.to_owned());
        }
    }

    fn note_unread(&mut self, frame: &Value) {
        if frame["code"] == "history_not_available"
            && let Some(session) = frame["session_id"].as_str()
        {
            let place = self.events.get(session).map_or(0, Vec::len);
            self.unread.entry(session.to_owned()).or_default().push(place);
        }
    }

    fn note_said(&mut self, frame: &Value, times: usize) {
        if frame["type"] == "send_message" {
            *self.sent.entry(key_of(frame)).or_default() += times;
        }
        if frame["type"] == "history_request"
            && let Some(request) = frame["request_id"].as_str()
        {
            let after = frame["after_sequence"].as_u64().unwrap_or_default();
            self.asked_after.insert(request.to_owned(), after);
        }
    }

    fn note_launch(&mut self, frame: &Value) {
        let text = |name: &str| frame[name].as_str().unwrap_or_default().to_owned();
        let told = match frame["type"].as_str() {
            Some("session_launch_ack") => Ok(text("session_id")),
            Some("session_launch_failed") => Err(text("error_code")),
            Some(_) | None => return,
        };
        self.launches.insert(text("request_id"), told);
    }
}

/// A history that began anew.
#[derive(Debug)]
pub(crate) struct Anew {
    /// Whose.
    pub(crate) session: String,
    /// The event up to which its messages reach.
    pub(crate) last_sequence: u64,
    /// How many events had been shown before.
    pub(crate) place: usize,
}

/// A person of the simulated world.
pub(crate) struct ClientNode {
    /// What it was shown.
    pub(crate) seen: Arc<Mutex<Seen>>,
    /// What it does next.
    deeds: mpsc::UnboundedSender<Deed>,
    /// Who it is.
    pub(crate) principal: Principal,
    /// Whether its client knows more than the document.
    pub(crate) is_full: bool,
    /// From the revocation of its credential on.
    pub(crate) is_revoked: bool,
}

impl ClientNode {
    /// A person who follows these sessions from their beginning.
    pub(crate) fn spawn(name: &str, is_full: bool, sessions: &[String], clock: SimClock) -> Self {
        let (deeds, inbox) = mpsc::unbounded_channel();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let settings = if is_full { Settings::full(name, name) } else { Settings::plain(name) };
        let mut machine = Machine::new(settings);
        for session in sessions {
            machine.follow(session, 0);
        }
        let person = Person {
            machine,
            seen: seen.clone(),
            clock,
            end: None,
            answers: 0,
            unread: BTreeSet::new(),
        };
        tokio::spawn(person.run(inbox));
        let principal = Credentials::principal(name, Role::Operator);
        Self { seen, deeds, principal, is_full, is_revoked: false }
    }

    /// Does something.
    pub(crate) fn does(&self, deed: Deed) {
        let _ = self.deeds.send(deed);
    }

    /// Opens a connection.
    pub(crate) fn dial(&self, end: End) {
        self.does(Deed::Dial(DialedEnd(Arc::new(Mutex::new(Some(end))))));
    }

    /// From here on nothing may be heard.
    pub(crate) fn cut_off(&self) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).is_cut_off = true;
    }

    /// Looks at what it was shown.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct Person {
    machine: Machine,
    seen: Arc<Mutex<Seen>>,
    clock: SimClock,
    end: Option<End>,
    answers: u64,
    /// Sessions whose history could not be read just now.
    unread: BTreeSet<String>,
}

impl Person {
    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Deed>) {
        let mut heard_at = self.clock.now();
        let mut beat_at = Instant::now();
        loop {
            tokio::select! {
                biased;
                deed = inbox.recv() => {
                    let Some(deed) = deed else { return };
                    if matches!(deed, Deed::Dial(_)) {
                        heard_at = self.clock.now();
                    }
                    self.act(deed);
                }
                frame = receive(self.end.as_mut()) => match frame {
                    Some(frame) => {
                        heard_at = self.clock.now();
                        self.hear(&frame);
                    }
                    None => self.hang_up(),
                },
                () = tokio::time::sleep_until(beat_at) => {
                    let beat = Duration::from_millis(self.machine.heartbeat_interval_ms());
                    beat_at = Instant::now() + beat;
                    let now = self.clock.now();
                    if now.ms_since(heard_at) > SILENCE_MS_MAX {
                        self.hang_up();
                    }
                    self.beat(now);
                }
            }
        }
    }

    fn act(&mut self, deed: Deed) {
        match deed {
            Deed::Dial(end) => {
                self.machine.on_disconnected();
                self.end = end.0.lock().unwrap_or_else(PoisonError::into_inner).take();
                let hello = self.machine.hello();
                self.say(&hello);
                self.note(|seen| seen.connected = true);
            }
            Deed::Send { session, id, text } => {
                let now = "2026-10-01T00:00:00.000Z";
                if let Some(frame) = self.machine.send(&session, &id, &text, now) {
                    self.say(&frame);
                }
                let unconfirmed = self.machine.unconfirmed();
                self.note(|seen| seen.unconfirmed = unconfirmed);
            }
            Deed::Control(frame) => self.say(&frame),
            Deed::ReadAgain { session, request, back } => {
                let last = self.machine.cursor(&session).unwrap_or_default();
                self.say(&json!({
                    "type": "history_request", "protocol_version": 1, "request_id": request,
                    "session_id": session, "after_sequence": last.saturating_sub(back),
                }));
            }
            Deed::Follow(session) => {
                if self.machine.cursor(&session).is_none() {
                    self.machine.follow(&session, 0);
                    self.hang_up();
                }
            }
            Deed::Answer => self.answer(),
            Deed::HangUp => self.hang_up(),
        }
    }

    fn answer(&mut self) {
        self.answers += 1;
        let open = {
            let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.prompts.iter().next().map(|(key, choices)| (key.clone(), choices.clone()))
        };
        let Some(((session, prompt), choices)) = open else { return };
        let index = usize::try_from(self.answers).unwrap_or_default() % choices.len().max(1);
        self.say(&json!({
            "type": "permission_response",
            "protocol_version": 1,
            "request_id": format!("ans_{prompt}_{}", self.answers),
            "session_id": session,
            "prompt_id": prompt,
            "choice_id": choices.get(index),
        }));
    }

    fn hear(&mut self, frame: &Bytes) {
        self.note(|seen| seen.heard_too_much += usize::from(seen.is_cut_off));
        let text = String::from_utf8_lossy(frame);
        self.note(|seen| seen.note_history(&text, &self.machine));
        let (happened, replies) = self.machine.on_text(&text);
        for happening in happened {
            self.take_in(happening);
        }
        for reply in replies {
            self.say(&reply);
        }
        let unconfirmed = self.machine.unconfirmed();
        self.note(|seen| seen.unconfirmed = unconfirmed);
    }

    fn take_in(&mut self, happening: Happening) {
        match happening {
            Happening::Event(event) => {
                let Some(cursor) = self.machine.cursor(&event.session) else { return };
                self.note(|seen| {
                    seen.note_fate(&event.frame);
                    seen.cursors.insert(event.session.clone(), cursor);
                    watch_prompts(seen, &event);
                    seen.events.entry(event.session.clone()).or_default().push(event);
                });
            }
            Happening::Page { session, last_sequence, .. } => {
                self.note(|seen| {
                    let cursor = seen.cursors.entry(session).or_default();
                    *cursor = last_sequence.max(*cursor);
                });
            }
            Happening::Anew { session, last_sequence, .. } => self.note(|seen| {
                let place = seen.events.get(&session).map_or(0, Vec::len);
                seen.cursors.insert(session.clone(), last_sequence);
                seen.anew.push(Anew { session, last_sequence, place });
            }),
            Happening::Answer(frame) => {
                if frame["code"] == "history_not_available"
                    && let Some(session) = frame["session_id"].as_str()
                {
                    self.unread.insert(session.to_owned());
                }
                self.note(|seen| {
                    seen.note_unread(&frame);
                    seen.note_fate(&frame);
                    seen.note_refusal(&frame);
                    seen.note_launch(&frame);
                });
            }
            Happening::Connected(_) | Happening::Sessions(_) | Happening::Delta(_) => {}
        }
    }

    fn beat(&mut self, now: Timestamp) {
        if let Some(frame) = self.machine.heartbeat(now) {
            self.say(&frame);
        }
        for frame in self.machine.again() {
            self.say(&frame);
        }
        // The store could not read it then; it may now.
        for session in std::mem::take(&mut self.unread) {
            let after = self.machine.cursor(&session).unwrap_or_default();
            self.say(&json!({
                "type": "history_request", "protocol_version": 1, "session_id": session,
                "after_sequence": after,
            }));
        }
    }

    fn say(&mut self, frame: &Value) {
        let Some(end) = self.end.as_mut() else { return };
        let is_sent = end.send(&Bytes::from(frame.to_string())).is_ok();
        let times = if end.was_repeated() { 2 } else { 1 };
        self.note(|seen| seen.note_said(frame, times));
        if !is_sent {
            self.hang_up();
        }
    }

    fn hang_up(&mut self) {
        self.end = None;
        self.machine.on_disconnected();
        self.note(|seen| seen.connected = false);
    }

    fn note(&self, note: impl FnOnce(&mut Seen)) {
        note(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// The session and the id of a send.
fn key_of(frame: &Value) -> (String, String) {
    let text = |name: &str| frame[name].as_str().unwrap_or_default().to_owned();
    (text("session_id"), text("client_message_id"))
}

fn watch_prompts(seen: &mut Seen, event: &Event) {
    let prompt = event.frame["prompt_id"].as_str().unwrap_or_default().to_owned();
    let key = (event.session.clone(), prompt);
    match event.kind.as_str() {
        "permission_prompt" => {
            let choices = event.frame["choices"].as_array().into_iter().flatten();
            let ids = choices.filter_map(|choice| choice["choice_id"].as_str().map(str::to_owned));
            seen.prompts.insert(key, ids.collect());
        }
        "permission_prompt_expired" | "permission_prompt_resolved" => {
            seen.prompts.remove(&key);
        }
        _ => {}
    }
}

async fn receive(end: Option<&mut End>) -> Option<Bytes> {
    match end {
        Some(end) => end.receive().await,
        None => std::future::pending().await,
    }
}
