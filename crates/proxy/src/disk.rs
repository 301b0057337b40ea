//! Storage for the journal: a file that is appended to and sometimes replaced as a whole.
//!
//! Not here: what the bytes mean (`journal`).

mod file;
mod memory;

use std::io;

pub use file::FileDisk;
pub(crate) use file::write_anew;
pub use memory::{Crash, MemoryDisk};

/// A place for bytes. What was synced is there after a crash; what was not may be, in part.
pub trait Disk {
    /// Everything that is there.
    fn read(&mut self) -> io::Result<Vec<u8>>;
    /// Adds to the end.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Everything appended so far survives a crash from here on.
    fn sync(&mut self) -> io::Result<()>;
    /// Puts these bytes in place of everything, all or nothing, and synced.
    fn replace(&mut self, bytes: &[u8]) -> io::Result<()>;
}
