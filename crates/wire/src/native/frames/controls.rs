//! Control commands with an argument, and the answer to all of them.

use domain::ModelId;
use domain::content::Failure;
use domain::session::controls::Kind;
use serde::{Deserialize, Serialize};

use crate::native::shapes::{ErrorBody, id};

/// Use another model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct AgentSetModel {
    /// Which.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub model_id: ModelId,
}

/// Use another permission mode (feature `modes`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct AgentSetPermissionMode {
    /// Which.
    pub mode: String,
}

/// Think harder or less hard (feature `modes`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct AgentSetEffort {
    /// How hard.
    pub effort: String,
}

/// Whether a command was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum ResultWord {
    /// It was.
    Ok,
    /// It was not.
    Failed,
}

/// The answer to a control command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct AgentControlResult {
    /// The type of the command.
    pub command: String,
    /// Whether it was carried out.
    pub result: ResultWord,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
    /// Why not, once more: readers look in either place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
}

impl AgentControlResult {
    /// The answer to this command.
    pub fn new(command: &str, failure: Option<&Failure>) -> Self {
        Self {
            command: command.to_owned(),
            result: if failure.is_some() { ResultWord::Failed } else { ResultWord::Ok },
            error: failure.map(Into::into),
            error_code: failure.map(|failure| failure.code.to_string()),
        }
    }
}

/// The type of the frame that asks for this.
pub(crate) fn command_word(kind: Kind) -> &'static str {
    match kind {
        Kind::Interrupt => "agent_interrupt",
        Kind::SetModel => "agent_set_model",
        Kind::SetMode => "agent_set_permission_mode",
        Kind::SetEffort => "agent_set_effort",
        Kind::ReadConfig => "agent_config_request",
        Kind::Close => "close_session",
        Kind::Answer => "permission_response",
    }
}
