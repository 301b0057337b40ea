//! Content: what people and agents say to each other.
//!
//! Every piece that a person or an agent wrote is a [`Content`], open or sealed. No rule of this
//! crate looks inside, so a relay that cannot read it decides exactly as one that can.
//!
//! Not here: how a dialect encodes it (`wire`), how an agent does (`agents`).

use serde::{Deserialize, Serialize};

use crate::{AttachmentId, MessageId, RunId, Timestamp, ToolCallId};

/// Something only its readers may read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content<T> {
    /// Readable by the relay.
    Open(T),
    /// Readable by the holders of a key that the relay does not have.
    Sealed(Sealed),
}

impl<T> Content<T> {
    /// The content, unless it is sealed.
    pub fn open(&self) -> Option<&T> {
        match self {
            Self::Open(content) => Some(content),
            Self::Sealed(_) => None,
        }
    }
}

/// Ciphertext with what its reader needs to open it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    /// Which key.
    pub key: String,
    /// Base64.
    pub nonce: String,
    /// Base64.
    pub body: String,
}

/// A fingerprint of content, computed at the edge, so that repeats are recognised unread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(pub u64);

/// A file that was uploaded to the relay and is named by a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// Names the upload.
    pub id: AttachmentId,
    /// As the person's file was called.
    pub name: String,
    /// The client's own word for it, passed on unread.
    pub kind: String,
    /// From the upload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
}

/// Whose words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// A person.
    User,
    /// The agent.
    Assistant,
    /// Neither: a notice of the agent program or of the relay.
    System,
}

/// A finished message. Its drafts passed by earlier under the same id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// For a person's send, the id its client gave.
    pub id: MessageId,
    /// Whose words.
    pub author: Author,
    /// In the order they are read.
    pub parts: Content<Vec<Part>>,
    /// When it was written, as its writer says.
    pub created_at: Timestamp,
    /// The run it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The tool call whose subagent wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ToolCallId>,
    /// For messages that came without an id of their own, and for sends that may be echoed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
}

/// One piece of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Markdown.
    Text(String),
    /// The agent's reasoning, folded by default.
    Thinking(String),
    /// A picture.
    Image(Attachment),
    /// Any other file.
    File(Attachment),
    /// The place of a tool call within the message.
    ToolCall(ToolCallId),
}

/// Something the agent does besides talking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// As the agent names it.
    pub id: ToolCallId,
    /// The agent's name of the tool.
    pub tool: String,
    /// What sort of thing it does.
    pub kind: ToolKind,
    /// How far it is.
    pub status: ToolStatus,
    /// What it is about.
    pub detail: Content<ToolDetail>,
    /// The run it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The tool call whose subagent made this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ToolCallId>,
}

/// What sort of thing a tool does; decides its icon, never its permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// Looks at files.
    Read,
    /// Changes files.
    Edit,
    /// Runs a command.
    Execute,
    /// Looks for something.
    Search,
    /// Gets something from elsewhere.
    Fetch,
    /// Anything else.
    Other,
}

/// How far a tool call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// Announced; perhaps waiting for permission.
    Pending,
    /// At work.
    Running,
    /// Done.
    Completed,
    /// Done, and it went wrong.
    Failed,
    /// Cut off or denied.
    Cancelled,
}

impl ToolStatus {
    /// Whether nothing more comes of the call.
    pub fn is_over(self) -> bool {
        match self {
            Self::Pending | Self::Running => false,
            Self::Completed | Self::Failed | Self::Cancelled => true,
        }
    }
}

/// What a tool call is about. In an update, what is absent stays as it was.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolDetail {
    /// One line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The agent's input to the tool, as it wrote it (JSON text), unread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// What it printed or returned so far, whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// File changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diffs: Vec<Diff>,
    /// Files it touches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Location>,
}

/// One file before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diff {
    /// As the agent names it.
    pub path: String,
    /// `None` for a new file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_text: Option<String>,
    /// `None` for a deleted file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_text: Option<String>,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// As the agent names it.
    pub path: String,
    /// From 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// A change to a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolUpdate {
    /// Which call.
    pub id: ToolCallId,
    /// How far it is now.
    pub status: ToolStatus,
    /// What is new about it.
    pub detail: Content<ToolDetail>,
}

/// One line of the agent's todo list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanEntry {
    /// What is to be done.
    pub text: String,
    /// How far it is.
    pub status: PlanStatus,
}

/// How far a line of the plan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// Not begun.
    Pending,
    /// Being done.
    InProgress,
    /// Done.
    Completed,
}

/// Tokens and money of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Read by the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Written by the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Of the input, read from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Millionths of a US dollar, as the agent reckons it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micro_usd: Option<u64>,
}

/// Why something failed: a stable code and words for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Machine-readable.
    pub code: crate::FailureCode,
    /// Human-readable.
    pub message: String,
}

impl Failure {
    /// A failure of this code, in these words.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }
}
