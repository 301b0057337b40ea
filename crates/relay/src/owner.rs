//! The owner of one session: the only task that decides about it.
//!
//! It handles its commands in order and decides each on the state after the earlier ones. It
//! passes the resulting events to the books together, and lets nothing leave (no reply, no order,
//! no event) before its commit. If a commit fails, it discards everything uncommitted, tells the
//! clients that are waiting, and starts over from the ledger.
//!
//! Not here: what commands lead to (`domain`), group commit across sessions (`books`).

mod loading;
mod outgoing;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::passing::{Delta, Drafts, Passing};
use domain::session::delivery::{self, State, Told};
use domain::session::{
    self, Card, Change, Command, Deadlines, Event, Glance, OrderKey, Performed, Policy,
    ReplayCursor, Session, Wish,
};
use domain::{ConnectionId, Refusal, Sequence, SessionId, Timestamp};
use store::{Append, AppendRefused, Entry, Epoch, Fault, Snapshot};
use tokio::sync::{mpsc, oneshot};
use wire::native::{Cache, Denied};
use wire::visitor::Encoded;

use crate::books::{Appended, Books, Lost};
use crate::directory::Directory;
use crate::gate::RoomTaken;
use crate::hub::{Hub, Passed, Published};
use crate::metrics::{Held, Metrics};
use crate::ports::Clock;
use crate::routes::Routes;
use crate::tasks::Tasks;

pub(crate) use loading::Restart;
use outgoing::damaged;
pub(crate) use outgoing::{Outgoing, Reply, SESSION_DAMAGED, denied};

/// Commands that may wait for one session.
pub(crate) const INBOX_MAX: usize = 1_024;
/// Commands that share one append.
const BATCH_MAX: usize = 256;
/// Appends that one owner may have waiting for their commit.
pub(crate) const APPENDS_IN_FLIGHT_MAX: u64 = 8;
/// Events that are shown at once that a failed commit had recorded.
const UNSEEN_PAGE_EVENTS: usize = 4_096;
/// Events between two stored states.
pub(crate) const SNAPSHOT_EVERY_EVENTS: u64 = 512;
/// The longest sleep towards a deadline: wall clocks jump, and laptops sleep.
pub(crate) const NAP_MS_MAX: u64 = 5_000;
/// How long after a failed commit the ledger is looked at again, unless somebody asks before.
const RELOAD_AFTER_MS: u64 = 250;
/// How long a session that nobody reaches stays in memory.
const IDLE_MS_MAX: u64 = 600_000;

/// Something for an owner.
pub(crate) enum Input {
    /// Decide this.
    Command(Box<Command>, Reply),
    /// Show this to watchers.
    Passing(ConnectionId, Delta, RoomTaken),
    /// Tell the head and the drafts, once everything before is committed.
    Join(oneshot::Sender<Joined>, Look),
}

/// How closely a watcher looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// At the head and the messages in the making.
    Briefly,
    /// At what is open too.
    Closely,
}

/// Where a watcher begins.
#[derive(Debug, Clone)]
pub struct Joined {
    /// The last committed event.
    pub head: Sequence,
    /// Messages in the making.
    pub drafts: Vec<Delta>,
    /// What is open, where that was asked for.
    pub glance: Option<Box<Glance>>,
}

/// What an owner needs.
#[derive(Clone)]
pub(crate) struct Shared {
    pub books: Books,
    pub hub: Hub,
    pub directory: Arc<Directory>,
    pub routes: Arc<Routes>,
    pub clock: Arc<dyn Clock>,
    pub metrics: Arc<Metrics>,
    pub policy: Policy,
    pub tasks: Tasks,
    pub snapshot_every_events: u64,
}

