//! `error: {code, message}`, and the two forms in which peers write a failure.

use domain::content::Failure;
use serde::{Deserialize, Serialize};

/// What went wrong: a stable code and words for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct ErrorBody {
    /// A stable code.
    pub code: String,
    /// Words for people.
    #[serde(default)]
    pub message: String,
}

impl From<&Failure> for ErrorBody {
    fn from(failure: &Failure) -> Self {
        Self { code: failure.code.to_string(), message: failure.message.clone() }
    }
}

impl From<ErrorBody> for Failure {
    fn from(error: ErrorBody) -> Self {
        Self::new(&error.code, error.message)
    }
}

/// A failure written as `error`, as `error_code`, or not at all (then with `otherwise` as code).
pub fn failure_of(
    error: Option<ErrorBody>,
    error_code: Option<String>,
    reason: Option<String>,
    otherwise: &str,
) -> Failure {
    match (error, error_code) {
        (Some(error), _) => error.into(),
        (None, Some(code)) => Failure::new(&code, reason.unwrap_or_default()),
        (None, None) => Failure::new(otherwise, reason.unwrap_or_default()),
    }
}
