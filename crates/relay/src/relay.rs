//! The relay's handle, for sockets, the HTTP API and tests.
//!
//! Not here: the tasks behind it (`owner`, `fleet_owner`, `books`), connections (`gate`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::fleet::{self, Claim, Fleet, Launch, Named};
use domain::passing::Delta;
use domain::session::status::DownReason;
use domain::session::{Card, Change, Command, Session};
use domain::{ClientKey, ConnectionId, Refusal, RequestId, Sequence, SessionId, Timestamp};
use store::Fault;
use tokio::sync::{Semaphore, mpsc, oneshot};
use wire::native::{Denied, Listing};

use crate::books::{Books, EventPage, EventsAsked};
use crate::directory::Directory;
use crate::fleet_owner::{self, FleetOwner};
use crate::gate::RoomTaken;
use crate::hub::{Hub, Published, RING_BURSTS, Watch};
use crate::metrics::Metrics;
use crate::owner::{self, Input, Joined, Look, Owner, Reply, Restart};
use crate::ports::Ports;
use crate::routes::Routes;
use crate::watchers::Watchers;

/// How often the ledger's upkeep is offered.
const UPKEEP_EVERY: Duration = Duration::from_secs(1);

/// Sessions that are loaded at once only because a time came. More wait for their turn, so that
/// what people ask for after a start does not wait for all of them.
const WOKEN_AT_ONCE_MAX: usize = 32;

/// How often an erasure is tried whose outcome is unknown, and how long after the last try.
const ERASE_TRIES: u32 = 3;
const ERASE_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// Times that a person may configure.
#[derive(Debug, Clone, Copy, Default)]
pub struct Policies {
    /// Of sessions.
    pub session: domain::session::Policy,
    /// Of the fleet.
    pub fleet: fleet::Policy,
}

/// Sizes that are the same in every relay that people run. A simulation makes them small, so that
/// its short runs reach them.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Bursts in the ring that watchers read from: a power of two. A watcher that is further
    /// behind reads the ledger.
    pub ring_bursts: usize,
    /// Events between two stored states of a session.
    pub snapshot_every_events: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        let (ring_bursts, snapshot_every_events) = (RING_BURSTS, owner::SNAPSHOT_EVERY_EVENTS);
        Self { ring_bursts, snapshot_every_events }
    }
}

/// The handle. Cheap to clone.
#[derive(Clone)]
pub struct Relay(Arc<Inner>);

struct Inner {
    shared: owner::Shared,
    ports: Ports,
    owners: Mutex<BTreeMap<SessionId, mpsc::Sender<Input>>>,
    /// Sessions that may have been connected when this relay started. Each is disconnected before
    /// anything else happens in it.
    restarts: Mutex<BTreeMap<SessionId, Restart>>,
    fleet: mpsc::Sender<fleet_owner::Input>,
    watchers: Arc<Watchers>,
    /// How long a machine may take to answer a question.
    machine_answers_within: Duration,
    started_at: Timestamp,
}

impl Relay {
    /// Starts a relay on these books. Whoever was connected before a crash is not any more.
    pub async fn start(
        books: Books,
        ports: Ports,
        policies: Policies,
        metrics: Arc<Metrics>,
    ) -> Result<Self, Fault> {
        Self::start_within(Bounds::default(), books, ports, policies, metrics).await
    }

