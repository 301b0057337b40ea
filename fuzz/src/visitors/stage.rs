//! One session and its ledger.

#[path = "../../../crates/wire/tests/visitors/stage/room.rs"]
mod room;

pub(crate) use room::Room;
