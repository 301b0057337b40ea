//! One proxy's connection, as the relay sees it.
//!
//! It works the same for our own proxy and for a proxy that knows only version 1 of the document.
//! Whatever the plain proxy leaves out (numbers, ids, a machine's name) is absent from the output.
//!
//! Not here: what follows from a report (`domain`), numbering (`link`), the socket (`server`).

use bytes::Bytes;
use domain::content::Failure;
use domain::fleet::{Launch, Named, Offer};
use domain::passing::Delta;
use domain::session::{Order, Report};
use domain::{
    ConnectionId, LinkId, MachineLabel, MessageId, Principal, Refusal, RequestId, Role, SessionId,
    Timestamp,
};

use super::proxy_frames::{self, Ack, FEATURES, Hello, Refused};
use super::shapes::{Conversations, Envelope, Malformed, ResumableList, VERSION};

/// The peer went silent.
pub const CLOSE_STALE: u16 = 4000;
/// The peer never said hello.
pub const CLOSE_NO_HELLO: u16 = 4001;
/// The peer's credential does not allow it.
pub const CLOSE_FORBIDDEN: u16 = 4003;
/// The peer broke the rules of the handshake.
pub const CLOSE_PROTOCOL: u16 = 1002;
/// The peer's text was not JSON.
pub const CLOSE_NOT_JSON: u16 = 1007;

/// Times of a proxy's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyLimits {
    /// How often the peer is asked to say that it is alive.
    pub heartbeat_interval_ms: u64,
    /// How long silence is borne.
    pub heartbeat_timeout_ms: u64,
    /// How long hello is waited for.
    pub hello_timeout_ms: u64,
}

impl Default for ProxyLimits {
    fn default() -> Self {
        Self {
            heartbeat_interval_ms: 10_000,
            heartbeat_timeout_ms: 30_000,
            hello_timeout_ms: 10_000,
        }
    }
}

/// What the shell must do, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyOutput {
    /// One UTF-8 JSON text frame.
    Send(Bytes),
    /// Close the socket.
    Close {
        /// The WebSocket code.
        code: u16,
        /// In words.
        reason: &'static str,
    },
    /// Hello was valid: tell the fleet, then call [`ProxyConnection::on_connected`].
    Connected {
        /// Its machine, if it says.
        machine: Option<MachineLabel>,
        /// Its journal, if it has one.
        link: Option<LinkId>,
        /// What it has to offer.
        offer: Offer,
    },
    /// The sessions that it has: the whole truth about its machine.
    Named {
        /// All of them.
        named: Vec<Named>,
    },
    /// A word about a session.
    Report {
        /// Which session.
        session: SessionId,
        /// Its number in the proxy's journal.
        number: Option<u64>,
        /// The word.
        report: Report,
    },
    /// Words of a message in the making.
    Passing {
        /// Which session.
        session: SessionId,
        /// The words.
        delta: Delta,
    },
    /// A launch brought a session.
    Launched {
        /// Its number in the proxy's journal.
        number: Option<u64>,
        /// The client's request.
        request: RequestId,
        /// The new session.
        session: SessionId,
    },
    /// A launch brought nothing.
    LaunchFailed {
        /// Its number in the proxy's journal.
        number: Option<u64>,
        /// The client's request.
        request: RequestId,
        /// Why.
        failure: Failure,
    },
    /// What it has to offer changed.
    Offered {
        /// Everything that it has to offer now.
        offer: Offer,
    },
    /// The answer to [`ProxyConnection::on_ask`].
    Conversations {
        /// Which question.
        request: RequestId,
        /// A page, or why there is none.
        listed: Result<Conversations, Failure>,
    },
    /// A numbered frame that leads to nothing: it counts as committed.
    Done {
        /// Its number.
        number: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Before hello.
    New,
    /// After it.
    Greeted,
    /// Told to close; nothing is heard any more.
    Ended,
}

/// The relay's end of one proxy connection.
#[derive(Debug)]
pub struct ProxyConnection {
    connection: ConnectionId,
    principal: Option<Principal>,
    limits: ProxyLimits,
    stage: Stage,
    heard_at: Timestamp,
    features: Vec<String>,
    has_link: bool,
    unnamed_messages: u64,
}

impl ProxyConnection {
    /// A socket opened; `principal` is what its credential says, if it showed one.
    pub fn new(
        connection: ConnectionId,
        principal: Option<Principal>,
        limits: ProxyLimits,
        now: Timestamp,
    ) -> Self {
        Self {
            connection,
            principal,
            limits,
            stage: Stage::New,
            heard_at: now,
            features: vec![],
            has_link: false,
            unnamed_messages: 0,
        }
    }

    /// A text frame arrived.
    pub fn on_text(&mut self, text: &str, now: Timestamp) -> Vec<ProxyOutput> {
        match self.stage {
            Stage::New => self.greet(text, now),
            Stage::Greeted => {
                self.heard_at = now;
                self.hear(text, now)
            }
            Stage::Ended => vec![],
        }
    }

