//! An agent's configuration.

use std::collections::BTreeMap;

use domain::session::config::{self as model, SlashCommand};
use domain::{ModelId, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Time, id};

/// The body of `agent_config`, and an entry of `session_configs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct AgentConfig {
    /// The current model, or `unknown`.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub model_id: ModelId,
    /// How it asks for permission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    /// Which files it may touch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_access_scope: Option<String>,
    /// Models it can be switched to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<Vec<String>>"))]
    pub available_models: Option<Vec<ModelId>>,
    /// Extension: permission modes it can be switched to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_modes: Option<Vec<String>>,
    /// Extension: how hard it thinks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Extension: efforts it can be switched to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_efforts: Option<Vec<String>>,
    /// Extension: words after a slash that it understands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, type = "{ name: string, description?: string }[]"))]
    pub commands: Option<Vec<SlashCommand>>,
    /// Extension: the agent's own record of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
    /// What the proxy can do with this agent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[cfg_attr(test, ts(as = "Option<std::collections::BTreeMap<String, bool>>"))]
    pub capabilities: BTreeMap<String, bool>,
    /// When it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub read_at: Option<Time>,
}

impl AgentConfig {
    /// In the document's own fields.
    pub fn plain(config: &model::AgentConfig) -> Self {
        Self {
            available_modes: None,
            effort: None,
            available_efforts: None,
            commands: None,
            session_file: None,
            ..Self::full(config)
        }
    }

    /// With everything that is known of it.
    pub fn full(config: &model::AgentConfig) -> Self {
        Self {
            model_id: config.model.clone(),
            permission_mode: config.permission_mode.clone(),
            file_access_scope: config.file_access_scope.clone(),
            available_models: config.available_models.clone(),
            available_modes: config.available_modes.clone(),
            effort: config.effort.clone(),
            available_efforts: config.available_efforts.clone(),
            commands: config.commands.clone(),
            session_file: config.session_file.clone(),
            capabilities: config.capabilities.clone(),
            read_at: Some(config.read_at.into()),
        }
    }

    /// What a proxy read, `now` where it does not say when.
    pub fn into_model(self, now: Timestamp) -> model::AgentConfig {
        model::AgentConfig {
            model: self.model_id,
            permission_mode: self.permission_mode,
            file_access_scope: self.file_access_scope,
            available_models: self.available_models,
            available_modes: self.available_modes,
            effort: self.effort,
            available_efforts: self.available_efforts,
            commands: self.commands,
            session_file: self.session_file,
            capabilities: self.capabilities,
            read_at: self.read_at.map_or(now, Into::into),
        }
    }
}
