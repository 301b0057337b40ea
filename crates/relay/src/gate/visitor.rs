//! The gate of a visitor: a client in a dialect that shows one session at a time.
//!
//! It keeps the visitor's position. Recorded events are shown once and in order, either live or,
//! after the visitor fell behind, from the ledger. Passing events are shown only when they
//! continue what was shown. The answer to a wish comes after the events it led to.
//!
//! A large frame takes room until everything that was asked because of it is answered or recorded.
//! The next frame waits for room; answers, events and the end of the connection do not.
//!
//! Not here: what frames mean (`wire`), rate limits (`throttle`).

mod asking;
mod budget;
mod place;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use domain::fleet::launches;
use domain::{CredentialId, RequestId, SessionId, Timestamp, fleet};
use tokio::sync::mpsc;
use wire::port::Denied;
use wire::visitor::{Act, Answer, Followed, Visitor};

use super::room::Full;
use super::throttle::ClientThrottle;
use super::{Incoming, RoomTaken, Throttles, Transport, close};
use crate::Relay;
use crate::books::EventPage;
use crate::hub::{Burst, Live, Missing, Published, Watch};
use crate::metrics::Held;
use crate::ports::{Door, Work};
use crate::routes::Kick;
use crate::watchers::Watching;
use budget::{Budget, Carried};
use place::Place;

/// Events that are read at once to catch up.
const CATCH_UP_EVENTS: usize = 500;
/// Frames, and their bytes, that may wait before they are written.
const FRAMES_WAITING_MAX: usize = 512;
const FRAMES_WAITING_BYTES_MAX: usize = 1 << 20;

/// What a visitor's gate needs.
pub struct VisitorGate {
    /// The relay.
    pub relay: Relay,
    /// Rate limits, shared by all gates.
    pub throttles: Throttles,
    /// Pairing and credentials.
    pub door: Arc<dyn Door>,
    /// Ends the connection from outside.
    pub kick: Arc<Kick>,
}

/// Something that was asked for comes back.
enum Returned {
    Answer(u64, Answer, Carried),
    /// What a wish to a session led to.
    Done(SessionId, u64, Result<Vec<Arc<Published>>, Denied>),
    Joined(SessionId, Option<(u64, Carried)>, Option<Box<Followed>>),
    CatchUp(SessionId, Result<EventPage, Denied>),
}

struct Gate<V> {
    relay: Relay,
    door: Arc<dyn Door>,
    visitor: V,
    throttle: ClientThrottle,
    returns: mpsc::UnboundedSender<Returned>,
    live: Option<Watch>,
    place: Option<Place>,
    /// As long as it has a place.
    watching: Option<Watching>,
    launches: BTreeMap<RequestId, u64>,
    /// Answers that wait until the events before them are shown.
    held: Vec<(u64, Answer)>,
    budget: Budget,
    /// A frame that waits for room.
    waiting: Option<Bytes>,
    frames: Vec<Bytes>,
    /// Empty between uses; kept for its memory.
    acts: Vec<Act>,
    closing: Option<(u16, &'static str)>,
    /// Who speaks, and what ends when they may no longer.
    credential: Option<CredentialId>,
    revoked: Option<Work<()>>,
}

/// Serves a visitor until either side ends. `first` is a frame that was read to tell the dialect.
pub async fn serve_visitor<V: Visitor, T: Transport>(
    gate: VisitorGate,
    visitor: V,
    mut transport: T,
    first: Option<Bytes>,
) {
    let VisitorGate { relay, throttles, door, kick } = gate;
    let counted = relay.clone();
    let _held = Held::new(&counted.metrics().clients);
    let (returns, mut returned) = mpsc::unbounded_channel();
    let throttle = throttles.of(super::client::key(visitor.principal()));
    let mut gate = Gate {
        relay,
        door,
        visitor,
        throttle,
        returns,
        live: None,
        place: None,
        watching: None,
        launches: BTreeMap::new(),
        held: vec![],
        budget: Budget::default(),
        waiting: None,
        frames: vec![],
        acts: vec![],
        closing: None,
        credential: None,
        revoked: None,
    };
    gate.meet();
    let acts = gate.visitor.on_open(gate.now());
    gate.carry_out(acts).await;
    if let Some(first) = first {
        gate.on_incoming(Incoming::Text(first)).await;
    }
    let mut nap = Box::pin(tokio::time::sleep(gate.until_deadline()));
    let mut due = gate.visitor.deadline();
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
            () = ended(gate.revoked.as_mut()) => gate.on_revoked().await,
            Some(answer) = returned.recv() => {
                gate.on_returned(answer).await;
                while gate.may_write_more()
                    && let Ok(answer) = returned.try_recv()
                {
                    gate.on_returned(answer).await;
                }
            }
            taken = gate.budget.take(gate.waiting.as_ref().map_or(0, Bytes::len)),
                if gate.waiting.is_some() => gate.on_room(taken).await,
            incoming = transport.receive(), if gate.waiting.is_none() => {
                if matches!(incoming, Incoming::Closed) {
                    return;
                }
                gate.on_incoming(incoming).await;
            }
            live = next(gate.live.as_mut()) => {
                gate.on_live(live).await;
                gate.ask_how_things_stand();
            }
            () = nap.as_mut() => {
                let acts = gate.visitor.on_tick(gate.now());
                gate.carry_out(acts).await;
            }
        }
        // Setting a timer is dear beside passing on a few words.
        if nap.is_elapsed() || due != gate.visitor.deadline() {
            due = gate.visitor.deadline();
            nap.as_mut().reset(tokio::time::Instant::now() + gate.until_deadline());
        }
    }
}

