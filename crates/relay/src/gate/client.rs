//! The gate of a native client.
//!
//! Not here: rate limits (`throttle`), what frames mean (`wire::native`).

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use domain::session::{Command, Wish};
use domain::{ClientKey, Principal, RequestId, SessionId, fleet};
use tokio::sync::mpsc;
use tokio::time::Sleep;
use wire::native::{
    Answer, Asked, ClientConnection, Denied, Limits, Output, PageOf, Question, ReadJob, Welcome,
};

use super::ahead::{self, Ahead};
use super::room::{Full, Room};
use super::throttle::ClientThrottle;
use super::{Incoming, RoomTaken, Throttles, Transport, close};
use crate::Relay;
use crate::books::EventPage;
use crate::hub::{Burst, Live, Missing, Watch};
use crate::metrics::Held;
use crate::owner::{Joined, Reply};
use crate::routes::Kick;
use crate::watchers::Watching;

/// Frames that may wait before they are written.
const FRAMES_WAITING_MAX: usize = 512;
/// Their bytes: the live events that go beyond are the last that are taken before writing.
const FRAMES_WAITING_BYTES_MAX: usize = 1 << 20;

/// What a client's gate needs.
#[derive(Clone)]
pub struct ClientGate {
    /// The relay.
    pub relay: Relay,
    /// Rate limits, shared by all gates.
    pub throttles: Throttles,
    /// Limits and times.
    pub limits: Limits,
    /// Ends the connection from outside.
    pub kick: Arc<Kick>,
}

/// Something that was asked for comes back.
enum Returned {
    Welcome(Box<Welcome>),
    Denied(Asked, Denied),
    Page(ReadJob, Result<EventPage, Denied>, Option<Ahead>),
    Drafts(SessionId, Option<Joined>),
    Answer(Question, Option<RequestId>, Result<Answer, Denied>),
}

struct Gate {
    relay: Relay,
    machine: ClientConnection,
    throttle: ClientThrottle,
    returns: mpsc::UnboundedSender<Returned>,
    live: Option<Watch>,
    /// From the moment that it is shown every session.
    watching: Option<Watching>,
    room: Room,
    /// What the frame in hand takes of it.
    taken: RoomTaken,
    /// What the frame that waits for room leads to, and its bytes. The next is not taken until
    /// then; answers, events and the end of the connection do not wait.
    waiting: Option<(Vec<Output>, usize)>,
    /// The page that will be asked for next, in all likelihood.
    ahead: Option<Ahead>,
    frames: Vec<Bytes>,
    /// Empty between uses; kept for its memory.
    outputs: Vec<Output>,
    closing: Option<(u16, &'static str)>,
}

/// Serves a client until either side ends. `first` is a frame that was read to tell the dialect.
pub async fn serve_client<T: Transport>(
    gate: ClientGate,
    mut transport: T,
    principal: Option<Principal>,
    first: Option<Bytes>,
) {
    let ClientGate { relay, throttles, limits, kick } = gate;
    let counted = relay.clone();
    let _held = Held::new(&counted.metrics().clients);
    let (returns, mut returned) = mpsc::unbounded_channel();
    let now = relay.ports().clock.now();
    let connection = relay.ports().ids.connection();
    let throttle = throttles.of(key(principal.as_ref()));
    let machine = ClientConnection::new(connection, principal, limits, now);
    let mut gate = Gate {
        relay,
        machine,
        throttle,
        returns,
        live: None,
        watching: None,
        room: Room::default(),
        taken: None,
        waiting: None,
        ahead: None,
        frames: vec![],
        outputs: vec![],
        closing: None,
    };
    let mut nap = Box::pin(tokio::time::sleep(gate.until_deadline()));
    if let Some(first) = first {
        gate.on_incoming(Incoming::Text(first)).await;
    }
    loop {
        if !gate.frames.is_empty() && transport.send_all(&mut gate.frames).await.is_err() {
            return;
        }
        if let Some((code, reason)) = gate.closing {
            transport.close(code, reason).await;
            return;
        }
        tokio::select! {
            biased;
            asked = kick.asked() => gate.closing = Some(asked),
            Some(answer) = returned.recv() => {
                gate.on_returned(answer).await;
                while let Ok(answer) = returned.try_recv() {
                    gate.on_returned(answer).await;
                }
            }
            taken = gate.room.take(gate.waiting_bytes()), if gate.waiting.is_some() => {
                if let Some((outputs, _)) = gate.waiting.take() {
                    gate.on_room(outputs, taken).await;
                }
            }
            incoming = transport.receive(), if gate.waiting.is_none() => {
                if matches!(incoming, Incoming::Closed) {
                    return;
                }
                gate.on_incoming(incoming).await;
            }
            live = next(gate.live.as_mut()) => gate.on_live(live).await,
            // A peer whose frames are not taken is not silent.
            () = nap.as_mut(), if gate.waiting.is_none() => gate.on_nap(&mut nap).await,
        }
        gate.nap_no_longer(&mut nap);
    }
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
        let outputs = self.machine.on_text(text, &mut self.throttle, now);
        match self.room.try_take(text.len()) {
            Ok(taken) => self.on_room(outputs, taken).await,
            Err(Full) => self.waiting = Some((outputs, text.len())),
        }
    }

