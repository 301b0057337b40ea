//! The relay of the simulated world: the real one, on a simulated disk.
//!
//! A crash ends all its tasks where they stand; what the disk has is what the next one finds. A
//! pause lets its sockets and its disk stand still, as for a process that is stopped or a machine
//! that sleeps.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use domain::{Principal, Role, Sequence, SessionId};
use relay::gate::{
    ClientGate, Incoming, ProxyGate, Rates, Throttles, Transport, VisitorGate, serve_client,
    serve_proxy, serve_visitor,
};
use relay::metrics::Metrics;
use relay::ports::{Clock, Door as _, Ids as _, Ports, Work};
use relay::routes::Kick;
use relay::{Books, Bounds, Policies, Relay, Tasks};
use store::{Ledger, Retention};
use tokio::time::Instant;
use wire::native::{Limits, ProxyLimits};
use wire::{blob, control, pi, webchannel};

use crate::archive::{Archive, Archived};
use crate::clock::{SimClock, SimIds};
use crate::credentials::Credentials;
use crate::disk::{Flawed, Flaws, SimDisk};
use crate::effects::{Effect, Effects};
use crate::net::End;
use crate::sabotage::{Sabotage, Saboteur, Spoiler};
use crate::uploads::SimUploads;
use crate::visitor_node::Dialect;
use crate::witness::{Testimony, Witness};

/// The longest a simulated commit or read takes. Each takes some time: a relay that reads again
/// and again would stop the world's clock.
const DISK_MS_MAX: u64 = 3;
/// A gate that is told to shows one event in so many twice.
const SHOWS_TWICE_IN: u64 = 20;

/// What stays the same over all incarnations of the relay.
pub(crate) struct Settings {
    pub(crate) policies: Policies,
    pub(crate) bounds: Bounds,
    pub(crate) retention: Retention,
    pub(crate) sabotage: Sabotage,
}

/// What outlives the relay.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) disk: SimDisk,
    pub(crate) flaws: Flaws,
    pub(crate) archive: Archive,
    pub(crate) credentials: Credentials,
    pub(crate) uploads: SimUploads,
    pub(crate) clock: SimClock,
    pub(crate) effects: Effects,
}

/// A relay that can crash.
pub(crate) struct RelayNode {
    settings: Settings,
    around: Surroundings,
    ids: SimIds,
    pause: Pause,
    running: Option<(Relay, Tasks)>,
    starts: u64,
}

impl RelayNode {
    /// A relay that is not running yet.
    pub(crate) fn new(settings: Settings, around: Surroundings) -> Self {
        let (ids, pause) = (SimIds::default(), Pause::new(around.effects.clone()));
        Self { settings, around, ids, pause, running: None, starts: 0 }
    }

    /// Whether it is running.
    pub(crate) fn is_up(&self) -> bool {
        self.running.is_some()
    }

    /// Starts it on what the disk has.
    pub(crate) async fn start(&mut self) {
        let tasks = Tasks::default();
        // The ledger of a crashed relay lets go of the disk when its task is dropped.
        let ledger = loop {
            match self.around.disk.open() {
                Ok(ledger) => break ledger,
                Err(store::Fault::Locked { .. }) => tokio::task::yield_now().await,
                Err(_) => return,
            }
        };
        self.starts += 1;
        // A disk that fails at the start is tried again by whoever starts the relay.
        match self.run(ledger, &tasks).await {
            Ok(relay) => self.running = Some((relay, tasks)),
            Err(_) => tasks.abort_all(),
        }
    }

    async fn run(&self, ledger: Box<dyn Ledger>, tasks: &Tasks) -> Result<Relay, store::Fault> {
        let Settings { policies, bounds, retention, sabotage } = &self.settings;
        let has_retention = retention.size_bytes_max.is_some();
        let around = &self.around;
        let archived = Archived::new(ledger, around.archive.clone(), has_retention)?;
        let flawed = Flawed::new(Box::new(archived), around.disk.clone(), around.flaws.clone());
        let ledger = Box::new(Saboteur::new(Box::new(flawed), *sabotage));
        let metrics = Arc::new(Metrics::default());
        let clock: Arc<dyn Clock> = Arc::new(around.clock.clone());
        let (pace, pause) = (self.starts, self.pause.clone());
        let turn = move || {
            let pause = pause.clone();
            async move {
                pause.passed().await;
                tokio::time::sleep(Duration::from_millis(1 + pace % DISK_MS_MAX)).await;
            }
        };
        let (kept, meter) = (*retention, metrics.clone());
        let books = Books::as_tasks(ledger, "sim", kept, clock.clone(), meter, tasks, turn)?;
        let ports = Ports {
            clock,
            ids: Arc::new(self.ids.clone()),
            uploads: Arc::new(around.uploads.clone()),
            tasks: tasks.clone(),
        };
        Relay::start_within(*bounds, books, ports, *policies, metrics).await
    }

