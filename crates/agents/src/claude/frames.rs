//! Claude Code's output, one JSON object per line.
//!
//! Read tolerantly: fields that are not named here are ignored, and so are unknown kinds of
//! messages, events and blocks.
//!
//! Not here: what any of it means (`observation`), what is written to it (`transport`).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

/// One line.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Frame {
    /// The agent asks something of us.
    ControlRequest {
        request_id: String,
        request: Value,
    },
    /// The agent answers us. Our own answers are echoed as the same.
    ControlResponse {
        response: Response,
    },
    /// The agent no longer wants an answer.
    ControlCancelRequest {
        request_id: String,
    },
    System(Box<System>),
    /// How far a message of ours is: queued, started, completed, cancelled.
    CommandLifecycle {
        command_uuid: String,
        state: String,
    },
    StreamEvent {
        event: Event,
        #[serde(default)]
        parent_tool_use_id: Option<String>,
    },
    Assistant(Box<Assistant>),
    User(Box<User>),
    Result(Box<TurnResult>),
    RateLimitEvent {
        rate_limit_info: RateLimit,
    },
    ToolProgress {
        tool_use_id: String,
    },
    ConversationReset {},
    KeepAlive {},
    ToolUseSummary {},
    AuthStatus {
        #[serde(default)]
        error: Option<String>,
    },
    PromptSuggestion {},
    ActiveGoal {},
    TranscriptMirror {},
    #[serde(other)]
    Unknown,
}

/// An answer to a request of ours.
#[derive(Debug, Deserialize)]
pub(super) struct Response {
    pub(super) subtype: String,
    pub(super) request_id: String,
    #[serde(default, rename = "response")]
    pub(super) told: Value,
    #[serde(default)]
    pub(super) error: Option<String>,
}

/// The answer to `initialize`, as far as it is used.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Introduction {
    pub(super) models: Vec<Model>,
    pub(super) account: Account,
    pub(super) current_permission_mode: Option<String>,
    pub(super) commands: Vec<Command>,
}

/// Something the program does when a message begins with its name after a slash.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Command {
    pub(super) name: String,
    pub(super) description: Option<String>,
}

/// A model that can be chosen.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Model {
    pub(super) value: String,
    #[serde(rename = "resolvedModel")]
    pub(super) resolved: Option<String>,
    pub(super) supported_effort_levels: Vec<String>,
}

/// Whose account is used.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Account {
    pub(super) token_source: Option<String>,
    pub(super) api_key_source: Option<String>,
    pub(super) api_provider: Option<String>,
}

/// A question whether a tool may be used.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CanUseTool {
    pub(super) tool_name: String,
    pub(super) display_name: Option<String>,
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) input: Map<String, Value>,
    pub(super) tool_use_id: Option<String>,
    pub(super) permission_suggestions: Vec<Value>,
    pub(super) suppress_always_allow_rule: bool,
    pub(super) blocked_path: Option<String>,
    pub(super) decision_reason: Option<String>,
    pub(super) default_to_no: bool,
}

/// Something the program itself says.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct System {
    pub(super) subtype: String,
    pub(super) session_id: Option<String>,
    pub(super) model: Option<String>,
    #[serde(rename = "permissionMode")]
    pub(super) permission_mode: Option<String>,
    pub(super) status: Option<String>,
    pub(super) compact_metadata: Option<CompactMetadata>,
    pub(super) attempt: Option<u64>,
    pub(super) max_retries: Option<u64>,
    pub(super) error_status: Option<u64>,
    pub(super) content: Value,
    pub(super) level: Option<String>,
    pub(super) tool_use_id: Option<String>,
    pub(super) tasks: Option<Vec<Value>>,
}

/// What a compaction did.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CompactMetadata {
    pub(super) trigger: Option<String>,
    pub(super) pre_tokens: Option<u64>,
    pub(super) post_tokens: Option<u64>,
}

/// A piece of a message in the making.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Event {
    MessageStart {
        message: Started,
    },
    ContentBlockStart {
        index: u32,
        content_block: Block,
    },
    ContentBlockDelta {
        index: u32,
        delta: Delta,
    },
    MessageStop {},
    #[serde(other)]
    Unknown,
}

/// The message that begins.
#[derive(Debug, Deserialize)]
pub(super) struct Started {
    pub(super) id: String,
}

/// More of a block.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(other)]
    Unknown,
}

/// A finished block of the agent's message; several of these share a message.
#[derive(Debug, Deserialize)]
pub(super) struct Assistant {
    pub(super) message: Message,
    #[serde(default)]
    pub(super) parent_tool_use_id: Option<String>,
    #[serde(default)]
    pub(super) is_api_error_message: bool,
    #[serde(default)]
    pub(super) uuid: Option<String>,
}

