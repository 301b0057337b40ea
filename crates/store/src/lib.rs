//! What survives a power loss: the ledger of every stream, the credentials, the uploads.
//!
//! **Invariant**: an append for which [`Ledger::commit`] returned `Ok` is on disk and can always
//! be read back, in order, without gaps or repeats. A refused or failed append leaves nothing
//! behind (except after [`Fault::Io`], where only [`Ledger::reopen`] tells).
//!
//! Not here: what an event means (`domain`), when to commit and whom to tell (`relay`), the
//! contents of uploaded files (`server`).

pub mod codec;
mod fault;
mod ledger;
mod memory;
mod sqlite;
mod vault;

#[cfg(any(test, feature = "fuzzing"))]
pub use sqlite::fuzzing as packed_rows;

#[cfg(test)]
mod story;

pub use fault::*;
pub use ledger::*;
pub use memory::{Failure, MemoryDisk, MemoryLedger};
pub use sqlite::{Checked, LOCK_FILE_NAME, Soundness, SqliteLedger, check};
pub use vault::*;