pub(crate) struct Owner {
    id: SessionId,
    shared: Shared,
    /// Only of a session that was connected when the relay before this one ended.
    restart: Option<Restart>,
    /// `None` after a failed commit, until the ledger could be read again.
    loaded: Option<Loaded>,
    /// The connection to which orders left last, and those of them that it still had to carry
    /// out. A failed commit does not take them back.
    left: (Option<ConnectionId>, BTreeSet<OrderKey>),
    /// Where the connected proxy is in re-sending its history. A failed commit does not move it.
    cursor: ReplayCursor,
    drafts: Drafts,
    outgoing: VecDeque<(u64, Outgoing)>,
    acks: mpsc::UnboundedSender<(u64, Appended)>,
    /// The last append that was handed to the books.
    submitted: u64,
    /// The last append whose commit is known.
    committed: u64,
    /// A commit failed, and the ledger was not read again since.
    gave_up: bool,
    /// Numbered words of this connection were lost. The later ones must not be recorded without
    /// them, or they would count as heard: the proxy tells them again on its next connection.
    lost_words_of: Option<ConnectionId>,
}

struct Loaded {
    session: Session,
    epoch: Epoch,
    /// The last event in the stored state; `None` where a new one must be stored.
    stored_at: Option<Sequence>,
    /// Orders that left on the current connection.
    told: BTreeSet<OrderKey>,
    told_to: Option<ConnectionId>,
    /// What the stored card says of its deadlines: the next start of the relay goes by it.
    card_deadlines: Option<Deadlines>,
}

/// What one batch of commands led to.
#[derive(Default)]
struct Batch {
    entries: Vec<Entry>,
    /// How sends stand after it.
    sends: Vec<(domain::MessageId, Vec<u8>)>,
    /// Whether lists show any of it.
    is_shown: bool,
    outgoing: Vec<Outgoing>,
}

impl Owner {
    pub(crate) fn spawn(
        id: SessionId,
        shared: Shared,
        restart: Option<Restart>,
    ) -> mpsc::Sender<Input> {
        let (sender, inbox) = mpsc::channel(INBOX_MAX);
        let (acks, acked) = mpsc::unbounded_channel();
        let owner = Self {
            id,
            shared,
            restart,
            loaded: None,
            left: (None, BTreeSet::new()),
            cursor: ReplayCursor::default(),
            drafts: Drafts::default(),
            outgoing: VecDeque::new(),
            acks,
            submitted: 0,
            committed: 0,
            gave_up: false,
            lost_words_of: None,
        };
        let tasks = owner.shared.tasks.clone();
        tasks.spawn("session", owner.run(inbox, acked));
        sender
    }

    async fn run(
        mut self,
        mut inbox: mpsc::Receiver<Input>,
        mut acked: mpsc::UnboundedReceiver<(u64, Appended)>,
    ) {
        let metrics = self.shared.metrics.clone();
        let _held = Held::new(&metrics.owners);
        let mut waiting = Vec::with_capacity(BATCH_MAX);
        loop {
            let room = self.submitted - self.committed < APPENDS_IN_FLIGHT_MAX;
            let nap = self.nap();
            tokio::select! {
                biased;
                Some((ticket, result)) = acked.recv() => self.on_ack(ticket, &result),
                taken = inbox.recv_many(&mut waiting, BATCH_MAX), if room => {
                    if taken == 0 {
                        break;
                    }
                    self.take(&mut waiting).await;
                }
                () = tokio::time::sleep(nap), if room => {
                    if self.is_idle() {
                        // Whoever holds a sender finds it closed, and spawns a new owner after
                        // this one has answered what is already here.
                        inbox.close();
                    } else {
                        self.tick().await;
                    }
                }
            }
        }
        while self.committed < self.submitted {
            let Some((ticket, result)) = acked.recv().await else { return };
            self.on_ack(ticket, &result);
        }
    }

    fn nap(&self) -> Duration {
        if self.gave_up {
            return Duration::from_millis(RELOAD_AFTER_MS);
        }
        let deadline = self.loaded.as_ref().and_then(|l| l.session.deadline(self.shared.policy));
        let now = self.shared.clock.now();
        let ms = deadline.map_or(IDLE_MS_MAX, |at| at.ms_since(now).min(NAP_MS_MAX));
        Duration::from_millis(ms)
    }

