//! The handshake, and the status of the relay and of a session.
//!
//! **Invariant**: before a `connect` with a supported version, every request gets only an error
//! and a close.

use domain::{MessageId, SessionId};
use serde::Deserialize;
use serde_json::{Value, json};

use super::frames::{Request, granted, params, refuse};
use super::sessions::{ListFor, New, Reply};
use super::switch::{Purpose, RECENT_DEFAULT};
use super::{Asked, Connection, Stage, not_found};
use crate::visitor::{Act, Figures, Followed};

/// The version of the dialect.
const VERSION: &str = "1";
/// The close code of a first frame that is no `connect`.
pub(super) const NO_CONNECT: u16 = 4001;
/// The close code of a version that is not spoken here.
const WRONG_VERSION: u16 = 1002;
/// What can be asked for.
const METHODS: [&str; 7] = [
    "agent",
    "agent.cancel",
    "sessions.list",
    "sessions.new",
    "sessions.switch",
    "sessions.history",
    "status",
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Connect {
    version: Value,
    #[serde(default)]
    session_preference: Option<String>,
    #[serde(default)]
    history_limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wanted {
    #[serde(default)]
    session_id: Option<String>,
}

impl Connection {
    /// The first request.
    pub(super) fn connect(&mut self, request: Request) -> Vec<Act> {
        let Request { id, method, params: given } = request;
        let close = |words: &str, code, reason| {
            let mut acts = refuse(&id, words);
            acts.push(Act::Close { code, reason });
            acts
        };
        if method != "connect" {
            let words = "First frame must be 'connect' request";
            return close(words, NO_CONNECT, "the first frame must be connect");
        }
        let connect = match params::<Connect>(given) {
            Ok(connect) => connect,
            Err(words) => return close(&words, NO_CONNECT, "invalid connect request"),
        };
        if connect.version != VERSION {
            let said =
                connect.version.as_str().map_or_else(|| connect.version.to_string(), str::to_owned);
            let words = format!("Unsupported protocol version: {said}. Supported: {VERSION}");
            return close(&words, WRONG_VERSION, "unsupported protocol version");
        }
        self.stage = Stage::Connected;
        self.recent = connect.history_limit.unwrap_or(RECENT_DEFAULT);
        let payload = json!({
            "gatewayVersion": env!("CARGO_PKG_VERSION"), "supportedMethods": METHODS,
        });
        let mut acts = vec![Act::Send(granted(&id, &payload))];
        match connect.session_preference.as_deref() {
            Some("auto" | "continue") => acts.extend(self.list(ListFor::Latest(Purpose::Quiet))),
            Some("new") if self.may_steer() => {
                acts.extend(self.list(ListFor::New(New { request: None, title: None })));
            }
            Some(_) | None => {}
        }
        acts
    }

    pub(super) fn status(&mut self, request: Request) -> Vec<Act> {
        let Request { id, params: given, .. } = request;
        let session = match params::<Wanted>(given) {
            Ok(Wanted { session_id: Some(named) }) => match SessionId::parse(&named) {
                Some(session) => Some(session),
                None => return refuse(&id, &not_found(&named)),
            },
            Ok(Wanted { session_id: None }) => self.view.as_ref().map(|view| view.session.clone()),
            Err(words) => return refuse(&id, &words),
        };
        self.look_around(Reply::Response(id), session)
    }

    pub(super) fn look_around(&mut self, reply: Reply, session: Option<SessionId>) -> Vec<Act> {
        vec![Act::Figures { ticket: self.ticket(Asked::Figures(reply, session)) }]
    }

    pub(super) fn on_figures(
        &mut self,
        reply: Reply,
        session: Option<SessionId>,
        figures: Figures,
    ) -> Vec<Act> {
        match session {
            None => self.on_status(reply, figures, None),
            Some(session) => {
                let named = session.clone();
                let ticket = self.ticket(Asked::Glance(reply, figures, named));
                vec![Act::Glance { session, ticket }]
            }
        }
    }

    pub(super) fn on_glanced(
        &mut self,
        reply: Reply,
        figures: Figures,
        session: &SessionId,
        glanced: Option<Box<Followed>>,
    ) -> Vec<Act> {
        match glanced {
            Some(glanced) => self.on_status(reply, figures, Some(&glanced)),
            None => self.reply_no(&reply, &not_found(session.as_str())),
        }
    }

    fn on_status(
        &mut self,
        reply: Reply,
        figures: Figures,
        session: Option<&Followed>,
    ) -> Vec<Act> {
        let uptime_s = figures.uptime_ms / 1_000;
        let run = session.and_then(|session| session.glance.run.as_ref());
        let run = run.map(|(run, cause)| cause.as_ref().map_or(run.as_str(), MessageId::as_str));
        match reply {
            Reply::Response(request) => {
                let session = session.map(|session| {
                    json!({
                        "id": session.session, "messageCount": session.glance.card.messages,
                        "queuedRequests": session.glance.waiting.len(), "activeRun": run,
                    })
                });
                let payload = json!({
                    "gateway": {
                        "version": env!("CARGO_PKG_VERSION"), "uptime": uptime_s,
                        "activeConnections": figures.clients, "activeSessions": figures.sessions,
                    },
                    "session": session,
                });
                vec![Act::Send(granted(&request, &payload))]
            }
            Reply::Words => {
                let relay = format!(
                    "Relay {}, up {uptime_s} s, {} clients, {} sessions",
                    env!("CARGO_PKG_VERSION"),
                    figures.clients,
                    figures.sessions,
                );
                let here = session.map(|session| {
                    let glance = &session.glance;
                    let (messages, waiting) = (glance.card.messages, glance.waiting.len());
                    let does = if run.is_some() { "running" } else { "idle" };
                    let id = &session.session;
                    format!("\nSession {id}: {messages} messages, {waiting} queued, {does}")
                });
                let words = relay + &here.unwrap_or_default();
                self.tell(&words)
            }
        }
    }
}