impl<V: Visitor> Gate<V> {
    fn now(&self) -> Timestamp {
        self.relay.ports().clock.now()
    }

    fn until_deadline(&self) -> Duration {
        let most = crate::owner::NAP_MS_MAX;
        let due = self.visitor.deadline().map_or(most, |at| at.ms_since(self.now()));
        Duration::from_millis(due.clamp(1, most))
    }

    async fn on_incoming(&mut self, incoming: Incoming) {
        let text = match incoming {
            Incoming::Text(text) => text,
            Incoming::Binary => return self.close(close::BINARY, "frames must be JSON text"),
            Incoming::TooLarge => return self.close(close::TOO_LARGE, "the frame is too large"),
            Incoming::Closed => return,
        };
        match self.budget.try_take(text.len()) {
            Ok(taken) => self.on_text(&text, taken).await,
            Err(Full) => self.waiting = Some(text),
        }
    }

    /// There is room for the frame that waits.
    async fn on_room(&mut self, taken: RoomTaken) {
        if let Some(text) = self.waiting.take() {
            self.on_text(&text, taken).await;
        }
    }

    async fn on_text(&mut self, text: &Bytes, taken: RoomTaken) {
        let Ok(text) = std::str::from_utf8(text) else {
            return self.close(close::NOT_JSON, "the frame is not UTF-8");
        };
        let now = self.now();
        let acts = self.visitor.on_text(text, &mut self.throttle, now);
        self.budget.begin_frame(taken);
        self.carry_out(acts).await;
        self.budget.end_frame();
    }

    /// Whether answers may add to what is written together.
    fn may_write_more(&self) -> bool {
        self.closing.is_none() && self.frames.len() < FRAMES_WAITING_MAX
    }

    async fn on_returned(&mut self, returned: Returned) {
        match returned {
            Returned::Answer(ticket, answer, carried) => {
                self.budget.begin_answer(carried);
                self.answer(ticket, answer).await;
            }
            Returned::Done(session, ticket, done) => {
                self.budget.begin_answer(vec![]);
                self.on_done(&session, ticket, done).await;
            }
            Returned::Joined(session, Some((ticket, carried)), followed) => {
                self.budget.begin_answer(carried);
                self.on_joined(session, Some(ticket), followed).await;
            }
            Returned::Joined(session, None, followed) => {
                self.on_joined(session, None, followed).await;
            }
            Returned::CatchUp(session, page) => self.on_catch_up(&session, page).await,
        }
        self.budget.end_answer();
    }

