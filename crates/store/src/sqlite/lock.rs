//! One process per data folder.
//!
//! The lock belongs to the open file, so it ends with the process, however that ends. The file
//! contains the process id, for the error message of a second process.
//!
//! Not here: locks between connections of the same process (`SQLite` has its own).

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use crate::Fault;

/// In the data folder.
pub const LOCK_FILE_NAME: &str = "farhelm.lock";

#[derive(Debug)]
pub(super) struct FolderLock {
    _file: File,
}

impl FolderLock {
    pub(super) fn take(folder: &Path) -> Result<Self, Fault> {
        let path = folder.join(LOCK_FILE_NAME);
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // The name is a courtesy: without it the refusal stands all the same.
                let process =
                    file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
                return Err(Fault::Locked { folder: folder.to_path_buf(), process });
            }
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        let process = std::process::id().to_string();
        // A full disk is no reason to refuse the start: the lock itself holds.
        let named = file.set_len(0).and_then(|()| file.rewind());
        let _ = named.and_then(|()| file.write_all(process.as_bytes()));
        Ok(Self { _file: file })
    }
}