    fn is_idle(&self) -> bool {
        let settled = self.committed == self.submitted && !self.gave_up;
        let quiet = self.loaded.as_ref().is_none_or(|loaded| {
            let session = &loaded.session;
            session.status().via().is_none() && session.deadline(self.shared.policy).is_none()
        });
        settled && quiet
    }

    async fn tick(&mut self) {
        let tick = Input::Command(Box::new(Command::Relay(Change::Tick)), Reply::Nobody);
        self.take(&mut vec![tick]).await;
    }

    /// Decides everything that waits and submits what it led to as one append.
    async fn take(&mut self, waiting: &mut Vec<Input>) {
        let mut batch = Batch::default();
        for input in waiting.drain(..) {
            match input {
                Input::Command(command, reply) => {
                    self.decide(*command, reply, &mut batch).await;
                }
                Input::Passing(connection, delta, taken) => {
                    self.pass(&connection, delta, taken, &mut batch);
                }
                Input::Join(reply, Look::Closely) => {
                    // Whoever cannot be shown what is open is shown nothing.
                    if self.load(&mut batch).await.is_err() {
                        continue;
                    }
                    let Some(loaded) = &self.loaded else { continue };
                    let (head, drafts) = (loaded.session.head(), self.drafts.replay());
                    let glance = Some(Box::new(loaded.session.glance()));
                    batch.outgoing.push(Outgoing::Joined(reply, Joined { head, drafts, glance }));
                }
                Input::Join(reply, Look::Briefly) => {
                    let head = self.loaded.as_ref().map(|loaded| loaded.session.head());
                    let head = match head {
                        Some(head) => head,
                        None => self.shared.directory.head(&self.id).unwrap_or_default(),
                    };
                    let joined = Joined { head, drafts: self.drafts.replay(), glance: None };
                    batch.outgoing.push(Outgoing::Joined(reply, joined));
                }
            }
        }
        self.keep_card(&mut batch);
        self.submit(batch);
    }

    /// The card is stored again when it no longer says when the session must be woken, and so is
    /// a state that could not be read.
    fn keep_card(&mut self, batch: &mut Batch) {
        let Some(loaded) = self.loaded.as_mut() else { return };
        let deadlines = Some(loaded.session.deadlines());
        let is_kept = loaded.card_deadlines == deadlines && loaded.stored_at.is_some();
        if loaded.session.head() == Sequence(0) || is_kept {
            return;
        }
        loaded.card_deadlines = deadlines;
        batch.is_shown = true;
        let card = Some(Box::new(loaded.session.card()));
        batch.outgoing.push(Outgoing::Events(card, vec![]));
    }

    async fn decide(&mut self, mut command: Command, reply: Reply, batch: &mut Batch) {
        if let Err(denied) = self.load(batch).await {
            // What is damaged stays so, and nothing is waited for; any other word is told again.
            if let (Command::Proxy(word), Denied::Failed(_)) = (&command, &denied)
                && word.position.is_some()
            {
                self.lost_words_of = Some(word.connection.clone());
            }
            batch.outgoing.push(Outgoing::Denied(reply, denied));
            return;
        }
        if let Err(fault) = self.look_up_earlier(&mut command).await {
            batch.outgoing.push(Outgoing::Denied(reply, denied(&fault)));
            return;
        }
        if let Command::Proxy(word) = &command
            && self.lost_words_of.as_ref() == Some(&word.connection)
        {
            let words = "an earlier report on this connection was lost".to_owned();
            batch.outgoing.push(Outgoing::Denied(reply, Denied::Failed(words)));
            return;
        }
        let answer = match self.perform(&command, batch) {
            Some(Ok(published)) => Outgoing::Done(reply, published),
            Some(Err(refusal)) => Outgoing::Denied(reply, Denied::Refused(refusal)),
            None => return,
        };
        batch.outgoing.push(answer);
    }

