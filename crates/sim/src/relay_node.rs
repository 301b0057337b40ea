//! The relay of the simulated world: the real one, on a disk in memory.
//!
//! A crash ends all its tasks where they stand; what the disk has is what the next one finds.

use std::sync::Arc;
use std::time::Duration;

use domain::{Principal, Role};
use relay::gate::{ClientGate, ProxyGate, Rates, Throttles, serve_client, serve_proxy};
use relay::metrics::Metrics;
use relay::ports::{NoUploads, Ports};
use relay::routes::Kick;
use relay::{Books, Policies, Relay, Tasks};
use store::{Ledger, MemoryDisk};
use wire::native::{Limits, ProxyLimits};

use crate::clock::{SimClock, SimIds};
use crate::net::End;
use crate::sabotage::{Sabotage, Saboteur};

/// The longest a simulated commit takes.
const COMMIT_MS_MAX: u64 = 3;

/// A relay that can crash.
pub(crate) struct RelayNode {
    disk: MemoryDisk,
    clock: SimClock,
    ids: SimIds,
    policies: Policies,
    sabotage: Sabotage,
    running: Option<(Relay, Tasks)>,
    commits: u64,
}

impl RelayNode {
    /// A relay that is not running yet.
    pub(crate) fn new(
        disk: MemoryDisk,
        clock: SimClock,
        policies: Policies,
        sabotage: Sabotage,
    ) -> Self {
        let ids = SimIds::default();
        Self { disk, clock, ids, policies, sabotage, running: None, commits: 0 }
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
            match self.disk.open() {
                Ok(ledger) => break ledger,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        let ledger: Box<dyn Ledger> = Box::new(Saboteur::new(ledger, self.sabotage));
        let metrics = Arc::new(Metrics::default());
        let clock: Arc<dyn relay::ports::Clock> = Arc::new(self.clock.clone());
        self.commits += 1;
        let pace = self.commits;
        let turn = move || async move {
            tokio::time::sleep(Duration::from_millis(pace % (COMMIT_MS_MAX + 1))).await;
        };
        let books = Books::as_tasks(ledger, "sim", clock.clone(), metrics.clone(), &tasks, turn);
        let ports = Ports {
            clock,
            ids: Arc::new(self.ids.clone()),
            uploads: Arc::new(NoUploads),
            tasks: tasks.clone(),
        };
        let relay = match books {
            Ok(books) => Relay::start(books, ports, self.policies, metrics).await,
            Err(fault) => Err(fault),
        };
        // A disk that fails at the start is tried again by whoever starts the relay.
        match relay {
            Ok(relay) => self.running = Some((relay, tasks)),
            Err(_) => tasks.abort_all(),
        }
    }

    /// SIGKILL.
    pub(crate) fn crash(&mut self) {
        if let Some((_, tasks)) = self.running.take() {
            tasks.abort_all();
        }
    }

    /// A client dials.
    pub(crate) fn accept_client(&self, end: End, name: &str) {
        let Some((relay, tasks)) = &self.running else { return };
        let gate = ClientGate {
            relay: relay.clone(),
            throttles: Throttles::new(Rates {
                sends_per_10s: u32::MAX,
                frames_per_minute: u32::MAX,
            }),
            limits: Limits::default(),
            kick: Arc::new(Kick::default()),
        };
        let principal = principal(name, Role::Operator);
        tasks.spawn("client", serve_client(gate, end, Some(principal), None));
    }

    /// A proxy dials.
    pub(crate) fn accept_proxy(&self, end: End, name: &str) {
        let Some((relay, tasks)) = &self.running else { return };
        let kick = Arc::new(Kick::default());
        let gate = ProxyGate { relay: relay.clone(), limits: ProxyLimits::default(), kick };
        tasks.spawn("proxy", serve_proxy(gate, end, principal(name, Role::Proxy), None));
    }
}

fn principal(name: &str, role: Role) -> Principal {
    Principal { credential: name.into(), role, client: None, name: name.to_owned() }
}
