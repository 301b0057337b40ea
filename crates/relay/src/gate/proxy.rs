//! The gate of a proxy.
//!
//! Frames of one proxy are handled in order. Numbered frames are acknowledged when they are
//! committed. If a commit fails, the connection is closed, and the proxy resends the frame on the
//! next connection.
//!
//! Not here: what frames mean (`wire::native`), which machine owns what (`fleet_owner`).

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::content::Failure;
use domain::fleet::{self, Launch};
use domain::session::status::{DownReason, Health, Meta, Via};
use domain::session::{Change, Command, Report, Word};
use domain::{
    ConnectionId, LinkId, LinkPosition, MachineLabel, Principal, Refusal, RequestId, SessionId,
};
use link::{Receiver, Taken};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Sleep;
use wire::native::shapes::Conversations;
use wire::native::{Denied, ProxyConnection, ProxyLimits, ProxyOutput};

use super::room::{Full, Room};
use super::{Incoming, RoomTaken, Transport, close};
use crate::Relay;
use crate::metrics::Held;
use crate::owner::Reply;
use crate::routes::{Errand, Kick};

const CLOSE_INTERNAL: u16 = 1011;
/// Questions that may wait for one machine's answer. More are answered `rate_limited`.
const ASKED_MAX: usize = 64;

/// What a machine answers when it is asked for its conversations.
type Listed = Result<Conversations, Failure>;

/// What a proxy's gate needs.
#[derive(Clone)]
pub struct ProxyGate {
    /// The relay.
    pub relay: Relay,
    /// Limits and times.
    pub limits: ProxyLimits,
    /// Ends the connection from outside.
    pub kick: Arc<Kick>,
}

/// What became of a report.
enum Returned {
    Done(u64),
    Refused(SessionId, Box<Refusal>),
    Ended(SessionId),
    Unavailable(SessionId),
    Failed,
}

struct Gate {
    relay: Relay,
    connection: ConnectionId,
    principal: Principal,
    machine: ProxyConnection,
    link: Option<LinkId>,
    receiver: Receiver,
    /// Brought up through this connection.
    sessions: BTreeSet<SessionId>,
    /// Who waits for an answer of this machine. Dropped with the connection, which tells them.
    asked: BTreeMap<RequestId, oneshot::Sender<Listed>>,
    questions: u64,
    returns: mpsc::UnboundedSender<Returned>,
    room: Room,
    /// What the frame in hand takes of it.
    taken: RoomTaken,
    /// What the frame that waits for room leads to, and its bytes. The next is not taken until
    /// then; answers, events and the end of the connection do not wait.
    waiting: Option<(Vec<ProxyOutput>, usize)>,
    frames: Vec<Bytes>,
    closing: Option<(u16, &'static str)>,
}

/// Serves a proxy until either side ends. `first` is a frame that was read to tell the dialect.
pub async fn serve_proxy<T: Transport>(
    gate: ProxyGate,
    mut transport: T,
    principal: Principal,
    first: Option<Bytes>,
) {
    let ProxyGate { relay, limits, kick } = gate;
    let counted = relay.clone();
    let _held = Held::new(&counted.metrics().proxies);
    let (returns, mut returned) = mpsc::unbounded_channel();
    let now = relay.ports().clock.now();
    let connection = relay.ports().ids.connection();
    let mut errands = relay.routes().open(&connection, kick.clone());
    let machine = ProxyConnection::new(connection.clone(), Some(principal.clone()), limits, now);
    let mut gate = Gate {
        relay,
        connection,
        principal,
        machine,
        link: None,
        receiver: Receiver::default(),
        sessions: BTreeSet::new(),
        asked: BTreeMap::new(),
        questions: 0,
        returns,
        room: Room::default(),
        taken: None,
        waiting: None,
        frames: vec![],
        closing: None,
    };
    let mut nap = Box::pin(tokio::time::sleep(gate.until_deadline()));
    if let Some(first) = first {
        gate.on_incoming(Incoming::Text(first)).await;
    }
    loop {
        if !gate.frames.is_empty() && transport.send_all(&mut gate.frames).await.is_err() {
            break;
        }
        if let Some((code, reason)) = gate.closing {
            transport.close(code, reason).await;
            break;
        }
        let full = gate.receiver.is_full();
        tokio::select! {
            biased;
            asked = kick.asked() => gate.closing = Some(asked),
            Some(answer) = returned.recv() => {
                gate.on_returned(answer).await;
                while let Ok(answer) = returned.try_recv() {
                    gate.on_returned(answer).await;
                }
                gate.acknowledge();
            }
            Some(errand) = errands.recv() => {
                gate.on_errand(errand);
                while let Ok(errand) = errands.try_recv() {
                    gate.on_errand(errand);
                }
            }
            taken = gate.room.take(gate.waiting_bytes()), if gate.waiting.is_some() => {
                if let Some((outputs, _)) = gate.waiting.take() {
                    gate.on_room(outputs, taken).await;
                }
                gate.acknowledge();
            }
            incoming = transport.receive(), if !full && gate.waiting.is_none() => {
                if matches!(incoming, Incoming::Closed) {
                    break;
                }
                gate.on_incoming(incoming).await;
                gate.acknowledge();
            }
            // A peer whose frames are not taken is not silent.
            () = nap.as_mut(), if gate.waiting.is_none() => gate.on_nap(&mut nap).await,
        }
        gate.nap_no_longer(&mut nap);
    }
    gate.leave().await;
}

impl Gate {
    async fn on_incoming(&mut self, incoming: Incoming) {
        let text = match incoming {
            Incoming::Text(text) => text,
            Incoming::Binary => return self.close(close::BINARY, "frames must be JSON text"),
            Incoming::TooLarge => return self.close(close::TOO_LARGE, "the frame is too large"),
            Incoming::Closed => return,
        };
        let Ok(text) = std::str::from_utf8(&text) else {
            return self.close(close::NOT_JSON, "the frame is not UTF-8");
        };
        let now = self.relay.ports().clock.now();
        let outputs = self.machine.on_text(text, now);
        match self.room.try_take(text.len()) {
            Ok(taken) => self.on_room(outputs, taken).await,
            Err(Full) => self.waiting = Some((outputs, text.len())),
        }
    }

