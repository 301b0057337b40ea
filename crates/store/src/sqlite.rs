//! The ledger in one `SQLite` file.
//!
//! A commit writes one row to `journal`: the whole group, packed. The content of that row also
//! stays in memory (`tail`) until `fold` moves it, sorted by stream, into the tables that are read
//! later. A commit therefore costs one append and one sync, however many streams it contains.
//!
//! **Invariant**: the state is the tables plus the journal rows after `streams.folded`. Everything
//! in memory can be rebuilt from that.
//!
//! Not here: the memory backend, what the bytes mean (`pack` knows only their framing).

mod check;
mod erase;
mod fold;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod journal;
mod lock;
mod pack;
mod reader;
mod retain;
mod schema;
mod tail;
#[cfg(test)]
pub(crate) mod tests;
mod vault;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use domain::{Sequence, SessionId, Timestamp};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use self::lock::FolderLock;
use self::reader::SqliteReader;
use self::tail::SharedTail;
use self::vault::SqliteVault;
use crate::{
    Append, AppendRefused, Epoch, Fault, Lease, Ledger, Reader, Retention, Snapshot, Vault,
};

pub use self::check::{Checked, Soundness, check};
pub use self::lock::LOCK_FILE_NAME;

/// `maintain` folds a tail of this size. Small, so that opening and folding stay short.
const TAIL_FOLD_BYTES: usize = 4 * 1024 * 1024;
/// A commit that finds this much folds first: nobody calls `maintain`, or there is no pause.
const TAIL_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The same two bounds in rows, for many tiny commits.
const TAIL_FOLD_ROWS: usize = 4 * 1024;
const TAIL_ROWS_MAX: usize = 32 * 1024;
/// `maintain` moves a write-ahead log of this size into the database.
const WAL_CHECKPOINT_BYTES: usize = 16 * 1024 * 1024;
/// A commit that finds this much does it first.
const WAL_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Streams whose epoch and head are remembered. At the bound all are forgotten, and read again
/// when they next append.
const STREAMS_KNOWN_MAX: usize = 64 * 1024;

/// The writing end of a database file.
#[derive(Debug)]
pub struct SqliteLedger {
    path: PathBuf,
    migrations: &'static [&'static str],
    /// `None` after an I/O error, until reopened.
    connection: Option<Connection>,
    tail: SharedTail,
    known: HashMap<SessionId, Known>,
    position_last: i64,
    /// About how much was written to the log since it was last moved into the database.
    wal_bytes: usize,
    _lock: FolderLock,
}

/// What a commit must know of a stream. Nobody else can change it: the folder is locked.
#[derive(Debug, Clone, Copy)]
struct Known {
    number: u64,
    epoch: Epoch,
    head: u64,
}

impl SqliteLedger {
    /// Opens or makes the database, after locking the folder that it is in.
    pub fn open(path: &Path) -> Result<Self, Fault> {
        Self::open_with(path, schema::MIGRATIONS)
    }

