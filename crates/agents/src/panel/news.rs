//! News about a panel.
//!
//! Not here: the observer's own messages (`frames`), finding panels (`proxy`).

use std::sync::Arc;

use domain::content::Failure;

use super::{JobNumber, Profile};

/// Something happened to the session's panel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// The panel is there, and its observer runs. A new epoch begins with it.
    Attached(Attached),
    /// The observer pushed this (JSON, one push).
    Pushed(String),
    /// The observer's script threw, timed out, or its place was lost and could not be found again.
    Blind {
        /// In words for a person.
        reason: String,
    },
    /// The panel, its window or the whole browser is gone.
    Gone {
        /// In words for a person.
        reason: String,
        /// Whether somebody closed just this panel while its browser goes on.
        is_closed: bool,
    },
    /// What came of a job.
    Done {
        /// Which.
        job: JobNumber,
        /// What came of it.
        outcome: Result<Done, Failure>,
    },
}

/// A panel that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    /// How it is read and used; may be another than the last time.
    pub profile: Arc<Profile>,
    /// The title of its window.
    pub window_title: Option<String>,
    /// The folder that is open in its window, as far as it shows.
    pub workspace_path: Option<String>,
    /// Recognises the panel after a restart.
    pub signature: String,
}

/// What a job brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// It is done.
    Plainly,
    /// The models that can be chosen, as the menu words them.
    Models(Vec<String>),
}
