//! Errors that prevent a measurement.

use std::fmt::Display;

/// Why nothing could be measured, in words for a person.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Trouble(String);

pub(crate) type Outcome<T> = Result<T, Trouble>;

impl Trouble {
    pub(crate) fn new(words: impl Display) -> Self {
        Self(words.to_string())
    }
}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Self {
        Self::new(error)
    }
}

impl From<store::Fault> for Trouble {
    fn from(fault: store::Fault) -> Self {
        Self::new(fault)
    }
}

impl From<serde_json::Error> for Trouble {
    fn from(error: serde_json::Error) -> Self {
        Self::new(error)
    }
}

/// Says what was being done.
pub(crate) trait During<T> {
    fn during(self, what: impl Display) -> Outcome<T>;
}

impl<T, E: Display> During<T> for Result<T, E> {
    fn during(self, what: impl Display) -> Outcome<T> {
        self.map_err(|error| Trouble(format!("{what}: {error}")))
    }
}
