//! What must be true after power loss: the ledger of every stream, the credentials, the uploads.
//!
//! **Invariant**: what [`Ledger::commit`] answered `Ok` is on disk and is read back for ever, in
//! order, without gap or repeat; what it refused or failed left nothing behind (except after
//! [`Fault::Io`], where only [`Ledger::reopen`] tells).
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
