//! The ledger's interface: streams of dense events behind a fencing epoch.
//!
//! One writer commits groups; readers run beside it and see only durable events. The interface is
//! synchronous; the caller chooses the thread.
//!
//! Not here: backends (`memory`, `sqlite`), credentials and uploads (`vault`).

use domain::{MessageId, Sequence, SessionId, Timestamp, session};

use crate::{Fault, Vault, codec};

/// One append may not be larger than this in total; beyond it the append is refused.
pub const APPEND_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Who may write: each acquisition of a stream gets a higher one than any before, on any stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

/// One event as stored; the body is opaque here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its number in the stream.
    pub sequence: Sequence,
    /// When it was decided. Retention by age goes by it.
    pub at: Timestamp,
    /// The encoded event.
    pub body: Vec<u8>,
}

/// A state from which everything up to `sequence` need not be read again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The last event that the state contains.
    pub sequence: Sequence,
    /// The encoded state.
    pub body: Vec<u8>,
}

/// What one stream wants to record. All of it, or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Append {
    /// Whose.
    pub stream: SessionId,
    /// From the lease.
    pub epoch: Epoch,
    /// Dense, continuing the head. May be empty (a card or a snapshot alone).
    pub entries: Vec<Entry>,
    /// The last told state of each send that changed: the idempotency index of the stream.
    pub sends: Vec<(MessageId, Vec<u8>)>,
    /// Replaces the older one. May not be ahead of the entries.
    pub snapshot: Option<Snapshot>,
    /// What lists show of the stream; replaces the older one.
    pub card: Option<Vec<u8>>,
}

impl Append {
    /// An append with nothing in it yet.
    pub fn new(stream: SessionId, epoch: Epoch) -> Self {
        Self { stream, epoch, entries: vec![], sends: vec![], snapshot: None, card: None }
    }

    /// The payload in bytes, without any framing.
    pub fn size_bytes(&self) -> usize {
        let entries: usize = self.entries.iter().map(|entry| entry.body.len()).sum();
        let sends: usize =
            self.sends.iter().map(|(id, state)| id.as_str().len() + state.len()).sum();
        let snapshot = self.snapshot.as_ref().map_or(0, |snapshot| snapshot.body.len());
        entries + sends + snapshot + self.card.as_ref().map_or(0, Vec::len)
    }

    /// The rules that hold on every backend. Gives the head after the append.
    pub(crate) fn check(&self, epoch: Epoch, head: Sequence) -> Result<Sequence, AppendRefused> {
        if epoch != self.epoch {
            return Err(AppendRefused::StaleEpoch { current: Some(epoch) });
        }
        let mut next = head;
        for entry in &self.entries {
            next = next.next();
            if entry.sequence != next {
                return Err(AppendRefused::NotDense { head });
            }
        }
        if self.snapshot.as_ref().is_some_and(|snapshot| snapshot.sequence > next) {
            return Err(AppendRefused::SnapshotAhead { head: next });
        }
        let size_bytes = self.size_bytes();
        if size_bytes > APPEND_BYTES_MAX {
            return Err(AppendRefused::TooLarge { size_bytes });
        }
        Ok(next)
    }
}

/// Why one append of a group was not recorded. The others of the group were.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendRefused {
    /// Somebody acquired the stream since, or it was erased (`None`).
    #[error("the stream has another owner now; acquire it again")]
    StaleEpoch {
        /// The epoch that would have been right.
        current: Option<Epoch>,
    },
    /// The entries do not continue the head one by one.
    #[error("the entries do not continue the stream after {head}; acquire it again")]
    NotDense {
        /// The last recorded event.
        head: Sequence,
    },
    /// The snapshot claims events that are not recorded.
    #[error("the snapshot is ahead of the stream, which ends at {head}")]
    SnapshotAhead {
        /// The last event, this append included.
        head: Sequence,
    },
    /// More than [`APPEND_BYTES_MAX`].
    #[error("an append of {size_bytes} bytes exceeds {APPEND_BYTES_MAX}; record less at once")]
    TooLarge {
        /// What was asked.
        size_bytes: usize,
    },
    /// A part of this stream's history cannot be read, so nothing is added to it.
    #[error("the history of this session is damaged ({detail}); restore a backup to continue it")]
    Corrupt {
        /// What was found.
        detail: String,
    },
}

