//! The relay: owner tasks, the commit loop and the gates, on top of `domain`, `store` and `wire`.
//!
//! **Invariant**: nothing leaves an owner before its commit. **Invariant**: nothing waits for a
//! watcher.
//!
//! Not here: sockets, HTTP and credentials (`server`), what commands lead to (`domain`).

pub mod books;
mod directory;
mod fleet_owner;
pub mod gate;
pub mod hub;
mod load;
pub mod metrics;
mod owner;
pub mod ports;
mod questions;
mod relay;
pub mod routes;
mod tasks;
#[cfg(test)]
mod tests;
mod watchers;

pub use books::{Books, EventPage};
pub use directory::Directory;
pub use owner::Joined;
pub use relay::{Bounds, Policies, Relay};
pub use tasks::Tasks;
pub use watchers::Watchers;
