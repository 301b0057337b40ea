//! The data folder: created if it is missing, and locked by one proxy at a time.

use std::fs::{self, File};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use crate::Fault;
use crate::disk::FileDisk;
use crate::records::FileRecords;

/// What lies in the folder, and the lock that keeps others out as long as it is held.
pub(super) struct Folder {
    pub(super) journal: FileDisk,
    pub(super) records: FileRecords,
    pub(super) lock: File,
}

/// Opens `<data>/proxy/journal` and the agents' records.
pub(super) fn open(data: &Path) -> Result<Folder, Fault> {
    let own = data.join("proxy");
    let failed = |what: &str, path: &Path| {
        let what = format!("{what} {}", path.display());
        move |error| Fault::disk(what, error)
    };
    fs::create_dir_all(&own).map_err(failed("making", &own))?;
    let path = own.join("lock");
    let lock = File::create(&path).map_err(failed("opening", &path))?;
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Err(Fault::Locked(data.to_owned()));
    }
    let path = own.join("journal");
    let journal = FileDisk::open(&path).map_err(failed("opening", &path))?;
    let records = FileRecords::open(data.to_owned()).map_err(failed("opening", data))?;
    Ok(Folder { journal, records, lock })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_proxy_is_kept_out_while_the_first_is_there() {
        let data = tempfile::tempdir().unwrap();
        let first = open(data.path()).unwrap();
        assert!(matches!(open(data.path()), Err(Fault::Locked(_))));
        drop(first);
        assert!(open(data.path()).is_ok());
    }
}
