//! A real `SQLite` ledger on real files, whose power can fail.
//!
//! What is simulated lies between the files as they are and the files as the next start finds
//! them. *Killed*: as they were at that moment; nothing is tidied up by the process that ends.
//! *Power lost*: in the middle of a commit, of which each sector of the log may have arrived or
//! not, or in the middle of a checkpoint, of which each sector of the database may have arrived or
//! not. *Flipped*: one bit of the database file is another one.
//!
//! Not here: operations that fail (`flawed`). Not simulated: a system that drops pages after a
//! failed sync and goes on, and writes that were synced and are lost all the same.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::{MessageId, Sequence, SessionId, Timestamp};
use store::{
    Append, AppendRefused, Fault, Lease, Ledger, Page, Reader, Retention, SqliteLedger, StreamRow,
    Vault,
};
use tempfile::TempDir;

use crate::effects::{Effect, Effects};
use crate::rng::Rng;

/// In memory, where there is such a place: thousands of syncs are waited for.
const FAST_FOLDER: &str = "/dev/shm";
/// What a disk writes whole or not at all.
const SECTOR_BYTES: usize = 512;
/// A disk that is full has room for no further page.
const NO_PAGES: u32 = 1;

/// A handle; clones see the same files.
#[derive(Debug, Clone)]
pub(crate) struct FileDisk(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    folder: TempDir,
    rng: Rng,
    effects: Effects,
    /// Whether the database may not grow.
    is_full: bool,
    /// When the power fails next.
    power_fails: Option<Moment>,
    /// Since then nothing works, until the relay is started again.
    is_dark: bool,
    /// What the next start finds in place of what is there.
    left: Option<Files>,
    /// Ledgers and readers that have the files open.
    users: usize,
}

/// When the power fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// In the next commit.
    Commit,
    /// In the next commit, which is the first after a checkpoint: it overwrites the log.
    CommitOverOldLog,
    /// In a checkpoint after the next commit, which is acknowledged.
    Checkpoint,
}

/// The database and its log.
#[derive(Debug, Clone)]
struct Files {
    database: Vec<u8>,
    log: Option<Vec<u8>>,
}

impl FileDisk {
    /// Empty files.
    pub(crate) fn new(rng: Rng, effects: Effects) -> io::Result<Self> {
        let fast = Path::new(FAST_FOLDER);
        let folder = if fast.is_dir() { TempDir::new_in(fast) } else { TempDir::new() }?;
        let (is_full, power_fails, is_dark, left, users) = (false, None, false, None, 0);
        let state = State { folder, rng, effects, is_full, power_fails, is_dark, left, users };
        Ok(Self(Arc::new(Mutex::new(state))))
    }

    /// The ledger on what the last one left.
    pub(crate) fn open(&self) -> Result<Box<dyn Ledger>, Fault> {
        let path = {
            let mut state = self.lock();
            if state.users > 0 {
                return Err(Fault::Locked { folder: state.folder.path().into(), process: None });
            }
            state.is_dark = false;
            let left = state.left.take();
            if let Some(left) = left {
                left.put(&state.path())?;
            }
            state.path()
        };
        let ledger = Some(SqliteLedger::open(&path)?);
        self.lock().users += 1;
        Ok(Box::new(FileLedger { disk: self.clone(), ledger }))
    }

    /// Whether the database may not grow.
    pub(crate) fn set_full(&self, is_full: bool) {
        self.lock().is_full = is_full;
    }

    /// The power does not fail any more.
    pub(crate) fn heal(&self) {
        self.lock().power_fails = None;
    }

    /// The power fails at the next such moment.
    pub(crate) fn fail_power(&self, moment: Moment) {
        self.lock().power_fails = Some(moment);
    }

    /// Whether the power has failed: the relay is not running any more, whatever it believes.
    pub(crate) fn is_dark(&self) -> bool {
        self.lock().is_dark
    }

