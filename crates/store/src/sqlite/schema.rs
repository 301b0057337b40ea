//! Opens the database: checks its application id and version, then migrates it.
//!
//! **Invariant**: a file that is refused is not changed; an existing database is copied to
//! `<file>.before-vN` before it becomes version N.
//!
//! Not here: what the tables mean (`journal`, `fold`, `reader`, `vault`).

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags};

use crate::Fault;

/// Marks the file as ours: "FARH".
pub(super) const APPLICATION_ID: i64 = 0x4641_5248;

/// Of new databases. Small enough that a single event's commit writes little.
const PAGE_SIZE_BYTES: u32 = 4096;

/// How long a writer waits for the other one (the vault writes beside the ledger).
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How much of the database each kind of connection may keep in memory.
pub(super) const WRITER_CACHE_KIB: i64 = 32 * 1024;
pub(super) const READER_CACHE_KIB: i64 = 4 * 1024;

/// The stretch of the log that is written in advance.
const LOG_ROOM_BYTES: u64 = 4 * 1024 * 1024;

const BACKUP_STEP_PAGES: i32 = 1024;

/// Step N brings version N to version N + 1.
///
/// `journal` is what commits write: one row each, in order, without an index. `segments` is where
/// `fold` brings the entries later, by stream. `streams.folded` is the last journal row that is
/// folded for the stream.
pub(super) const MIGRATIONS: &[&str] = &["
    CREATE TABLE streams (
        number     INTEGER PRIMARY KEY AUTOINCREMENT,
        id         TEXT NOT NULL UNIQUE,
        owner      TEXT NOT NULL,
        epoch      INTEGER NOT NULL,
        head       INTEGER NOT NULL DEFAULT 0,
        first_kept INTEGER NOT NULL DEFAULT 1,
        folded     INTEGER NOT NULL DEFAULT 0,
        card       BLOB
    );
    CREATE TABLE journal (
        position INTEGER PRIMARY KEY,
        contents BLOB NOT NULL,
        body     BLOB NOT NULL
    );
    CREATE TABLE segments (
        position INTEGER PRIMARY KEY,
        stream   INTEGER NOT NULL,
        first    INTEGER NOT NULL,
        last     INTEGER NOT NULL,
        at_first INTEGER NOT NULL,
        at_last  INTEGER NOT NULL,
        checksum INTEGER NOT NULL,
        body     BLOB NOT NULL
    );
    CREATE UNIQUE INDEX segments_by_stream ON segments (stream, last);
    CREATE INDEX segments_by_age ON segments (at_last);
    CREATE TABLE snapshots (
        stream   INTEGER PRIMARY KEY,
        sequence INTEGER NOT NULL,
        checksum INTEGER NOT NULL,
        body     BLOB NOT NULL
    );
    CREATE TABLE sends (
        stream INTEGER NOT NULL,
        id     TEXT NOT NULL,
        state  BLOB NOT NULL,
        PRIMARY KEY (stream, id)
    ) WITHOUT ROWID;
    CREATE TABLE counters (
        name  TEXT PRIMARY KEY,
        value INTEGER NOT NULL
    ) WITHOUT ROWID;
    INSERT INTO counters (name, value) VALUES ('epoch', 0), ('position', 0);
    CREATE TABLE credentials (
        id           TEXT PRIMARY KEY,
        kind         TEXT NOT NULL,
        role         TEXT NOT NULL,
        name         TEXT NOT NULL,
        secret_hash  BLOB NOT NULL UNIQUE,
        created_at   INTEGER NOT NULL,
        last_used_at INTEGER,
        revoked_at   INTEGER
    );
    CREATE TABLE uploads (
        id         TEXT PRIMARY KEY,
        name       TEXT NOT NULL,
        size_bytes INTEGER NOT NULL,
        sha256     BLOB NOT NULL,
        media_type TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        credential TEXT NOT NULL
    );
    CREATE TABLE meta (
        key   TEXT PRIMARY KEY,
        value BLOB NOT NULL
    ) WITHOUT ROWID;
"];

/// The writer's connection to a database of the current version, made or migrated if need be.
pub(super) fn open(path: &Path, migrations: &[&str]) -> Result<Connection, Fault> {
    let not_ours = |detail: String| Fault::NotALedger { path: path.to_path_buf(), detail };
    let is_new = check_header(path, &not_ours)?;
    let opened = connect(path, WRITER_CACHE_KIB)
        .and_then(|connection| Ok((read_version(&connection)?, connection)));
    let (version, mut connection) = match opened {
        Ok(((0, 0), connection)) if is_new => (0, connection),
        Ok(((APPLICATION_ID, version), connection)) => (version, connection),
        Ok(((other, _), _)) => return Err(not_ours(format!("application id {other:#x}"))),
        Err(Fault::Corrupt { detail, .. }) => return Err(not_ours(detail)),
        Err(fault) => return Err(fault),
    };
    let known = u32::try_from(migrations.len()).unwrap_or(u32::MAX);
    if version > known {
        return Err(Fault::NewerVersion { path: path.to_path_buf(), found: version, known });
    }
    if is_new {
        connection.pragma_update(None, "page_size", PAGE_SIZE_BYTES)?;
    }
    connection.pragma_update(None, "journal_mode", "WAL")?;
    for step in version..known {
        if version > 0 {
            back_up(&connection, &backup_path(path, step + 1))?;
        }
        migrate(&mut connection, step, migrations)?;
    }
    Ok(connection)
}

/// A further connection to a database that [`open`] has checked.
pub(super) fn connect(path: &Path, cache_kib: i64) -> Result<Connection, Fault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(64);
    connection.pragma_update(None, "synchronous", "FULL")?;
    // Checkpoints happen when the ledger says so, not in the middle of somebody's commit. No
    // mmap: a failing disk shall be an error, not the end of the process.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", -cache_kib)?;
    Ok(connection)
}

