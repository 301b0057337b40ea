//! The relay on paused time, in memory: session owners, each kind of connection, and restarts.
//!
//! Nothing here is a stand-in but the other ends: the ledger is the memory store on a disk that
//! fails on command, the frames are real, and what a test waits for is an event or a frame. Time
//! passes only when every task rests, so a wait of a millisecond is "all that can happen has".

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