    async fn answer(&mut self, ticket: u64, answer: Answer) {
        let now = self.now();
        let mut acts = self.visitor.on_answer(ticket, answer, now);
        if self.meet() {
            acts.extend(self.visitor.on_known(&mut self.throttle, now));
        }
        self.carry_out(acts).await;
    }

    /// Whoever comes in by a word within a frame is counted and watched under their own name.
    /// Whether that is somebody else than before.
    fn meet(&mut self) -> bool {
        let credential = self.visitor.principal().map(|who| who.credential.clone());
        if credential == self.credential {
            return false;
        }
        self.throttle.rename(super::client::key(self.visitor.principal()));
        self.revoked = credential.as_ref().map(|credential| self.door.revoked(credential));
        self.credential = credential;
        true
    }

    async fn on_revoked(&mut self) {
        self.revoked = None;
        let acts = self.visitor.on_revoked();
        self.carry_out(acts).await;
    }

    /// Shows what the wish led to first: the ring may bring it a moment later, as a repeat.
    async fn on_done(
        &mut self,
        session: &SessionId,
        ticket: u64,
        done: Result<Vec<Arc<Published>>, Denied>,
    ) {
        for event in done.iter().flatten() {
            self.show(event).await;
        }
        let is_behind =
            self.place.as_ref().is_some_and(|place| place.session == *session && place.is_behind());
        let events = done.map(|events| events.iter().map(|it| it.recorded.clone()).collect());
        let answer = Answer::Done(events);
        if is_behind {
            self.held.push((ticket, answer));
        } else {
            self.answer(ticket, answer).await;
        }
    }

    async fn on_joined(
        &mut self,
        session: SessionId,
        ticket: Option<u64>,
        followed: Option<Box<Followed>>,
    ) {
        let Some(place) = self.place.as_mut().filter(|place| place.session == session) else {
            // It looks at another session by now.
            if let Some(ticket) = ticket {
                self.answer(ticket, Answer::Followed(None)).await;
            }
            return;
        };
        let Some(followed) = followed else {
            if self.relay.directory().knows(&session) {
                // It is there all the same: to say that it is not would be wrong.
                return self.close(close::INTERNAL, "the session could not be read");
            }
            (self.place, self.watching) = (None, None);
            self.give_held();
            if let Some(ticket) = ticket {
                self.answer(ticket, Answer::Followed(None)).await;
            }
            return;
        };
        let may_be_told = place.joined(followed.head, &followed.drafts);
        if let Some(ticket) = ticket {
            self.answer(ticket, Answer::Followed(Some(followed))).await;
        } else if may_be_told {
            let acts = self.visitor.on_caught_up(*followed, self.now());
            self.carry_out(acts).await;
        }
        self.catch_up();
        self.ask_how_things_stand();
    }

    /// Takes everything that waits in the ring, up to a bound, to be written together.
    async fn on_live(&mut self, first: Result<Burst, Missing>) {
        let (mut next, mut bytes, mut waited) = (Some(first), 0, false);
        while let Some(taken) = next.take() {
            let before = self.frames.len();
            match taken {
                Ok(burst) => {
                    for live in burst.iter() {
                        self.on_live_one(live).await;
                    }
                }
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
                // More words are about to come from where these did, and one write can take them.
                waited = true;
                tokio::task::yield_now().await;
                next = self.live.as_mut().and_then(Watch::try_recv);
            }
        }
    }

    async fn on_live_one(&mut self, live: &Live) {
        match live {
            Live::Session(event) => self.show(event).await,
            Live::Fleet(event) => {
                if let fleet::Event::Launch(launches::Event::Settled { request, outcome, .. }) =
                    &event.event
                {
                    self.on_launched(request, outcome).await;
                }
            }
            Live::Passing(passed) => {
                let Some(place) = &mut self.place else { return };
                if place.session == passed.session && place.takes(&passed.passing) {
                    let mut acts = std::mem::take(&mut self.acts);
                    self.visitor.on_passing(&passed.passing, &passed.visitors, &mut acts);
                    self.acts = self.carry_out(acts).await;
                }
            }
        }
    }

