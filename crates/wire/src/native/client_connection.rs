//! One client's connection, as a value. Its input is what arrived and the current time; its output
//! is frames to send and things to do.
//!
//! **Invariant**: for each session, a client receives the recorded events without gaps and without
//! repeats, in the ledger's order, from the position that the client named.
//!
//! Not here: sockets, waiting and reading the ledger (`relay`), deciding (`domain`).

mod answers;
pub mod commands;
mod controls;
mod feeds;
mod greeting;
pub mod history;
pub mod known;
mod launches;
mod questions;
mod types;
mod watching;

use std::collections::BTreeMap;

use domain::fleet::launches::Outcome;
use domain::session::controls::Kind;
use domain::{ConnectionId, MessageId, Principal, RequestId, SessionId, Timestamp};

pub use types::{Answer, Asked, Output, Purpose, Question, ReadJob, Welcome, session_json};

pub use crate::port::{Denied, Limits, Listing, PageOf, Throttle};

use super::features::{Feature, Features};
use super::frames::{ClientFrame, ConnectionError, RelayFrame, ResumeAt};
use super::shapes::{Envelope, Malformed};
use feeds::Feed;
use watching::Watching;

/// Control commands of one connection that wait for their answer. At the bound, more are
/// answered `rate_limited`.
pub const REQUESTS_MAX: usize = 256;
/// Launches that one connection is told about. At the bound, more are answered `rate_limited`.
pub const LAUNCHES_TOLD_MAX: usize = 256;
/// Frames that a client may send between hello and ack; they wait. More are answered
/// `rate_limited`.
pub const EARLY_FRAMES_MAX: usize = 64;
/// Files that one send may name, over HTTP too. More are `invalid_message`.
pub const ATTACHMENTS_MAX: usize = 64;
/// Sessions in `watch` or `resume`. More are `invalid_message`.
pub const SESSIONS_NAMED_MAX: usize = 4_096;

/// Why a connection is closed.
mod close {
    pub(super) const PROTOCOL: u16 = 1002;
    pub(super) const NOT_JSON: u16 = 1007;
    pub(super) const STALE: u16 = 4000;
    pub(super) const NO_HELLO: u16 = 4001;
    pub(super) const FORBIDDEN: u16 = 4003;
}

/// How far the greeting is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing was said.
    Opened,
    /// Hello was said; the welcome is being gathered.
    Joining,
    /// The ack is out.
    Joined,
}

/// A control command that waits for its answer.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    kind: Kind,
    /// Whether the client gave it its id, or this connection did.
    named: bool,
}

/// The relay's end of one client's connection.
#[derive(Debug)]
pub struct ClientConnection {
    connection: ConnectionId,
    principal: Option<Principal>,
    limits: Limits,
    opened_at: Timestamp,
    /// When anything was last heard.
    heard_at: Timestamp,
    stage: Stage,
    features: Features,
    /// Whether the peer named any feature, known or not.
    named_features: bool,
    resume: Vec<ResumeAt>,
    early: Vec<(Envelope, ClientFrame)>,
    feeds: BTreeMap<SessionId, Feed>,
    requests: BTreeMap<(SessionId, RequestId), Waiting>,
    /// Launches that this client hears of, each with what it was last told.
    launches: BTreeMap<RequestId, Option<Outcome>>,
    watching: Watching,
    counter: u64,
}

impl ClientConnection {
    /// A socket opened. `None` where it showed no credential.
    pub fn new(
        connection: ConnectionId,
        principal: Option<Principal>,
        limits: Limits,
        now: Timestamp,
    ) -> Self {
        Self {
            connection,
            principal,
            limits,
            opened_at: now,
            heard_at: now,
            stage: Stage::Opened,
            features: Features::default(),
            named_features: false,
            resume: vec![],
            early: vec![],
            feeds: BTreeMap::new(),
            requests: BTreeMap::new(),
            launches: BTreeMap::new(),
            watching: Watching::default(),
            counter: 0,
        }
    }

    /// Who speaks, with the client's own id once it said hello.
    pub fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    /// A text frame arrived.
    pub fn on_text(
        &mut self,
        text: &str,
        throttle: &mut dyn Throttle,
        now: Timestamp,
    ) -> Vec<Output> {
        self.heard_at = self.heard_at.max(now);
        let envelope = match Envelope::read(text) {
            Ok(envelope) => envelope,
            Err(malformed) => return self.on_malformed(malformed, throttle, now),
        };
        if self.stage == Stage::Opened {
            return self.on_first(&envelope, text, throttle, now);
        }
        let frame = ClientFrame::read(&envelope, text);
        let versioned = envelope.protocol_version == Some(super::shapes::VERSION);
        match frame {
            Err(malformed) => self.on_malformed(malformed, throttle, now),
            Ok(_) if !versioned => {
                let words = format!("{} needs protocol_version 1", envelope.kind);
                self.on_malformed(Malformed::rule(text, &words), throttle, now)
            }
            Ok(ClientFrame::Heartbeat(_)) => vec![self.beat(&envelope, now)],
            Ok(frame) => self.on_frame(envelope, frame, throttle, now),
        }
    }

