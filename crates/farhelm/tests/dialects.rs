//! Every dialect through the real binary and its demo agent.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "what a test stands on may fail it")]

#[path = "dialects/blob.rs"]
mod blob;
#[path = "dialects/control.rs"]
mod control;
#[path = "dialects/fetched.rs"]
mod fetched;
#[path = "dialects/guest.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod guest;
#[path = "dialects/pi.rs"]
mod pi;
#[path = "dialects/pi_client.rs"]
mod pi_client;
#[path = "process/support.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod support;
#[path = "dialects/tail.rs"]
mod tail;
#[path = "dialects/together.rs"]
mod together;
#[path = "dialects/webchannel.rs"]
mod webchannel;

use support::PATIENCE;
