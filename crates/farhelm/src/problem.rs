//! Errors as text for a person, with the exit code for a script.
//!
//! Not here: errors of single crates; the caller says what to do.

use std::fmt::Display;
use std::process::ExitCode;

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub(crate) struct Problem {
    words: String,
    code: u8,
}

/// Something failed.
const FAILURE: u8 = 1;
/// The command was not understood.
const USAGE: u8 = 2;

impl Problem {
    /// Something failed.
    pub(crate) fn new(words: impl Display) -> Self {
        Self { words: words.to_string(), code: FAILURE }
    }

    /// The command was not understood.
    pub(crate) fn usage(words: impl Display) -> Self {
        Self { words: words.to_string(), code: USAGE }
    }

    /// Whoever read the output has seen enough: a normal end, without a word.
    pub(crate) fn reader_left() -> Self {
        Self { words: String::new(), code: 0 }
    }

    /// What a person reads.
    pub(crate) fn words(&self) -> &str {
        &self.words
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

/// Says where a problem was met.
pub(crate) trait Context<T> {
    /// With these words in front.
    fn context(self, words: impl Display) -> Result<T, Problem>;
}

impl<T, E: Display> Context<T> for Result<T, E> {
    fn context(self, words: impl Display) -> Result<T, Problem> {
        self.map_err(|error| Problem::new(format!("{words}: {error}")))
    }
}
