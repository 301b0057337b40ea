//! A session's description, wherever one is sent.

use domain::fleet::Named;
use domain::session::Card;
use domain::session::status::{self, Meta};
use domain::{AgentType, MachineLabel, RunId, Sequence, SessionId, TargetSignature, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Time, id, words};

words! {
    /// How the proxy finds the agent.
    HealthWord for status::Health {
        Healthy = "healthy",
        Degraded = "degraded",
        Disconnected = "disconnected",
        ScrapingFailed = "scraping_failed",
        AgentUiChanged = "agent_ui_changed",
    }
    /// Why a session cannot be reached.
    DownReasonWord for status::DownReason {
        ProxyDisconnected = "proxy_disconnected",
        TargetGone = "target_gone",
    }
    /// Why a session was closed.
    CloseReasonWord for status::CloseReason {
        UserRequested = "user_requested",
        TargetClosed = "target_closed",
        ProxyShutdown = "proxy_shutdown",
    }
}

/// What an agent is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct Activity {
    /// `thinking`, `generating`, `reading_files`, `running_command`, `applying_patch`,
    /// `waiting_for_user`, `idle`, or a word that is shown by its label.
    pub kind: String,
    /// What people read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub updated_at: Option<Time>,
}

impl From<&status::Activity> for Activity {
    fn from(activity: &status::Activity) -> Self {
        let updated_at = Some(activity.updated_at.into());
        Self { kind: activity.kind.clone(), label: activity.label.clone(), updated_at }
    }
}

impl Activity {
    /// Since `now`, where the peer does not say.
    pub fn into_model(self, now: Timestamp) -> status::Activity {
        let updated_at = self.updated_at.map_or(now, Into::into);
        status::Activity { kind: self.kind, label: self.label, updated_at }
    }
}

/// A session. From the relay, `session_id` is always there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct Session {
    /// Absent where a proxy knows only a signature.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::session")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub session_id: Option<SessionId>,
    /// The agent's name, free.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub agent_type: AgentType,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// The title of its window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_title: Option<String>,
    /// The workspace's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_name: Option<String>,
    /// The workspace's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_path: Option<String>,
    /// Its machine.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub machine_label: Option<MachineLabel>,
    /// Recognises its target after a restart.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub target_signature: Option<TargetSignature>,
    /// The proxy's own passing name for its target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_id: Option<String>,
    /// When anything was last heard of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub last_seen_at: Option<Time>,
    /// How it is.
    pub status: HealthWord,
    /// What its agent is doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
    /// Extension: why its status is as it is, in words for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_reason: Option<String>,
    /// Extension: a person's name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Extension: whether a person put it away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
    /// Extension: its last event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<u64>"))]
    pub last_sequence: Option<Sequence>,
    /// Extension: the run that is going on.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub run_id: Option<RunId>,
}

impl Session {
    /// As its proxy described it.
    pub fn of_meta(
        session: &SessionId,
        meta: &Meta,
        health: status::Health,
        activity: Option<&status::Activity>,
    ) -> Self {
        Self {
            session_id: Some(session.clone()),
            agent_type: meta.agent.clone(),
            display_name: meta.display_name.clone(),
            window_title: meta.window_title.clone(),
            workspace_name: meta.workspace_name.clone(),
            workspace_path: meta.workspace_path.clone(),
            machine_label: meta.machine.clone(),
            target_signature: meta.signature.clone(),
            target_id: meta.target_id.clone(),
            last_seen_at: None,
            status: health.into(),
            activity: activity.map(Into::into),
            status_reason: None,
            title: None,
            archived: None,
            last_sequence: None,
            run_id: None,
        }
    }

    /// As its card shows it, in the document's own fields.
    pub fn of_card(session: &SessionId, card: &Card) -> Self {
        let status = &card.status;
        let activity = status.activity.as_ref();
        let last_seen_at = Some(status.last_seen_at.into());
        let described = Self::of_meta(session, &status.meta, status.health, activity);
        Self { last_seen_at, ..described }
    }

    /// The same with the extension's fields.
    #[must_use]
    pub fn with_extensions(self, card: &Card, head: Sequence) -> Self {
        let (title, run_id) = (card.status.title.clone(), card.run.clone());
        let (archived, last_sequence) = (Some(card.status.archived), Some(head));
        let status_reason = card.status.reason().map(str::to_owned);
        Self { status_reason, title, archived, last_sequence, run_id, ..self }
    }

    /// What a proxy says of a session of its own.
    pub fn into_named(self, now: Timestamp) -> Named {
        Named {
            session: self.session_id,
            meta: Meta {
                agent: self.agent_type,
                display_name: self.display_name,
                window_title: self.window_title,
                workspace_name: self.workspace_name,
                workspace_path: self.workspace_path,
                machine: self.machine_label,
                signature: self.target_signature,
                target_id: self.target_id,
            },
            health: self.status.into(),
            activity: self.activity.map(|activity| activity.into_model(now)),
            is_over: false,
        }
    }
}
