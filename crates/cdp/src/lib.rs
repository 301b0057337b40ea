//! A small client of the Chrome `DevTools` Protocol, for looking at and acting in panels of
//! programs that somebody else is using.
//!
//! One socket to the browser carries every attached target as a *flat session*. [`Browser`] calls
//! and hears; [`frames`] says which frames a session has; a [`Place`] is a world of our own inside
//! one frame, which the page can neither see nor touch.
//!
//! **Invariants:** only this machine is reached (loopback, and no `Origin` header); a call ends in
//! time, also when the browser dies; nothing is paused, no certificate rule is touched, and no
//! domain is turned on by itself but `Runtime` for the sessions that have a [`Place`].
//!
//! Not here: what a panel looks like (`agents`), which one to attach to and what to do in it
//! (`proxy`).

mod address;
mod browser;
mod connection;
mod contexts;
mod fault;
pub mod frames;
mod place;

pub use browser::{Browser, CALL_TIMEOUT};
pub use connection::{Event, Events, Heard};
pub use fault::Fault;
pub use place::{Place, WORLD, world, world_named};

/// Names an attached target on the browser's one socket.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct SessionId(pub String);

impl std::fmt::Display for SessionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
