//! The observer's messages.
//!
//! Not here: what they mean together (`sight`).

use serde::{Deserialize, Serialize};

use super::profile::Role;

/// One push.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Push {
    /// Names the observer and the document that it looks at.
    pub epoch: String,
    /// Counts the pushes of an epoch from 1.
    pub n: u64,
    /// How much it tells.
    pub kind: PushKind,
    /// The rows that are new or changed; in a whole view all that there are.
    pub rows: Vec<Row>,
    /// Rows that are no longer there; never told of virtual lists.
    pub gone: Vec<String>,
    /// The rows that a virtual list shows, in their order.
    pub order: Vec<String>,
    /// How many rows are in the document.
    pub count: usize,
    /// Where it is typed.
    pub composer: Option<ComposerSeen>,
    /// What sends.
    pub send: Option<ControlSeen>,
    /// What stops.
    pub stop: Option<ControlSeen>,
    /// Whether a run goes on, as far as it shows.
    pub busy: bool,
    /// What the agent is doing.
    pub activity: Option<ActivitySeen>,
    /// Questions in sight.
    pub dialogs: Vec<DialogSeen>,
    /// The model, as it is written.
    pub model: Option<String>,
    /// Why the panel is not ready.
    pub waiting: Option<String>,
    /// The conversation's own id.
    pub conversation: Option<String>,
    /// The document's title.
    pub title: String,
    /// The document's address.
    pub url: String,
    /// Whether the document is loaded.
    pub ready: bool,
    /// Which alternative of each landmark was found.
    pub landmarks: Landmarks,
    /// What the script stumbled over; then nothing else is told.
    pub error: Option<String>,
}

/// How much a push tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PushKind {
    /// Everything.
    Whole,
    /// The rows that changed, and everything that is not a row.
    #[default]
    Change,
    /// Nothing changed.
    Beat,
}

/// A row of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Row {
    /// Its name in the document.
    pub key: String,
    /// Its place: the panel's own number where it has one, else counted in the document.
    #[serde(default)]
    pub ordinal: u64,
    /// Whether the place is the panel's own number.
    #[serde(default)]
    pub is_placed: bool,
    /// Whose it is.
    pub role: Role,
    /// Its words.
    #[serde(default)]
    pub text: String,
    /// Whether more is to come.
    #[serde(default)]
    pub is_streaming: bool,
    /// What is known of a tool's card.
    #[serde(default)]
    pub tool: Option<ToolSeen>,
    /// Nothing of it is left to be told.
    #[serde(skip)]
    pub(super) is_done: bool,
    /// The fingerprint of its words, once it was needed.
    #[serde(skip)]
    pub(super) print: std::cell::OnceCell<String>,
}

/// What is known of a tool's card.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ToolSeen {
    /// The panel's word for how far it is.
    pub status: Option<String>,
}

/// Where it is typed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ComposerSeen {
    /// Which alternative was found.
    pub alternative: usize,
    /// Whether nothing is in it.
    pub is_empty: bool,
    /// Whether the keys go there.
    pub is_focused: bool,
    /// When a person last typed there.
    pub typed_ms_ago: Option<u64>,
}

/// A button.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ControlSeen {
    /// Which alternative was found.
    pub alternative: usize,
    /// Whether it can be pressed.
    pub is_enabled: bool,
}

/// What the agent is doing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ActivitySeen {
    /// The native document's word.
    pub kind: String,
    /// What people read.
    pub label: String,
}

/// A question in sight.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DialogSeen {
    /// Made in the page of all that it says, and of how often it came.
    pub id: String,
    /// What it asks.
    pub text: String,
    /// Its buttons.
    pub buttons: Vec<ButtonSeen>,
}

/// A button of a question.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ButtonSeen {
    /// What is written on it.
    pub label: String,
    /// Whether the panel marks it as the default.
    pub is_default: bool,
}

/// Which alternative of each landmark was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Landmarks {
    /// The panel itself.
    pub scope: Option<usize>,
    /// Where it is typed.
    pub composer: Option<usize>,
    /// What sends.
    pub send: Option<usize>,
    /// What stops.
    pub stop: Option<usize>,
    /// What holds the rows.
    pub root: Option<usize>,
    /// Where the model is written.
    pub model: Option<usize>,
}

impl Push {
    /// A push, or why it is none.
    pub fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }
}
