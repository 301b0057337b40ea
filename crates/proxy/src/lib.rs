//! The machine's side: runs agents, and carries messages between them and the relay.
//!
//! [`engine::Engine`] decides, and is pure. [`host::Host`] is the engine with its journal and its
//! drivers on one thread, over any [`disk::Disk`]; a simulation drives it step by step. [`run`] is
//! the host with a real disk, a real clock and a real socket.
//!
//! **Invariant:** nothing leaves (a frame to the relay, an order to an agent) before the journal
//! entry for it is on disk.
//!
//! Not here: what is known of each agent (`agents`), frames (`wire`), numbering (`link`).

mod aids;
pub mod catalog;
pub mod config;
pub mod conversations;
pub mod dial;
pub mod discovery;
pub mod disk;
pub mod engine;
mod fault;
pub mod host;
pub mod journal;
pub mod panels;
pub mod preparation;
mod processes;
pub mod records;
mod shell;
pub mod worktrees;

pub use catalog::AgentSetting;
pub use config::ProxyConfig;
pub use fault::Fault;
pub use shell::run;
