//! What retention and erasures took from the ledger, so that the check at the end can still hold
//! it against what people were shown.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::fleet::{self, FLEET_STREAM};
use domain::session::Recorded;
use domain::{Sequence, SessionId, Timestamp};
use store::{Append, AppendRefused, Fault, Lease, Ledger, Reader, Retention, Vault, codec};

/// A handle; clones see the same archive.
#[derive(Debug, Clone, Default)]
pub(crate) struct Archive(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    sessions: BTreeMap<SessionId, BTreeMap<u64, Recorded>>,
    fleet: BTreeMap<u64, fleet::Recorded>,
}

impl Archive {
    /// Keeps everything that a stream holds and the archive does not yet.
    pub(crate) fn keep(&self, reader: &mut dyn Reader, stream: &SessionId) -> Result<(), Fault> {
        let mut kept = self.lock();
        let kept = kept.sessions.entry(stream.clone()).or_default();
        let after = kept.last_key_value().map_or(0, |(sequence, _)| *sequence);
        let (events, _) = reader.recorded(stream, Sequence(after), None, usize::MAX, usize::MAX)?;
        kept.extend(events.into_iter().map(|recorded| (recorded.sequence.0, recorded)));
        Ok(())
    }

    /// The same of the fleet.
    pub(crate) fn keep_fleet(&self, reader: &mut dyn Reader) -> Result<(), Fault> {
        let kept = &mut self.lock().fleet;
        let after = kept.last_key_value().map_or(0, |(sequence, _)| *sequence);
        let events = read_fleet(reader, Sequence(after))?;
        kept.extend(events.into_iter().map(|recorded| (recorded.sequence.0, recorded)));
        Ok(())
    }

    /// Everything of the fleet before this event.
    pub(crate) fn fleet_before(&self, first_kept: u64) -> Vec<fleet::Recorded> {
        self.lock().fleet.range(..first_kept).map(|(_, recorded)| recorded.clone()).collect()
    }

    /// Everything of a session before this event.
    pub(crate) fn before(&self, session: &SessionId, first_kept: u64) -> Vec<Recorded> {
        let archive = self.lock();
        let kept =
            archive.sessions.get(session).into_iter().flat_map(|kept| kept.range(..first_kept));
        kept.map(|(_, recorded)| recorded.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The events of the fleet after this one.
pub(crate) fn read_fleet(
    reader: &mut dyn Reader,
    after: Sequence,
) -> Result<Vec<fleet::Recorded>, Fault> {
    let page = reader.events(&FLEET_STREAM.into(), after, None, usize::MAX, usize::MAX)?;
    page.entries.iter().map(|entry| codec::decode_fleet_event(&entry.body)).collect()
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
                let kept = if row.id.as_str() == FLEET_STREAM {
                    self.archive.keep_fleet(self.reader.as_mut())
                } else {
                    self.archive.keep(self.reader.as_mut(), &row.id)
                };
                match kept {
                    // What cannot be read is not compared with anything either.
                    Ok(()) | Err(Fault::Corrupt { .. }) => {}
                    Err(fault) => return Err(fault),
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