/// The right to append, and where to continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// To be shown with every append.
    pub epoch: Epoch,
    /// The last recorded event; zero for a new stream.
    pub head: Sequence,
    /// The newest state. The events after it are to be applied to it.
    pub snapshot: Option<Snapshot>,
    /// There is a state, but its bytes are not what was written: the events before it are to be
    /// replayed, and a new one stored.
    pub is_snapshot_damaged: bool,
}

/// What may be forgotten. Nothing, by default; never what no snapshot covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Events older than this may go.
    pub age_ms_max: Option<u64>,
    /// While the store is larger than this, the oldest events may go.
    pub size_bytes_max: Option<u64>,
}

/// The writing end. One per store.
pub trait Ledger: Send {
    /// Takes over a stream, creating it if it is new. Whoever had it before can no longer write.
    fn acquire(&mut self, stream: &SessionId, owner: &str) -> Result<Lease, Fault>;

    /// One durable transaction for the whole group; each append is recorded or refused on its own,
    /// answered in order. On a fault nothing is recorded; after [`Fault::Io`] that is unknown
    /// until [`Ledger::reopen`].
    fn commit(&mut self, group: &[Append]) -> Result<Vec<Result<(), AppendRefused>>, Fault>;

    /// Forgets the stream and everything in it. Leases on it become stale.
    fn erase(&mut self, stream: &SessionId) -> Result<(), Fault>;

    /// Does a bounded piece of what can wait: call it when no commit waits. True when there is
    /// more to do.
    fn maintain(&mut self, now: Timestamp, retention: &Retention) -> Result<bool, Fault>;

    /// A reading end that runs beside the writer.
    fn reader(&self) -> Result<Box<dyn Reader>, Fault>;

    /// Credentials and uploads of the same store.
    fn vault(&self) -> Result<Box<dyn Vault>, Fault>;

    /// Starts over from what is on disk. Leases stay valid; heads are to be asked again by
    /// [`Ledger::acquire`].
    fn reopen(&mut self) -> Result<(), Fault>;
}

/// A stretch of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// In order, without gap.
    pub entries: Vec<Entry>,
    /// The last recorded event of the stream; zero when there is no such stream.
    pub head: Sequence,
    /// The oldest event that retention left (1 when it took nothing). Higher than the asked
    /// start: what lies between is gone.
    pub first_kept: Sequence,
    /// Whether asked events follow that did not fit the limits.
    pub has_more: bool,
}

/// A stream in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamRow {
    /// Whose.
    pub id: SessionId,
    /// The last recorded event.
    pub head: Sequence,
    /// As last appended.
    pub card: Option<Vec<u8>>,
}

/// The reading end. Sees every commit that was answered before the call.
pub trait Reader: Send {
    /// The events in (`after`, `upto`], at most `limit` of them and about `limit_bytes` (a single
    /// larger event is still returned).
    fn events(
        &mut self,
        stream: &SessionId,
        after: Sequence,
        upto: Option<Sequence>,
        limit: usize,
        limit_bytes: usize,
    ) -> Result<Page, Fault>;

    /// The same of a session, decoded; the page has no entries.
    fn recorded(
        &mut self,
        stream: &SessionId,
        after: Sequence,
        upto: Option<Sequence>,
        limit: usize,
        limit_bytes: usize,
    ) -> Result<(Vec<session::Recorded>, Page), Fault> {
        let mut page = self.events(stream, after, upto, limit, limit_bytes)?;
        let entries = std::mem::take(&mut page.entries).into_iter();
        let decoded = entries.map(|entry| codec::decode_event(&entry.body));
        let decoded: Result<Vec<_>, _> = decoded.collect();
        Ok((decoded.map_err(|fault| fault.of_stream(stream))?, page))
    }

    /// The last told state of a send.
    fn send_state(&mut self, stream: &SessionId, id: &MessageId) -> Result<Option<Vec<u8>>, Fault>;

    /// One stream as lists show it.
    fn stream(&mut self, stream: &SessionId) -> Result<Option<StreamRow>, Fault>;

    /// Every stream, by id.
    fn streams(&mut self) -> Result<Vec<StreamRow>, Fault>;
}
