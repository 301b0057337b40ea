//! What a test says when it cannot be tried on this machine.
//!
//! A test runner hides what a test that passes has printed, so `cargo xtask test` names a file:
//! what is in it stands in the summary of the run, and fails a run that has to try everything.

use std::fs::OpenOptions;
use std::io::{self, Write as _};

/// Names the file to which each test that could not be tried adds a line.
pub const UNTRIED_VARIABLE: &str = "FARHELM_TEST_UNTRIED";

/// Says that this was not tried, and why: on standard error, and in the run's file.
///
/// # Panics
/// When the file is named and cannot be written: the run would pass over it in silence.
pub fn untried(what: &str, why: &str) {
    let why = why.trim().replace('\n', " / ");
    let _ = writeln!(io::stderr(), "SKIPPED {what}: {why}");
    let Some(path) = std::env::var_os(UNTRIED_VARIABLE) else { return };
    // One write: other tests add their lines at the same time.
    let line = format!("{what}: {why}\n");
    let file = OpenOptions::new().append(true).create(true).open(&path);
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    assert!(written.is_ok(), "{}: {written:?}", path.display());
}
