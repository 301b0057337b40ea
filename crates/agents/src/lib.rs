//! Drivers: the pure part of each agent's protocol.
//!
//! Not here: processes, sockets, the disk (`proxy`).

mod absent;
pub mod acp;
pub mod claude;
pub mod codex;
mod commands;
pub mod demo;
mod driver;
mod files;
mod known;
mod login;
mod moments;
mod names;
mod notes;
pub mod panel;
pub mod pi;
mod program;
pub mod recording;
pub mod rpc;
mod scribe;
mod served;
mod stored;

pub use driver::{Driver, Ended, File, Image, Input, Lookup, Order, Output};
pub use files::words_with_files;
pub use known::{KNOWN, Known, driver_of};
pub use login::{Login, login_of};
pub use moments::moment;
pub use names::{run_id, uuid_of};
pub use program::{Earlier, Launcher, Program, Setup, variable};
pub use scribe::{Drawing, Outlives, Piece, Scribe};
pub use served::{
    Exit, FileDeed, FileFault, FileFaultKind, FileJob, IS_SERVED, Kept, Picture, Place,
    TerminalCommand, TerminalId, TerminalJob, TerminalNews,
};
pub use stored::{STORES, Store, Summary};
