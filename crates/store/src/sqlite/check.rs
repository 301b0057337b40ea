//! Checks a database from outside, while another process may be using it.
//!
//! **Invariant**: the database is only read, never written, created or migrated, and the folder is
//! not locked.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::schema;
use crate::Fault;

/// What a look at a database says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Its format.
    pub version: u32,
    /// Of the file.
    pub size_bytes: u64,
    /// What its pages are like.
    pub soundness: Soundness,
}

/// Whether a database can be read through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Soundness {
    /// All of it.
    Sound,
    /// Not looked at: the file is larger than was asked for.
    TooLarge,
    /// Something is wrong, in the words of `SQLite`.
    Damaged(String),
}

/// Looks at the database file at `path`; its pages only when it has at most `checked_bytes_max`,
/// because that reads all of them.
pub fn check(path: &Path, checked_bytes_max: u64) -> Result<Checked, Fault> {
    let not_ours = |detail: String| Fault::NotALedger { path: path.to_path_buf(), detail };
    let size_bytes = path.metadata()?.len();
    if schema::check_header(path, &not_ours)? {
        return Err(not_ours("it is empty".into()));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(schema::BUSY_TIMEOUT)?;
    let version = match schema::read_version(&connection)? {
        (schema::APPLICATION_ID, version) => version,
        (other, _) => return Err(not_ours(format!("application id {other:#x}"))),
    };
    let soundness = if size_bytes > checked_bytes_max {
        Soundness::TooLarge
    } else {
        let told: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        if told == "ok" { Soundness::Sound } else { Soundness::Damaged(told) }
    };
    Ok(Checked { version, size_bytes, soundness })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SqliteLedger;

    #[test]
    fn a_ledger_in_use_is_looked_at_and_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        let _ledger = SqliteLedger::open(&path).unwrap();
        let before = std::fs::read(&path).unwrap();

        let checked = check(&path, u64::MAX).unwrap();

        assert_eq!(checked.version as usize, schema::MIGRATIONS.len());
        assert_eq!(checked.soundness, Soundness::Sound);
        assert_eq!(checked.size_bytes, path.metadata().unwrap().len());
        assert_eq!(std::fs::read(&path).unwrap(), before);
        assert_eq!(check(&path, 1).unwrap().soundness, Soundness::TooLarge);
    }

    #[test]
    fn what_is_no_ledger_is_told_and_nothing_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing.db");
        assert!(matches!(check(&missing, u64::MAX), Err(Fault::Io { .. })));
        assert!(!missing.exists());
        let noise = folder.path().join("noise.db");
        std::fs::write(&noise, vec![7; 4096]).unwrap();
        assert!(matches!(check(&noise, u64::MAX), Err(Fault::NotALedger { .. })));
        let other = folder.path().join("other.db");
        Connection::open(&other).unwrap().execute_batch("CREATE TABLE a (b)").unwrap();
        assert!(matches!(check(&other, u64::MAX), Err(Fault::NotALedger { .. })));
    }

    #[test]
    fn a_damaged_page_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        drop(SqliteLedger::open(&path).unwrap());
        let mut bytes = std::fs::read(&path).unwrap();
        let page = bytes.len() - 4096;
        bytes[page..].fill(0xEE);
        std::fs::write(&path, bytes).unwrap();

        let damaged = match check(&path, u64::MAX) {
            Ok(checked) => matches!(checked.soundness, Soundness::Damaged(_)),
            Err(fault) => matches!(fault, Fault::Corrupt { .. }),
        };
        assert!(damaged);
    }
}
