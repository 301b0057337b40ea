//! A native client that comes back: what the terminal commands, the tests and the benchmarks use.
//!
//! [`Machine`] is pure: it words the hello with its cursors, remembers what it sent until the
//! relay has it, and shows each event once. The socket around it is `proxy::dial`'s business and
//! `farhelm`'s.
//!
//! Not here: the relay's end of the dialect (`wire`), drawing anything (`farhelm`, `web`).

mod machine;

pub use machine::{Event, Happening, Machine, Settings, control};