    /// When [`ClientConnection::on_tick`] has something to do.
    pub fn deadline(&self) -> Timestamp {
        match self.stage {
            Stage::Opened => self.opened_at.plus_ms(self.limits.hello_timeout_ms),
            Stage::Joining | Stage::Joined => {
                self.heard_at.plus_ms(self.limits.heartbeat_timeout_ms)
            }
        }
    }

    /// Time passed.
    pub fn on_tick(&mut self, now: Timestamp) -> Vec<Output> {
        if now < self.deadline() {
            return vec![];
        }
        let (code, reason) = match self.stage {
            Stage::Opened => (close::NO_HELLO, "no connection_hello in time"),
            Stage::Joining | Stage::Joined => (close::STALE, "no frame in time"),
        };
        vec![Output::Close { code, reason }]
    }

    fn on_frame(
        &mut self,
        envelope: Envelope,
        frame: ClientFrame,
        throttle: &mut dyn Throttle,
        now: Timestamp,
    ) -> Vec<Output> {
        let send = send_of(&frame).cloned();
        let sends = matches!(frame, ClientFrame::SendMessage(_));
        if !throttle.frame(now) || (sends && !throttle.send(now)) {
            return vec![too_fast(envelope.request_id, send, now)];
        }
        if self.stage == Stage::Joining {
            if self.early.len() >= EARLY_FRAMES_MAX {
                return vec![too_fast(envelope.request_id, send, now)];
            }
            self.early.push((envelope, frame));
            return vec![];
        }
        self.dispatch(&envelope, frame, now)
    }

    fn on_malformed(
        &mut self,
        malformed: Malformed,
        throttle: &mut dyn Throttle,
        now: Timestamp,
    ) -> Vec<Output> {
        let Malformed::Invalid { request, send, message, .. } = malformed else {
            let reason = "the frame is not JSON";
            return vec![Output::Close { code: close::NOT_JSON, reason }];
        };
        if self.stage == Stage::Opened {
            let told = error("invalid_message", &message, request, send, None, now);
            let reason = "connection_hello comes first";
            return vec![told, Output::Close { code: close::NO_HELLO, reason }];
        }
        if !throttle.frame(now) {
            return vec![too_fast(request, send, now)];
        }
        vec![error("invalid_message", &message, request, send, None, now)]
    }

    fn beat(&self, envelope: &Envelope, now: Timestamp) -> Output {
        let envelope = Envelope {
            request_id: envelope.request_id.clone(),
            connection_id: Some(self.connection.clone()),
            server_ts: Some(now.into()),
            ..Envelope::new("")
        };
        Output::Send(RelayFrame::HeartbeatAck(super::frames::Empty {}).encode(envelope))
    }

    fn has(&self, feature: Feature) -> bool {
        self.features.has(feature)
    }

    fn count(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }
}

/// `connection_error`.
fn error(
    code: &str,
    message: &str,
    request_id: Option<RequestId>,
    client_message_id: Option<MessageId>,
    session_id: Option<SessionId>,
    now: Timestamp,
) -> Output {
    let (code, message) = (code.to_owned(), message.to_owned());
    let body = ConnectionError { code, message, client_message_id };
    let server_ts = Some(now.into());
    let envelope = Envelope { request_id, session_id, server_ts, ..Envelope::new("") };
    Output::Send(RelayFrame::ConnectionError(body).encode(envelope))
}

/// The same, about a frame.
fn refuse(envelope: &Envelope, code: &str, words: &str, now: Timestamp) -> Output {
    let session = envelope.session_id.clone();
    error(code, words, envelope.request_id.clone(), None, session, now)
}

/// `rate_limited`, naming what was not taken.
fn too_fast(request: Option<RequestId>, send: Option<MessageId>, now: Timestamp) -> Output {
    let words = "Too many frames; wait a moment and resend this one";
    error("rate_limited", words, request, send, None, now)
}

/// The send that a frame names.
fn send_of(frame: &ClientFrame) -> Option<&MessageId> {
    match frame {
        ClientFrame::SendMessage(send) => Some(&send.client_message_id),
        ClientFrame::QueueEdit(edit) => Some(&edit.client_message_id),
        ClientFrame::QueueDiscard(discard) => Some(&discard.client_message_id),
        ClientFrame::QueueMove(shift) => Some(&shift.client_message_id),
        ClientFrame::ConnectionHello(_)
        | ClientFrame::Heartbeat(_)
        | ClientFrame::HistoryRequest(_)
        | ClientFrame::LaunchSession(_)
        | ClientFrame::ResumeSession(_)
        | ClientFrame::CatalogRequest(_)
        | ClientFrame::ResumableList(_)
        | ClientFrame::ToolOutputRequest(_)
        | ClientFrame::CloseSession(_)
        | ClientFrame::PermissionResponse(_)
        | ClientFrame::AgentInterrupt(_)
        | ClientFrame::AgentConfigRequest(_)
        | ClientFrame::AgentSetModel(_)
        | ClientFrame::AgentSetPermissionMode(_)
        | ClientFrame::AgentSetEffort(_)
        | ClientFrame::SessionRename(_)
        | ClientFrame::Watch(_)
        | ClientFrame::QueueResume(_) => None,
    }
}
