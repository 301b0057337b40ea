//! The dialects that look at one session at a time: real connections and real sessions, without
//! sockets or a disk.

#[cfg(test)]
mod blob;
#[cfg(test)]
mod control;
#[cfg(test)]
mod pi;
#[cfg(test)]
mod stage;
#[cfg(test)]
mod webchannel;
