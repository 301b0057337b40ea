//! The hub: broadcasts recorded and passing events to all watchers.
//!
//! All watchers share one ring, and each event is written once, however many watchers there are. A
//! watcher that is slower than the ring is told that it lags, and reads the ledger. Nothing waits
//! for a slow watcher.
//!
//! **Invariant**: the hub keeps at most `RING_BURSTS` bursts and `RING_BYTES_MAX` bytes alive (or
//! the newest burst alone, however large), no matter how slow a watcher is. The ring itself only
//! points at them.
//!
//! Not here: who may see what (`gate`), encoding (`wire`; the result is kept here so that each
//! event is encoded once).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use domain::passing::Passing;
use domain::{Content, SessionId, fleet, session};
use tokio::sync::broadcast::{self, error::RecvError, error::TryRecvError};
use wire::native::Cache;
use wire::visitor::Encoded;

/// Bursts that the ring holds. A watcher that is further behind reads the ledger.
pub const RING_BURSTS: usize = 4_096;
/// Bytes of what the ring holds. A watcher that is further behind reads the ledger.
pub const RING_BYTES_MAX: usize = 16 << 20;
/// An event is there as itself and, once somebody hears it, as a frame in each of two forms.
const TIMES_IN_MEMORY: usize = 3;
/// What an event takes besides its content.
const EVENT_OVERHEAD_BYTES: usize = 512;

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
    /// How long it is in the ledger.
    pub stored_bytes: usize,
    /// In the native dialect.
    pub native: Cache,
    /// In the others.
    pub visitors: Encoded,
}

impl Published {
    /// An event that nobody has encoded yet.
    pub fn new(session: SessionId, recorded: session::Recorded, stored_bytes: usize) -> Self {
        let (native, visitors) = (Cache::default(), Encoded::default());
        Self { session, recorded, stored_bytes, native, visitors }
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
    /// In the others.
    pub visitors: Encoded,
}

impl Live {
    /// What it takes in memory, about.
    fn bytes(&self) -> usize {
        let content_bytes = match self {
            Self::Session(event) => event.stored_bytes,
            // Few: measuring them costs nothing.
            Self::Fleet(event) => store::codec::encode_fleet_event(event).len(),
            Self::Passing(passed) => match &passed.passing.delta.words {
                Content::Open(words) => words.len(),
                Content::Sealed(sealed) => sealed.body.len(),
            },
        };
        content_bytes * TIMES_IN_MEMORY + EVENT_OVERHEAD_BYTES
    }
}

/// Everything that one commit let go of, in order.
pub type Burst = Arc<Vec<Live>>;

/// The publishing end.
#[derive(Debug, Clone)]
pub struct Hub(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    ring: broadcast::Sender<Weak<Vec<Live>>>,
    kept: Mutex<Kept>,
    bursts_max: usize,
}

/// What the ring points at, oldest first.
#[derive(Debug, Default)]
struct Kept {
    bursts: VecDeque<(Burst, usize)>,
    bytes: usize,
}

/// The watching end.
#[derive(Debug)]
pub struct Watch(broadcast::Receiver<Weak<Vec<Live>>>);

/// Why there is no burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Some are gone: what was missed is in the ledger.
    Lagged,
    /// The relay is gone.
    Closed,
}

impl Default for Hub {
    fn default() -> Self {
        Self::with_room_for(RING_BURSTS)
    }
}

impl Hub {
    /// A ring of another size than [`RING_BURSTS`]: a power of two.
    pub(crate) fn with_room_for(bursts_max: usize) -> Self {
        let ring = broadcast::Sender::new(bursts_max);
        Self(Arc::new(Inner { ring, kept: Mutex::default(), bursts_max }))
    }

    /// Shows something to everyone. Nobody watching is fine.
    pub(crate) fn publish(&self, burst: Vec<Live>) {
        if burst.is_empty() || self.0.ring.receiver_count() == 0 {
            return;
        }
        let burst = Arc::new(burst);
        let pointer = Arc::downgrade(&burst);
        let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let _outgrown = kept.keep(burst, self.0.bursts_max);
        drop(kept);
        let _ = self.0.ring.send(pointer);
    }

    /// Watches from here on.
    pub fn watch(&self) -> Watch {
        Watch(self.0.ring.subscribe())
    }
}

impl Kept {
    /// Keeps a burst, and gives back those that it leaves no room for.
    fn keep(&mut self, burst: Burst, bursts_max: usize) -> Vec<Burst> {
        let bytes = burst.iter().map(Live::bytes).sum();
        self.bursts.push_back((burst, bytes));
        self.bytes += bytes;
        let mut outgrown = vec![];
        while self.bursts.len() > bursts_max
            || (self.bytes > RING_BYTES_MAX && self.bursts.len() > 1)
        {
            let Some((burst, bytes)) = self.bursts.pop_front() else { break };
            self.bytes -= bytes;
            outgrown.push(burst);
        }
        outgrown
    }
}

impl Watch {
    /// The next burst. Safe to drop before it is ready.
    pub async fn recv(&mut self) -> Result<Burst, Missing> {
        match self.0.recv().await {
            Ok(pointer) => pointer.upgrade().ok_or(Missing::Lagged),
            Err(RecvError::Lagged(_)) => Err(Missing::Lagged),
            Err(RecvError::Closed) => Err(Missing::Closed),
        }
    }

    /// The next burst if it is there.
    pub fn try_recv(&mut self) -> Option<Result<Burst, Missing>> {
        match self.0.try_recv() {
            Ok(pointer) => Some(pointer.upgrade().ok_or(Missing::Lagged)),
            Err(TryRecvError::Lagged(_)) => Some(Err(Missing::Lagged)),
            Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests;
