//! The relay's disk: in memory, or files under a real `SQLite`.

mod files;
mod flawed;

use store::{Fault, Ledger, MemoryDisk};

pub(crate) use files::{FileDisk, Moment};
pub(crate) use flawed::{Flawed, Flaws, Operation};

use crate::effects::Effects;
use crate::rng::Rng;

/// One world in so many has its ledger in files.
const FILES_ONE_IN: u64 = 10;

/// A handle; clones see the same disk.
#[derive(Debug, Clone)]
pub(crate) enum SimDisk {
    /// The ledger of tests.
    Memory(MemoryDisk),
    /// The ledger of users.
    Files(FileDisk),
}

impl SimDisk {
    /// The disk of this seed's world.
    pub(crate) fn of(seed: u64, rng: &mut Rng, effects: Effects) -> Result<Self, std::io::Error> {
        if seed % FILES_ONE_IN == FILES_ONE_IN - 1 {
            return Ok(Self::Files(FileDisk::new(rng.fork(), effects)?));
        }
        Ok(Self::Memory(MemoryDisk::new()))
    }

    /// The ledger on it. Refused while another one lives.
    pub(crate) fn open(&self) -> Result<Box<dyn Ledger>, Fault> {
        match self {
            Self::Memory(disk) => Ok(Box::new(disk.open()?)),
            Self::Files(disk) => disk.open(),
        }
    }

    /// The files, if it has any.
    pub(crate) fn files(&self) -> Option<&FileDisk> {
        match self {
            Self::Memory(_) => None,
            Self::Files(disk) => Some(disk),
        }
    }
}
