//! The data folder, its rights, its room, its lock and its database.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::Look;
use crate::folders;

/// Less room than this is told.
const ROOM_BYTES_MIN: u64 = 1024 * 1024 * 1024;
/// A database that is larger is not read through: that would take long.
const CHECKED_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;
/// "FARH": marks the file as ours.
const APPLICATION_ID: i64 = 0x4641_5248;

pub(super) fn look(data: &Path) -> Vec<Look> {
    if !data.is_dir() {
        let words = format!("{} is not there yet; the first `farhelm up` makes it", data.display());
        return vec![Look::note("data", words)];
    }
    let mut looks = vec![Look::ok("data", data.display().to_string())];
    looks.push(writable(data));
    looks.extend(private(data));
    looks.extend(room(data));
    looks.push(lock(data));
    looks.push(database(&data.join(folders::DATABASE_FILE_NAME)));
    looks
}

fn writable(data: &Path) -> Look {
    let probe = data.join(format!(".doctor-{}", std::process::id()));
    let written = std::fs::write(&probe, b"x");
    let _ = std::fs::remove_file(&probe);
    match written {
        Ok(()) => Look::ok("rights", "files can be written"),
        Err(error) => {
            let advice = "give yourself the rights to the folder, or choose another with --data";
            Look::wrong("rights", format!("no file can be written ({error})"), advice)
        }
    }
}

/// Tokens are for their owner alone.
#[cfg(unix)]
fn private(data: &Path) -> Option<Look> {
    use std::os::unix::fs::PermissionsExt as _;
    let names = [folders::OWNER_TOKEN_FILE_NAME, folders::PROXY_TOKEN_FILE_NAME];
    let open = names
        .iter()
        .map(|name| data.join(name))
        .find(|path| path.metadata().is_ok_and(|found| found.permissions().mode() & 0o077 != 0))?;
    let open = open.display();
    Some(Look::wrong(
        "tokens",
        format!("{open} can be read by others"),
        format!("chmod 600 {open}"),
    ))
}

#[cfg(not(unix))]
fn private(_data: &Path) -> Option<Look> {
    None
}

#[cfg(unix)]
fn room(data: &Path) -> Option<Look> {
    let found = rustix::fs::statvfs(data).ok()?;
    let free_bytes = found.f_bavail.saturating_mul(found.f_frsize);
    let words = format!("{} MiB free", free_bytes / (1024 * 1024));
    Some(if free_bytes < ROOM_BYTES_MIN {
        Look::wrong("disk", words, "free some space: a full disk records nothing")
    } else {
        Look::ok("disk", words)
    })
}

#[cfg(not(unix))]
fn room(_data: &Path) -> Option<Look> {
    None
}

fn lock(data: &Path) -> Look {
    let path = data.join(store::LOCK_FILE_NAME);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Look::note("lock", "no relay has used this folder");
        }
        Err(error) => {
            let words = format!("{} cannot be opened ({error})", path.display());
            return Look::wrong("lock", words, "give yourself the rights to it");
        }
    };
    // Shared, and let go at once: an `up` that starts at this very moment would be refused.
    match file.try_lock_shared() {
        Ok(()) => Look::note("lock", "no relay runs on this folder"),
        Err(TryLockError::WouldBlock) => {
            let holder = std::fs::read_to_string(&path).unwrap_or_default();
            Look::ok("lock", format!("held by process {}", holder.trim()))
        }
        Err(TryLockError::Error(error)) => {
            let advice = "keep the data on a local disk that can lock files";
            Look::wrong("lock", format!("cannot be tried ({error})"), advice)
        }
    }
}

fn database(path: &Path) -> Look {
    let size_bytes = match path.metadata() {
        Ok(found) => found.len(),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Look::note("database", "not there yet");
        }
        Err(error) => return Look::wrong("database", error.to_string(), "look at its rights"),
    };
    let restore = "restore a backup of it, or move it away to start with an empty one";
    match examine(path, size_bytes <= CHECKED_BYTES_MAX) {
        Ok((APPLICATION_ID, version, told)) if told == "ok" || told.is_empty() => {
            let checked = if told.is_empty() { "too large to check here" } else { "sound" };
            let size = size_bytes / (1024 * 1024);
            Look::ok("database", format!("format {version}, {size} MiB, {checked}"))
        }
        Ok((APPLICATION_ID, _, told)) => Look::wrong("database", told, restore),
        Ok((_, _, _)) => Look::wrong("database", "it is not a Farhelm database", restore),
        Err(error) => Look::wrong("database", format!("it cannot be read ({error})"), restore),
    }
}

/// Whose it is, its format, and what its check says.
fn examine(path: &Path, check: bool) -> rusqlite::Result<(i64, u32, String)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    let application = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let told = if check {
        connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?
    } else {
        String::new()
    };
    Ok((application, version, told))
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn a_sound_database_is_told_with_its_format() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(folders::DATABASE_FILE_NAME);
        let _ledger = store::SqliteLedger::open(&path).unwrap();

        let looks = look(folder.path());

        let of = |name: &str| looks.iter().find(|look| look.name == name).unwrap();
        assert_eq!(of("database").verdict, Verdict::Ok, "{looks:?}");
        assert!(of("lock").words.contains(&std::process::id().to_string()), "{looks:?}");
    }

    #[test]
    fn what_is_no_database_is_to_be_mended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(folders::DATABASE_FILE_NAME);
        std::fs::write(&path, vec![7; 4096]).unwrap();

        let told = database(&path);

        assert_eq!(told.verdict, Verdict::Wrong);
        assert!(told.advice.unwrap().contains("backup"));
    }

    #[cfg(unix)]
    #[test]
    fn a_token_that_others_can_read_is_to_be_mended() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(folders::OWNER_TOKEN_FILE_NAME);
        std::fs::write(&path, "fh_x").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();

        assert_eq!(private(folder.path()).unwrap().verdict, Verdict::Wrong);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(private(folder.path()).is_none());
    }
}