    async fn on_room(&mut self, outputs: Vec<ProxyOutput>, taken: RoomTaken) {
        self.taken = taken;
        self.carry_out(outputs).await;
        self.taken = None;
    }

    fn waiting_bytes(&self) -> usize {
        self.waiting.as_ref().map_or(0, |(_, bytes)| *bytes)
    }

    async fn on_returned(&mut self, returned: Returned) {
        match returned {
            Returned::Done(number) => self.receiver.done(number),
            Returned::Refused(session, refusal) => {
                let now = self.relay.ports().clock.now();
                self.frames.extend(self.machine.on_refused(&session, &refusal, now));
            }
            Returned::Ended(session) => {
                self.sessions.remove(&session);
                let _ = self.relay.fleet(fleet::Command::Gone(session)).await;
            }
            Returned::Unavailable(session) => {
                self.sessions.remove(&session);
            }
            Returned::Failed => {
                self.close(CLOSE_INTERNAL, "commit failed; resend");
            }
        }
    }

    fn on_errand(&mut self, errand: Errand) {
        let now = self.relay.ports().clock.now();
        let frame = match errand {
            Errand::Order(session, order) => self.machine.on_order(&session, &order, now),
            Errand::Launch(launch) => self.machine.on_launch(&launch, now),
            Errand::Ask(list, reply) => match self.ask(reply) {
                Some(request) => self.machine.on_ask(&request, &list, now),
                None => return,
            },
        };
        self.frames.push(frame);
    }

    /// Names a question. A machine that does not know the word is not asked.
    fn ask(&mut self, reply: oneshot::Sender<Listed>) -> Option<RequestId> {
        if !self.machine.has_feature("resume") {
            let words = "This machine's proxy cannot list its agents' conversations";
            let _ = reply.send(Err(Failure::new("control_not_supported", words)));
            return None;
        }
        // Those whose askers have gone make room first.
        self.asked.retain(|_, waiting| !waiting.is_closed());
        if self.asked.len() >= ASKED_MAX {
            let words = "Too many requests to this machine; try again in a moment";
            let _ = reply.send(Err(Failure::new("rate_limited", words)));
            return None;
        }
        self.questions += 1;
        let request = RequestId::from(format!("ask_{}", self.questions));
        self.asked.insert(request.clone(), reply);
        Some(request)
    }

    fn acknowledge(&mut self) {
        if let Some(through) = self.receiver.take_ack() {
            let now = self.relay.ports().clock.now();
            self.frames.push(self.machine.on_ack(through, now));
        }
    }

    async fn on_nap(&mut self, nap: &mut Pin<Box<Sleep>>) {
        let now = self.relay.ports().clock.now();
        let outputs = self.machine.on_tick(now);
        self.carry_out(outputs).await;
        nap.as_mut().reset(tokio::time::Instant::now() + self.until_deadline());
    }

