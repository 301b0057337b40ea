//! The connection to the relay: handshake, resuming, heartbeats, timeouts.
//!
//! After the relay's ack, the proxy sends in this order: the sessions, the outbox, the drafts, the
//! configurations, and the transient state of each session. Then everything is live.

use domain::fleet::Named;
use domain::session::Report;
use domain::session::status::{Health, Meta};
use domain::{ConnectionId, SessionId, Timestamp};
use wire::native::proxy_frames::{self, Ack, FEATURES, FromRelay, Hello};
use wire::native::shapes::Malformed;

use super::{Effect, Engine};
use crate::journal::{Opened, Record};

/// How long the relay's ack is waited for.
const ACK_TIMEOUT_MS: u64 = 10_000;
/// Heartbeats are not sent more often than this, whatever the relay says.
const HEARTBEAT_INTERVAL_MIN_MS: u64 = 100;

/// The connection as it stands.
#[derive(Debug)]
pub(super) enum Line {
    Down,
    Greeting { since: Timestamp },
    Up(Up),
}

#[derive(Debug)]
pub(super) struct Up {
    connection: ConnectionId,
    interval_ms: u64,
    timeout_ms: u64,
    heard_at: Timestamp,
    beat_at: Timestamp,
}

impl Line {
    pub(super) fn is_up(&self) -> bool {
        matches!(self, Self::Up(_))
    }
}

impl Engine {
    /// A socket to the relay is open.
    pub fn on_connected(&mut self, now: Timestamp) -> Vec<Effect> {
        self.line = Line::Greeting { since: now };
        let hello = Hello {
            client_name: "farhelm".to_owned(),
            client_version: Some(self.settings.version.clone()),
            machine: Some(self.settings.machine.clone()),
            features: FEATURES.map(str::to_owned).to_vec(),
            link: self.book.link.clone(),
            offer: self.offer(),
        };
        self.effects.push(Effect::Send(proxy_frames::hello(&hello)));
        self.take()
    }

    /// The socket is gone.
    pub fn on_disconnected(&mut self) {
        self.line = Line::Down;
    }

    /// The relay says something.
    pub fn on_text(&mut self, text: &str, now: Timestamp) -> Vec<Effect> {
        if let Line::Up(up) = &mut self.line {
            up.heard_at = now;
        }
        match proxy_frames::read_from_relay(text) {
            Ok(FromRelay::Ack(ack)) => self.resume(ack, now),
            Ok(FromRelay::LinkAck(through)) => self.acked(through),
            Ok(FromRelay::Order(session, order)) => self.order(&session, *order, now),
            Ok(FromRelay::Launch(launch)) => self.launch(launch, now),
            Ok(FromRelay::Resumable(request, list)) => {
                self.effects.push(Effect::List(request, list));
            }
            Ok(FromRelay::Error(failure)) => self.effects.push(Effect::Complaint(failure)),
            Ok(FromRelay::HeartbeatAck | FromRelay::Other(_)) => {}
            Err(Malformed::NotJson) => {
                self.effects.push(Effect::Disconnect("the relay sent a message that is not JSON"));
            }
            Err(malformed @ Malformed::Invalid { .. }) => {
                let failure =
                    domain::content::Failure::new("invalid_message", malformed.to_string());
                self.effects.push(Effect::Complaint(failure));
            }
        }
        self.take()
    }

    /// Time passed.
    pub fn on_tick(&mut self, now: Timestamp) -> Vec<Effect> {
        match &mut self.line {
            Line::Down => {}
            Line::Greeting { since } => {
                *since = (*since).min(now);
                if now >= since.plus_ms(ACK_TIMEOUT_MS) {
                    self.effects.push(Effect::Disconnect(
                        "the relay did not complete the handshake in time",
                    ));
                }
            }
            Line::Up(up) => {
                // A clock that was set back must not put off the next sign of life.
                up.heard_at = up.heard_at.min(now);
                up.beat_at = up.beat_at.min(now);
                if now >= up.heard_at.plus_ms(up.timeout_ms) {
                    self.effects.push(Effect::Disconnect("the relay stopped responding"));
                } else if now >= up.beat_at.plus_ms(up.interval_ms) {
                    up.beat_at = now;
                    self.beats += 1;
                    let request = format!("hb_{}", self.beats).into();
                    let beat = proxy_frames::heartbeat(request, &up.connection, now);
                    self.effects.push(Effect::Send(beat));
                }
            }
        }
        self.fetch_again(now);
        self.give_up_launches(now);
        self.note_time(now);
        self.take()
    }

