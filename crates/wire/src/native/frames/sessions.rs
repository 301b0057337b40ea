//! Sessions that appear, disappear and change; `watch`.

use serde::{Deserialize, Serialize};

use crate::native::shapes::{Activity, CloseReasonWord, DownReasonWord, HealthWord, Session};

/// Every session that is not closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct SessionSnapshot {
    /// Each described in full.
    pub sessions: Vec<Session>,
}

/// A session can be reached (again).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct SessionUp {
    /// As its proxy described it.
    pub session: Session,
}

/// A session cannot be reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct SessionDown {
    /// Why.
    pub reason: DownReasonWord,
}

/// Health or activity changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct SessionStatus {
    /// How it is.
    pub status: HealthWord,
    /// What its agent is doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
    /// Extension: why, in words for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A session is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct SessionClosed {
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<CloseReasonWord>,
}

/// A person names a session (feature `session_rename`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct SessionRename {
    /// Its new name.
    pub title: String,
}

/// A person named a session (feature `session_rename`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct SessionRenamed {
    /// Its new name.
    pub title: String,
}

/// A person put a session away or took it out again (feature `session_rename`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct SessionArchived {
    /// Whether it is put away now.
    pub archived: bool,
}

/// From now on, passing events of these sessions only (feature `watch`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct Watch {
    /// Which ones.
    pub sessions: Vec<String>,
    /// The recorded events of the others. Absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<Others>,
}

/// What is told of sessions that a client does not look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Others {
    /// Every recorded event.
    #[default]
    All,
    /// What a list of sessions shows: reachability, names, configuration, prompts, runs.
    Cards,
}