    /// A hello may bring the deadline forward. One that moves away is left: the timer looks again.
    fn nap_no_longer(&self, nap: &mut Pin<Box<Sleep>>) {
        let until = tokio::time::Instant::now() + self.until_deadline();
        if until < nap.deadline() {
            nap.as_mut().reset(until);
        }
    }

    fn until_deadline(&self) -> Duration {
        let now = self.relay.ports().clock.now();
        let ms = self.machine.deadline().ms_since(now).clamp(1, crate::owner::NAP_MS_MAX);
        Duration::from_millis(ms)
    }

    fn close(&mut self, code: u16, reason: &'static str) {
        self.closing = Some((code, reason));
    }

    async fn carry_out(&mut self, outputs: Vec<ProxyOutput>) {
        for output in outputs {
            match output {
                ProxyOutput::Send(frame) => self.frames.push(frame),
                ProxyOutput::Close { code, reason } => self.close(code, reason),
                ProxyOutput::Connected { machine, link, offer } => {
                    self.connect(machine, link, offer).await;
                }
                ProxyOutput::Named { named } => self.name(named).await,
                ProxyOutput::Report { session, number, report } => {
                    self.report(session, number, report).await;
                }
                ProxyOutput::Passing { session, delta } => {
                    if self.sessions.contains(&session) {
                        let taken = self.taken.take();
                        self.relay.pass(&session, &self.connection, delta, taken).await;
                    }
                }
                ProxyOutput::Launched { number, request, session } => {
                    if self.take(number) {
                        self.launched(number, request, session).await;
                    }
                }
                ProxyOutput::LaunchFailed { number, request, failure } => {
                    if self.take(number) {
                        let connection = self.connection.clone();
                        let failed = fleet::Command::LaunchFailed { connection, request, failure };
                        let answer = self.relay.fleet(failed).await;
                        self.settle(number, answer.as_ref().err());
                    }
                }
                ProxyOutput::Offered { offer } => {
                    let connection = self.connection.clone();
                    let offered = fleet::Command::Offered { connection, offer };
                    if let Err(denied) = self.relay.fleet(offered).await {
                        tracing::debug!(by = %self.connection, ?denied, "offer refused");
                    }
                }
                ProxyOutput::Conversations { request, listed } => {
                    if let Some(reply) = self.asked.remove(&request) {
                        let _ = reply.send(listed);
                    }
                }
                ProxyOutput::Done { number } => {
                    if self.take(Some(number)) {
                        self.receiver.done(number);
                    }
                }
            }
        }
    }

    async fn connect(
        &mut self,
        machine: Option<MachineLabel>,
        link: Option<LinkId>,
        offer: fleet::Offer,
    ) {
        let machine = machine.unwrap_or_else(|| self.principal.credential.as_str().into());
        self.link.clone_from(&link);
        let via = Via { connection: self.connection.clone(), link };
        let connected = fleet::Command::Connected { via, machine, offer };
        match self.relay.fleet(connected).await {
            Ok(_) => {
                let now = self.relay.ports().clock.now();
                self.frames.push(self.machine.on_connected(None, now));
            }
            Err(_) => {
                self.close(CLOSE_INTERNAL, "the relay cannot write to its ledger; try again later");
            }
        }
    }

    /// The proxy's words are the whole truth about its machine.
    async fn name(&mut self, named: Vec<fleet::Named>) {
        let claim = match self.relay.name(&self.connection, named).await {
            Ok(claim) => claim,
            Err(Denied::Refused(refusal)) => {
                tracing::warn!(connection = %self.connection, %refusal, "snapshot refused");
                return;
            }
            Err(Denied::Failed(_) | Denied::Code(..)) => {
                return self.close(CLOSE_INTERNAL, "commit failed; resend");
            }
        };
        for session in &claim.refused {
            tracing::warn!(%session, by = %self.connection, "claimed a session of another machine");
        }
        for (session, named) in claim.accepted {
            let (health, activity) = (named.health, named.activity);
            self.bring_up(session, named.meta, health, activity).await;
        }
        for session in claim.dropped {
            self.sessions.remove(&session);
            // Whichever connection it was reached through: this machine has it no more.
            self.relay.disconnect(&session, None, DownReason::TargetGone).await;
        }
    }

