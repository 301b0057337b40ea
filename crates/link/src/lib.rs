//! Numbering between a proxy and its relay, so that a broken connection loses and doubles nothing.
//!
//! The proxy's end is a [`Sender`]: it numbers what must arrive and keeps it until the relay has
//! it on disk. The relay's end is a [`Receiver`]: it hears numbers in rising order, is told in any
//! order which ones are committed, and says how far everything is.
//!
//! **Invariant:** a frame leaves the outbox only when the relay said that it, and everything
//! before it, is committed. A frame that arrives again has the same number, and whoever commits
//! it knows by that number that it was there before.
//!
//! Not here: what a frame says (`wire`), the journal that outlives the process (`proxy`), who
//! recognises a repeat (`domain::session`).

mod receiver;
mod sender;

pub use receiver::{IN_FLIGHT_MAX, Receiver, Taken};
pub use sender::{Numbered, Sender};

#[cfg(test)]
mod tests;
