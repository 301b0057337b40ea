//! A ledger whose operations fail on command, over any backend.
//!
//! Each operation has its own queue of failures, and each call meets the next one. After an I/O
//! error nothing works until the ledger is reopened, as with the real ones.
//!
//! Not here: the loss of power, torn writes and flipped bits (`files`).

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::session::Recorded;
use domain::{MessageId, Sequence, SessionId, Timestamp};
use store::{
    Append, AppendRefused, Failure, Fault, Lease, Ledger, Page, Reader, Retention, StreamRow, Vault,
};

use super::SimDisk;
use crate::effects::{Effect, Effects};

/// What can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Acquire,
    Commit,
    Erase,
    Maintain,
    Reopen,
    Read,
}

impl Operation {
    pub(crate) const ALL: [Self; 6] =
        [Self::Acquire, Self::Commit, Self::Erase, Self::Maintain, Self::Reopen, Self::Read];

    fn effect(self, failure: Failure) -> Effect {
        match (self, failure) {
            (Self::Acquire, _) => Effect::AcquireFailed,
            (Self::Commit, Failure::BeforeCommit) => Effect::CommitFailed,
            (Self::Commit, Failure::AfterCommit) => Effect::CommitUnknown,
            (Self::Commit, Failure::Full) => Effect::CommitFull,
            (Self::Erase, _) => Effect::EraseFailed,
            (Self::Maintain, _) => Effect::MaintainFailed,
            (Self::Reopen, _) => Effect::ReopenFailed,
            (Self::Read, _) => Effect::ReadFailed,
        }
    }
}

/// The failures that wait. Clones share them, and they outlive the relay.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flaws {
    waiting: Arc<Mutex<BTreeMap<Operation, VecDeque<Failure>>>>,
    effects: Effects,
}

impl Flaws {
    /// None yet.
    pub(crate) fn new(effects: Effects) -> Self {
        Self { waiting: Arc::default(), effects }
    }

    /// The next call of this operation that has met all earlier failures meets this one.
    pub(crate) fn add(&self, operation: Operation, failure: Failure) {
        self.lock().entry(operation).or_default().push_back(failure);
    }

    /// Nothing fails any more.
    pub(crate) fn heal(&self) {
        self.lock().clear();
    }

    fn next(&self, operation: Operation) -> Option<Failure> {
        self.lock().get_mut(&operation).and_then(VecDeque::pop_front)
    }

    /// It met nothing: the next call may.
    fn put_back(&self, operation: Operation, failure: Failure) {
        self.lock().entry(operation).or_default().push_front(failure);
    }

    fn count(&self, operation: Operation, failure: Failure) {
        self.effects.count(operation.effect(failure));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Operation, VecDeque<Failure>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A ledger that has them.
pub(crate) struct Flawed {
    ledger: Box<dyn Ledger>,
    disk: SimDisk,
    flaws: Flaws,
    needs_reopen: bool,
}

impl Flawed {
    /// The ledger is on this disk.
    pub(crate) fn new(ledger: Box<dyn Ledger>, disk: SimDisk, flaws: Flaws) -> Self {
        Self { ledger, disk, flaws, needs_reopen: false }
    }

    fn run<T>(
        &mut self,
        operation: Operation,
        call: impl FnOnce(&mut dyn Ledger) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        if self.needs_reopen {
            return Err(Fault::NeedsReopen);
        }
        let Some(failure) = self.flaws.next(operation) else { return call(self.ledger.as_mut()) };
        match failure {
            Failure::BeforeCommit => {}
            Failure::AfterCommit => {
                call(self.ledger.as_mut())?;
            }
            Failure::Full => return self.without_room(operation, call),
        }
        self.needs_reopen = true;
        self.flaws.count(operation, failure);
        Err(io("syncing failed"))
    }

    fn without_room<T>(
        &mut self,
        operation: Operation,
        call: impl FnOnce(&mut dyn Ledger) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let Some(files) = self.disk.files() else {
            self.flaws.count(operation, Failure::Full);
            return Err(Fault::Full);
        };
        // The real one finds out by itself, and may still have room in the pages that it has.
        files.set_full(true);
        let outcome = call(self.ledger.as_mut());
        files.set_full(false);
        if matches!(outcome, Err(Fault::Full)) {
            self.flaws.count(operation, Failure::Full);
        } else {
            self.flaws.put_back(operation, Failure::Full);
        }
        outcome
    }
}

impl Ledger for Flawed {
    fn acquire(&mut self, stream: &SessionId, owner: &str) -> Result<Lease, Fault> {
        self.run(Operation::Acquire, |ledger| ledger.acquire(stream, owner))
    }

    fn commit(&mut self, group: &[Append]) -> Result<Vec<Result<(), AppendRefused>>, Fault> {
        self.run(Operation::Commit, |ledger| ledger.commit(group))
    }

    fn erase(&mut self, stream: &SessionId) -> Result<(), Fault> {
        self.run(Operation::Erase, |ledger| ledger.erase(stream))
    }

    fn maintain(&mut self, now: Timestamp, retention: &Retention) -> Result<bool, Fault> {
        self.run(Operation::Maintain, |ledger| ledger.maintain(now, retention))
    }

    fn reader(&self) -> Result<Box<dyn Reader>, Fault> {
        let reader = self.ledger.reader()?;
        Ok(Box::new(FlawedReader { reader, flaws: self.flaws.clone() }))
    }

    fn vault(&self) -> Result<Box<dyn Vault>, Fault> {
        self.ledger.vault()
    }

    fn reopen(&mut self) -> Result<(), Fault> {
        if let Some(failure) = self.flaws.next(Operation::Reopen) {
            self.needs_reopen = true;
            self.flaws.count(Operation::Reopen, failure);
            return Err(io("the disk does not answer"));
        }
        self.ledger.reopen()?;
        self.needs_reopen = false;
        Ok(())
    }
}

struct FlawedReader {
    reader: Box<dyn Reader>,
    flaws: Flaws,
}

impl FlawedReader {
    fn reader(&mut self) -> Result<&mut dyn Reader, Fault> {
        let Some(failure) = self.flaws.next(Operation::Read) else {
            return Ok(self.reader.as_mut());
        };
        self.flaws.count(Operation::Read, failure);
        Err(io("reading failed"))
    }
}

impl Reader for FlawedReader {
    fn events(
        &mut self,
        stream: &SessionId,
        after: Sequence,
        upto: Option<Sequence>,
        limit: usize,
        limit_bytes: usize,
    ) -> Result<Page, Fault> {
        self.reader()?.events(stream, after, upto, limit, limit_bytes)
    }

    fn recorded(
        &mut self,
        stream: &SessionId,
        after: Sequence,
        upto: Option<Sequence>,
        limit: usize,
        limit_bytes: usize,
    ) -> Result<(Vec<Recorded>, Page), Fault> {
        self.reader()?.recorded(stream, after, upto, limit, limit_bytes)
    }

    fn send_state(&mut self, stream: &SessionId, id: &MessageId) -> Result<Option<Vec<u8>>, Fault> {
        self.reader()?.send_state(stream, id)
    }

    fn stream(&mut self, stream: &SessionId) -> Result<Option<StreamRow>, Fault> {
        self.reader()?.stream(stream)
    }

    fn streams(&mut self) -> Result<Vec<StreamRow>, Fault> {
        self.reader()?.streams()
    }
}

fn io(detail: &str) -> Fault {
    Fault::Io { detail: detail.to_owned() }
}
