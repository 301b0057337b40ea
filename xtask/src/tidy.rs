//! `cargo xtask tidy`: repository rules that a compiler does not check.
//!
//! Each rule is a pure function from the files of the checkout to problems, so that a test can
//! show each one failing. A problem is one line that says where, what, and what to do.
//!
//! Not here: formatting and lints (`test` runs rustfmt and clippy).

mod arrows;
mod dialects;
mod doctests;
mod files;
mod gathered;
mod length;
mod licences;
mod paths;
mod spec;

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use crate::shell;
use files::File;

/// A broken rule, in one line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Problem(pub(crate) String);

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Checks and reports; the exit code tells.
pub(crate) fn run() -> ExitCode {
    if report() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints every problem. `true` when there is none.
pub(crate) fn report() -> bool {
    let problems = check(&shell::root());
    for problem in &problems {
        shell::say(&problem.to_string());
    }
    match problems.len() {
        0 => shell::say("tidy: every rule holds"),
        count => shell::say(&format!("tidy: {count} problems")),
    }
    problems.is_empty()
}

fn check(root: &Path) -> Vec<Problem> {
    let files = files::list(root);
    let mut problems = Vec::new();
    problems.extend(arrows::check(&files));
    problems.extend(dialects::check(&files));
    problems.extend(doctests::check(&files));
    problems.extend(gathered::check(&files));
    problems.extend(length::check(&files));
    problems.extend(paths::check(&files));
    problems.extend(spec::check(&files));
    match licences::metadata(root) {
        Ok(metadata) => problems.extend(licences::check(&metadata)),
        Err(sentence) => problems.push(Problem(sentence)),
    }
    problems
}

#[cfg(test)]
pub(crate) fn file(path: &str, text: &str) -> File {
    File { path: path.to_owned(), text: text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_checkout_is_tidy() {
        let problems: Vec<_> = check(&shell::root()).iter().map(ToString::to_string).collect();
        assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
    }
}
