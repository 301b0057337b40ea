//! Starting sessions.

use domain::fleet::{Earlier, Launch, LaunchWish};
use domain::{AgentType, MachineLabel, ModelId, RequestId};
use serde::{Deserialize, Serialize};

use crate::native::shapes::{Time, id};

/// A person wants a new session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct LaunchSession {
    /// Which agent.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub agent_type: AgentType,
    /// In which folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_path: Option<String>,
    /// A hint for its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_title: Option<String>,
    /// Extension: on which machine.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub machine_label: Option<MachineLabel>,
    /// Extension: with which model.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub model_id: Option<ModelId>,
    /// Extension: in which permission mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    /// Extension: whether it gets a git working tree of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<bool>,
    /// Extension: for the agent's program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(as = "Option<Vec<String>>"))]
    pub arguments: Vec<String>,
}

/// Arguments of a launch, and their bytes together.
const ARGUMENTS_MAX: usize = 64;
const ARGUMENTS_BYTES_MAX: usize = 16 * 1024;

impl LaunchSession {
    /// Arguments stay in the ledger: more than anybody could mean are refused.
    pub fn check_arguments(&self) -> Result<(), String> {
        let bytes: usize = self.arguments.iter().map(String::len).sum();
        if self.arguments.len() > ARGUMENTS_MAX || bytes > ARGUMENTS_BYTES_MAX {
            return Err(format!(
                "launch_session takes at most {ARGUMENTS_MAX} arguments of {ARGUMENTS_BYTES_MAX} \
                 bytes together"
            ));
        }
        Ok(())
    }

    /// The wish of the domain.
    pub fn into_model(self, request: RequestId) -> LaunchWish {
        LaunchWish {
            request,
            agent: self.agent_type,
            workspace_path: self.workspace_path,
            window_title: self.window_title,
            machine: self.machine_label,
            model: self.model_id,
            permission_mode: self.permission_mode,
            has_worktree: self.worktree == Some(true),
            earlier: None,
            arguments: self.arguments,
        }
    }
}

/// A person wants to go on with a conversation that an agent keeps (feature `resume`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct ResumeSession {
    /// Which agent.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub agent_type: AgentType,
    /// As the agent names the conversation.
    #[serde(deserialize_with = "id::required")]
    pub conversation_id: String,
    /// On which machine.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub machine_label: Option<MachineLabel>,
    /// In which folder, in place of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_path: Option<String>,
    /// Whether to go on in a copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<bool>,
    /// With which model.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub model_id: Option<ModelId>,
    /// In which permission mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
}

impl ResumeSession {
    /// The wish of the domain.
    pub fn into_model(self, request: RequestId) -> LaunchWish {
        let fork = self.fork == Some(true);
        LaunchWish {
            request,
            agent: self.agent_type,
            workspace_path: self.workspace_path,
            window_title: None,
            machine: self.machine_label,
            model: self.model_id,
            permission_mode: self.permission_mode,
            has_worktree: false,
            earlier: Some(Earlier { id: self.conversation_id, fork }),
            arguments: vec![],
        }
    }
}

/// A launch that is on its way, in an ack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct PendingLaunch {
    /// The client's id for it.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub request_id: RequestId,
    /// Which agent.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub agent_type: AgentType,
    /// Since when.
    #[cfg_attr(test, ts(as = "String"))]
    pub launched_at: Time,
    /// Until when.
    #[cfg_attr(test, ts(as = "String"))]
    pub timeout_at: Time,
}

impl From<&Launch> for PendingLaunch {
    fn from(launch: &Launch) -> Self {
        Self {
            request_id: launch.request.clone(),
            agent_type: launch.agent.clone(),
            launched_at: launch.launched_at.into(),
            timeout_at: launch.timeout_at.into(),
        }
    }
}

/// A launch is on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct SessionLaunching {
    /// Which agent.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub agent_type: AgentType,
}

/// A launch led to a session, which the envelope names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct SessionLaunchAck {
    /// Which agent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub agent_type: Option<AgentType>,
}

/// A launch led to nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct SessionLaunchFailed {
    /// Which agent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub agent_type: Option<AgentType>,
    /// For a person.
    #[serde(default)]
    pub reason: String,
    /// A stable code.
    pub error_code: String,
}
