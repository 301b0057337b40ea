//! The relay on paused time, in memory: session owners, each kind of connection, and restarts.
//!
//! Only the far ends are stand-ins. The ledger is the memory store on a disk that fails on
//! command, the frames are real, and a test waits for an event or a frame. Time advances only when
//! every task is idle, so a wait of a millisecond means "everything that can happen has happened".

mod clients;
mod damage;
mod deadlines;
mod failed_commits;
mod foreign;
mod owners;
mod proxies;
mod silence;
mod starts;
mod world;
