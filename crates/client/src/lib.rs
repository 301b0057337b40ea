//! Clients that reconnect, for the terminal commands, the tests and the benchmarks.
//!
//! [`Machine`] is pure: it writes the hello with its cursors, remembers what it sent until the
//! relay has it, and shows each event once. [`Remote`] runs it over sockets that its user dials,
//! one after the other.
//!
//! Each other dialect has its own state machine: [`blob`], [`mod@control`], [`pi`] and
//! [`webchannel`]. [`Speaker`] is what all of them have in common.
//!
//! Not here: the relay's end of the dialect (`wire`), opening a socket (`proxy`), drawing anything
//! (`farhelm`, `web`).

pub mod blob;
pub mod control;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod machine;
mod native;
pub mod pi;
mod remote;
mod speaker;
pub mod webchannel;

pub use machine::{Event, Happening, Machine, Settings, control};
pub use native::OneSession;
pub use remote::{Dial, DialFault, Heard, Remote, Socket};
pub use speaker::{Seen, Speaker};