    /// When to call [`Engine::on_tick`] next.
    pub fn deadline(&self) -> Option<Timestamp> {
        [self.line_deadline(), self.fetch_due(), self.launch_due()].into_iter().flatten().min()
    }

    fn line_deadline(&self) -> Option<Timestamp> {
        match &self.line {
            Line::Down => None,
            Line::Greeting { since } => Some(since.plus_ms(ACK_TIMEOUT_MS)),
            Line::Up(up) => {
                let stale_at = up.heard_at.plus_ms(up.timeout_ms);
                Some(stale_at.min(up.beat_at.plus_ms(up.interval_ms)))
            }
        }
    }

    /// Whether the relay has greeted.
    pub fn is_up(&self) -> bool {
        self.line.is_up()
    }

    fn resume(&mut self, ack: Ack, now: Timestamp) {
        if !matches!(self.line, Line::Greeting { .. }) {
            return;
        }
        self.line = Line::Up(Up {
            connection: ack.connection,
            interval_ms: ack.heartbeat_interval_ms.max(HEARTBEAT_INTERVAL_MIN_MS),
            timeout_ms: ack.heartbeat_timeout_ms.max(HEARTBEAT_INTERVAL_MIN_MS),
            heard_at: now,
            beat_at: now,
        });
        if let Some(received) = ack.received {
            self.book.outbox.resume(received);
        }
        // Sessions that are over are named as long as the outbox speaks of them: the relay hears
        // nothing about a session that it was not told to belong here.
        self.send_snapshot(true);
        for outgoing in self.unacked() {
            self.effects.push(Effect::Send(outgoing.frame));
        }
        let sessions: Vec<_> = self.book.sessions.keys().cloned().collect();
        for session in &sessions {
            self.tell_passing(session, now);
        }
    }

    fn tell_passing(&mut self, session: &SessionId, now: Timestamp) {
        let Some(live) = self.live.get(session) else { return };
        for delta in live.drafts.replay() {
            self.effects.push(Effect::Send(proxy_frames::encode_delta(session, &delta)));
        }
        if let Some(config) = &live.config {
            let report = Report::Config(config.clone());
            let frame = proxy_frames::encode_report(session, &report, None, None, now);
            self.effects.push(Effect::Send(frame));
        }
        let prompts = live.prompts.iter().cloned().collect();
        let report = Report::Resumed { prompts, run: live.run.clone() };
        let frame = proxy_frames::encode_report(session, &report, None, None, now);
        self.effects.push(Effect::Send(frame));
    }

    pub(super) fn send_snapshot(&mut self, with_closing: bool) {
        let open = self.book.sessions.iter();
        let mut named: Vec<_> = open.map(|(id, opened)| self.named(id, opened)).collect();
        if with_closing {
            let over = self.book.closing.iter();
            let over = over.map(|(id, opened)| Named { is_over: true, ..self.named(id, opened) });
            named.extend(over);
        }
        self.send_if_up(proxy_frames::encode_snapshot(&named));
    }

    fn named(&self, session: &SessionId, opened: &Opened) -> Named {
        let live = self.live.get(session);
        let path = opened.workspace_path.as_deref();
        let name = path.and_then(|path| path.rsplit(['/', '\\']).find(|name| !name.is_empty()));
        let meta = Meta {
            display_name: opened.display_name.clone(),
            window_title: opened.window_title.clone(),
            workspace_name: name.map(str::to_owned),
            workspace_path: opened.workspace_path.clone(),
            machine: Some(self.settings.machine.clone()),
            signature: opened.signature.as_deref().map(Into::into),
            ..Meta::of_agent(opened.agent.clone())
        };
        Named {
            session: Some(session.clone()),
            meta,
            health: live.and_then(|live| live.health).unwrap_or(Health::Healthy),
            activity: live.and_then(|live| live.activity.clone()),
            is_over: false,
        }
    }

    fn acked(&mut self, through: u64) {
        // What was never sent cannot have been received.
        let through = through.min(self.book.outbox.next_number() - 1);
        if through > self.book.outbox.acked() {
            self.persist(Record::Acked(through));
        }
    }
}
