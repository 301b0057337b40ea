//! What the proxy must still know after a crash: its outbox, its inbox, its sessions.
//!
//! The journal is a file of [`Record`]s, one per line, each with a checksum. Reading stops at the
//! first incomplete line: anything after it was never synced, so nothing was ever done about it.
//! [`Book`] is the state that the records add up to. It is rebuilt at each start and written back
//! as the smallest equivalent list of records.
//!
//! Not here: deciding what to record (`engine`), the file itself (`disk`).

mod book;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod inbox;
mod lines;
mod record;
mod unfinished;

pub use book::{Book, Outgoing};
pub use inbox::{INBOX_OPEN_MAX, Inbox, SETTLED_REMEMBERED_MAX, Settled, Step};
pub use lines::{decode, encode};
pub use record::{Attempt, Earlier, Going, Means, Opened, Record};
pub use unfinished::Unfinished;
