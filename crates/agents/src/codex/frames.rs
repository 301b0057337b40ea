//! The messages of the Codex app server, as far as they are used here.
//!
//! Invariant: unknown fields are ignored and missing ones have a meaning, so that a newer server
//! still works. A message that does not fit at all is reported as unknown, never fatal.
//!
//! Not here: what follows from any of it (`observation`, `prompts`, `opening`).

mod item;

use serde::Deserialize;
use serde_json::Value;

pub(super) use item::{Change, ChangeKind, CommandAction, Item, UserInput};

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
#[serde(default)]
pub(super) struct Tokens {
    #[serde(rename = "totalTokens")]
    pub(super) all: u64,
    #[serde(rename = "inputTokens")]
    pub(super) input: u64,
    #[serde(rename = "cachedInputTokens")]
    pub(super) cached: u64,
    #[serde(rename = "outputTokens")]
    pub(super) output: u64,
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
    #[serde(rename = "model")]
    pub(super) name: String,
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
