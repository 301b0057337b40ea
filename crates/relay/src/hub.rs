//! The hub: what was recorded, and what passes, on its way to everyone who watches.
//!
//! One ring for all watchers, written once per event however many they are. A watcher that is
//! slower than the ring is told that it lags, and reads the ledger; nobody waits for it.
//!
//! Not here: who may see what (`gate`), encoding (`wire`; it is kept here so that it happens once).

use std::sync::Arc;

use domain::passing::Passing;
use domain::{SessionId, fleet, session};
use tokio::sync::broadcast;
use wire::native::Cache;

/// Bursts that the ring holds. A watcher that is further behind reads the ledger.
pub const RING_BURSTS: usize = 4_096;

/// Something to watch.
#[derive(Debug, Clone)]
pub enum Live {
    /// A session's recorded event.
    Session(Arc<Published>),
    /// The fleet's recorded event.
    Fleet(Arc<fleet::Recorded>),
    /// A passing event.
    Passing(Arc<Passed>),
}

/// A recorded event with its encodings.
#[derive(Debug)]
pub struct Published {
    /// Whose.
    pub session: SessionId,
    /// What.
    pub recorded: session::Recorded,
    /// In the native dialect.
    pub native: Cache,
}

impl Published {
    /// An event that nobody has encoded yet.
    pub fn new(session: SessionId, recorded: session::Recorded) -> Self {
        Self { session, recorded, native: Cache::default() }
    }
}

/// A passing event with its encodings.
#[derive(Debug)]
pub struct Passed {
    /// Whose.
    pub session: SessionId,
    /// What.
    pub passing: Passing,
    /// In the native dialect.
    pub native: Cache,
}

/// Everything that one commit let go of, in order.
pub type Burst = Arc<[Live]>;

/// The publishing end.
#[derive(Debug, Clone)]
pub struct Hub(broadcast::Sender<Burst>);

impl Default for Hub {
    fn default() -> Self {
        Self(broadcast::Sender::new(RING_BURSTS))
    }
}

impl Hub {
    /// Shows something to everyone. Nobody watching is fine.
    pub(crate) fn publish(&self, burst: Vec<Live>) {
        if !burst.is_empty() {
            let _ = self.0.send(burst.into());
        }
    }

    /// Watches from here on.
    pub fn watch(&self) -> broadcast::Receiver<Burst> {
        self.0.subscribe()
    }
}
