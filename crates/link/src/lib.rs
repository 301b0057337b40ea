//! Numbers the frames between a proxy and its relay, so that a broken connection neither loses nor
//! duplicates any.
//!
//! The proxy's end is a [`Sender`]: it numbers what must arrive and keeps it until the relay has
//! it on disk. The relay's end is a [`Receiver`]: it receives numbers in rising order, learns in
//! any order which are committed, and reports up to which number everything is committed.
//!
//! **Invariant:** a frame leaves the outbox only when the relay has reported that it, and
//! everything before it, is committed. A repeated frame has the same number, so the code that
//! commits it recognises the repeat.
//!
//! Not here: the content of a frame (`wire`), the journal that outlives the process (`proxy`),
//! recognising a repeat (`domain::session`).

mod receiver;
mod sender;

pub use receiver::{IN_FLIGHT_MAX, Receiver, Taken};
pub use sender::{Numbered, Sender};

#[cfg(test)]
mod tests;
