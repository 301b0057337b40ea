//! The agent's configuration, as its proxy last read it.
//!
//! Not here: asking for a change (`controls`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ModelId, Timestamp};

/// A configuration as read from the agent. What could not be read is absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentConfig {
    /// The current model; "unknown" where it cannot be read.
    pub model: ModelId,
    /// The agent's word for how it asks for permission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    /// Which files it may touch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_access_scope: Option<String>,
    /// Models it can be switched to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_models: Option<Vec<ModelId>>,
    /// Permission modes it can be switched to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_modes: Option<Vec<String>>,
    /// How hard it thinks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Efforts it can be switched to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_efforts: Option<Vec<String>>,
    /// Words after a slash that it understands; `None` where nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<Vec<SlashCommand>>,
    /// The agent's own record of the session, a path on its machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
    /// What the proxy can do with this agent. Unknown abilities are absent.
    #[serde(default)]
    pub capabilities: BTreeMap<String, bool>,
    /// When it was read, as the proxy says.
    pub read_at: Timestamp,
}

/// Something that an agent does when a message begins with its name after a slash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlashCommand {
    /// Without the slash.
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl AgentConfig {
    /// Whether the agent has an ability; `None` where nobody knows.
    pub fn can(&self, ability: &str) -> Option<bool> {
        self.capabilities.get(ability).copied()
    }

    /// Whether models can be chosen that have to be asked for first.
    pub fn hides_models(&self) -> bool {
        self.available_models.is_none() && self.can("set_model") == Some(true)
    }
}

/// Whether the agent takes messages in the middle of a run.
pub(super) fn can_steer(config: Option<&AgentConfig>) -> bool {
    config.and_then(|config| config.can("steer")) == Some(true)
}