    /// The fleet knows the machine: greet it. `received_through` is how far the relay ever heard
    /// its journal, where the relay keeps that.
    pub fn on_connected(&self, received_through: Option<u64>, now: Timestamp) -> Bytes {
        let ack = Ack {
            connection: self.connection.clone(),
            heartbeat_interval_ms: self.limits.heartbeat_interval_ms,
            heartbeat_timeout_ms: self.limits.heartbeat_timeout_ms,
            features: self.features.clone(),
            received: received_through.filter(|_| self.has_link),
        };
        proxy_frames::ack(&ack, now)
    }

    /// The session owes its proxy an order.
    pub fn on_order(&self, session: &SessionId, order: &Order, now: Timestamp) -> Bytes {
        proxy_frames::encode_order(session, order, !self.has_link, now)
    }

    /// The fleet owes this machine a launch.
    pub fn on_launch(&self, launch: &Launch, now: Timestamp) -> Bytes {
        proxy_frames::encode_launch(launch, now)
    }

    /// Somebody asks for the conversations that this machine's agents keep.
    pub fn on_ask(&self, request: &RequestId, list: &ResumableList, now: Timestamp) -> Bytes {
        proxy_frames::encode_resumable_list(request, list, now)
    }

    /// Everything up to this number is committed.
    pub fn on_ack(&self, number: u64, now: Timestamp) -> Bytes {
        proxy_frames::link_ack(number, now)
    }

    /// A report was refused. `None` where the proxy need not know.
    pub fn on_refused(
        &self,
        session: &SessionId,
        refusal: &Refusal,
        now: Timestamp,
    ) -> Option<Bytes> {
        let code = match refusal {
            Refusal::NotThisProxy
            | Refusal::OtherMachine
            | Refusal::SessionUnknown
            | Refusal::SessionClosed => "session_unknown",
            Refusal::TooManyPrompts { .. } => "invalid_message",
            Refusal::Unauthorized => "unauthorized",
            // Answers to people; no report leads to them.
            Refusal::NoProxyConnected
            | Refusal::OwnerOnly
            | Refusal::PromptNotOpen(_)
            | Refusal::NoSuchChoice { .. }
            | Refusal::AnswersMissing(_)
            | Refusal::QueueFull { .. }
            | Refusal::AgentAtWork
            | Refusal::NotQueued(_)
            | Refusal::SendRepeated(_)
            | Refusal::RequestRepeated(_)
            | Refusal::LaunchRepeated(_)
            | Refusal::RequestInUse(_)
            | Refusal::TooManyRequests { .. }
            | Refusal::NotSupported => return None,
        };
        let refused = Refused { session: Some(session.clone()), request: None };
        Some(proxy_frames::error(code, &refusal.to_string(), refused, now))
    }

    /// Time passed.
    pub fn on_tick(&mut self, now: Timestamp) -> Vec<ProxyOutput> {
        if self.stage == Stage::Ended || now < self.deadline() {
            return vec![];
        }
        let close = match self.stage {
            Stage::New => (CLOSE_NO_HELLO, "no hello in time"),
            Stage::Greeted | Stage::Ended => (CLOSE_STALE, "no frame in time"),
        };
        vec![self.close(close.0, close.1)]
    }

    /// When to call [`ProxyConnection::on_tick`] next.
    pub fn deadline(&self) -> Timestamp {
        match self.stage {
            Stage::New => self.heard_at.plus_ms(self.limits.hello_timeout_ms),
            Stage::Greeted => self.heard_at.plus_ms(self.limits.heartbeat_timeout_ms),
            Stage::Ended => Timestamp(u64::MAX),
        }
    }

    /// Whether the proxy numbers its frames.
    pub fn has_link(&self) -> bool {
        self.has_link
    }

    /// Whether the proxy named this feature and the relay speaks it.
    pub fn has_feature(&self, feature: &str) -> bool {
        self.features.iter().any(|named| named == feature)
    }

    fn greet(&mut self, text: &str, now: Timestamp) -> Vec<ProxyOutput> {
        let envelope = match Envelope::read(text) {
            Ok(envelope) => envelope,
            Err(malformed) => return self.end_with(malformed, now),
        };
        if envelope.kind != "connection_hello" {
            let words = "the first frame must be connection_hello";
            return self.end_with(Malformed::rule(text, words), now);
        }
        if envelope.protocol_version != Some(VERSION) {
            let words = format!("Expected protocol_version {VERSION}");
            let code = "protocol_version_unsupported";
            let told = proxy_frames::error(code, &words, Refused::default(), now);
            return vec![ProxyOutput::Send(told), self.close(CLOSE_PROTOCOL, code)];
        }
        let hello = Hello::read(text).or_else(|malformed| {
            let plain =
                proxy_frames::without_extensions(text).and_then(|plain| Hello::read(&plain).ok());
            plain.filter(|hello| hello.features.is_empty()).ok_or(malformed)
        });
        let hello = match hello {
            Ok(hello) => hello,
            Err(malformed) => return self.end_with(malformed, now),
        };
        if self.principal.as_ref().is_none_or(|principal| principal.role != Role::Proxy) {
            let words = "A proxy needs a token of role proxy: farhelm token create --role proxy";
            let told = proxy_frames::error("unauthorized", words, Refused::default(), now);
            return vec![ProxyOutput::Send(told), self.close(CLOSE_FORBIDDEN, "unauthorized")];
        }
        self.stage = Stage::Greeted;
        self.heard_at = now;
        self.features = hello.features;
        self.features.retain(|named| FEATURES.contains(&named.as_str()));
        self.features.dedup();
        let link = hello.link.filter(|_| self.has_feature("link"));
        self.has_link = link.is_some();
        vec![ProxyOutput::Connected { machine: hello.machine, link, offer: hello.offer }]
    }

