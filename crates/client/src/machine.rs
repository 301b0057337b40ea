//! One native client across its connections.
//!
//! **Invariant**: an event is shown once, in the order of its session, however often the
//! connection breaks. A send is repeated under its own id until the relay reports its outcome.
//!
//! Not here: sockets and waiting (the shell that owns this value).

use std::collections::BTreeMap;

use domain::Timestamp;
use serde_json::{Map, Value, json};

/// Sends that may wait for the relay's word.
const UNCONFIRMED_MAX: usize = 10_000;

/// Who this client is and what it wants.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Its name, for the relay's diagnostics.
    pub client_name: String,
    /// Its lasting id.
    pub client_id: Option<String>,
    /// Extensions of the dialect that it understands.
    pub features: Vec<String>,
}

impl Settings {
    /// A client that understands everything this crate shows.
    pub fn full(client_name: &str, client_id: &str) -> Self {
        let features = [
            "deltas",
            "tools",
            "runs",
            "queue",
            "prompt_resolved",
            "prompt_detail",
            "paging",
            "plan",
            "context",
            "modes",
            "session_rename",
            "catalog",
            "resume",
            "tool_output",
        ];
        Self {
            client_name: client_name.to_owned(),
            client_id: Some(client_id.to_owned()),
            features: features.map(str::to_owned).to_vec(),
        }
    }

    /// A client that knows only the document.
    pub fn plain(client_name: &str) -> Self {
        Self { client_name: client_name.to_owned(), client_id: None, features: vec![] }
    }
}

/// An event of a session, shown once.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Whose.
    pub session: String,
    /// Its number.
    pub sequence: u64,
    /// The frame's `type`.
    pub kind: String,
    /// The whole frame.
    pub frame: Value,
}

/// Something that the person, or the program, should know.
#[derive(Debug, Clone, PartialEq)]
pub enum Happening {
    /// The relay said hello.
    Connected(Value),
    /// All sessions, as they are.
    Sessions(Vec<Value>),
    /// An event, once.
    Event(Event),
    /// Words in the making.
    Delta(Value),
    /// The relay no longer has what this client missed: everything it has, instead.
    Anew {
        /// Whose history.
        session: String,
        /// The messages of its first page.
        messages: Vec<Value>,
        /// The event up to which they reach.
        last_sequence: u64,
    },
    /// A history page was taken in; `has_more` when another follows by itself.
    Page {
        /// Whose history.
        session: String,
        /// The event up to which it reaches.
        last_sequence: u64,
        /// Whether another page follows.
        has_more: bool,
    },
    /// An answer to this client alone, or anything else.
    Answer(Value),
}

/// One native client across its connections.
#[derive(Debug)]
pub struct Machine {
    settings: Settings,
    cursors: BTreeMap<String, u64>,
    unconfirmed: BTreeMap<(String, String), Value>,
    connected: bool,
    heartbeat_interval_ms: u64,
    last_heartbeat: Option<u64>,
}