/// A message of ours that comes back, or what a tool returned.
#[derive(Debug, Deserialize)]
pub(super) struct User {
    pub(super) message: Message,
    #[serde(default)]
    pub(super) parent_tool_use_id: Option<String>,
    #[serde(default, rename = "isReplay")]
    pub(super) is_replay: bool,
    #[serde(default)]
    pub(super) uuid: Option<String>,
    #[serde(default)]
    pub(super) tool_use_result: Value,
}

/// The message itself.
#[derive(Debug, Deserialize)]
pub(super) struct Message {
    #[serde(default)]
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) content: Content,
}

/// Plain words, or blocks.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Content {
    Words(String),
    Blocks(Vec<Block>),
}

impl Default for Content {
    fn default() -> Self {
        Self::Blocks(vec![])
    }
}

/// A piece of a message.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block {
    Text {
        #[serde(default)]
        text: String,
    },
    Thinking {
        #[serde(default)]
        thinking: String,
    },
    #[serde(alias = "server_tool_use", alias = "mcp_tool_use")]
    ToolUse {
        id: String,
        name: String,
        #[serde(default)]
        input: Value,
    },
    #[serde(alias = "web_search_tool_result", alias = "mcp_tool_result")]
    ToolResult {
        tool_use_id: String,
        #[serde(default)]
        content: Value,
        #[serde(default)]
        is_error: Option<bool>,
    },
    #[serde(other)]
    Unknown,
}

/// How a turn ended.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TurnResult {
    pub(super) is_error: bool,
    pub(super) subtype: String,
    pub(super) terminal_reason: Option<String>,
    pub(super) errors: Vec<String>,
    pub(super) result: Option<String>,
    pub(super) total_cost_usd: Option<f64>,
    pub(super) usage: Option<TurnUsage>,
    pub(super) model_usage_since_last_result: Option<BTreeMap<String, ModelUsage>>,
}

/// Tokens of a turn.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TurnUsage {
    #[serde(rename = "input_tokens")]
    pub(super) input: u64,
    #[serde(rename = "cache_creation_input_tokens")]
    pub(super) cache_creation: u64,
    #[serde(rename = "cache_read_input_tokens")]
    pub(super) cache_read: u64,
    #[serde(rename = "output_tokens")]
    pub(super) output: u64,
}

/// What one model cost.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ModelUsage {
    #[serde(rename = "costUSD")]
    pub(super) cost_usd: f64,
}

/// How much of the plan's allowance is left.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct RateLimit {
    pub(super) status: String,
    #[serde(rename = "rateLimitType")]
    pub(super) kind: Option<String>,
    pub(super) resets_at: Option<u64>,
}

/// How full the context is.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ContextUsage {
    #[serde(rename = "totalTokens")]
    pub(super) used: u64,
    #[serde(rename = "rawMaxTokens")]
    pub(super) window: Option<u64>,
    #[serde(rename = "maxTokens")]
    pub(super) usable: Option<u64>,
}

/// The settings in force.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Applied {
    pub(super) model: Option<String>,
    pub(super) effort: Option<String>,
}

/// The text of what a tool returned.
pub(super) fn returned(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(pieces) => {
            let pieces: Vec<String> = pieces.iter().map(piece).collect();
            pieces.join("\n")
        }
        Value::Null => String::new(),
        Value::Object(_) | Value::Bool(_) | Value::Number(_) => content.to_string(),
    }
}

/// The pictures among what a tool returned: their types and their bytes.
pub(super) fn pictures(content: &Value) -> impl Iterator<Item = (&str, &str)> {
    let pieces = content.as_array().into_iter().flatten();
    let pictures = pieces.filter(|piece| piece["type"] == "image").map(|piece| &piece["source"]);
    pictures.filter_map(|source| Some((source["media_type"].as_str()?, source["data"].as_str()?)))
}

fn piece(piece: &Value) -> String {
    match piece["type"].as_str() {
        Some("text") => piece["text"].as_str().unwrap_or_default().to_owned(),
        Some("tool_reference") => piece["tool_name"].as_str().unwrap_or_default().to_owned(),
        Some("web_search_result") => {
            let (title, url) = (piece["title"].as_str(), piece["url"].as_str());
            format!("{} {}", title.unwrap_or_default(), url.unwrap_or_default())
        }
        Some(kind) => format!("[{kind}]"),
        None => piece.to_string(),
    }
}
