//! A relay whose disk, clock and commits belong to the test, and the far ends of its connections.
//!
//! Not here: the assertions of the tests. Each file below has one concern.

mod connections;
mod frames;
mod peer;
mod ports;
mod restart;
mod sessions;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::ConnectionId;
use store::{MemoryDisk, Retention};
use tokio::sync::watch;
use wire::native::{Limits, ProxyLimits};

use crate::metrics::Metrics;
use crate::ports::{Clock, Ids, NoUploads, Ports};
use crate::{Books, Policies, Relay, Tasks};

pub(super) use frames::{delta, heartbeat, hello, report, send, wish};
pub(super) use peer::Peer;
pub(super) use ports::{BEGINNING_MS, TestIds, person};
pub(super) use restart::Stopped;
pub(super) use sessions::{SOCKET, is_failed, says};

use ports::{Credentials, TestClock};

/// How long anything is waited for, on paused time.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);
/// The session that exists once its machine is connected.
pub(super) const SESSION: &str = "sess_1";

/// What a test may choose before its relay starts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Settings {
    pub(super) policies: Policies,
    pub(super) clients: Limits,
    pub(super) proxies: ProxyLimits,
}

impl Settings {
    /// A send fails after waiting this long for its machine.
    pub(super) fn with_grace(send_grace_ms: u64) -> Self {
        let mut settings = Self::default();
        settings.policies.session.send_grace_ms = send_grace_ms;
        settings
    }
}

/// A running relay.
pub(super) struct World {
    pub(super) relay: Relay,
    pub(super) disk: MemoryDisk,
    pub(super) clock: TestClock,
    pub(super) door: Credentials,
    settings: Settings,
    ids: TestIds,
    /// How many commits and reads may happen.
    turns: watch::Sender<u64>,
    tasks: Tasks,
}

impl World {
    pub(super) async fn new() -> Self {
        Self::with(Settings::default()).await
    }

    pub(super) async fn with(settings: Settings) -> Self {
        Stopped::new(settings).start().await
    }

    async fn on(stopped: Stopped) -> Self {
        let ledger = Box::new(stopped.ledger().await);
        let Stopped { disk, clock, door, settings, ids } = stopped;
        let (tasks, metrics) = (Tasks::default(), Arc::new(Metrics::default()));
        let turns = watch::Sender::new(u64::MAX);
        let left = turns.clone();
        let turn = move || {
            let left = left.clone();
            async move {
                let _ = left.subscribe().wait_for(|left| *left > 0).await;
                left.send_modify(|left| *left -= 1);
            }
        };
        let shared: Arc<dyn Clock> = Arc::new(clock.clone());
        let books = Books::as_tasks(
            ledger,
            "test",
            Retention::default(),
            shared.clone(),
            metrics.clone(),
            &tasks,
            turn,
        );
        let ports = Ports {
            clock: shared,
            ids: Arc::new(ids.clone()),
            uploads: Arc::new(NoUploads),
            tasks: tasks.clone(),
        };
        let policies = settings.policies;
        let relay = Relay::start(books.unwrap(), ports, policies, metrics).await.unwrap();
        Self { relay, disk, clock, door, settings, ids, turns, tasks }
    }

    /// Nothing is committed or read until [`World::commit_again`].
    pub(super) fn hold_commits(&self) {
        self.turns.send_replace(0);
    }

    /// Nothing but so many commits and reads happens until [`World::commit_again`].
    pub(super) fn hold_commits_after(&self, turns: u64) {
        self.turns.send_replace(turns);
    }

    pub(super) fn commit_again(&self) {
        self.turns.send_replace(u64::MAX);
    }

    pub(super) fn ids(&self) -> ConnectionId {
        self.ids.connection()
    }

    pub(super) fn lagged(&self) -> u64 {
        self.relay.metrics().lagged.load(Ordering::Relaxed)
    }

    /// Lets everything happen that can happen by itself.
    pub(super) async fn rest(&self) {
        self.pass_ms(1).await;
    }

    pub(super) async fn pass_ms(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.tasks.abort_all();
    }
}