impl Machine {
    /// A client that has seen nothing.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            cursors: BTreeMap::new(),
            unconfirmed: BTreeMap::new(),
            connected: false,
            heartbeat_interval_ms: 10_000,
            last_heartbeat: None,
        }
    }

    /// Wants everything of a session after this event, now and after every reconnect.
    pub fn follow(&mut self, session: &str, after: u64) {
        self.cursors.insert(session.to_owned(), after);
    }

    /// The last event of a session that was shown.
    pub fn cursor(&self, session: &str) -> Option<u64> {
        self.cursors.get(session).copied()
    }

    /// The socket is open: the first frame.
    pub fn hello(&self) -> Value {
        let sessions: Vec<_> = self
            .cursors
            .iter()
            .map(|(session, last)| json!({"session_id": session, "last_sequence": last}))
            .collect();
        let mut hello = json!({
            "type": "connection_hello",
            "protocol_version": 1,
            "peer_role": "browser",
            "client_name": self.settings.client_name,
            "client_version": env!("CARGO_PKG_VERSION"),
            "resume": {"sessions": sessions},
        });
        if !self.settings.features.is_empty() {
            hello["features"] = json!(self.settings.features);
        }
        if let Some(client_id) = &self.settings.client_id {
            hello["client_id"] = json!(client_id);
        }
        hello
    }

    /// The socket is gone.
    pub fn on_disconnected(&mut self) {
        self.connected = false;
    }

    /// Words a send, and remembers it until the relay has it. Not yet connected: it goes out
    /// with the others when the relay has said hello.
    pub fn send(&mut self, session: &str, id: &str, text: &str, now: &str) -> Option<Value> {
        self.send_in_mode(session, id, text, None, now)
    }

    /// The same with a word for what to do while the agent runs: `steer` or `follow_up`.
    pub fn send_in_mode(
        &mut self,
        session: &str,
        id: &str,
        text: &str,
        mode: Option<&str>,
        now: &str,
    ) -> Option<Value> {
        let mut frame = json!({
            "type": "send_message",
            "protocol_version": 1,
            "client_message_id": id,
            "session_id": session,
            "content": text,
            "created_at": now,
        });
        if let Some(mode) = mode {
            frame["mode"] = json!(mode);
        }
        if self.unconfirmed.len() < UNCONFIRMED_MAX {
            self.unconfirmed.insert((session.to_owned(), id.to_owned()), frame.clone());
        }
        self.connected.then_some(frame)
    }

    /// Sends whose fate the relay has not told.
    pub fn unconfirmed(&self) -> usize {
        self.unconfirmed.len()
    }

    /// Everything unconfirmed once more: to be said from time to time, because the relay may have
    /// been unable to record it. A repeat is harmless.
    pub fn again(&self) -> Vec<Value> {
        if self.connected { self.unconfirmed.values().cloned().collect() } else { vec![] }
    }

    /// A heartbeat, if one is due.
    pub fn heartbeat(&mut self, now: Timestamp) -> Option<Value> {
        let interval_ms = self.heartbeat_interval_ms;
        let is_early = |last: u64| now.0 < last.saturating_add(interval_ms);
        if !self.connected || self.last_heartbeat.is_some_and(is_early) {
            return None;
        }
        self.last_heartbeat = Some(now.0);
        Some(json!({"type": "heartbeat", "protocol_version": 1, "request_id": "hb"}))
    }

    /// How often the relay wants to hear from this client.
    pub fn heartbeat_interval_ms(&self) -> u64 {
        self.heartbeat_interval_ms
    }

    /// A frame arrives. Gives what happened, and what to send in turn.
    pub fn on_text(&mut self, text: &str) -> (Vec<Happening>, Vec<Value>) {
        let Ok(frame) = serde_json::from_str::<Value>(text) else { return (vec![], vec![]) };
        let kind = frame["type"].as_str().unwrap_or_default().to_owned();
        match kind.as_str() {
            "connection_ack" => {
                self.connected = true;
                if let Some(interval) = frame["heartbeat_interval_ms"].as_u64() {
                    self.heartbeat_interval_ms = interval.max(1);
                }
                let again = self.unconfirmed.values().cloned().collect();
                (vec![Happening::Connected(frame)], again)
            }
            "session_snapshot" => {
                let sessions = frame["sessions"].as_array().cloned().unwrap_or_default();
                (vec![Happening::Sessions(sessions)], vec![])
            }
            "history_delta" => (self.on_page(&frame), vec![]),
            "history_snapshot" => (self.on_snapshot(&frame), vec![]),
            "message_delta" => (vec![Happening::Delta(frame)], vec![]),
            "heartbeat_ack" => (vec![], vec![]),
            _ => (self.on_event(&kind, frame), vec![]),
        }
    }

    fn on_event(&mut self, kind: &str, frame: Value) -> Vec<Happening> {
        let confirmed = self.confirm(kind, &frame);
        let session = match kind {
            "session_up" => frame["session"]["session_id"].as_str(),
            _ => frame["session_id"].as_str(),
        };
        let (Some(session), Some(sequence)) = (session, frame["sequence"].as_u64()) else {
            return vec![Happening::Answer(frame)];
        };
        let session = session.to_owned();
        if let Some(cursor) = self.cursors.get_mut(&session) {
            if sequence <= *cursor {
                // A state told again: news only to whoever asked again.
                return if confirmed { vec![Happening::Answer(frame)] } else { vec![] };
            }
            *cursor = sequence;
        }
        vec![Happening::Event(Event { session, sequence, kind: kind.to_owned(), frame })]
    }

    /// The relay has the send, or has refused it. True when that was not known.
    fn confirm(&mut self, kind: &str, frame: &Value) -> bool {
        let told = matches!(kind, "message_accepted" | "message_delivered" | "message_failed");
        let session = frame["session_id"].as_str();
        let id = frame["client_message_id"].as_str();
        let (true, Some(session), Some(id)) = (told, session, id) else { return false };
        self.unconfirmed.remove(&(session.to_owned(), id.to_owned())).is_some()
    }

    fn on_page(&mut self, page: &Value) -> Vec<Happening> {
        let session = page["session_id"].as_str().unwrap_or_default().to_owned();
        let mut happened = vec![];
        for event in page["events"].as_array().into_iter().flatten() {
            let kind = event["type"].as_str().unwrap_or_default();
            happened.extend(self.on_event(kind, event.clone()));
        }
        let last_sequence = page["last_sequence"].as_u64().unwrap_or_default();
        if let Some(cursor) = self.cursors.get_mut(&session) {
            *cursor = last_sequence.max(*cursor);
        }
        let has_more = page["has_more"].as_bool().unwrap_or(false);
        happened.push(Happening::Page { session, last_sequence, has_more });
        happened
    }

    fn on_snapshot(&mut self, snapshot: &Value) -> Vec<Happening> {
        let session = snapshot["session_id"].as_str().unwrap_or_default().to_owned();
        let last_sequence = snapshot["last_sequence"].as_u64().unwrap_or_default();
        if let Some(cursor) = self.cursors.get_mut(&session) {
            *cursor = last_sequence;
        }
        let messages = snapshot["messages"].as_array().cloned().unwrap_or_default();
        vec![Happening::Anew { session, messages, last_sequence }]
    }
}

