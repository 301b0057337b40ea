//! What tests had to skip on this machine because a program is missing. They report it in a file.
//!
//! Invariant: nothing is skipped silently.
//!
//! Not here: the tests' side (`fake_panels::untried`).

use std::fs;
use std::path::{Path, PathBuf};

/// Names the file for the tests.
pub(crate) const NAMED_BY: &str = "FARHELM_TEST_UNTRIED";
/// Of many with the same reason, so many are named.
const NAMED_MAX: usize = 3;

/// An empty file for a run.
pub(crate) fn begin(target: &Path) -> Result<PathBuf, String> {
    let path = target.join("tests-untried.txt");
    let told = |error: std::io::Error| format!("could not write {}: {error}", path.display());
    fs::create_dir_all(target).map_err(told)?;
    fs::write(&path, "").map_err(told)?;
    Ok(path)
}

/// A sentence for each reason.
pub(crate) fn read(path: &Path) -> Vec<String> {
    sentences(&fs::read_to_string(path).unwrap_or_default())
}

fn sentences(told: &str) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in told.lines() {
        let (what, why) = line.split_once(": ").unwrap_or((line, "no reason given"));
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, all)) => all.push(what),
            None => reasons.push((why, vec![what])),
        }
    }
    let sentence = |(why, all): &(&str, Vec<&str>)| {
        let named = all.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
        match all.len().saturating_sub(NAMED_MAX) {
            0 => format!("{named}: {why}"),
            more => format!("{named} and {more} more: {why}"),
        }
    };
    reasons.iter().map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_told_once_with_some_of_those_that_have_it() {
        let told =
            "a: no browser\nb: no browser\nc: no Node: try apt\nd: no browser\ne: no browser\n";
        assert_eq!(sentences(told), ["a, b, d and 1 more: no browser", "c: no Node: try apt"]);
    }

    #[test]
    fn a_line_without_a_reason_is_told_too() {
        assert_eq!(sentences("a\n"), ["a: no reason given"]);
    }

    #[test]
    fn a_run_begins_with_nothing_left_from_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = begin(folder.path()).unwrap();
        fs::write(&path, "a: b\n").unwrap();
        assert_eq!(read(&path), ["a: b"]);
        assert_eq!(read(&begin(folder.path()).unwrap()), Vec::<String>::new());
    }
}
