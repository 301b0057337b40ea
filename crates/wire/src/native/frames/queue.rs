//! The queue of waiting sends (feature `queue`).

use domain::MessageId;
use serde::{Deserialize, Serialize};

use crate::native::shapes::{Sealed, id};

/// Change the words of a waiting message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct QueueEdit {
    /// Which message.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub client_message_id: MessageId,
    /// Its new words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Stands in place of the words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Sealed>,
}

/// Take a waiting message out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct QueueDiscard {
    /// Which message.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub client_message_id: MessageId,
}

/// Give a waiting message another place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct QueueMove {
    /// Which message.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub client_message_id: MessageId,
    /// From 0.
    pub position: u32,
}

/// What happened to the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum ChangeWord {
    /// A message no longer waits; nothing happens if it did not.
    Removed,
    /// A waiting message has other words.
    Edited,
    /// A waiting message has another place.
    Moved,
    /// An interrupt holds what waits.
    Held,
    /// What waits goes on.
    Resumed,
}

/// One change of the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct QueueUpdate {
    /// What happened.
    pub change: ChangeWord,
    /// To which message.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub client_message_id: Option<MessageId>,
    /// Its words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Stands in place of the words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Sealed>,
    /// Its new place, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
}

impl QueueUpdate {
    /// This change and nothing else.
    pub fn new(change: ChangeWord, client_message_id: Option<&MessageId>) -> Self {
        Self {
            change,
            client_message_id: client_message_id.cloned(),
            content: None,
            sealed: None,
            position: None,
        }
    }
}
