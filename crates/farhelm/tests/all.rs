//! Tests from outside: one program, linked once. A new file of tests is a module here.
#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "what a test stands on may fail it")]

#[cfg(target_os = "linux")]
mod agents;
mod dialects;
mod guest;
#[cfg(target_os = "linux")]
mod hostile;
mod ide;
mod kill;
mod process;
mod support;