    /// SIGKILL.
    pub(crate) fn crash(&mut self) {
        if self.is_up() {
            self.around.effects.count(Effect::RelayCrashed);
        }
        self.kill();
    }

    /// The same, at the end of a world.
    pub(crate) fn kill(&mut self) {
        if let (Some(files), true) = (self.around.disk.files(), self.is_up()) {
            files.kill();
        }
        self.stop();
    }

    /// It ends, and its disk is left in order.
    pub(crate) fn stop(&mut self) {
        if let Some((relay, tasks)) = self.running.take() {
            let lagged = relay.metrics().lagged.load(Ordering::Relaxed);
            self.around.effects.count_times(Effect::WatcherLagged, lagged);
            tasks.abort_all();
        }
    }

    /// It stands still for so long.
    pub(crate) fn pause(&self, pause: Duration) {
        self.pause.begin(pause);
    }

    /// The last event of every session.
    pub(crate) fn heads(&self) -> Vec<(SessionId, Sequence)> {
        let relay = self.running.as_ref().map(|(relay, _)| relay);
        let listings = relay.map(Relay::listings).unwrap_or_default();
        listings.into_iter().map(|listing| (listing.id, listing.head)).collect()
    }

    /// Waits until it does not stand still.
    pub(crate) async fn awake(&self) {
        self.pause.passed().await;
    }

    /// Erases a session that is closed. One that is only away would come back as another.
    pub(crate) async fn erase(&self, session: &SessionId) -> bool {
        let Some((relay, _)) = &self.running else { return false };
        let listing = relay.directory().get(session);
        let is_closed = listing.is_some_and(|listing| listing.card.status.is_closed());
        is_closed && relay.erase(session).await.is_ok()
    }

    /// What lists show of a session: whether it is closed, or `None` where it is not there.
    pub(crate) fn is_closed(&self, session: &SessionId) -> Option<bool> {
        let (relay, _) = self.running.as_ref()?;
        relay.directory().get(session).map(|listing| listing.card.status.is_closed())
    }

    /// A client dials. A slow one takes so long over everything that it is sent at once.
    pub(crate) fn accept_client(&self, end: End, slowness: Duration, principal: Principal) {
        let Some((relay, tasks)) = &self.running else { return };
        let gate = ClientGate {
            relay: relay.clone(),
            throttles: unlimited(),
            limits: Limits::default(),
            kick: Arc::new(Kick::default()),
        };
        let socket = self.socket(end, slowness, Some(&principal));
        tasks.spawn("client", serve_client(gate, socket, Some(principal), None));
    }

    /// A client of another dialect dials.
    pub(crate) fn accept_visitor(
        &self,
        end: End,
        slowness: Duration,
        dialect: Dialect,
        principal: &Principal,
        query: &str,
        testimony: Testimony,
    ) {
        let Some((relay, tasks)) = &self.running else { return };
        let gate = VisitorGate {
            relay: relay.clone(),
            throttles: unlimited(),
            door: Arc::new(self.around.credentials.clone()),
            kick: Arc::new(Kick::default()),
        };
        let twice = self.settings.sabotage == Sabotage::ShowsTwice;
        let twice_in = twice.then_some(SHOWS_TWICE_IN);
        let (connection, now) = (self.ids.connection(), self.around.clock.now());
        let (limits, who) = (Limits::default(), Some(principal.clone()));
        let effects = self.around.effects.clone();
        match dialect {
            Dialect::Blob => {
                let visitor = blob::Connection::new(connection, who, query, limits, now);
                let visitor = Witness::new(visitor, testimony, twice_in, effects);
                let socket = self.socket(end, slowness, Some(principal));
                tasks.spawn("visitor", serve_visitor(gate, visitor, socket, None));
            }
            Dialect::Pi => {
                let visitor = pi::Connection::new(connection, who, query, limits, now);
                let visitor = Witness::new(visitor, testimony, twice_in, effects);
                let socket = self.socket(end, slowness, Some(principal));
                tasks.spawn("visitor", serve_visitor(gate, visitor, socket, None));
            }
            Dialect::Control => {
                let visitor = control::Connection::new(connection, who, query, limits, now);
                let visitor = Witness::new(visitor, testimony, twice_in, effects);
                let socket = self.socket(end, slowness, Some(principal));
                tasks.spawn("visitor", serve_visitor(gate, visitor, socket, None));
            }
            Dialect::Webchannel => {
                let mut seed = [0; 32];
                seed[..8].copy_from_slice(&connection_number(connection.as_str()).to_le_bytes());
                let visitor =
                    webchannel::Connection::new(connection, who, query, limits, seed, now);
                let visitor = Witness::new(visitor, testimony, twice_in, effects);
                // It says goodbye in its own words; the gate tells it when.
                let socket = self.socket(end, slowness, None);
                tasks.spawn("visitor", serve_visitor(gate, visitor, socket, None));
            }
        }
    }