    fn perform(
        &mut self,
        command: &Command,
        batch: &mut Batch,
    ) -> Option<Result<Vec<Arc<Published>>, Refusal>> {
        let now = self.shared.clock.now();
        let loaded = self.loaded.as_mut()?;
        let Performed { overdue, outcome } =
            loaded.session.perform(command, &mut self.cursor, self.shared.policy, now);
        for recorded in overdue.iter().chain(outcome.iter().flatten()) {
            settle_drafts(&mut self.drafts, &recorded.event);
        }
        self.collect_orders(batch);
        self.publish_later(overdue, batch);
        Some(outcome.map(|events| self.publish_later(events, batch)))
    }

    /// A send whose id this session's memory does not reach back to is looked up in the ledger.
    async fn look_up_earlier(&self, command: &mut Command) -> Result<(), Fault> {
        let Command::Person(_, Wish::Send { send, earlier }) = command else { return Ok(()) };
        let forgotten =
            self.loaded.as_ref().is_some_and(|loaded| loaded.session.may_have_forgotten(&send.id));
        if forgotten {
            *earlier = self.shared.books.send_state(&self.id, &send.id).await?;
        }
        Ok(())
    }

    fn publish_later(
        &self,
        events: Vec<session::Recorded>,
        batch: &mut Batch,
    ) -> Vec<Arc<Published>> {
        if events.is_empty() {
            return vec![];
        }
        let is_shown = events.iter().any(|recorded| Card::shows(&recorded.event));
        batch.is_shown |= is_shown;
        batch.sends.extend(events.iter().filter_map(told));
        let mut published = Vec::with_capacity(events.len());
        for recorded in events {
            let body = store::codec::encode_event(&recorded);
            let (sequence, at, stored_bytes) = (recorded.sequence, recorded.at, body.len());
            batch.entries.push(Entry { sequence, at, body });
            published.push(Arc::new(Published::new(self.id.clone(), recorded, stored_bytes)));
        }
        let card = self.loaded.as_ref().filter(|_| is_shown).map(|l| Box::new(l.session.card()));
        batch.outgoing.push(Outgoing::Events(card, published.clone()));
        published
    }

    /// Orders leave once per connection, in front of the events that led to them.
    fn collect_orders(&mut self, batch: &mut Batch) {
        let Some(loaded) = self.loaded.as_mut() else { return };
        let via = loaded.session.status().via().map(|via| via.connection.clone());
        if loaded.told_to != via {
            loaded.told.clear();
            loaded.told_to.clone_from(&via);
        }
        let Some(connection) = via else { return };
        let (owed, new) = loaded.session.owed_beyond(&loaded.told);
        if owed != loaded.told {
            loaded.told.clone_from(&owed);
            batch.outgoing.push(Outgoing::Orders { connection, owed, new });
        }
    }

    fn pass(
        &mut self,
        connection: &ConnectionId,
        delta: Delta,
        taken: RoomTaken,
        batch: &mut Batch,
    ) {
        let Some(loaded) = self.loaded.as_ref() else { return };
        let via = loaded.session.status().via();
        if via.is_none_or(|via| via.connection != *connection) || !self.drafts.take(&delta) {
            return;
        }
        let passing = Passing { after: loaded.session.head(), delta };
        let passed = Passed {
            session: self.id.clone(),
            passing,
            native: Cache::default(),
            visitors: Encoded::default(),
        };
        batch.outgoing.push(Outgoing::Passing(Arc::new(passed), taken));
    }

    fn submit(&mut self, batch: Batch) {
        let Batch { entries, sends, is_shown, outgoing } = batch;
        if !entries.is_empty() || is_shown {
            self.submitted += 1;
            if let Some(append) = self.append(entries, sends, is_shown) {
                self.shared.metrics.appends_waiting.fetch_add(1, Ordering::Relaxed);
                self.shared.books.append(append, (self.acks.clone(), self.submitted));
            }
        }
        let ticket = self.submitted;
        self.outgoing.extend(outgoing.into_iter().map(|item| (ticket, item)));
        self.release();
    }