    fn hear(&mut self, text: &str, now: Timestamp) -> Vec<ProxyOutput> {
        let understood = self.understand(text, now).or_else(|malformed| {
            // To a peer without features our extensions are no part of the protocol.
            let plain = if self.features.is_empty() {
                proxy_frames::without_extensions(text)
            } else {
                None
            };
            plain.and_then(|plain| self.understand(&plain, now).ok()).ok_or(malformed)
        });
        match understood {
            Ok(outputs) => outputs,
            Err(Malformed::NotJson) => vec![self.close(CLOSE_NOT_JSON, "not JSON")],
            Err(malformed) => {
                let mut outputs = vec![ProxyOutput::Send(told(&malformed, now))];
                // A frame that can never be understood must not hold up those behind it.
                let number = proxy_frames::link_number(text).ok().flatten();
                let number = number.filter(|_| self.has_link);
                outputs.extend(number.map(|number| ProxyOutput::Done { number }));
                outputs
            }
        }
    }

    fn understand(&mut self, text: &str, now: Timestamp) -> Result<Vec<ProxyOutput>, Malformed> {
        let envelope = Envelope::read(text)?;
        if envelope.protocol_version != Some(VERSION) {
            let words = format!("protocol_version must be {VERSION}");
            return Err(Malformed::rule(text, &words));
        }
        let output = match envelope.kind.as_ref() {
            "heartbeat" => {
                let request = envelope.request_id;
                ProxyOutput::Send(proxy_frames::heartbeat_ack(request, &self.connection, now))
            }
            "message_delta" => {
                let (session, delta) = proxy_frames::read_delta(&envelope, text)?;
                ProxyOutput::Passing { session, delta }
            }
            "proxy_session_snapshot" => {
                ProxyOutput::Named { named: proxy_frames::read_snapshot(text, now)? }
            }
            "session_launch_ack" => {
                let (request, session) = proxy_frames::read_launched(&envelope, text)?;
                ProxyOutput::Launched { number: self.number(text)?, request, session }
            }
            "session_launch_failed" => {
                let (request, failure) = proxy_frames::read_launch_failed(&envelope, text)?;
                ProxyOutput::LaunchFailed { number: self.number(text)?, request, failure }
            }
            "proxy_catalog" => ProxyOutput::Offered { offer: proxy_frames::read_catalog(text)? },
            "resumable_sessions" => {
                let (request, listed) = proxy_frames::read_conversations(&envelope, text)?;
                ProxyOutput::Conversations { request, listed }
            }
            // An error is not answered with an error.
            "connection_error" => return Ok(vec![]),
            _ => self.report(&envelope, text, now)?,
        };
        Ok(vec![output])
    }

    fn report(
        &mut self,
        envelope: &Envelope,
        text: &str,
        now: Timestamp,
    ) -> Result<ProxyOutput, Malformed> {
        let count = self.unnamed_messages + 1;
        let connection = &self.connection;
        let unnamed = || MessageId::from(format!("msg_{connection}_{count}"));
        let read = proxy_frames::read_report(envelope, text, unnamed, now)?;
        let Some((session, report)) = read else {
            let words = format!("unexpected frame type from a proxy: {}", envelope.kind);
            return Err(Malformed::rule(text, &words));
        };
        self.unnamed_messages = count;
        Ok(ProxyOutput::Report { session, number: self.number(text)?, report })
    }

    fn number(&self, text: &str) -> Result<Option<u64>, Malformed> {
        if self.has_link { proxy_frames::link_number(text) } else { Ok(None) }
    }

    fn end_with(&mut self, malformed: Malformed, now: Timestamp) -> Vec<ProxyOutput> {
        match malformed {
            Malformed::NotJson => vec![self.close(CLOSE_NOT_JSON, "not JSON")],
            malformed @ Malformed::Invalid { .. } => {
                let told = told(&malformed, now);
                vec![ProxyOutput::Send(told), self.close(CLOSE_PROTOCOL, "invalid_message")]
            }
        }
    }

    fn close(&mut self, code: u16, reason: &'static str) -> ProxyOutput {
        self.stage = Stage::Ended;
        ProxyOutput::Close { code, reason }
    }
}

fn told(malformed: &Malformed, now: Timestamp) -> Bytes {
    let request = match malformed {
        Malformed::Invalid { request, .. } => request.clone(),
        Malformed::NotJson => None,
    };
    let refused = Refused { request, session: None };
    proxy_frames::error("invalid_message", &malformed.to_string(), refused, now)
}

#[cfg(test)]
mod tests;
