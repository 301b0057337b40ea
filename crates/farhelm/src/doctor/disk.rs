//! Checks the data folder: permissions, free space, lock and database.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::Path;

use store::{Checked, Fault, Soundness};

use super::Look;
use crate::folders;

/// Less room than this is told.
const ROOM_BYTES_MIN: u64 = 1024 * 1024 * 1024;
/// A database that is larger is not read through: that would take long.
const CHECKED_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;

pub(super) fn look(data: &Path) -> Vec<Look> {
    if !data.is_dir() {
        let words =
            format!("{} does not exist yet; the first `farhelm up` creates it", data.display());
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
        Ok(()) => Look::ok("rights", "permissions OK"),
        Err(error) => {
            let advice = "give yourself write access to the folder, or choose another with --data";
            Look::wrong("rights", format!("cannot write to the folder ({error})"), advice)
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
    Some(Look::wrong("tokens", format!("other users can read {open}"), format!("chmod 600 {open}")))
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
        Look::wrong("disk", words, "free some space: Farhelm cannot save anything on a full disk")
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
            return Look::note("lock", "no relay has used this folder yet");
        }
        Err(error) => {
            let words = format!("cannot open {} ({error})", path.display());
            return Look::wrong("lock", words, "give yourself read access to it");
        }
    };
    // Shared, and let go at once: an `up` that starts at this very moment would be refused.
    match file.try_lock_shared() {
        Ok(()) => Look::note("lock", "no relay is running in this folder"),
        Err(TryLockError::WouldBlock) => {
            let holder = std::fs::read_to_string(&path).unwrap_or_default();
            Look::ok("lock", format!("held by process {}", holder.trim()))
        }
        Err(TryLockError::Error(error)) => {
            let advice = "keep the data folder on a local disk that supports file locks";
            Look::wrong("lock", format!("cannot check the lock ({error})"), advice)
        }
    }
}

fn database(path: &Path) -> Look {
    let restore = "restore a backup, or move the file away to start with an empty database";
    match path.metadata() {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Look::note("database", "does not exist yet");
        }
        Err(error) => return Look::wrong("database", error.to_string(), "check its permissions"),
    }
    match store::check(path, CHECKED_BYTES_MAX) {
        Ok(Checked { soundness: Soundness::Damaged(told), .. }) => {
            Look::wrong("database", told, restore)
        }
        Ok(Checked { version, size_bytes, soundness }) => {
            let sound = soundness == Soundness::Sound;
            let checked = if sound { "OK" } else { "too large to check" };
            let size = size(size_bytes);
            Look::ok("database", format!("format {version}, {size}, {checked}"))
        }
        Err(Fault::NotALedger { detail, .. }) => Look::wrong(
            "database",
            format!("the file is not a Farhelm database ({detail})"),
            restore,
        ),
        Err(fault) => {
            Look::wrong("database", format!("cannot read the database ({fault})"), restore)
        }
    }
}

fn size(bytes: u64) -> String {
    const MIB: u64 = 1024 * 1024;
    if bytes < MIB {
        format!("{} KiB", bytes.div_ceil(1024))
    } else {
        format!("{} MiB", bytes / MIB)
    }
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
