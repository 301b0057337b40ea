//! The messages of the Agent Client Protocol, as far as they are used here.
//!
//! Invariant: reading never fails. A field that is missing, null or malformed is treated as absent;
//! unknown data is kept as unknown.
//!
//! Not here: what any of it means (`observation`, `settings`, `prompts`).

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Reads what can be read of a value.
pub(super) fn read<T: DeserializeOwned + Default>(value: Value) -> T {
    serde_json::from_value(value).unwrap_or_default()
}

/// A field of whatever form.
pub(super) fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Value::deserialize(deserializer).map(read)
}

/// A list in which what cannot be read is left out.
pub(super) fn list<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let Value::Array(values) = Value::deserialize(deserializer)? else { return Ok(vec![]) };
    Ok(values.into_iter().filter_map(|value| serde_json::from_value(value).ok()).collect())
}

/// The answer to `initialize`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Initialized {
    #[serde(deserialize_with = "lenient")]
    pub(super) agent_info: Named,
    #[serde(deserialize_with = "lenient")]
    pub(super) agent_capabilities: Capabilities,
    #[serde(deserialize_with = "list")]
    pub(super) auth_methods: Vec<Named>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Named {
    #[serde(deserialize_with = "lenient")]
    pub(super) name: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) description: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Capabilities {
    #[serde(deserialize_with = "lenient")]
    pub(super) load_session: bool,
    #[serde(rename = "promptCapabilities", deserialize_with = "lenient")]
    pub(super) prompt: PromptCapabilities,
    #[serde(rename = "sessionCapabilities", deserialize_with = "lenient")]
    pub(super) session: SessionCapabilities,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PromptCapabilities {
    #[serde(deserialize_with = "lenient")]
    pub(super) image: bool,
}

/// Each is an object where it is there.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SessionCapabilities {
    pub(super) list: Option<Value>,
    pub(super) fork: Option<Value>,
}

/// The answer to `session/new`, `session/load`, `session/fork` and the changes of settings.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Opened {
    #[serde(deserialize_with = "lenient")]
    pub(super) session_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) modes: Option<Modes>,
    #[serde(deserialize_with = "lenient")]
    pub(super) models: Option<Models>,
    #[serde(deserialize_with = "lenient")]
    pub(super) config_options: Option<Vec<ConfigOption>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Modes {
    #[serde(deserialize_with = "lenient")]
    pub(super) current_mode_id: String,
    #[serde(deserialize_with = "list")]
    pub(super) available_modes: Vec<Mode>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Mode {
    pub(super) id: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Models {
    #[serde(deserialize_with = "lenient")]
    pub(super) current_model_id: String,
    #[serde(deserialize_with = "list")]
    pub(super) available_models: Vec<Model>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Model {
    pub(super) model_id: String,
}

/// Something that can be chosen for a session.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ConfigOption {
    #[serde(deserialize_with = "lenient")]
    pub(super) id: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) category: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) current_value: String,
    #[serde(deserialize_with = "list")]
    pub(super) options: Vec<OptionValue>,
}

/// A value, or a group of values.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OptionValue {
    #[serde(deserialize_with = "lenient")]
    pub(super) value: Option<String>,
    #[serde(deserialize_with = "list")]
    pub(super) options: Vec<OptionValue>,
}

/// What `session/update` tells.
#[derive(Debug)]
pub(super) enum Update {
    /// A person's words: replayed, or an echo.
    User(Chunk),
    /// The agent's words.
    Agent(Chunk),
    /// The agent's thinking.
    Thought(Chunk),
    /// A tool call, new or changed.
    Tool(Box<Tool>),
    /// The todo list.
    Plan(Vec<PlanLine>),
    /// Words after a slash that the agent understands.
    Commands(Vec<Named>),
    /// The mode.
    Mode(String),
    /// All that can be chosen.
    Options(Vec<ConfigOption>),
    /// How full the context is, and the cost so far.
    Usage(UsageUpdate),
    /// Of no use here.
    Other,
    /// Nobody here knows what it is.
    Unknown(String),
}

impl Update {
    pub(super) fn read(mut update: Value) -> Self {
        let kind = update.get("sessionUpdate").and_then(Value::as_str).unwrap_or("").to_owned();
        let mut field = |name: &str| update.get_mut(name).map(Value::take).unwrap_or_default();
        match kind.as_str() {
            "user_message_chunk" => Self::User(read(update)),
            "agent_message_chunk" => Self::Agent(read(update)),
            "agent_thought_chunk" => Self::Thought(read(update)),
            "tool_call" | "tool_call_update" => Self::Tool(read(update)),
            "plan" => Self::Plan(read(field("entries"))),
            "available_commands_update" => Self::Commands(read(field("availableCommands"))),
            "current_mode_update" => Self::Mode(read(field("currentModeId"))),
            "config_option_update" => Self::Options(read(field("configOptions"))),
            "usage_update" => Self::Usage(read(update)),
            "session_info_update" => Self::Other,
            _ => Self::Unknown(update.to_string()),
        }
    }
}

