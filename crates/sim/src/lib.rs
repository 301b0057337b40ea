//! The whole system on one thread from a seed: the real relay, proxies and clients of all five
//! dialects on a simulated disk, network and clock.
//!
//! | what is there | what happens |
//! |---|---|
//! | native clients with and without extensions | sends, repeats, files, reading again, answers, controls, launches, closing, erasing; some connections are slow |
//! | clients of the four other dialects | sends, decisions, interrupts; some connections are slow |
//! | proxies with a journal, and plain version 1 proxies, of which some tell their history again and without ids | crashes between any two writes, absence, standing still |
//! | the relay, with small rings and snapshots | crashes, standing still, retention, a revoked credential |
//! | its disk: memory, and in every tenth world `SQLite` on files | every operation fails: syncs, outcomes unknown, no room, reads; loss of power in a commit or a checkpoint, a flipped bit |
//! | network and clock | delays, repeats, cuts, silence, jumps both ways |
//!
//! At the end everything is made whole and must come to rest. Every session is then sent to and
//! read once more: a damaged one refuses, the others answer. Last, whole ledgers are compared with
//! what every client was shown and told, each page of a history included, and with what every agent
//! received, in order (`check`).
//! Faults and rare paths are counted where they take effect (`effects`).
//!
//! **Invariant**: the same seed gives the same run.
//!
//! Not here: real processes and real disks (`crates/farhelm/tests/kill.rs`).

mod archive;
mod check;
mod client_node;
mod clock;
mod credentials;
mod disk;
mod effects;
mod net;
mod plain_proxy;
mod proxy_node;
mod relay_node;
mod rng;
mod sabotage;
mod uploads;
mod visitor_node;
mod witness;
mod world;

pub use effects::{Effect, Met};
pub use sabotage::Sabotage;
pub use world::{Options, Outcome, run};
