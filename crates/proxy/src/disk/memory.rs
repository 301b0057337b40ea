//! A disk in memory that can crash and fail on command, for tests and simulations.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Disk;

/// What a crash leaves of the bytes that were not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// Nothing.
    KeepsNone,
    /// The first half.
    KeepsHalf,
    /// Everything: the process died, the machine did not.
    KeepsAll,
}

/// A handle; clones see the same disk.
#[derive(Debug, Clone, Default)]
pub struct MemoryDisk {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    synced: Vec<u8>,
    unsynced: Vec<u8>,
    operations: u64,
    fails_at: Option<u64>,
}

impl MemoryDisk {
    /// The process or the machine dies.
    pub fn crash(&self, crash: Crash) {
        let mut inner = self.lock();
        let mut kept = std::mem::take(&mut inner.unsynced);
        match crash {
            Crash::KeepsNone => kept.clear(),
            Crash::KeepsHalf => kept.truncate(kept.len() / 2),
            Crash::KeepsAll => {}
        }
        inner.synced.extend(kept);
        inner.fails_at = None;
    }

    /// From the operation of this number on (from 0, counting writes alone) all fail.
    pub fn fail_at(&self, operation: u64) {
        let mut inner = self.lock();
        inner.operations = 0;
        inner.fails_at = Some(operation);
    }

    /// How many writes there were since [`MemoryDisk::fail_at`], or ever.
    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// Bytes there, synced or not.
    pub fn len(&self) -> usize {
        let inner = self.lock();
        inner.synced.len() + inner.unsynced.len()
    }

    /// Whether nothing is there.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn operate(&self) -> io::Result<MutexGuard<'_, Inner>> {
        let mut inner = self.lock();
        let operation = inner.operations;
        inner.operations += 1;
        if inner.fails_at.is_some_and(|at| operation >= at) {
            return Err(io::Error::other("the test made the disk fail"));
        }
        Ok(inner)
    }
}

impl Disk for MemoryDisk {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        let inner = self.lock();
        Ok([&inner.synced[..], &inner.unsynced[..]].concat())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.operate()?.unsynced.extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut inner = self.operate()?;
        let unsynced = std::mem::take(&mut inner.unsynced);
        inner.synced.extend(unsynced);
        Ok(())
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut inner = self.operate()?;
        inner.unsynced.clear();
        inner.synced = bytes.to_vec();
        Ok(())
    }
}