/// A control command of this client.
pub fn control(kind: &str, session: &str, request: &str, more: &Map<String, Value>) -> Value {
    let mut frame = json!({
        "type": kind,
        "protocol_version": 1,
        "request_id": request,
        "session_id": session,
    });
    for (name, value) in more {
        frame[name] = value.clone();
    }
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_comes_twice_is_shown_once() {
        let mut machine = following();
        let frame = event("message_event", 3);
        assert_eq!(machine.on_text(&frame).0.len(), 1);
        assert_eq!(machine.on_text(&frame).0, []);
    }

    #[test]
    fn after_a_reconnect_the_hello_names_the_last_event_shown() {
        let mut machine = following();
        machine.on_text(&event("message_event", 7));
        machine.on_disconnected();
        assert_eq!(machine.hello()["resume"]["sessions"][0]["last_sequence"], 7);
    }

    #[test]
    fn a_send_is_repeated_after_every_hello_until_the_relay_has_it() {
        let mut machine = following();
        assert_eq!(machine.send("sess", "m1", "hi", "2026-01-01T00:00:00.000Z"), None);
        for _ in 0..2 {
            let (_, again) = machine.on_text(r#"{"type":"connection_ack"}"#);
            assert_eq!(again[0]["client_message_id"], "m1");
        }
        let accepted = r#"{"type":"message_accepted","session_id":"sess","sequence":1,
            "client_message_id":"m1"}"#;
        machine.on_text(accepted);
        assert_eq!(machine.on_text(r#"{"type":"connection_ack"}"#).1, [] as [Value; 0]);
    }

    #[test]
    fn a_state_told_again_is_shown_to_whoever_sent_again() {
        let mut machine = following();
        machine.follow("sess", 9);
        let _ = machine.send("sess", "m1", "hi", "2026-01-01T00:00:00.000Z");
        let delivered = r#"{"type":"message_delivered","session_id":"sess","sequence":4,
            "client_message_id":"m1"}"#;
        assert!(matches!(machine.on_text(delivered).0[..], [Happening::Answer(_)]));
        assert_eq!(machine.on_text(delivered).0, []);
    }

    #[test]
    fn an_interval_that_never_ends_costs_one_heartbeat_and_the_next_relay_sets_its_own() {
        let mut machine = following();
        let ack = |interval_ms: u64| {
            json!({"type": "connection_ack", "heartbeat_interval_ms": interval_ms}).to_string()
        };
        machine.on_text(&ack(u64::MAX));
        assert!(machine.heartbeat(Timestamp(5)).is_some());
        assert_eq!(machine.heartbeat(Timestamp(1_000_000)), None);
        machine.on_disconnected();
        machine.on_text(&ack(10));
        assert!(machine.heartbeat(Timestamp(1_000_000)).is_some());
        assert_eq!(machine.heartbeat(Timestamp(1_000_009)), None);
    }

    #[test]
    fn a_page_moves_the_cursor_past_events_that_this_client_does_not_know() {
        let mut machine = following();
        machine.on_text(
            r#"{"type":"history_delta","session_id":"sess","from_sequence":0,"last_sequence":9,
                "events":[{"type":"message_event","session_id":"sess","sequence":4}]}"#,
        );
        assert_eq!(machine.cursor("sess"), Some(9));
    }

    fn following() -> Machine {
        let mut machine = Machine::new(Settings::plain("test"));
        machine.follow("sess", 0);
        machine
    }

    fn event(kind: &str, sequence: u64) -> String {
        json!({"type": kind, "session_id": "sess", "sequence": sequence}).to_string()
    }
}
