//! The dialects that look at one session at a time: real connections and real sessions, without
//! sockets or a disk.

mod agreement;
mod blob;
mod control;
mod pi;
pub(crate) mod stage;
mod webchannel;
