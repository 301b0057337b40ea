//! The whole system on one thread from a seed: the real relay, proxy engine and client machine on
//! a simulated disk, network and clock, with crashes, partitions, failing commits and clock jumps.
//!
//! **Invariant**: the same seed gives the same run.
//!
//! Not here: real processes and real disks (`crates/farhelm/tests/kill.rs`).

mod check;
mod client_node;
mod clock;
mod net;
mod proxy_node;
mod relay_node;
mod rng;
mod sabotage;
mod world;

pub use sabotage::Sabotage;
pub use world::{Options, Outcome, run};
