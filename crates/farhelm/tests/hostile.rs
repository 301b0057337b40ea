//! Peers that mean no good, against the real binary: each is answered or closed as documented,
//! memory stays bounded, and the others notice nothing.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "what a test stands on may fail it")]

#[path = "hostile/crowds.rs"]
mod crowds;
#[path = "hostile/frames.rs"]
mod frames;
#[path = "hostile/limits.rs"]
mod limits;
#[path = "hostile/peer.rs"]
mod peer;
#[path = "hostile/roles.rs"]
mod roles;
#[path = "process/support.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod support;
