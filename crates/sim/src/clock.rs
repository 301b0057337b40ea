//! The wall clock of the simulated world: virtual time, plus jumps.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use domain::{ConnectionId, Timestamp};
use relay::ports::{Clock, Ids};
use tokio::time::Instant;

/// When the simulated world begins.
const BEGINNING_MS: u64 = 1_790_000_000_000;

/// A wall clock that can be set.
#[derive(Debug, Clone)]
pub(crate) struct SimClock {
    begun: Instant,
    jumped_ms: Arc<AtomicI64>,
}

impl SimClock {
    /// Begins now.
    pub(crate) fn new() -> Self {
        Self { begun: Instant::now(), jumped_ms: Arc::default() }
    }

    /// Somebody sets the clock.
    pub(crate) fn jump(&self, by_ms: i64) {
        self.jumped_ms.fetch_add(by_ms, Ordering::Relaxed);
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let elapsed_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let now = BEGINNING_MS + elapsed_ms;
        Timestamp(now.saturating_add_signed(self.jumped_ms.load(Ordering::Relaxed)))
    }
}

/// Names in a row, over all incarnations of the relay.
#[derive(Debug, Clone, Default)]
pub(crate) struct SimIds(Arc<AtomicU64>);

impl Ids for SimIds {
    fn connection(&self) -> ConnectionId {
        format!("conn_{}", self.0.fetch_add(1, Ordering::Relaxed)).into()
    }
}
