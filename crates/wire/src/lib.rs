//! Wire dialects: frames in, commands out; events in, frames out. No dialect imports another.
//!
//! Everything here is pure. A connection is a value: it receives what arrived and the current
//! time, and returns frames to send and commands to carry out.
//!
//! Not here: sockets (`server`), what a command leads to (`domain`), who carries it out (`relay`).

pub mod blob;
pub mod control;
pub mod dialect;
pub mod echo;
pub mod native;
pub mod pi;
pub mod port;
pub mod questions;
pub mod time;
pub mod visitor;
pub mod webchannel;

pub use dialect::{Opening, sniff};
