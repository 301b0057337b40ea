//! `message_delta`: a piece of a message that is still being written (feature `deltas`).

use std::borrow::Cow;

use domain::passing::{Delta, Voice};
use domain::{Content, MessageId, Sequence};
use serde::{Deserialize, Serialize};

use super::{Sealed, id, words};

words! {
    /// In which voice.
    VoiceWord for Voice {
        Text = "text",
        Thinking = "thinking",
    }
}

/// The body of `message_delta`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct MessageDelta<'a> {
    /// The message in the making.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub message_id: MessageId,
    /// Which of its parts, from 0.
    #[serde(default)]
    pub part: u32,
    /// In which voice.
    pub kind: VoiceWord,
    /// Where the words begin, in UTF-16 units.
    pub offset: u64,
    /// The words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Cow<'a, str>>,
    /// Stands in place of the words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Sealed>,
    /// From the relay: the newest recorded event that it follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<u64>"))]
    pub after_sequence: Option<Sequence>,
}

impl<'a> MessageDelta<'a> {
    /// Borrows the words.
    pub fn of(delta: &'a Delta, after_sequence: Option<Sequence>) -> Self {
        let (content, sealed) = match &delta.words {
            Content::Open(words) => (Some(Cow::Borrowed(words.as_str())), None),
            Content::Sealed(sealed) => (None, Some(sealed.into())),
        };
        let (message_id, part, offset) = (delta.message.clone(), delta.part, delta.offset);
        let kind = delta.voice.into();
        Self { message_id, part, kind, offset, content, sealed, after_sequence }
    }

    /// The delta of the domain.
    pub fn into_model(self) -> Delta {
        let words = match self.sealed {
            Some(sealed) => Content::Sealed(sealed.into()),
            None => Content::Open(self.content.unwrap_or_default().into_owned()),
        };
        let (message, part, offset) = (self.message_id, self.part, self.offset);
        Delta { message, part, voice: self.kind.into(), offset, words }
    }
}
