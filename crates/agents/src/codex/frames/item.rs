//! Items: the pieces of a conversation.
//!
//! Not here: what they mean to a person (`items`, `patches`).

use serde::Deserialize;
use serde_json::Value;

/// A piece of the conversation.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(in crate::codex) enum Item {
    UserMessage {
        id: String,
        client_id: Option<String>,
        #[serde(default)]
        content: Vec<UserInput>,
        started_at_ms: Option<u64>,
    },
    AgentMessage {
        id: String,
        #[serde(default)]
        text: String,
        started_at_ms: Option<u64>,
    },
    Plan {
        id: String,
        #[serde(default)]
        text: String,
        started_at_ms: Option<u64>,
    },
    Reasoning {
        id: String,
        #[serde(default)]
        summary: Vec<String>,
        #[serde(default)]
        content: Vec<String>,
        started_at_ms: Option<u64>,
    },
    CommandExecution {
        id: String,
        #[serde(default)]
        command: String,
        #[serde(default)]
        cwd: Value,
        #[serde(default)]
        status: String,
        #[serde(default)]
        command_actions: Vec<CommandAction>,
        aggregated_output: Option<String>,
        exit_code: Option<i64>,
    },
    FileChange {
        id: String,
        #[serde(default)]
        changes: Vec<Change>,
        #[serde(default)]
        status: String,
    },
    McpToolCall {
        id: String,
        #[serde(default)]
        server: String,
        #[serde(default)]
        tool: String,
        #[serde(default)]
        status: String,
        #[serde(default)]
        arguments: Value,
        #[serde(default)]
        result: Value,
        #[serde(default)]
        error: Value,
    },
    DynamicToolCall {
        id: String,
        #[serde(default)]
        tool: String,
        #[serde(default)]
        status: String,
        #[serde(default)]
        arguments: Value,
        #[serde(default)]
        content_items: Value,
    },
    CollabAgentToolCall {
        id: String,
        #[serde(default)]
        tool: String,
        #[serde(default)]
        status: String,
        #[serde(default)]
        receiver_thread_ids: Vec<String>,
        prompt: Option<String>,
        model: Option<String>,
    },
    SubAgentActivity {
        id: String,
        agent_thread_id: String,
    },
    WebSearch {
        id: String,
        #[serde(default)]
        query: String,
    },
    ImageView {
        id: String,
        #[serde(default)]
        path: Value,
    },
    ImageGeneration {
        id: String,
        #[serde(default)]
        status: String,
        revised_prompt: Option<String>,
        saved_path: Option<String>,
        /// The picture, in base64.
        result: Option<String>,
    },
    EnteredReviewMode {
        #[serde(default)]
        review: String,
    },
    ExitedReviewMode {
        #[serde(default)]
        review: String,
    },
    ContextCompaction {},
    /// Seen by the agent only, or not known here.
    #[serde(other)]
    Other,
}

/// A piece of what a person said.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(in crate::codex) enum UserInput {
    Text {
        #[serde(default)]
        text: String,
    },
    LocalImage {
        #[serde(default)]
        path: String,
    },
    Image {
        /// Where it is, or all of it as a `data:` address.
        #[serde(default)]
        url: String,
    },
    #[serde(other)]
    Other,
}

/// What a command does, as Codex reads it.
#[derive(Debug, Clone, Deserialize)]
pub(in crate::codex) struct CommandAction {
    #[serde(rename = "type", default)]
    pub(in crate::codex) kind: String,
    #[serde(default)]
    pub(in crate::codex) command: String,
    pub(in crate::codex) path: Option<String>,
}

/// A change to one file.
#[derive(Debug, Clone, Deserialize)]
pub(in crate::codex) struct Change {
    #[serde(default)]
    pub(in crate::codex) path: String,
    pub(in crate::codex) kind: ChangeKind,
    #[serde(default)]
    pub(in crate::codex) diff: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(in crate::codex) enum ChangeKind {
    Add,
    Delete,
    Update { move_path: Option<String> },
}
