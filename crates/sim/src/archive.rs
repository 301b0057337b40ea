//! What retention and erasures took from the ledger, so that the check at the end can still hold
//! it against what people were shown.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::fleet::FLEET_STREAM;
use domain::session::Recorded;
use domain::{Sequence, SessionId, Timestamp};
use store::{Append, AppendRefused, Fault, Lease, Ledger, Reader, Retention, Vault};

/// A handle; clones see the same archive.
#[derive(Debug, Clone, Default)]
pub(crate) struct Archive(Arc<Mutex<BTreeMap<SessionId, BTreeMap<u64, Recorded>>>>);

impl Archive {
    /// Keeps everything that a stream holds and the archive does not yet.
    pub(crate) fn keep(&self, reader: &mut dyn Reader, stream: &SessionId) -> Result<(), Fault> {
        let mut kept = self.lock();
        let kept = kept.entry(stream.clone()).or_default();
        let after = kept.last_key_value().map_or(0, |(sequence, _)| *sequence);
        let (events, _) = reader.recorded(stream, Sequence(after), None, usize::MAX, usize::MAX)?;
        kept.extend(events.into_iter().map(|recorded| (recorded.sequence.0, recorded)));
        Ok(())
    }

    /// Everything of a session before this event.
    pub(crate) fn before(&self, session: &SessionId, first_kept: u64) -> Vec<Recorded> {
        let archive = self.lock();
        let kept = archive.get(session).into_iter().flat_map(|kept| kept.range(..first_kept));
        kept.map(|(_, recorded)| recorded.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionId, BTreeMap<u64, Recorded>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A ledger whose losses are kept.
pub(crate) struct Archived {
    ledger: Box<dyn Ledger>,
    reader: Box<dyn Reader>,
    archive: Archive,
    has_retention: bool,
}

impl Archived {
    /// Keeps them in this archive.
    pub(crate) fn new(
        ledger: Box<dyn Ledger>,
        archive: Archive,
        has_retention: bool,
    ) -> Result<Self, Fault> {
        let reader = ledger.reader()?;
        Ok(Self { ledger, reader, archive, has_retention })
    }
}

impl Ledger for Archived {
    fn acquire(&mut self, stream: &SessionId, owner: &str) -> Result<Lease, Fault> {
        self.ledger.acquire(stream, owner)
    }

    fn commit(&mut self, group: &[Append]) -> Result<Vec<Result<(), AppendRefused>>, Fault> {
        self.ledger.commit(group)
    }

    fn erase(&mut self, stream: &SessionId) -> Result<(), Fault> {
        self.archive.keep(self.reader.as_mut(), stream)?;
        self.ledger.erase(stream)
    }

    fn maintain(&mut self, now: Timestamp, retention: &Retention) -> Result<bool, Fault> {
        if self.has_retention {
            for row in self.reader.streams()? {
                if row.id.as_str() != FLEET_STREAM {
                    self.archive.keep(self.reader.as_mut(), &row.id)?;
                }
            }
        }
        self.ledger.maintain(now, retention)
    }

    fn reader(&self) -> Result<Box<dyn Reader>, Fault> {
        self.ledger.reader()
    }

    fn vault(&self) -> Result<Box<dyn Vault>, Fault> {
        self.ledger.vault()
    }

    fn reopen(&mut self) -> Result<(), Fault> {
        self.ledger.reopen()
    }
}
