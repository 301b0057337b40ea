//! A ledger in memory, on a "disk" that outlives it: for the simulator and for tests.
//!
//! It is deterministic: ordered maps, no clock, no randomness. The disk fails on command.
//!
//! Not here: failures that a real disk causes by itself.

mod vault;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::{MessageId, Sequence, SessionId, Timestamp};

use self::vault::MemoryVault;
use crate::{
    Append, AppendRefused, Credential, Entry, Epoch, Fault, Lease, Ledger, Page, Reader, Retention,
    Snapshot, StreamRow, Upload, Vault,
};

/// What the next commit shall meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// An I/O error; nothing was recorded.
    BeforeCommit,
    /// An I/O error; everything was recorded all the same.
    AfterCommit,
    /// No room this once; nothing was recorded.
    Full,
}

/// What survives when the ledger on it is dropped. Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub struct MemoryDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    streams: BTreeMap<SessionId, Stream>,
    credentials: BTreeMap<String, Credential>,
    uploads: BTreeMap<String, Upload>,
    meta: BTreeMap<String, Vec<u8>>,
    epoch_last: u64,
    failures: VecDeque<Failure>,
    full: bool,
    damaged: BTreeSet<SessionId>,
    in_use: bool,
}

#[derive(Debug)]
struct Stream {
    epoch: Epoch,
    head: Sequence,
    first_kept: Sequence,
    entries: BTreeMap<Sequence, (Timestamp, Vec<u8>)>,
    sends: BTreeMap<MessageId, Vec<u8>>,
    snapshot: Option<Snapshot>,
    card: Option<Vec<u8>>,
}

impl MemoryDisk {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Refused as [`Fault::Locked`] while another ledger on this disk lives.
    pub fn open(&self) -> Result<MemoryLedger, Fault> {
        let mut state = self.state();
        if state.in_use {
            return Err(Fault::Locked { folder: PathBuf::from("memory"), process: None });
        }
        state.in_use = true;
        drop(state);
        Ok(MemoryLedger { disk: self.clone(), needs_reopen: false })
    }

    /// Queues a failure: each commit meets the next one.
    pub fn fail_next(&self, failure: Failure) {
        self.state().failures.push_back(failure);
    }

    /// Forgets the failures that no commit met yet.
    pub fn heal(&self) {
        self.state().failures.clear();
    }

    /// While full, every change is refused as [`Fault::Full`].
    pub fn set_full(&self, full: bool) {
        self.state().full = full;
    }

    /// Makes the stream's history unreadable.
    pub fn damage(&self, stream: &SessionId) {
        self.state().damaged.insert(stream.clone());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn readable(&self, stream: &SessionId) -> Result<(), Fault> {
        if self.damaged.contains(stream) {
            return Err(Fault::corrupt(stream, "damaged on command"));
        }
        Ok(())
    }

    fn room(&self) -> Result<(), Fault> {
        if self.full { Err(Fault::Full) } else { Ok(()) }
    }

    fn append(&mut self, append: &Append) -> Result<(), AppendRefused> {
        if self.damaged.contains(&append.stream) {
            return Err(AppendRefused::Corrupt { detail: "damaged on command".into() });
        }
        let Some(stream) = self.streams.get_mut(&append.stream) else {
            return Err(AppendRefused::StaleEpoch { current: None });
        };
        stream.head = append.check(stream.epoch, stream.head)?;
        for entry in &append.entries {
            stream.entries.insert(entry.sequence, (entry.at, entry.body.clone()));
        }
        stream.sends.extend(append.sends.iter().cloned());
        if let Some(snapshot) = &append.snapshot {
            stream.snapshot = Some(snapshot.clone());
        }
        if let Some(card) = &append.card {
            stream.card = Some(card.clone());
        }
        Ok(())
    }

    fn size_bytes(&self) -> u64 {
        let bodies = self.streams.values().flat_map(|stream| stream.entries.values());
        bodies.map(|(_, body)| body.len() as u64).sum()
    }

    /// The stream whose oldest event is the oldest of all that may go.
    fn oldest_covered(&self) -> Option<(Timestamp, SessionId)> {
        let oldest = self.streams.iter().filter_map(|(id, stream)| {
            let covered = stream.snapshot.as_ref()?.sequence;
            let (sequence, (at, _)) = stream.entries.first_key_value()?;
            (*sequence <= covered).then(|| (*at, id.clone()))
        });
        oldest.min()
    }

    fn forget_oldest(&mut self, now: Timestamp, retention: &Retention) -> bool {
        let Some((at, id)) = self.oldest_covered() else {
            return false;
        };
        let aged = retention.age_ms_max.is_some_and(|age_ms_max| now.ms_since(at) > age_ms_max);
        let large = retention.size_bytes_max.is_some_and(|max| self.size_bytes() > max);
        let Some(stream) = self.streams.get_mut(&id).filter(|_| aged || large) else {
            return false;
        };
        if let Some((sequence, _)) = stream.entries.pop_first() {
            stream.first_kept = sequence.next();
        }
        true
    }
}

/// The writing end of a [`MemoryDisk`].
#[derive(Debug)]
pub struct MemoryLedger {
    disk: MemoryDisk,
    needs_reopen: bool,
}

impl MemoryLedger {
    fn usable(&self) -> Result<MutexGuard<'_, State>, Fault> {
        if self.needs_reopen {
            return Err(Fault::NeedsReopen);
        }
        Ok(self.disk.state())
    }
}