    async fn on_room(&mut self, outputs: Vec<Output>, taken: RoomTaken) {
        self.taken = taken;
        self.carry_out(outputs).await;
        self.taken = None;
    }

    fn waiting_bytes(&self) -> usize {
        self.waiting.as_ref().map_or(0, |(_, bytes)| *bytes)
    }

    async fn on_returned(&mut self, returned: Returned) {
        let now = self.relay.ports().clock.now();
        let outputs = match returned {
            Returned::Welcome(welcome) => self.machine.on_welcome(&welcome, now),
            Returned::Denied(asked, denied) => self.machine.on_denied(asked, denied, now),
            Returned::Page(job, Ok(page), ahead) => {
                self.ahead = ahead;
                let EventPage { events, head, first_kept, has_more } = page;
                self.machine.on_page(job, PageOf { events, head, first_kept, has_more }, now)
            }
            Returned::Page(job, Err(denied), _) => self.machine.on_read_failed(job, denied, now),
            Returned::Drafts(session, Some(joined)) => {
                self.machine.on_drafts(&session, joined.head, joined.drafts)
            }
            Returned::Drafts(_, None) => vec![],
            Returned::Answer(question, request, answer) => {
                self.machine.on_answer(&question, request, answer, now)
            }
        };
        self.carry_out(outputs).await;
    }

    /// Takes everything that waits in the ring, up to a bound, to be written together.
    async fn on_live(&mut self, first: Result<Burst, Missing>) {
        let (mut next, mut bytes, mut waited) = (Some(first), 0, false);
        while let Some(taken) = next.take() {
            let before = self.frames.len();
            match taken {
                Ok(burst) => self.show(&burst).await,
                Err(Missing::Lagged) => self.on_lag().await,
                Err(Missing::Closed) => {
                    return self.close(close::GOING_DOWN, "the relay is shutting down");
                }
            }
            bytes += self.frames.iter().skip(before).map(Bytes::len).sum::<usize>();
            if self.frames.len() >= FRAMES_WAITING_MAX || bytes >= FRAMES_WAITING_BYTES_MAX {
                return;
            }
            next = self.live.as_mut().and_then(Watch::try_recv);
            if next.is_none() && !waited {
                // One commit serves many sessions: their owners are about to publish as well, and
                // one write can take all of it.
                waited = true;
                tokio::task::yield_now().await;
                next = self.live.as_mut().and_then(Watch::try_recv);
            }
        }
    }

    async fn show(&mut self, burst: &[Live]) {
        let mut outputs = std::mem::take(&mut self.outputs);
        for live in burst {
            match live {
                Live::Session(event) => {
                    let (session, recorded) = (&event.session, &event.recorded);
                    self.machine.on_event_into(session, recorded, &event.native, &mut outputs);
                }
                Live::Fleet(event) => outputs.extend(self.machine.on_fleet(event, event.at)),
                Live::Passing(passed) => {
                    let (session, passing) = (&passed.session, &passed.passing);
                    outputs.extend(self.machine.on_passing(session, passing, &passed.native));
                }
            }
        }
        for output in outputs.drain(..) {
            match output {
                // Nearly all of them.
                Output::Send(frame) => self.frames.push(frame),
                other @ (Output::Session { .. }
                | Output::Launch { .. }
                | Output::Ask { .. }
                | Output::Join
                | Output::Read(_)
                | Output::Drafts(_)
                | Output::Card { .. }
                | Output::Close { .. }) => self.carry_out(vec![other]).await,
            }
        }
        self.outputs = outputs;
    }

    async fn on_lag(&mut self) {
        self.relay.metrics().lagged.fetch_add(1, Ordering::Relaxed);
        let now = self.relay.ports().clock.now();
        let outputs = self.machine.on_lag(now);
        self.carry_out(outputs).await;
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
        // A little later than the deadline, never a little earlier; and not far: clocks jump.
        let ms = self.machine.deadline().ms_since(now).clamp(1, crate::owner::NAP_MS_MAX);
        Duration::from_millis(ms)
    }

    fn close(&mut self, code: u16, reason: &'static str) {
        self.closing = Some((code, reason));
    }