    fn open_with(path: &Path, migrations: &'static [&'static str]) -> Result<Self, Fault> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let lock = FolderLock::take(folder)?;
        let mut ledger = Self {
            path: path.to_path_buf(),
            migrations,
            connection: None,
            tail: SharedTail::default(),
            known: HashMap::new(),
            position_last: 0,
            wal_bytes: 0,
            _lock: lock,
        };
        ledger.reopen()?;
        let _ = schema::make_log_room(path);
        schema::sync_folder(folder)?;
        Ok(ledger)
    }

    fn connection(&mut self) -> Result<&mut Connection, Fault> {
        self.connection.as_mut().ok_or(Fault::NeedsReopen)
    }

    /// After an error that leaves the outcome open, nothing is done before a reopen.
    fn close_after(&mut self, fault: Fault) -> Fault {
        if matches!(fault, Fault::Io { .. }) {
            self.connection = None;
        }
        fault
    }

    /// Epoch and head of a stream, from memory or from disk.
    fn know(&mut self, stream: &SessionId) -> Result<Option<Known>, Fault> {
        if let Some(known) = self.known.get(stream) {
            return Ok(Some(*known));
        }
        let found: Option<(i64, i64, i64)> = self
            .connection()?
            .prepare_cached("SELECT number, epoch, head FROM streams WHERE id = ?")?
            .query_row([stream.as_str()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        let Some((number, epoch, head)) = found else {
            return Ok(None);
        };
        let in_tail = self.tail.read().streams.get(stream).map(|held| held.head);
        let known = Known {
            number: number.cast_unsigned(),
            epoch: Epoch(epoch.cast_unsigned()),
            head: in_tail.unwrap_or(head.cast_unsigned()),
        };
        self.remember(stream, known);
        Ok(Some(known))
    }

    fn remember(&mut self, stream: &SessionId, known: Known) {
        if self.known.len() >= STREAMS_KNOWN_MAX {
            self.known.clear();
        }
        self.known.insert(stream.clone(), known);
    }

    fn snapshot(&mut self, stream: &SessionId, number: u64) -> Result<Option<Snapshot>, Fault> {
        let newest = self.tail.read().streams.get(stream).and_then(|held| held.snapshot.clone());
        if let Some((sequence, body)) = newest {
            let body = body.bytes().to_vec();
            return Ok(Some(Snapshot { sequence: Sequence(sequence), body }));
        }
        let found: Option<(i64, u32, Vec<u8>)> = self
            .connection()?
            .prepare_cached("SELECT sequence, checksum, body FROM snapshots WHERE stream = ?")?
            .query_row([number.cast_signed()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        let Some((sequence, checksum, body)) = found else {
            return Ok(None);
        };
        if crc32fast::hash(&body) != checksum {
            return Err(Fault::corrupt(stream, "the checksum of its snapshot is wrong"));
        }
        Ok(Some(Snapshot { sequence: Sequence(sequence.cast_unsigned()), body }))
    }

    fn lease(&mut self, stream: &SessionId, owner: &str) -> Result<Lease, Fault> {
        let transaction =
            self.connection()?.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let epoch: i64 = transaction
            .prepare_cached(
                "UPDATE counters SET value = value + 1 WHERE name = 'epoch' RETURNING value",
            )?
            .query_row([], |row| row.get(0))?;
        transaction
            .prepare_cached(
                "INSERT INTO streams (id, owner, epoch) VALUES (?1, ?2, ?3)
                 ON CONFLICT (id) DO UPDATE SET owner = ?2, epoch = ?3",
            )?
            .execute(params![stream.as_str(), owner, epoch])?;
        transaction.commit()?;
        self.wal_bytes += 4 * 4096;
        self.known.remove(stream);
        let Some(Known { number, epoch, head }) = self.know(stream)? else {
            return Err(Fault::corrupt(stream, "its row is missing"));
        };
        let (snapshot, is_snapshot_damaged) = match self.snapshot(stream, number) {
            Ok(snapshot) => (snapshot, false),
            // The events tell the same, as long as they are all there.
            Err(Fault::Corrupt { .. }) => (None, true),
            Err(fault) => return Err(fault),
        };
        Ok(Lease { epoch, head: Sequence(head), snapshot, is_snapshot_damaged })
    }

    /// Makes the disk small, for tests and simulations: the database grows to no more pages than
    /// these, or than it has if it has more. `None`: as large as it may. Until it is reopened.
    pub fn limit_pages(&mut self, pages: Option<u32>) -> Result<(), Fault> {
        let pages = pages.unwrap_or(u32::MAX - 1);
        let connection = self.connection()?;
        Ok(connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?)
    }
}

impl Ledger for SqliteLedger {
    fn acquire(&mut self, stream: &SessionId, owner: &str) -> Result<Lease, Fault> {
        if let Some(detail) = self.tail.read().damage(stream) {
            return Err(Fault::corrupt(stream, detail));
        }
        self.lease(stream, owner).map_err(|fault| self.close_after(fault.of_stream(stream)))
    }

    fn commit(&mut self, group: &[Append]) -> Result<Vec<Result<(), AppendRefused>>, Fault> {
        self.write_group(group).map_err(|fault| self.close_after(fault))
    }

    fn erase(&mut self, stream: &SessionId) -> Result<(), Fault> {
        self.erase_stream(stream).map_err(|fault| self.close_after(fault.of_stream(stream)))
    }

    fn maintain(&mut self, now: Timestamp, retention: &Retention) -> Result<bool, Fault> {
        self.maintain_step(now, retention).map_err(|fault| self.close_after(fault))
    }

    fn reader(&self) -> Result<Box<dyn Reader>, Fault> {
        Ok(Box::new(SqliteReader::open(&self.path, self.tail.clone())?))
    }

    fn vault(&self) -> Result<Box<dyn Vault>, Fault> {
        Ok(Box::new(SqliteVault::open(&self.path)?))
    }

    fn reopen(&mut self) -> Result<(), Fault> {
        self.connection = None;
        self.known.clear();
        let connection = schema::open(&self.path, self.migrations)?;
        let (tail, position_last) = journal::recover(&connection, &self.path)?;
        self.wal_bytes = tail.size_bytes;
        *self.tail.write() = tail;
        self.position_last = position_last;
        self.connection = Some(connection);
        Ok(())
    }
}
