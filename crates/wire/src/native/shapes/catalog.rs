//! What a machine offers: its agents, and the conversations that they keep themselves.

use domain::fleet::{AgentOffer, Limits};
use domain::{AgentType, ModelId, SessionId};
use serde::{Deserialize, Serialize};

use super::{Time, id};

/// An agent of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct AgentEntry {
    /// Which agent.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub agent_type: AgentType,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Whether its program is there.
    #[serde(default)]
    pub installed: bool,
    /// As the program says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether a credential was seen, unused; absent where that cannot be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logged_in: Option<bool>,
    /// How a person gets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<String>,
    /// Models that a session of it named; absent where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<Vec<String>>"))]
    pub models: Option<Vec<ModelId>>,
    /// Permission modes, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modes: Option<Vec<String>>,
}

impl From<&AgentOffer> for AgentEntry {
    fn from(offer: &AgentOffer) -> Self {
        Self {
            agent_type: offer.agent.clone(),
            display_name: offer.display_name.clone(),
            installed: offer.is_installed,
            version: offer.version.clone(),
            logged_in: offer.is_logged_in,
            install: offer.install.clone(),
            models: None,
            modes: None,
        }
    }
}

impl From<AgentEntry> for AgentOffer {
    fn from(entry: AgentEntry) -> Self {
        Self {
            agent: entry.agent_type,
            display_name: entry.display_name,
            is_installed: entry.installed,
            version: entry.version,
            is_logged_in: entry.logged_in,
            install: entry.install,
        }
    }
}

/// How much the agents of a machine may take. What is absent has no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct LimitsEntry {
    /// Programs that run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents_max: Option<u64>,
    /// A program that had nothing to do for so long is ended until it is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_stop_ms: Option<u64>,
    /// Memory of one program and all that it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes_max: Option<u64>,
}

impl From<Limits> for LimitsEntry {
    fn from(limits: Limits) -> Self {
        let Limits { agents_max, idle_stop_ms, memory_bytes_max } = limits;
        Self { agents_max, idle_stop_ms, memory_bytes_max }
    }
}

impl From<LimitsEntry> for Limits {
    fn from(entry: LimitsEntry) -> Self {
        let LimitsEntry { agents_max, idle_stop_ms, memory_bytes_max } = entry;
        Self { agents_max, idle_stop_ms, memory_bytes_max }
    }
}

/// A conversation that an agent keeps itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct Conversation {
    /// Which agent.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub agent_type: AgentType,
    /// As the agent names it.
    #[serde(deserialize_with = "id::required")]
    pub conversation_id: String,
    /// One line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Where it was held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_path: Option<String>,
    /// When it was last added to.
    #[cfg_attr(test, ts(as = "String"))]
    pub updated_at: Time,
    /// The session that goes on with it already.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::session")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub session_id: Option<SessionId>,
}

/// Which conversations are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct ResumableList {
    /// Of which agent; absent: of all.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub agent_type: Option<AgentType>,
    /// At most so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// After so many of the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u32>,
}

/// Conversations that agents keep themselves, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct Conversations {
    /// A page of them.
    pub conversations: Vec<Conversation>,
    /// Where the next page begins, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u32>,
}