    /// The same with other bounds.
    pub async fn start_within(
        bounds: Bounds,
        books: Books,
        ports: Ports,
        policies: Policies,
        metrics: Arc<Metrics>,
    ) -> Result<Self, Fault> {
        let hub = Hub::with_room_for(bounds.ring_bursts);
        let routes = Arc::new(Routes::default());
        let directory = Arc::new(Directory::default());
        let (mut reached, mut remade, mut waiting) = (vec![], vec![], BTreeSet::new());
        let mut heads = vec![];
        for row in books.streams().await? {
            let Some(card) = row.card else { continue };
            let card = store::codec::decode_card(&card).unwrap_or_else(|fault| {
                tracing::warn!(session = %row.id, %fault, "cannot read a card; rebuilding it");
                remade.push(row.id.clone());
                // It may have been connected.
                heads.push((row.id.clone(), row.head));
                Card { deadlines: None, ..Session::default().card() }
            });
            if card.status.via().is_some() {
                heads.push((row.id.clone(), row.head));
                reached.push(row.id.clone());
            } else if let Some(at) = wakes_at(&card, policies.session) {
                waiting.insert((at, row.id.clone()));
            }
            directory.show(&row.id, card);
            directory.advance(&row.id, row.head);
        }
        let clock = ports.clock.clone();
        // If no event can be read, what waits keeps its whole grace.
        let alive_at = last_recorded_at(&books, &heads).await.unwrap_or_else(|| clock.now());
        let restart = |(session, head)| (session, Restart { alive_at, head });
        let restarts = Mutex::new(heads.into_iter().map(restart).collect());
        let fleet_loaded = fleet_owner::load(&books).await?;
        let fleet = FleetOwner {
            books: books.clone(),
            hub: hub.clone(),
            routes: routes.clone(),
            clock: clock.clone(),
            policy: policies.fleet,
            shown: fleet_loaded.state.head(),
            loaded: Some(fleet_loaded),
            has_lost_a_commit: false,
        };
        let policy = policies.session;
        let tasks = ports.tasks.clone();
        let shared = owner::Shared {
            books,
            hub,
            directory,
            routes,
            clock,
            metrics,
            policy,
            tasks,
            snapshot_every_events: bounds.snapshot_every_events,
        };
        let (owners, fleet) = (Mutex::default(), fleet.spawn(&ports.tasks));
        // Looking is at most half the work of a launch.
        let machine_answers_within = Duration::from_millis(policies.fleet.launch_timeout_ms / 2);
        let started_at = ports.clock.now();
        let watchers = Arc::default();
        let inner = Inner {
            shared,
            ports,
            owners,
            restarts,
            fleet,
            watchers,
            machine_answers_within,
            started_at,
        };
        let relay = Self(Arc::new(inner));
        let _ = relay.fleet(fleet::Command::Restarted).await;
        for session in &remade {
            let _ = relay.command(session, Command::Relay(Change::Tick)).await;
        }
        relay.wake(reached, waiting);
        relay.keep_up();
        Ok(relay)
    }

    /// Says something to a session and waits until it is committed.
    pub async fn command(
        &self,
        session: &SessionId,
        command: Command,
    ) -> Result<Vec<Arc<Published>>, Denied> {
        let (reply, answer) = oneshot::channel();
        self.say(session, command, Reply::Once(reply)).await;
        answer.await.unwrap_or_else(|_| Err(going_down()))
    }

    /// Says something to a session that must exist.
    pub(crate) async fn say(&self, session: &SessionId, command: Command, reply: Reply) {
        if self.0.shared.directory.knows(session) {
            self.tell(session, command, reply).await;
        } else {
            reply.deny(Denied::Refused(Refusal::SessionUnknown));
        }
    }

    /// Says something to a session, which begins to exist if it did not.
    pub(crate) async fn tell(&self, session: &SessionId, command: Command, reply: Reply) {
        self.put(session, Input::Command(Box::new(command), reply)).await;
    }

    /// A session is no longer reached through this connection. While its first event waits for its
    /// commit, only its owner knows it. An erased session has no owner and is not brought back.
    pub(crate) async fn disconnect(
        &self,
        session: &SessionId,
        connection: Option<ConnectionId>,
        reason: DownReason,
    ) {
        let has_owner = self.owners().contains_key(session);
        if has_owner || self.0.shared.directory.knows(session) {
            let down = Change::Down { connection, reason };
            self.tell(session, Command::Relay(down), Reply::Nobody).await;
        }
    }

    /// A few more words of a message in the making.
    pub(crate) async fn pass(
        &self,
        session: &SessionId,
        from: &ConnectionId,
        delta: Delta,
        taken: RoomTaken,
    ) {
        self.put(session, Input::Passing(from.clone(), delta, taken)).await;
    }

    /// Where a watcher of a session begins.
    pub async fn join(&self, session: &SessionId) -> Option<Joined> {
        if !self.0.shared.directory.knows(session) {
            return None;
        }
        let (reply, answer) = oneshot::channel();
        self.put(session, Input::Join(reply, Look::Briefly)).await;
        answer.await.ok()
    }

    /// Where a watcher of a session begins, with what is open in it.
    pub async fn glance(&self, session: &SessionId) -> Option<Joined> {
        if !self.0.shared.directory.knows(session) {
            return None;
        }
        let (reply, answer) = oneshot::channel();
        self.put(session, Input::Join(reply, Look::Closely)).await;
        answer.await.ok()
    }

    /// A stretch of a session's history.
    pub async fn history(
        &self,
        session: &SessionId,
        after: Sequence,
        upto: Option<Sequence>,
        limit: usize,
    ) -> Result<EventPage, Denied> {
        if !self.0.shared.directory.knows(session) {
            return Err(Denied::Refused(Refusal::SessionUnknown));
        }
        let ask = EventsAsked { stream: session.clone(), after, upto, limit };
        let page = self.0.shared.books.events(ask).await;
        page.map_err(|fault| owner::denied(&fault))
    }