    async fn carry_out(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Send(frame) => self.frames.push(frame),
                Output::Close { code, reason } => self.close(code, reason),
                Output::Join => self.join(),
                Output::Session { session, wish, asked } => {
                    self.wish(session, wish, asked).await;
                }
                Output::Launch { wish, asked } => self.launch(wish, asked),
                Output::Ask { question, request } => self.ask(question, request),
                Output::Read(job) => self.read(job),
                Output::Drafts(session) => self.drafts(session),
                Output::Card { session, request } => {
                    if let Some(listing) = self.relay.directory().get(&session) {
                        let now = self.relay.ports().clock.now();
                        let outputs = self.machine.on_card(request, &listing, now);
                        Box::pin(self.carry_out(outputs)).await;
                    }
                }
            }
        }
    }

    /// Watches first and looks second, so that nothing falls in between.
    fn join(&mut self) {
        self.live = Some(self.relay.watch());
        let principal = self.machine.principal().cloned();
        self.throttle.rename(key(principal.as_ref()));
        let (relay, returns) = (self.relay.clone(), self.returns.clone());
        let Some(principal) = principal else {
            let welcome = Welcome { sessions: vec![], launches: vec![] };
            let _ = returns.send(Returned::Welcome(Box::new(welcome)));
            self.live = None;
            return;
        };
        let watchers = self.relay.watchers();
        self.watching.get_or_insert_with(|| watchers.all());
        self.relay.ports().tasks.spawn("welcome", async move {
            let launches = relay.launches(&principal.key()).await;
            let welcome = Welcome { sessions: relay.listings(), launches };
            let _ = returns.send(Returned::Welcome(Box::new(welcome)));
        });
    }

    async fn wish(&mut self, session: SessionId, mut wish: Wish, asked: Asked) {
        let Some(principal) = self.machine.principal().cloned() else { return };
        if let Err(denied) = self.check_attachments(&mut wish) {
            let _ = self.returns.send(Returned::Denied(asked, denied));
            return;
        }
        let (returns, taken) = (self.returns.clone(), self.taken.take());
        let reply = Reply::Call(Box::new(move |answer| {
            drop(taken);
            if let Err(denied) = answer {
                let _ = returns.send(Returned::Denied(asked, denied));
            }
        }));
        self.relay.say(&session, Command::Person(principal, wish), reply).await;
    }

    fn check_attachments(&self, wish: &mut Wish) -> Result<(), Denied> {
        let Wish::Send { send, .. } = wish else { return Ok(()) };
        for attachment in &mut send.attachments {
            let Some(media_type) = self.relay.ports().uploads.media_type(&attachment.id) else {
                let words = format!("No upload has the id {}; upload it first", attachment.id);
                return Err(Denied::Code("attachment_unknown".into(), words));
            };
            attachment.media_type = Some(media_type);
        }
        Ok(())
    }

    fn launch(&self, wish: fleet::LaunchWish, asked: Asked) {
        let Some(principal) = self.machine.principal().cloned() else { return };
        let (relay, returns) = (self.relay.clone(), self.returns.clone());
        self.relay.ports().tasks.spawn("launch", async move {
            if let Err(denied) =
                relay.fleet(fleet::Command::Launch(principal, Box::new(wish))).await
            {
                let _ = returns.send(Returned::Denied(asked, denied));
            }
        });
    }

    fn ask(&self, question: Question, request: Option<RequestId>) {
        let Some(principal) = self.machine.principal().cloned() else { return };
        let (relay, returns) = (self.relay.clone(), self.returns.clone());
        self.relay.ports().tasks.spawn("question", async move {
            let answer = relay.answer(&principal, &question).await;
            let _ = returns.send(Returned::Answer(question, request, answer));
        });
    }

    fn read(&mut self, job: ReadJob) {
        let (relay, returns, ahead) = (self.relay.clone(), self.returns.clone(), self.ahead.take());
        self.relay.ports().tasks.spawn("read", async move {
            let (page, ahead) = ahead::read(&relay, &job, ahead).await;
            let _ = returns.send(Returned::Page(job, page, ahead));
        });
    }

    fn drafts(&self, session: SessionId) {
        let (relay, returns) = (self.relay.clone(), self.returns.clone());
        self.relay.ports().tasks.spawn("drafts", async move {
            let joined = relay.join(&session).await;
            let _ = returns.send(Returned::Drafts(session, joined));
        });
    }
}

async fn next(live: Option<&mut Watch>) -> Result<Burst, Missing> {
    match live {
        Some(live) => live.recv().await,
        None => std::future::pending().await,
    }
}

/// Sockets without a credential share one counter: they can do nothing anyway.
pub(super) fn key(principal: Option<&Principal>) -> ClientKey {
    principal
        .map_or_else(|| ClientKey { credential: "anonymous".into(), client: None }, Principal::key)
}
