//! Clients that come back: what the terminal commands, the tests and the benchmarks use.
//!
//! [`Machine`] is pure: it words the hello with its cursors, remembers what it sent until the
//! relay has it, and shows each event once. [`Remote`] runs it over sockets that whoever uses it
//! dials, one after the other.
//!
//! Each other dialect has a machine of its own: [`blob`], [`mod@control`], [`pi`] and
//! [`webchannel`].
//! [`Speaker`] is what all of them can do alike.
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