    /// Erases a session and its history. It must not be reachable: a proxy would bring it back.
    /// Whoever shows it is told first that it is over: there will be no ledger to tell it from.
    pub async fn erase(&self, session: &SessionId) -> Result<(), Denied> {
        self.refuse_reached(session)?;
        match self.command(session, Command::Relay(Change::Over)).await {
            Ok(_) => {}
            // What cannot be read can be erased all the same.
            Err(Denied::Code(code, _)) if code.as_str() == owner::SESSION_DAMAGED => {}
            Err(denied) => return Err(denied),
        }
        // Its machine may have come back while that was committed.
        let Listing { card, head, .. } = self.refuse_reached(session)?;
        // Recorded first: a machine that does not know that its session's end was recorded would
        // otherwise bring it back.
        self.fleet(fleet::Command::Erased(session.clone())).await?;
        // A message that still found the session would begin a new one.
        self.forget(session);
        let erased = self.erase_stream(session).await;
        // Its owner's last commit may have listed it again, and a proxy may have named it: that
        // owner may still hold the erased state.
        self.forget(session);
        if let Err(fault) = erased {
            // Listed, so that it can be erased again.
            self.0.shared.directory.show(session, (*card).clone());
            self.0.shared.directory.advance(session, head);
            return Err(Denied::Failed(fault.to_string()));
        }
        Ok(())
    }

    fn forget(&self, session: &SessionId) {
        self.0.shared.directory.remove(session);
        self.owners().remove(session);
        self.restarts().remove(session);
    }

    /// Erasing twice is erasing once. What was erased and is said to be there would begin again
    /// from nothing, so a disk that does not answer is asked again.
    async fn erase_stream(&self, session: &SessionId) -> Result<(), Fault> {
        let mut tries = 1;
        loop {
            match self.0.shared.books.erase(session).await {
                Err(Fault::Io { .. } | Fault::NeedsReopen | Fault::Full) if tries < ERASE_TRIES => {
                    tries += 1;
                    tokio::time::sleep(ERASE_AGAIN_AFTER).await;
                }
                answer => return answer,
            }
        }
    }

    fn refuse_reached(&self, session: &SessionId) -> Result<Listing, Denied> {
        let Some(listing) = self.0.shared.directory.get(session) else {
            return Err(Denied::Refused(Refusal::SessionUnknown));
        };
        if listing.card.status.via().is_some() {
            let words = "The session is running; close it first";
            return Err(Denied::Code("session_connected".into(), words.to_owned()));
        }
        Ok(listing)
    }

    /// Says something to the fleet and waits until it is committed.
    pub async fn fleet(
        &self,
        command: fleet::Command,
    ) -> Result<Vec<Arc<fleet::Recorded>>, Denied> {
        self.ask_fleet(|reply| fleet_owner::Input::Command(command, reply)).await?
    }

    pub(crate) async fn name(
        &self,
        connection: &ConnectionId,
        named: Vec<Named>,
    ) -> Result<Claim, Denied> {
        let connection = connection.clone();
        self.ask_fleet(|reply| fleet_owner::Input::Name(connection, named, reply)).await?
    }

    pub(crate) async fn launch(
        &self,
        connection: &ConnectionId,
        request: &RequestId,
    ) -> Option<Launch> {
        let (connection, request) = (connection.clone(), request.clone());
        let asked = |reply| fleet_owner::Input::Launch(connection, request, reply);
        self.ask_fleet(asked).await.ok().flatten()
    }

    /// Waits until everything said to a session so far is committed.
    pub(crate) async fn settle(&self, session: &SessionId) {
        let (reply, answer) = oneshot::channel();
        self.put(session, Input::Join(reply, Look::Briefly)).await;
        let _ = answer.await;
    }

    /// Launches on their way or held for a client.
    pub async fn launches(&self, client: &ClientKey) -> Vec<Launch> {
        let client = client.clone();
        let asked = self.ask_fleet(|reply| fleet_owner::Input::Launches(client, reply)).await;
        asked.unwrap_or_default()
    }

    /// The fleet as it is.
    pub async fn look_at_fleet(&self) -> Result<Fleet, Denied> {
        self.ask_fleet(fleet_owner::Input::Look).await
    }

    /// Every session, as lists show it.
    pub fn listings(&self) -> Vec<Listing> {
        self.0.shared.directory.all()
    }

    pub(crate) fn machine_answers_within(&self) -> Duration {
        self.0.machine_answers_within
    }

    /// When it was started.
    pub fn started_at(&self) -> Timestamp {
        self.0.started_at
    }

    /// The directory.
    pub fn directory(&self) -> &Directory {
        &self.0.shared.directory
    }

    /// Watches everything from here on.
    pub fn watch(&self) -> Watch {
        self.0.shared.hub.watch()
    }

    /// Who is looking.
    pub fn watchers(&self) -> &Arc<Watchers> {
        &self.0.watchers
    }

    /// Counters and gauges.
    pub fn metrics(&self) -> &Metrics {
        &self.0.shared.metrics
    }

    /// The time, and names.
    pub fn ports(&self) -> &Ports {
        &self.0.ports
    }