/// Writes the log's first stretch in advance, so that commits overwrite blocks that are there
/// instead of growing the file: syncing a grown file costs about twice as much. What follows the
/// last commit in a log is never read. Only before the first commit: nobody else may be writing.
/// Without the room everything works, only slower.
pub(super) fn make_log_room(path: &Path) -> io::Result<()> {
    let mut log = OpenOptions::new().append(true).open(with_suffix(path, "-wal"))?;
    let there = log.metadata()?.len();
    let missing = usize::try_from(LOG_ROOM_BYTES.saturating_sub(there)).unwrap_or_default();
    if missing > 0 {
        log.write_all(&vec![0; missing])?;
        log.sync_all()?;
    }
    Ok(())
}

/// Whether there is nothing yet. What is there must begin like a database.
pub(super) fn check_header(path: &Path, not_ours: &dyn Fn(String) -> Fault) -> Result<bool, Fault> {
    const MAGIC: &[u8] = b"SQLite format 3\0";
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error.into()),
    };
    let mut header = Vec::new();
    Read::by_ref(&mut file).take(100).read_to_end(&mut header)?;
    if header.is_empty() {
        return Ok(true);
    }
    if header.len() < 100 || !header.starts_with(MAGIC) {
        return Err(not_ours("it has no SQLite header".into()));
    }
    Ok(false)
}

pub(super) fn read_version(connection: &Connection) -> Result<(i64, u32), Fault> {
    let application = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok((application, version))
}

fn migrate(connection: &mut Connection, step: u32, migrations: &[&str]) -> Result<(), Fault> {
    let Some(statements) = migrations.get(step as usize) else {
        return Ok(());
    };
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    transaction.execute_batch(statements)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", step + 1)?;
    transaction.commit()?;
    Ok(())
}

fn backup_path(path: &Path, version: u32) -> PathBuf {
    with_suffix(path, &format!(".before-v{version}"))
}

pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// Under another name first: a copy that has the final name is complete.
fn back_up(connection: &Connection, path: &Path) -> Result<(), Fault> {
    let unfinished = with_suffix(path, ".unfinished");
    match std::fs::remove_file(&unfinished) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    let mut copy = Connection::open(&unfinished)?;
    Backup::new(connection, &mut copy)?.run_to_completion(
        BACKUP_STEP_PAGES,
        Duration::ZERO,
        None,
    )?;
    copy.close().map_err(|(_, error)| error)?;
    File::open(&unfinished)?.sync_all()?;
    std::fs::rename(&unfinished, path)?;
    if let Some(folder) = path.parent() {
        sync_folder(folder)?;
    }
    Ok(())
}

/// So that a new name survives power loss. Windows has no such thing, and needs none.
pub(super) fn sync_folder(folder: &Path) -> Result<(), Fault> {
    if cfg!(unix) {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}
