//! A small client of the Chrome `DevTools` Protocol, for reading and acting in panels of programs
//! that somebody else is using.
//!
//! One socket to the browser carries every attached target as a *flat session*. [`Browser`] makes
//! calls and receives events; [`frames`] lists the frames of a session; a [`Place`] is an isolated
//! world in one frame, which the page can neither see nor touch.
//!
//! **Invariants:** only this machine is contacted (loopback, and no `Origin` header). Every call
//! ends in time, even when the browser dies. Nothing is paused, no certificate rule is changed, and
//! no domain is enabled automatically except `Runtime` for sessions that have a [`Place`].
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
