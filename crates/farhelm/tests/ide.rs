//! Panels of IDEs as sessions: the real binary, a real Chromium, and pages with the landmarks of
//! real panels. Skipped aloud where there is no Chromium.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "what a test stands on may fail it")]

#[path = "ide/changes.rs"]
mod changes;
#[path = "ide/code_server.rs"]
mod code_server;
#[path = "ide/dialects.rs"]
mod dialects;
#[path = "ide/faults.rs"]
mod faults;
#[path = "ide/figures.rs"]
mod figures;
#[path = "ide/foreign.rs"]
mod foreign;
#[path = "dialects/guest.rs"]
mod guest;
#[path = "ide/lives.rs"]
mod lives;
#[path = "ide/many.rs"]
mod many;
#[path = "ide/opencode.rs"]
mod opencode;
#[path = "ide/person.rs"]
mod person;
#[path = "ide/stage.rs"]
mod stage;
#[path = "ide/starting.rs"]
mod starting;
#[path = "process/support.rs"]
#[expect(dead_code, reason = "shared with other tests, which use other parts of it")]
mod support;
#[path = "ide/talks.rs"]
mod talks;

use support::PATIENCE;
