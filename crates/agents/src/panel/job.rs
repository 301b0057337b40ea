//! Jobs that a panel's driver wants done in the panel.
//!
//! Not here: how they are done (`proxy`).

use crate::Image;

/// Names a job; never used twice by one driver.
pub type JobNumber = u64;

/// Something to do. Every job but [`Task::Find`] and [`Task::LetGo`] is answered once by [`super::News::Done`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Which.
    pub number: JobNumber,
    /// What.
    pub task: Task,
}

/// What to do in the panel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// The session was there before: tell when its panel is seen again. Not answered;
    /// [`super::News::Attached`] comes when it is.
    Find,
    /// Open a new chat for this session, in a window that is open or in one that is started.
    /// Answered by [`super::News::Attached`] and then `Done`, or by `Done` with why not.
    Open {
        /// The folder it should work in; best effort.
        workspace_path: Option<String>,
    },
    /// The observer's whole view, now: something was missed.
    Look,
    /// Type this and send it. `Done` is told only when the composer was emptied by a trusted send;
    /// a failure with the code `delivery_unknown` means that nobody can tell.
    Send {
        /// The words, exactly.
        text: String,
        /// Pictures to paste first.
        images: Vec<Image>,
    },
    /// Press this button of this dialog, if both are still as they were seen.
    Press {
        /// The dialog's id as the observer told it.
        dialog: String,
        /// The exact label of the button.
        label: String,
    },
    /// Press the stop button.
    Stop,
    /// Choose this model by the profile's steps.
    SetModel(String),
    /// Read which models there are, by the profile's steps. Opens a menu: only on request.
    ReadModels,
    /// Close the chat or its window.
    Close,
    /// The session ends because its panel was closed long ago: whoever opens it again begins a
    /// new one. Not answered.
    LetGo,
}