    async fn show(&mut self, event: &Published) {
        let Some(place) = &mut self.place else { return };
        if place.session != event.session {
            return;
        }
        if place.shows(&event.recorded) {
            let mut acts = std::mem::take(&mut self.acts);
            self.visitor.on_event(&event.recorded, &event.visitors, &mut acts);
            self.acts = self.carry_out(acts).await;
        } else {
            self.catch_up();
        }
    }

    async fn on_lag(&mut self) {
        self.relay.metrics().lagged.fetch_add(1, Ordering::Relaxed);
        if let Some(place) = &mut self.place {
            let head = self.relay.directory().head(&place.session).unwrap_or_default();
            place.lagged(head);
        }
        self.catch_up();
        let waiting: Vec<_> = self.launches.keys().cloned().collect();
        let Some(principal) = self.visitor.principal().cloned() else { return };
        if waiting.is_empty() {
            return;
        }
        for launch in self.relay.launches(&principal.key()).await {
            if let Some(outcome) = &launch.outcome {
                self.on_launched(&launch.request, outcome).await;
            }
        }
    }

    /// Reads what was missed, one page at a time.
    fn catch_up(&mut self) {
        let Some((session, after)) = self.place.as_mut().and_then(Place::wants) else { return };
        let (relay, returns) = (self.relay.clone(), self.returns.clone());
        self.relay.ports().tasks.spawn("catch up", async move {
            let page = relay.history(&session, after, None, CATCH_UP_EVENTS).await;
            let _ = returns.send(Returned::CatchUp(session, page));
        });
    }

    async fn on_catch_up(&mut self, session: &SessionId, page: Result<EventPage, Denied>) {
        let Some(place) = self.place.as_mut().filter(|place| place.session == *session) else {
            return;
        };
        place.has_read();
        let Ok(page) = page else {
            return self.close(close::INTERNAL, "the ledger could not be read");
        };
        for recorded in &page.events {
            let Some(place) = self.place.as_mut() else { return };
            if place.reads(recorded) {
                let mut acts = vec![];
                self.visitor.on_event(recorded, &wire::visitor::Encoded::default(), &mut acts);
                self.carry_out(acts).await;
            }
        }
        let Some(place) = self.place.as_mut() else { return };
        if !page.has_more {
            place.reached(page.head);
        }
        if place.is_behind() {
            return self.catch_up();
        }
        self.ask_how_things_stand();
        for (ticket, answer) in std::mem::take(&mut self.held) {
            self.answer(ticket, answer).await;
        }
    }

    /// Words in the making that were missed come back with the answer.
    fn ask_how_things_stand(&mut self) {
        if let Some(place) = &mut self.place
            && place.asks()
        {
            let session = place.session.clone();
            self.join(session, None);
        }
    }

    /// The events that these answers wait for will not be shown any more.
    fn give_held(&mut self) {
        for (ticket, answer) in std::mem::take(&mut self.held) {
            self.give(ticket, answer);
        }
    }

    async fn on_launched(&mut self, request: &RequestId, outcome: &launches::Outcome) {
        let Some(ticket) = self.launches.remove(request) else { return };
        let launched = match outcome {
            launches::Outcome::Launched(session) => Ok(session.clone()),
            launches::Outcome::Failed(failure) => Err(failure.clone()),
        };
        self.answer(ticket, Answer::Launched(launched)).await;
    }

    fn close(&mut self, code: u16, reason: &'static str) {
        self.closing = Some((code, reason));
    }

    /// Gives the list back, empty.
    async fn carry_out(&mut self, mut acts: Vec<Act>) -> Vec<Act> {
        for act in acts.drain(..) {
            // Nearly all of them.
            if let Act::Send(frame) = act {
                self.frames.push(frame);
            } else {
                // On the heap, so that the way of the words stays short.
                Box::pin(self.perform(act)).await;
            }
        }
        acts
    }
}

async fn ended(work: Option<&mut Work<()>>) {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

async fn next(live: Option<&mut Watch>) -> Result<Burst, Missing> {
    match live {
        Some(live) => live.recv().await,
        None => std::future::pending().await,
    }
}