    fn append(
        &mut self,
        entries: Vec<Entry>,
        sends: Vec<(domain::MessageId, Vec<u8>)>,
        is_shown: bool,
    ) -> Option<Append> {
        let loaded = self.loaded.as_mut()?;
        let mut append = Append::new(self.id.clone(), loaded.epoch);
        append.entries = entries;
        append.sends = sends;
        let head = loaded.session.head();
        let every = self.shared.snapshot_every_events;
        if loaded.stored_at.is_none_or(|at| head.0 - at.0 >= every) {
            let body = store::codec::encode_session(&loaded.session);
            append.snapshot = Some(Snapshot { sequence: head, body });
            loaded.stored_at = Some(head);
        }
        if is_shown {
            append.card = Some(store::codec::encode_card(&loaded.session.card()));
        }
        Some(append)
    }

    fn on_ack(&mut self, ticket: u64, result: &Appended) {
        self.shared.metrics.appends_waiting.fetch_sub(1, Ordering::Relaxed);
        if ticket <= self.committed {
            // Submitted on top of one that failed; it was given up with it.
            return;
        }
        match result {
            Ok(()) => {
                self.committed = ticket;
                self.release();
            }
            Err(lost) => {
                tracing::error!(session = %self.id, %lost, "could not record events");
                let is_damaged = matches!(lost, Lost::Refused(AppendRefused::Corrupt { .. }));
                let words = lost.to_string();
                self.give_up(&if is_damaged { damaged(&words) } else { Denied::Failed(words) });
            }
        }
    }

    /// Everything that waits for a commit has it.
    fn release(&mut self) {
        let mut burst = vec![];
        while self.outgoing.front().is_some_and(|(ticket, _)| *ticket <= self.committed) {
            if let Some((_, item)) = self.outgoing.pop_front() {
                if let Outgoing::Orders { connection, owed, .. } = &item {
                    self.left = (Some(connection.clone()), owed.clone());
                }
                item.leave(&self.id, &self.shared, &mut burst);
            }
        }
        self.shared.hub.publish(burst);
    }

    /// Nothing uncommitted happened.
    fn give_up(&mut self, why: &Denied) {
        let had_words = self.outgoing.iter().any(|(_, item)| item.has_words());
        if let Some(loaded) = self.loaded.take()
            && had_words
        {
            self.lost_words_of = loaded.told_to;
        }
        self.gave_up = true;
        self.drafts.clear();
        self.committed = self.submitted;
        for (_, item) in std::mem::take(&mut self.outgoing) {
            item.fail(why);
        }
    }
}

/// How a send stands after this event, for the ledger's index.
fn told(recorded: &session::Recorded) -> Option<(domain::MessageId, Vec<u8>)> {
    let Event::Delivery(event) = &recorded.event else { return None };
    let (id, state) = match event {
        delivery::Event::Accepted(send) => (&send.id, State::Accepted),
        delivery::Event::HandedOver { .. } => return None,
        delivery::Event::Delivered { id, .. } => (id, State::Delivered),
        delivery::Event::Failed { id, failure } => (id, State::Failed(failure.clone())),
    };
    let (sequence, at): (Sequence, Timestamp) = (recorded.sequence, recorded.at);
    let told = Told { id: id.clone(), state, sequence, at };
    Some((id.clone(), store::codec::encode_told(&told)))
}

/// A recorded message supersedes its draft; a run or a connection that ends leaves none.
fn settle_drafts(drafts: &mut Drafts, event: &Event) {
    match event {
        Event::Transcript(session::transcript::Event::Message(message)) => {
            drafts.finish(&message.id);
        }
        Event::Run(session::runs::Event::Ended { .. })
        | Event::Status(
            session::status::Event::Down { .. } | session::status::Event::Closed { .. },
        ) => drafts.clear(),
        Event::Transcript(_)
        | Event::Run(_)
        | Event::Status(_)
        | Event::Delivery(_)
        | Event::Queue(_)
        | Event::Prompt(_)
        | Event::Control(_)
        | Event::Config(_) => {}
    }
}
