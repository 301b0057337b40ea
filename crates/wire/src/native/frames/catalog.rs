//! What a client can start and resume (features `catalog` and `resume`).

use domain::MachineLabel;
use serde::{Deserialize, Serialize};

use crate::native::shapes::{AgentEntry, Conversations, LimitsEntry, ResumableList, id};

/// All machines and what they have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct Catalog {
    /// Those that are connected first, then by name.
    pub machines: Vec<MachineEntry>,
}

/// A machine and what it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct MachineEntry {
    /// What people call it.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub machine_label: MachineLabel,
    /// Whether its proxy is there.
    pub connected: bool,
    /// Its agents; absent where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<AgentEntry>>,
    /// Folders: those that are offered, then those that sessions used, newest first.
    pub workspaces: Vec<String>,
    /// How much its agents may take; absent where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<LimitsEntry>,
}

/// Which conversations a client asks for, and where.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct ResumableListRequest {
    /// On which machine; absent: the one that was active last.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub machine_label: Option<MachineLabel>,
    /// Which of its conversations.
    #[serde(flatten)]
    pub list: ResumableList,
}

/// Conversations of one machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct ResumableSessions {
    /// Which machine.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub machine_label: MachineLabel,
    /// A page of them.
    #[serde(flatten)]
    pub page: Conversations,
}
