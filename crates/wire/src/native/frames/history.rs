//! Requesting and receiving history.

use domain::Sequence;
use serde::{Deserialize, Serialize};

use crate::native::shapes::{Json, Message};

/// A client needs a snapshot, or what came after an event.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct HistoryRequest {
    /// Without it, everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<u64>"))]
    pub after_sequence: Option<Sequence>,
}

/// The transcript up to an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct HistorySnapshot<'a> {
    /// How far it reaches.
    #[cfg_attr(test, ts(as = "u64"))]
    pub last_sequence: Sequence,
    /// In order.
    pub messages: Vec<Message<'a>>,
    /// Extension (feature `paging`): whether `history_delta` frames with the rest follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
}

/// The events after an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct HistoryDelta {
    /// After this one.
    #[cfg_attr(test, ts(as = "u64"))]
    pub from_sequence: Sequence,
    /// How far it reaches.
    #[cfg_attr(test, ts(as = "u64"))]
    pub last_sequence: Sequence,
    /// Each a frame of its own; see [`super::RelayFrame::parse`].
    #[cfg_attr(test, ts(type = "unknown[]"))]
    pub events: Vec<Json>,
    /// Extension (feature `paging`): whether another one follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
}