    /// The books.
    pub fn books(&self) -> &Books {
        &self.0.shared.books
    }

    pub(crate) fn routes(&self) -> &Routes {
        &self.0.shared.routes
    }

    async fn ask_fleet<T>(
        &self,
        input: impl FnOnce(oneshot::Sender<T>) -> fleet_owner::Input,
    ) -> Result<T, Denied> {
        let (reply, answer) = oneshot::channel();
        let _ = self.0.fleet.send(input(reply)).await;
        answer.await.map_err(|_| going_down())
    }

    /// Puts something into an owner's inbox, waiting while it is full: that is how a sender that
    /// is too fast is slowed down.
    async fn put(&self, session: &SessionId, mut input: Input) {
        loop {
            let owner = self.owner(session);
            match owner.send(input).await {
                Ok(()) => return,
                Err(mpsc::error::SendError(back)) => {
                    // It had fallen asleep, or the session was erased under it.
                    input = back;
                    let mut owners = self.owners();
                    if owners.get(session).is_some_and(|known| known.same_channel(&owner)) {
                        owners.remove(session);
                    }
                }
            }
        }
    }

    fn owner(&self, session: &SessionId) -> mpsc::Sender<Input> {
        let mut owners = self.owners();
        if let Some(owner) = owners.get(session) {
            return owner.clone();
        }
        let restart = self.restarts().get(session).copied();
        let owner = Owner::spawn(session.clone(), self.0.shared.clone(), restart);
        owners.insert(session.clone(), owner.clone());
        owner
    }

    fn owners(&self) -> std::sync::MutexGuard<'_, BTreeMap<SessionId, mpsc::Sender<Input>>> {
        self.0.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn restarts(&self) -> std::sync::MutexGuard<'_, BTreeMap<SessionId, Restart>> {
        self.0.restarts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the sessions that were reached when the relay before this one ended, and others when
    /// their time comes. From then on each looks after its own deadlines.
    fn wake(&self, reached: Vec<SessionId>, mut waiting: BTreeSet<(Timestamp, SessionId)>) {
        let (clock, alive) = (self.0.ports.clock.clone(), Arc::downgrade(&self.0));
        let room = Arc::new(Semaphore::new(WOKEN_AT_ONCE_MAX));
        self.0.ports.tasks.spawn("deadlines", async move {
            for session in reached {
                let Some(relay) = alive.upgrade().map(Self) else { return };
                relay.wake_one(&room, session).await;
            }
            while let Some((at, session)) = waiting.pop_first() {
                let mut now = clock.now();
                while now < at {
                    let nap_ms = at.ms_since(now).min(owner::NAP_MS_MAX);
                    tokio::time::sleep(Duration::from_millis(nap_ms)).await;
                    now = clock.now();
                }
                let Some(relay) = alive.upgrade().map(Self) else { return };
                relay.wake_one(&room, session).await;
            }
        });
    }

    /// Lets a session catch up with the time, once there is room for it.
    async fn wake_one(&self, room: &Arc<Semaphore>, session: SessionId) {
        let Ok(place) = room.clone().acquire_owned().await else { return };
        let relay = self.clone();
        self.0.ports.tasks.spawn("catch-up", async move {
            // It may have been erased since.
            if relay.directory().knows(&session) {
                let _ = relay.command(&session, Command::Relay(Change::Tick)).await;
            }
            drop(place);
        });
    }

    /// Offers the ledger its upkeep for as long as the relay lives.
    fn keep_up(&self) {
        let (books, alive) = (self.0.shared.books.clone(), Arc::downgrade(&self.0));
        self.0.ports.tasks.spawn("upkeep", async move {
            while alive.strong_count() > 0 {
                tokio::time::sleep(UPKEEP_EVERY).await;
                books.maintain();
            }
        });
    }
}

/// When a session that is away must be woken; at once if its card does not say.
fn wakes_at(card: &Card, policy: domain::session::Policy) -> Option<Timestamp> {
    card.deadlines.map_or(Some(Timestamp(0)), |deadlines| deadlines.next(policy))
}

/// When something was last recorded about one of these sessions: no other sign of life of the
/// relay before this one is on the disk. What cannot be read says nothing.
async fn last_recorded_at(books: &Books, heads: &[(SessionId, Sequence)]) -> Option<Timestamp> {
    let mut last = None;
    for (stream, head) in heads {
        let after = Sequence(head.0.saturating_sub(1));
        let (stream, upto) = (stream.clone(), None);
        let page = books.events(EventsAsked { stream, after, upto, limit: 1 }).await;
        last = last.max(page.ok().and_then(|page| page.events.last().map(|event| event.at)));
    }
    last
}

fn going_down() -> Denied {
    Denied::Failed("the relay is shutting down".to_owned())
}
