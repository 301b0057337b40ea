//! What a test says when it cannot be tried on this machine.
//!
//! A test runner hides what a test that passes has printed, so `cargo xtask test` names a file:
//! what is in it stands in the summary of the run, and fails a run that has to try everything.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

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
    let written = note(Path::new(&path), what, &why);
    assert!(written.is_ok(), "{}: {written:?}", path.display());
}

fn note(path: &Path, what: &str, why: &str) -> io::Result<()> {
    // One write: other tests add their lines at the same time.
    let line = format!("{what}: {why}\n");
    OpenOptions::new().append(true).create(true).open(path)?.write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_that_could_not_be_tried_adds_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("untried.txt");
        note(&path, "panels", "no browser").unwrap();
        note(&path, "pi's client", "no network").unwrap();
        let told = std::fs::read_to_string(&path).unwrap();
        assert_eq!(told, "panels: no browser\npi's client: no network\n");
    }
}
