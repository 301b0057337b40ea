//! `connection_hello`, `connection_ack`, `connection_error`, `heartbeat`.

use std::collections::BTreeMap;

use domain::session::prompts;
use domain::{ClientId, MachineLabel, MessageId, Sequence, SessionId};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::PendingLaunch;
use crate::native::shapes::{AgentConfig, Prompt, Time, id};

/// Which end of the conversation a peer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum PeerRole {
    /// A client.
    Browser,
    /// A machine.
    Proxy,
}

/// The first frame of either peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct ConnectionHello {
    /// Which end it is.
    pub peer_role: PeerRole,
    /// What program it is.
    pub client_name: String,
    /// Which version of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_version: Option<String>,
    /// Extension: the client's own lasting id.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub client_id: Option<ClientId>,
    /// A proxy's machine.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub machine_label: Option<MachineLabel>,
    /// Extension: what else it speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<Vec<String>>,
    /// What it saw before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<Resume>,
}

/// What a client saw before it was cut off.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct Resume {
    /// Each with the last event that it saw.
    #[serde(default)]
    pub sessions: Vec<ResumeAt>,
}

/// A session and the last event of it that a client saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct ResumeAt {
    /// Which session.
    #[serde(deserialize_with = "id::session_required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub session_id: SessionId,
    /// Its last event that was seen.
    #[cfg_attr(test, ts(as = "u64"))]
    pub last_sequence: Sequence,
}

/// The answer to a valid hello.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct ConnectionAck {
    /// How often to send a heartbeat.
    #[serde(default)]
    pub heartbeat_interval_ms: u64,
    /// After how long without a frame the connection counts as stale.
    #[serde(default)]
    pub heartbeat_timeout_ms: u64,
    /// The newest configuration of each session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<std::collections::BTreeMap<String, AgentConfig>>"))]
    pub session_configs: Option<BTreeMap<SessionId, AgentConfig>>,
    /// Every question that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_prompts: Option<Vec<OpenPrompt>>,
    /// The client's own launches that are on their way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_launches: Option<Vec<PendingLaunch>>,
    /// Extension: what the peer named and the relay speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<Vec<String>>,
}

/// A question that waits, in an ack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct OpenPrompt {
    /// Whose question.
    #[cfg_attr(test, ts(as = "String"))]
    pub session_id: SessionId,
    /// The question.
    #[serde(flatten)]
    pub prompt: Prompt,
}

impl OpenPrompt {
    /// With the document's own fields, which for an open prompt are few.
    pub fn plain(session: &SessionId, prompt: &prompts::Prompt) -> Self {
        let shape = Prompt::plain(prompt).with_deadline(prompt);
        let prompt = Prompt { default_choice: None, detected_at: None, ..shape };
        Self { session_id: session.clone(), prompt }
    }

    /// With everything that is known of it.
    pub fn full(session: &SessionId, prompt: &prompts::Prompt) -> Self {
        let prompt = Prompt::full(prompt).with_deadline(prompt);
        Self { session_id: session.clone(), prompt }
    }
}

impl<'de> Deserialize<'de> for OpenPrompt {
    /// In two steps: JSON that is kept as text cannot be read through a flattened field.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Whose {
            #[serde(deserialize_with = "id::session_required")]
            session_id: SessionId,
        }
        let raw = Box::<RawValue>::deserialize(from)?;
        let whose: Whose = serde_json::from_str(raw.get()).map_err(de::Error::custom)?;
        let prompt = serde_json::from_str(raw.get()).map_err(de::Error::custom)?;
        Ok(Self { session_id: whose.session_id, prompt })
    }
}

/// What is wrong, where nothing else says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct ConnectionError {
    /// A stable code.
    pub code: String,
    /// For people.
    #[serde(default)]
    pub message: String,
    /// The send that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub client_message_id: Option<MessageId>,
}

/// A sign of life.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct Heartbeat {
    /// The peer's own clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub client_ts: Option<Time>,
}