    /// The relay is about to be killed: what is there now is what the next one finds.
    pub(crate) fn kill(&self) {
        let mut state = self.lock();
        if state.left.is_none() {
            state.left = Files::read(&state.path()).ok();
        }
    }

    /// One bit of the first place that says this is another one. Whether there is such a place.
    /// Nobody may have the files open, and the last one must have ended in order.
    pub(crate) fn flip(&self, words: &[u8]) -> io::Result<bool> {
        let mut state = self.lock();
        let path = state.path();
        let mut bytes = fs::read(&path)?;
        let place = bytes.windows(words.len()).position(|window| window == words);
        let Some(place) = place else { return Ok(false) };
        let byte = place + usize::try_from(state.rng.below(words.len() as u64)).unwrap_or_default();
        bytes[byte] ^= 1 << state.rng.below(8);
        fs::write(&path, bytes)?;
        Ok(true)
    }

    /// Whether anybody has the files open.
    pub(crate) fn is_in_use(&self) -> bool {
        self.lock().users > 0
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn path(&self) -> PathBuf {
        self.folder.path().join("farhelm.db")
    }

    /// In the middle of a commit: of what was appended to the log since `before`, each sector
    /// arrived or did not.
    fn torn_commit(&mut self, before: Files, mut after: Files) -> Files {
        let (Some(old), Some(log)) = (&before.log, &mut after.log) else { return before };
        if before.database != after.database || old.len() > log.len() {
            return after;
        }
        if tear(old, log, &mut self.rng).is_some() {
            self.effects.count(Effect::SectorsTorn);
        }
        after
    }

    /// In the middle of a checkpoint: the log is whole, and of what was written to the database
    /// since `before`, each sector arrived or did not. The file may not even be as long yet.
    fn torn_checkpoint(&mut self, before: &Files, mut after: Files) -> Files {
        if before.database.len() > after.database.len() || before.log != after.log {
            return after;
        }
        if let Some(arrived_bytes) = tear(&before.database, &mut after.database, &mut self.rng) {
            self.effects.count(Effect::CheckpointTorn);
            if self.rng.once_in(2) {
                after.database.truncate(arrived_bytes);
            }
        }
        after
    }

    /// The power is gone; this is what the next start finds.
    fn go_dark(&mut self, left: Files) {
        self.effects.count(Effect::PowerLost);
        (self.left, self.is_dark, self.power_fails) = (Some(left), true, None);
    }
}

impl Files {
    fn read(path: &Path) -> io::Result<Self> {
        Ok(Self { database: fs::read(path)?, log: fs::read(beside(path, "-wal")).ok() })
    }