/// A piece of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Chunk {
    #[serde(deserialize_with = "lenient")]
    pub(super) message_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) content: Block,
    #[serde(rename = "_meta", deserialize_with = "lenient")]
    pub(super) meta: Meta,
}

/// A block of content.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Block {
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub(super) kind: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) text: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) uri: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) resource: Option<Resource>,
    /// Of a picture: its bytes.
    #[serde(deserialize_with = "lenient")]
    data: Option<String>,
    #[serde(rename = "mimeType", deserialize_with = "lenient")]
    media_type: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Resource {
    #[serde(deserialize_with = "lenient")]
    pub(super) text: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) uri: Option<String>,
}

impl Block {
    /// The picture itself, where it is one: its type and its bytes.
    pub(super) fn picture(&self) -> Option<(&str, &str)> {
        let data = self.data.as_deref().filter(|data| self.kind == "image" && !data.is_empty());
        Some((self.media_type.as_str(), data?))
    }

    /// What a person can read of it.
    pub(super) fn words(&self) -> Option<String> {
        match self.kind.as_str() {
            "text" => self.text.clone(),
            "resource_link" => self.uri.clone(),
            "resource" => {
                let resource = self.resource.as_ref()?;
                resource.text.clone().or_else(|| resource.uri.clone())
            }
            "image" => Some("[image]".to_owned()),
            "audio" => Some("[audio]".to_owned()),
            _ => None,
        }
    }
}

/// A tool call or a change of one: what is absent stays as it was.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Tool {
    #[serde(rename = "toolCallId", deserialize_with = "lenient")]
    pub(super) id: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) title: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) kind: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) status: Option<String>,
    #[serde(deserialize_with = "list")]
    pub(super) content: Vec<ToolContent>,
    #[serde(deserialize_with = "list")]
    pub(super) locations: Vec<Place>,
    pub(super) raw_input: Option<Value>,
    pub(super) raw_output: Option<Value>,
    #[serde(rename = "_meta", deserialize_with = "lenient")]
    pub(super) meta: Meta,
}

/// What a tool call shows.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ToolContent {
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub(super) kind: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) content: Block,
    #[serde(deserialize_with = "lenient")]
    pub(super) path: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) old_text: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) new_text: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) terminal_id: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Place {
    pub(super) path: String,
    #[serde(default)]
    pub(super) line: Option<u32>,
}

/// What some agents add to the protocol.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Meta {
    #[serde(rename = "claudeCode", deserialize_with = "lenient")]
    pub(super) claude_code: ClaudeCode,
    #[serde(deserialize_with = "lenient")]
    pub(super) terminal_output_delta: TerminalOutput,
    #[serde(deserialize_with = "lenient")]
    pub(super) quota: Quota,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ClaudeCode {
    #[serde(deserialize_with = "lenient")]
    pub(super) tool_name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) parent_tool_use_id: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TerminalOutput {
    #[serde(deserialize_with = "lenient")]
    pub(super) data: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Quota {
    #[serde(deserialize_with = "lenient")]
    pub(super) token_count: QuotaTokens,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct QuotaTokens {
    #[serde(deserialize_with = "lenient")]
    pub(super) input_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) output_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PlanLine {
    #[serde(deserialize_with = "lenient")]
    pub(super) content: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) status: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct UsageUpdate {
    #[serde(deserialize_with = "lenient")]
    pub(super) used: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) size: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) cost: Option<Cost>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Cost {
    #[serde(deserialize_with = "lenient")]
    pub(super) amount: f64,
    #[serde(deserialize_with = "lenient")]
    pub(super) currency: String,
}

/// The answer to `session/prompt`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Prompted {
    #[serde(deserialize_with = "lenient")]
    pub(super) stop_reason: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) usage: Option<Tokens>,
    #[serde(rename = "_meta", deserialize_with = "lenient")]
    pub(super) meta: Meta,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tokens {
    #[serde(rename = "inputTokens", deserialize_with = "lenient")]
    pub(super) input: Option<u64>,
    #[serde(rename = "outputTokens", deserialize_with = "lenient")]
    pub(super) output: Option<u64>,
    #[serde(rename = "cachedReadTokens", deserialize_with = "lenient")]
    pub(super) cached_read: Option<u64>,
}

/// `session/request_permission`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Permission {
    #[serde(deserialize_with = "lenient")]
    pub(super) tool_call: Tool,
    #[serde(deserialize_with = "list")]
    pub(super) options: Vec<PermissionOption>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PermissionOption {
    pub(super) option_id: String,
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) kind: String,
}

/// The answer to `session/list`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Listed {
    #[serde(deserialize_with = "list")]
    pub(super) sessions: Vec<ListedSession>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListedSession {
    pub(super) session_id: String,
    #[serde(default)]
    pub(super) cwd: Option<String>,
    #[serde(default)]
    pub(super) title: Option<String>,
    #[serde(default)]
    pub(super) updated_at: Option<String>,
}