    /// A proxy dials.
    pub(crate) fn accept_proxy(&self, end: End, name: &str) {
        let Some((relay, tasks)) = &self.running else { return };
        let kick = Arc::new(Kick::default());
        let gate = ProxyGate { relay: relay.clone(), limits: ProxyLimits::default(), kick };
        let principal = Credentials::principal(name, Role::Proxy);
        let socket = self.socket(end, Duration::ZERO, Some(&principal));
        tasks.spawn("proxy", serve_proxy(gate, socket, principal, None));
    }

    /// A socket ends with the credential that opened it.
    fn socket(&self, end: End, slowness: Duration, principal: Option<&Principal>) -> Socket {
        let credential = principal.map(|principal| principal.credential.clone());
        let revoked: Work<()> = match &credential {
            Some(credential) => self.around.credentials.revoked(credential),
            None => Box::pin(std::future::pending()),
        };
        let (spoiler, pause) = (Spoiler::new(self.settings.sabotage), self.pause.clone());
        Socket { end, slowness, spoiler, revoked, pause }
    }
}

fn unlimited() -> Throttles {
    Throttles::new(Rates { sends_per_10s: u32::MAX, frames_per_minute: u32::MAX })
}

fn connection_number(name: &str) -> u64 {
    name.rsplit('_').next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// While it lasts, the relay neither reads nor writes.
#[derive(Debug, Clone)]
struct Pause {
    /// Until when, and whether anything waited for its end.
    until: Arc<Mutex<Option<(Instant, bool)>>>,
    effects: Effects,
}

impl Pause {
    fn new(effects: Effects) -> Self {
        Self { until: Arc::default(), effects }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<(Instant, bool)>> {
        self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, pause: Duration) {
        *self.lock() = Some((Instant::now() + pause, false));
    }

    async fn passed(&self) {
        while let Some(until) = self.end() {
            tokio::time::sleep_until(until).await;
        }
    }

    /// When it ends, if it lasts.
    fn end(&self) -> Option<Instant> {
        let mut state = self.lock();
        let (until, was_met) = state.as_mut().filter(|(until, _)| *until > Instant::now())?;
        if !std::mem::replace(was_met, true) {
            self.effects.count(Effect::RelayPaused);
        }
        Some(*until)
    }
}

/// The relay's end of a connection.
struct Socket {
    end: End,
    /// How long everything that is sent at once takes to go out.
    slowness: Duration,
    spoiler: Spoiler,
    revoked: Work<()>,
    pause: Pause,
}

impl Transport for Socket {
    async fn receive(&mut self) -> Incoming {
        self.pause.passed().await;
        tokio::select! {
            biased;
            () = self.revoked.as_mut() => {
                // Nothing more leaves, whatever its gate has in hand.
                self.end.cut();
                Incoming::Closed
            }
            frame = self.end.receive() => frame.map_or(Incoming::Closed, Incoming::Text),
        }
    }

    async fn send_all(&mut self, frames: &mut Vec<Bytes>) -> Result<(), ()> {
        self.pause.passed().await;
        let is_revoked = tokio::select! {
            biased;
            () = self.revoked.as_mut() => true,
            () = std::future::ready(()) => false,
        };
        if is_revoked {
            self.end.cut();
            return Err(());
        }
        self.spoiler.spoil(frames);
        frames.drain(..).try_for_each(|frame| self.end.send(&frame))?;
        if !self.slowness.is_zero() {
            tokio::time::sleep(self.slowness).await;
        }
        Ok(())
    }

    async fn close(self, _code: u16, _reason: &str) {}
}