    async fn bring_up(
        &mut self,
        session: SessionId,
        meta: Meta,
        health: Health,
        activity: Option<domain::session::status::Activity>,
    ) {
        let via = Via { connection: self.connection.clone(), link: self.link.clone() };
        let up = Change::Up { via, meta: Box::new(meta), health, activity };
        let (returns, about) = (self.returns.clone(), session.clone());
        let reply = Reply::Call(Box::new(move |answer| match answer {
            Ok(_) => {}
            Err(Denied::Failed(_)) => {
                let _ = returns.send(Returned::Failed);
            }
            // This session cannot be had; the machine's others can.
            Err(denied @ (Denied::Refused(_) | Denied::Code(..))) => {
                tracing::warn!(session = %about, ?denied, "could not bring a session up");
                let _ = returns.send(Returned::Unavailable(about));
            }
        }));
        self.relay.tell(&session, Command::Relay(up), reply).await;
        self.sessions.insert(session);
    }

    async fn report(&mut self, session: SessionId, number: Option<u64>, report: Report) {
        if !self.take(number) {
            return;
        }
        if !self.sessions.contains(&session) {
            tracing::debug!(%session, by = %self.connection, "report about an unnamed session");
            return self.settle(number, None);
        }
        let position = match (&self.link, number) {
            (Some(link), Some(number)) => Some(LinkPosition { link: link.clone(), number }),
            (None, _) | (_, None) => None,
        };
        let ends = matches!(report, Report::Closed { .. }).then(|| session.clone());
        let word = Word { connection: self.connection.clone(), position, report };
        let (returns, about) = (self.returns.clone(), session.clone());
        let taken = self.taken.take();
        let reply = Reply::Call(Box::new(move |answer| {
            drop(taken);
            match answer {
                Err(Denied::Failed(_)) => {
                    let _ = returns.send(Returned::Failed);
                }
                // Told again it would not be recorded either, and would hold up what follows.
                Err(Denied::Code(code, words)) => {
                    tracing::warn!(session = %about, %code, words, "dropped an unrecordable report");
                    let _ = number.map(|number| returns.send(Returned::Done(number)));
                }
                Err(Denied::Refused(refusal)) => {
                    tracing::debug!(session = %about, %refusal, "report refused");
                    // The end of a session is refused where it was recorded before.
                    let _ = ends.map(|session| returns.send(Returned::Ended(session)));
                    let _ = number.map(|number| returns.send(Returned::Done(number)));
                    let _ = returns.send(Returned::Refused(about, Box::new(refusal)));
                }
                Ok(_) => {
                    let _ = ends.map(|session| returns.send(Returned::Ended(session)));
                    let _ = number.map(|number| returns.send(Returned::Done(number)));
                }
            }
        }));
        self.relay.tell(&session, Command::Proxy(word), reply).await;
    }

    /// The new session is there before anybody is told of it.
    async fn launched(&mut self, number: Option<u64>, request: RequestId, session: SessionId) {
        let launch = self.relay.launch(&self.connection, &request).await;
        if let Some(launch) = launch
            && !self.sessions.contains(&session)
        {
            self.bring_up(session.clone(), meta(&launch), Health::Healthy, None).await;
        }
        if self.sessions.contains(&session) {
            self.relay.settle(&session).await;
        }
        let connection = self.connection.clone();
        let launched = fleet::Command::Launched { connection, request, session };
        let answer = self.relay.fleet(launched).await;
        self.settle(number, answer.as_ref().err());
    }

    /// Whether a frame is heard for the first time on this connection.
    fn take(&mut self, number: Option<u64>) -> bool {
        number.is_none_or(|number| self.receiver.take(number) == Taken::Fresh)
    }

    fn settle(&mut self, number: Option<u64>, denied: Option<&Denied>) {
        match denied {
            Some(Denied::Failed(_) | Denied::Code(..)) => {
                self.close(CLOSE_INTERNAL, "commit failed; resend");
            }
            Some(Denied::Refused(_)) | None => {
                if let Some(number) = number {
                    self.receiver.done(number);
                }
            }
        }
    }

    async fn leave(self) {
        self.relay.routes().close(&self.connection);
        let gone = fleet::Command::Disconnected(self.connection.clone());
        let _ = self.relay.fleet(gone).await;
        for session in &self.sessions {
            let connection = Some(self.connection.clone());
            self.relay.disconnect(session, connection, DownReason::ProxyDisconnected).await;
        }
    }
}

/// What is known of a session that a proxy launched and has not named yet.
fn meta(launch: &Launch) -> Meta {
    let mut meta = Meta::of_agent(launch.agent.clone());
    meta.window_title.clone_from(&launch.window_title);
    meta.display_name.clone_from(&launch.window_title);
    meta.workspace_path.clone_from(&launch.workspace_path);
    meta.machine = Some(launch.machine.clone());
    meta
}