    fn put(self, path: &Path) -> io::Result<()> {
        fs::write(path, self.database)?;
        let _ = fs::remove_file(beside(path, "-shm"));
        match self.log {
            Some(log) => fs::write(beside(path, "-wal"), log),
            None => fs::remove_file(beside(path, "-wal")).or(Ok(())),
        }
    }
}

/// Puts back some of the sectors in which `new` differs from `old`; those that `old` does not have
/// are empty. Gives where the last one ends that is there, if any was put back.
fn tear(old: &[u8], new: &mut [u8], rng: &mut Rng) -> Option<usize> {
    let (mut is_torn, mut end) = (false, old.len());
    for (place, sector) in new.chunks_mut(SECTOR_BYTES).enumerate() {
        let begin = place * SECTOR_BYTES;
        let there = old.get(begin..(begin + sector.len()).min(old.len())).unwrap_or_default();
        if there != sector && rng.once_in(2) {
            let (known, added) = sector.split_at_mut(there.len());
            known.copy_from_slice(there);
            added.fill(0);
            is_torn = true;
        } else {
            end = end.max(begin + sector.len());
        }
    }
    is_torn.then_some(end)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

struct FileLedger {
    disk: FileDisk,
    /// Always there, until the end.
    ledger: Option<SqliteLedger>,
}

impl FileLedger {
    fn usable(&mut self) -> Result<&mut SqliteLedger, Fault> {
        if self.disk.is_dark() {
            return Err(Fault::Io { detail: "the power is gone".to_owned() });
        }
        self.ledger.as_mut().ok_or(Fault::NeedsReopen)
    }

    /// Does it within the room that there is.
    fn run<T>(
        &mut self,
        call: impl FnOnce(&mut SqliteLedger) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let is_full = self.disk.lock().is_full;
        let ledger = self.usable()?;
        if !is_full {
            return call(ledger);
        }
        ledger.limit_pages(Some(NO_PAGES))?;
        let outcome = call(ledger);
        let widened = ledger.limit_pages(None);
        outcome.and_then(|done| widened.map(|()| done))
    }
}

impl Drop for FileLedger {
    fn drop(&mut self) {
        drop(self.ledger.take());
        self.disk.lock().users -= 1;
    }
}

type Verdicts = Vec<Result<(), AppendRefused>>;

impl Ledger for FileLedger {
    fn acquire(&mut self, stream: &SessionId, owner: &str) -> Result<Lease, Fault> {
        self.run(|ledger| ledger.acquire(stream, owner))
    }

    fn commit(&mut self, group: &[Append]) -> Result<Verdicts, Fault> {
        let (path, moment) = {
            let state = self.disk.lock();
            (state.path(), state.power_fails)
        };
        let Some(moment) = moment else { return self.run(|ledger| ledger.commit(group)) };
        let ledger = self.usable()?;
        let (left, outcome) = match moment {
            Moment::Commit | Moment::CommitOverOldLog => {
                if moment == Moment::CommitOverOldLog {
                    ledger.checkpoint()?;
                }
                let before = Files::read(&path)?;
                let _ = ledger.commit(group);
                let left = self.disk.lock().torn_commit(before, Files::read(&path)?);
                (left, Err(Fault::Io { detail: "the power is gone".to_owned() }))
            }
            Moment::Checkpoint => {
                let verdicts = ledger.commit(group)?;
                let before = Files::read(&path)?;
                ledger.checkpoint()?;
                let left = self.disk.lock().torn_checkpoint(&before, Files::read(&path)?);
                (left, Ok(verdicts))
            }
        };
        self.disk.lock().go_dark(left);
        outcome
    }

    fn erase(&mut self, stream: &SessionId) -> Result<(), Fault> {
        self.run(|ledger| ledger.erase(stream))
    }

    fn maintain(&mut self, now: Timestamp, retention: &Retention) -> Result<bool, Fault> {
        self.run(|ledger| ledger.maintain(now, retention))
    }

    fn reader(&self) -> Result<Box<dyn Reader>, Fault> {
        let reader = self.ledger.as_ref().ok_or(Fault::NeedsReopen)?.reader()?;
        self.disk.lock().users += 1;
        Ok(Box::new(FileReader { disk: self.disk.clone(), reader: Some(reader) }))
    }

    fn vault(&self) -> Result<Box<dyn Vault>, Fault> {
        self.ledger.as_ref().ok_or(Fault::NeedsReopen)?.vault()
    }

    fn reopen(&mut self) -> Result<(), Fault> {
        self.usable()?.reopen()
    }
}

/// A reader, counted: the last one to close the files tidies them up.
struct FileReader {
    disk: FileDisk,
    /// Always there, until the end.
    reader: Option<Box<dyn Reader>>,
}

impl FileReader {
    fn reader(&mut self) -> Result<&mut Box<dyn Reader>, Fault> {
        if self.disk.is_dark() {
            return Err(Fault::Io { detail: "the power is gone".to_owned() });
        }
        self.reader.as_mut().ok_or(Fault::NeedsReopen)
    }
}

impl Drop for FileReader {
    fn drop(&mut self) {
        drop(self.reader.take());
        self.disk.lock().users -= 1;
    }
}

impl Reader for FileReader {
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
    ) -> Result<(Vec<domain::session::Recorded>, Page), Fault> {
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
