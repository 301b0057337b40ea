//! What the Codex app server says, as far as it is understood here.
//!
//! Invariant: unknown fields are passed over and absent ones have a meaning, so that a newer
//! server is still understood; what does not fit at all is told as unknown, never fatal.
//!
//! Not here: what follows from any of it (`observation`, `prompts`, `opening`).

use serde::Deserialize;
use serde_json::Value;

/// The answer to `thread/start`, `thread/resume` and `thread/fork`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Opened {
    pub(super) thread: Thread,
    pub(super) model: String,
    #[serde(default)]
    pub(super) model_provider: String,
    #[serde(default)]
    pub(super) approval_policy: Value,
    #[serde(default)]
    pub(super) sandbox: Value,
    pub(super) reasoning_effort: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Thread {
    pub(super) id: String,
    #[serde(default)]
    pub(super) turns: Vec<Turn>,
}

/// The answer to `thread/read`.
#[derive(Debug, Deserialize)]
pub(super) struct Read {
    pub(super) thread: Thread,
}

#[derive(Debug, Deserialize)]
pub(super) struct Turn {
    pub(super) id: String,
    #[serde(default)]
    pub(super) items: Vec<Value>,
    #[serde(default)]
    pub(super) status: String,
    pub(super) error: Option<TurnError>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TurnError {
    #[serde(default)]
    pub(super) message: String,
    pub(super) additional_details: Option<String>,
}

impl TurnError {
    /// In words. A service's own error is often JSON inside the message.
    pub(super) fn words(&self) -> String {
        let inner = serde_json::from_str::<Value>(&self.message).ok();
        let inner = inner.as_ref().and_then(|json| json.pointer("/error/message")?.as_str());
        let words = inner.unwrap_or(&self.message);
        match self.additional_details.as_deref().filter(|details| !details.is_empty()) {
            Some(details) => format!("{words} ({details})"),
            None => words.to_owned(),
        }
    }
}

/// `turn/started`, `turn/completed`, and the answer to `turn/start`.
#[derive(Debug, Deserialize)]
pub(super) struct OfTurn {
    pub(super) turn: Turn,
}

/// `item/started` and `item/completed`.
#[derive(Debug, Deserialize)]
pub(super) struct OfItem {
    pub(super) item: Item,
}

/// A piece of the conversation.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum Item {
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
pub(super) enum UserInput {
    Text {
        #[serde(default)]
        text: String,
    },
    LocalImage {
        #[serde(default)]
        path: String,
    },
    #[serde(other)]
    Other,
}

/// What a command does, as Codex reads it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct CommandAction {
    #[serde(rename = "type", default)]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) command: String,
    pub(super) path: Option<String>,
}

/// A change to one file.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Change {
    #[serde(default)]
    pub(super) path: String,
    pub(super) kind: ChangeKind,
    #[serde(default)]
    pub(super) diff: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(super) enum ChangeKind {
    Add,
    Delete,
    Update { move_path: Option<String> },
}

/// Words of an item in the making.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Words {
    pub(super) item_id: String,
    #[serde(default)]
    pub(super) delta: String,
    #[serde(default)]
    pub(super) summary_index: u32,
    #[serde(default)]
    pub(super) content_index: u32,
}

/// `item/fileChange/patchUpdated`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PatchUpdated {
    pub(super) item_id: String,
    #[serde(default)]
    pub(super) changes: Vec<Change>,
}

/// `turn/plan/updated`.
#[derive(Debug, Deserialize)]
pub(super) struct PlanUpdated {
    #[serde(default)]
    pub(super) plan: Vec<Step>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Step {
    #[serde(default)]
    pub(super) step: String,
    #[serde(default)]
    pub(super) status: String,
}

/// `thread/tokenUsage/updated`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TokensUsed {
    pub(super) turn_id: Option<String>,
    pub(super) token_usage: TokenUsage,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TokenUsage {
    #[serde(default)]
    pub(super) total: Tokens,
    #[serde(default)]
    pub(super) last: Tokens,
    pub(super) model_context_window: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Tokens {
    pub(super) total_tokens: u64,
    pub(super) input_tokens: u64,
    pub(super) cached_input_tokens: u64,
    pub(super) output_tokens: u64,
}

/// `error`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Failed {
    pub(super) error: TurnError,
    #[serde(default)]
    pub(super) will_retry: bool,
}

/// `thread/settings/updated`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SettingsUpdated {
    pub(super) thread_settings: ThreadSettings,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThreadSettings {
    pub(super) model: String,
    #[serde(default)]
    pub(super) model_provider: String,
    pub(super) effort: Option<String>,
    #[serde(default)]
    pub(super) approval_policy: Value,
    #[serde(default)]
    pub(super) sandbox_policy: Value,
}

/// The answer to `model/list`.
#[derive(Debug, Deserialize)]
pub(super) struct Models {
    #[serde(default)]
    pub(super) data: Vec<Model>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Model {
    pub(super) model: String,
    #[serde(default)]
    pub(super) hidden: bool,
    #[serde(default)]
    pub(super) supported_reasoning_efforts: Vec<Effort>,
    pub(super) default_reasoning_effort: Option<String>,
    pub(super) input_modalities: Option<Vec<String>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Effort {
    pub(super) reasoning_effort: String,
}

/// The answer to `account/read`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Account {
    #[serde(default)]
    pub(super) account: Value,
    #[serde(default)]
    pub(super) requires_openai_auth: bool,
}

/// A page of `thread/items/list`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Page {
    #[serde(default)]
    pub(super) data: Vec<Entry>,
    pub(super) next_cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Entry {
    #[serde(default)]
    pub(super) item: Value,
}

/// The answer to `thread/backgroundTerminals/list`.
#[derive(Debug, Deserialize)]
pub(super) struct Terminals {
    #[serde(default)]
    pub(super) data: Vec<Terminal>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Terminal {
    pub(super) item_id: String,
    pub(super) process_id: String,
}

/// `account/rateLimits/updated`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RateLimitsUpdated {
    pub(super) rate_limits: RateLimits,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RateLimits {
    pub(super) primary: Option<Window>,
    pub(super) secondary: Option<Window>,
    pub(super) rate_limit_reached_type: Option<Value>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Window {
    #[serde(default)]
    pub(super) used_percent: f64,
    pub(super) window_duration_mins: Option<u64>,
}

/// Reads a message's arguments, or passes it over.
pub(super) fn read<T: serde::de::DeserializeOwned>(params: &Value) -> Option<T> {
    T::deserialize(params).ok()
}