impl Drop for MemoryLedger {
    fn drop(&mut self) {
        self.disk.state().in_use = false;
    }
}

impl Ledger for MemoryLedger {
    fn acquire(&mut self, stream: &SessionId, _owner: &str) -> Result<Lease, Fault> {
        let mut state = self.usable()?;
        state.room()?;
        state.readable(stream)?;
        state.epoch_last += 1;
        let epoch = Epoch(state.epoch_last);
        let held = state.streams.entry(stream.clone()).or_insert_with(|| Stream {
            epoch,
            head: Sequence(0),
            first_kept: Sequence(1),
            entries: BTreeMap::new(),
            sends: BTreeMap::new(),
            snapshot: None,
            card: None,
        });
        held.epoch = epoch;
        let snapshot = held.snapshot.clone();
        Ok(Lease { epoch, head: held.head, snapshot, is_snapshot_damaged: false })
    }

    fn commit(&mut self, group: &[Append]) -> Result<Vec<Result<(), AppendRefused>>, Fault> {
        let mut state = self.usable()?;
        let failure = state.failures.pop_front();
        let io = Fault::Io { detail: "failed on command".into() };
        match failure {
            Some(Failure::BeforeCommit) => {
                drop(state);
                self.needs_reopen = true;
                return Err(io);
            }
            Some(Failure::Full) => return Err(Fault::Full),
            Some(Failure::AfterCommit) | None => {}
        }
        state.room()?;
        let verdicts = group.iter().map(|append| state.append(append)).collect();
        drop(state);
        if failure.is_some() {
            self.needs_reopen = true;
            return Err(io);
        }
        Ok(verdicts)
    }

    fn erase(&mut self, stream: &SessionId) -> Result<(), Fault> {
        let mut state = self.usable()?;
        state.streams.remove(stream);
        state.damaged.remove(stream);
        Ok(())
    }

    fn maintain(&mut self, now: Timestamp, retention: &Retention) -> Result<bool, Fault> {
        Ok(self.usable()?.forget_oldest(now, retention))
    }

    fn reader(&self) -> Result<Box<dyn Reader>, Fault> {
        Ok(Box::new(MemoryReader { disk: self.disk.clone() }))
    }

    fn vault(&self) -> Result<Box<dyn Vault>, Fault> {
        Ok(Box::new(MemoryVault { disk: self.disk.clone() }))
    }

    fn reopen(&mut self) -> Result<(), Fault> {
        self.needs_reopen = false;
        Ok(())
    }
}

struct MemoryReader {
    disk: MemoryDisk,
}

impl Reader for MemoryReader {
    fn events(
        &mut self,
        stream: &SessionId,
        after: Sequence,
        upto: Option<Sequence>,
        limit: usize,
        limit_bytes: usize,
    ) -> Result<Page, Fault> {
        let state = self.disk.state();
        state.readable(stream)?;
        let Some(held) = state.streams.get(stream) else {
            return Ok(Page { first_kept: Sequence(1), ..Page::default() });
        };
        let end = upto.map_or(held.head, |upto| upto.min(held.head));
        let mut page = Page { head: held.head, first_kept: held.first_kept, ..Page::default() };
        let mut bytes = 0_usize;
        for (sequence, (at, body)) in held.entries.range(after.next()..) {
            if *sequence > end {
                break;
            }
            bytes += body.len();
            if page.entries.len() >= limit || (bytes > limit_bytes && !page.entries.is_empty()) {
                page.has_more = true;
                break;
            }
            page.entries.push(Entry { sequence: *sequence, at: *at, body: body.clone() });
        }
        Ok(page)
    }

    fn send_state(&mut self, stream: &SessionId, id: &MessageId) -> Result<Option<Vec<u8>>, Fault> {
        let state = self.disk.state();
        state.readable(stream)?;
        Ok(state.streams.get(stream).and_then(|held| held.sends.get(id).cloned()))
    }

    fn stream(&mut self, stream: &SessionId) -> Result<Option<StreamRow>, Fault> {
        let state = self.disk.state();
        Ok(state.streams.get(stream).map(|held| row(stream, held)))
    }

    fn streams(&mut self) -> Result<Vec<StreamRow>, Fault> {
        Ok(self.disk.state().streams.iter().map(|(id, held)| row(id, held)).collect())
    }
}

fn row(id: &SessionId, held: &Stream) -> StreamRow {
    StreamRow { id: id.clone(), head: held.head, card: held.card.clone() }
}
