//! A send and its states, and messages of the transcript.

use domain::session::delivery::{Mode, Send};
use domain::{Content, MessageId, RunId};
use serde::{Deserialize, Serialize};

use crate::native::shapes::{Attachment, ErrorBody, Message, Sealed, Time, echo_digest, id, words};

words! {
    /// What a send does while the agent runs.
    ModeWord for Mode {
        Steer = "steer",
        FollowUp = "follow_up",
    }
}

/// How a send stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum StatusWord {
    /// On disk at the relay.
    Accepted,
    /// With the agent.
    Delivered,
    /// Not with the agent.
    Failed,
}

/// A person says something to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct SendMessage {
    /// Made by the client; a retry carries the same.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub client_message_id: MessageId,
    /// The words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Uploaded files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachments: Option<Vec<Attachment>>,
    /// As the client says.
    #[cfg_attr(test, ts(as = "String"))]
    pub created_at: Time,
    /// Extension (feature `queue`): what to do while the agent runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ModeWord>,
    /// Extension: stands in place of the words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Sealed>,
}

impl SendMessage {
    /// Whether there is anything to say.
    pub fn is_empty(&self) -> bool {
        let files = self.attachments.as_ref().is_some_and(|files| !files.is_empty());
        let words = self.content.as_ref().is_some_and(|words| !words.is_empty());
        !files && !words && self.sealed.is_none()
    }

    /// How much it says, sealed or not.
    pub fn content_bytes(&self) -> usize {
        let words = self.content.as_ref().map_or(0, String::len);
        self.sealed.as_ref().map_or(words, |sealed| sealed.body.len())
    }

    /// The send of the domain, by this person.
    pub fn into_model(self, by: &str) -> Send {
        let (text, digest) = match (self.sealed, self.content.unwrap_or_default()) {
            (Some(sealed), _) => (Content::Sealed(sealed.into()), None),
            (None, words) => {
                let digest = (!words.is_empty()).then(|| echo_digest(&words));
                (Content::Open(words), digest)
            }
        };
        Send {
            id: self.client_message_id,
            text,
            attachments: self.attachments.into_iter().flatten().map(Into::into).collect(),
            mode: self.mode.map(Into::into),
            by: by.to_owned(),
            created_at: self.created_at.into(),
            digest,
        }
    }
}

/// A send is on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct MessageAccepted {
    /// The same as `client_message_id`.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub message_id: MessageId,
    /// Which send.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub client_message_id: MessageId,
    /// `accepted`.
    pub status: StatusWord,
    /// When.
    #[cfg_attr(test, ts(as = "String"))]
    pub accepted_at: Time,
    /// Extension: the words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Extension: its files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(as = "Option<Vec<Attachment>>"))]
    pub attachments: Vec<Attachment>,
    /// Extension: what it does while the agent runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ModeWord>,
    /// Extension: who sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_by: Option<String>,
    /// Extension: stands in place of the words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Sealed>,
}

/// A send is with the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct MessageDelivered {
    /// The same as `client_message_id`.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub message_id: MessageId,
    /// Which send.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub client_message_id: MessageId,
    /// `delivered`.
    pub status: StatusWord,
    /// When.
    #[cfg_attr(test, ts(as = "String"))]
    pub delivered_at: Time,
    /// Extension: the run that it started.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub run_id: Option<RunId>,
}

/// A send is not with the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct MessageFailed {
    /// The same as `client_message_id`.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub message_id: MessageId,
    /// Which send.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub client_message_id: MessageId,
    /// `failed`.
    pub status: StatusWord,
    /// When.
    #[cfg_attr(test, ts(as = "String"))]
    pub failed_at: Time,
    /// Why.
    pub error: ErrorBody,
}

/// Somebody said something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct MessageEvent<'a> {
    /// What.
    pub message: Message<'a>,
}
