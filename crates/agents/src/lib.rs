//! Drivers turned downward: the pure part of each agent's protocol.
//!
//! Not here: processes, sockets, the disk (`proxy`).

mod absent;
pub mod demo;
mod driver;
mod known;
mod login;
mod names;
mod program;
mod scribe;
mod stored;

pub use driver::{Driver, Ended, File, Image, Input, Lookup, Order, Output};
pub use known::{KNOWN, Known, driver_of};
pub use login::{Login, login_of};
pub use names::{run_id, uuid_of};
pub use program::{Earlier, Launcher, Program, Setup};
pub use scribe::Scribe;
pub use stored::{STORES, Store, Summary};
