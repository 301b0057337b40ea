//! What the relay decides, without I/O. Four verbs: `decide`, `apply`, `owed`, `deadline`.
//!
//! Two state machines, [`session::Session`] and [`fleet::Fleet`], each the value of one owner task
//! and one stream of the ledger. Nothing here knows a clock, a socket, a file or a JSON field of a
//! protocol.

pub mod content;
pub mod fleet;
pub mod passing;
mod refusal;
pub mod session;
mod tail;
mod vocabulary;

pub use content::Content;
pub use refusal::Refusal;
pub use tail::{Live, Tail};
pub use vocabulary::*;
