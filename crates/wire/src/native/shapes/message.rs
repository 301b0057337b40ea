//! Messages of a transcript, their parts, and sealed content.

use std::borrow::Cow;

use domain::content::{self, Author};
use domain::{AttachmentId, Content, MessageId, RunId, Timestamp, ToolCallId};
use serde::{Deserialize, Serialize};

use super::{Time, id, words};

words! {
    /// Whose words.
    AuthorWord for Author {
        User = "user",
        Assistant = "assistant",
        System = "system",
    }
}

/// What only its readers can read; it stands in place of what it hides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct Sealed {
    /// Which key.
    pub key: String,
    /// Base64.
    pub nonce: String,
    /// Base64.
    pub body: String,
}

impl From<&content::Sealed> for Sealed {
    fn from(sealed: &content::Sealed) -> Self {
        let (key, nonce) = (sealed.key.clone(), sealed.nonce.clone());
        Self { key, nonce, body: sealed.body.clone() }
    }
}

impl From<Sealed> for content::Sealed {
    fn from(sealed: Sealed) -> Self {
        Self { key: sealed.key, nonce: sealed.nonce, body: sealed.body }
    }
}

/// A file that a message names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct Attachment {
    /// From the upload.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub attachment_id: AttachmentId,
    /// As the file was called.
    #[serde(default)]
    pub name: String,
    /// The client's own word for it, as in `uploaded_file`.
    #[serde(default = "uploaded_file")]
    pub kind: String,
    /// From the upload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
}

fn uploaded_file() -> String {
    "uploaded_file".to_owned()
}

impl From<&content::Attachment> for Attachment {
    fn from(file: &content::Attachment) -> Self {
        Self {
            attachment_id: file.id.clone(),
            name: file.name.clone(),
            kind: file.kind.clone(),
            media_type: file.media_type.clone(),
        }
    }
}

impl From<Attachment> for content::Attachment {
    fn from(file: Attachment) -> Self {
        let Attachment { attachment_id: id, name, kind, media_type } = file;
        Self { id, name, kind, media_type }
    }
}

/// One piece of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Part<'a> {
    /// Markdown.
    Text {
        /// The words.
        text: Cow<'a, str>,
    },
    /// Reasoning.
    Thinking {
        /// The words.
        text: Cow<'a, str>,
    },
    /// A picture.
    Image {
        /// From the upload.
        #[serde(deserialize_with = "id::required")]
        #[cfg_attr(test, ts(as = "String"))]
        attachment_id: AttachmentId,
        /// As the file was called.
        #[serde(default)]
        name: Cow<'a, str>,
        /// From the upload.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        media_type: Option<Cow<'a, str>>,
    },
    /// Any other file.
    File {
        /// From the upload.
        #[serde(deserialize_with = "id::required")]
        #[cfg_attr(test, ts(as = "String"))]
        attachment_id: AttachmentId,
        /// As the file was called.
        #[serde(default)]
        name: Cow<'a, str>,
        /// From the upload.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        media_type: Option<Cow<'a, str>>,
    },
    /// The place of a tool call.
    ToolCall {
        /// Which.
        #[serde(deserialize_with = "id::required")]
        #[cfg_attr(test, ts(as = "String"))]
        tool_call_id: ToolCallId,
    },
}

impl<'a> From<&'a content::Part> for Part<'a> {
    fn from(part: &'a content::Part) -> Self {
        match part {
            content::Part::Text(text) => Self::Text { text: text.into() },
            content::Part::Thinking(text) => Self::Thinking { text: text.into() },
            content::Part::Image(file) => Self::Image {
                attachment_id: file.id.clone(),
                name: Cow::Borrowed(&file.name),
                media_type: file.media_type.as_deref().map(Cow::Borrowed),
            },
            content::Part::File(file) => Self::File {
                attachment_id: file.id.clone(),
                name: Cow::Borrowed(&file.name),
                media_type: file.media_type.as_deref().map(Cow::Borrowed),
            },
            content::Part::ToolCall(call) => Self::ToolCall { tool_call_id: call.clone() },
        }
    }
}

impl Part<'_> {
    /// The same, holding its words itself.
    pub fn into_owned(self) -> Part<'static> {
        let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            Self::Text { text } => Part::Text { text: own(text) },
            Self::Thinking { text } => Part::Thinking { text: own(text) },
            Self::Image { attachment_id, name, media_type } => {
                Part::Image { attachment_id, name: own(name), media_type: media_type.map(own) }
            }
            Self::File { attachment_id, name, media_type } => {
                Part::File { attachment_id, name: own(name), media_type: media_type.map(own) }
            }
            Self::ToolCall { tool_call_id } => Part::ToolCall { tool_call_id },
        }
    }
}

impl From<Part<'_>> for content::Part {
    fn from(part: Part<'_>) -> Self {
        let file = |id, name: Cow<'_, str>, media_type: Option<Cow<'_, str>>| content::Attachment {
            id,
            name: name.into_owned(),
            kind: uploaded_file(),
            media_type: media_type.map(Cow::into_owned),
        };
        match part {
            Part::Text { text } => Self::Text(text.into_owned()),
            Part::Thinking { text } => Self::Thinking(text.into_owned()),
            Part::Image { attachment_id, name, media_type } => {
                Self::Image(file(attachment_id, name, media_type))
            }
            Part::File { attachment_id, name, media_type } => {
                Self::File(file(attachment_id, name, media_type))
            }
            Part::ToolCall { tool_call_id } => Self::ToolCall(tool_call_id),
        }
    }
}

/// A message. From the relay, `message_id` and `created_at` are always there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct Message<'a> {
    /// Absent where a proxy has no id for it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub message_id: Option<MessageId>,
    /// Whose words.
    pub role: AuthorWord,
    /// The text of it.
    #[serde(default)]
    pub content: Cow<'a, str>,
    /// When it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub created_at: Option<Time>,
    /// Extension: all of it. Absent where the text is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Vec<Part<'a>>>,
    /// Extension: stands in place of content and parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Sealed>,
    /// Extension: the run it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub run_id: Option<RunId>,
    /// Extension: the tool call whose subagent wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub parent_tool_call_id: Option<ToolCallId>,
}

impl<'a> Message<'a> {
    /// In the document's own fields.
    pub fn plain(message: &'a content::Message) -> Self {
        Self {
            message_id: Some(message.id.clone()),
            role: message.author.into(),
            content: text_of(&message.parts),
            created_at: Some(message.created_at.into()),
            parts: None,
            sealed: None,
            run_id: None,
            parent_tool_call_id: None,
        }
    }

    /// With everything that is known of it.
    pub fn full(message: &'a content::Message) -> Self {
        let (parts, sealed) = match &message.parts {
            Content::Open(parts) if matches!(parts.as_slice(), [content::Part::Text(_)]) => {
                (None, None)
            }
            Content::Open(parts) => (Some(parts.iter().map(Into::into).collect()), None),
            Content::Sealed(sealed) => (None, Some(sealed.into())),
        };
        let (run_id, parent_tool_call_id) = (message.run.clone(), message.parent.clone());
        Self { parts, sealed, run_id, parent_tool_call_id, ..Self::plain(message) }
    }

    /// The same, holding its words itself.
    pub fn into_owned(self) -> Message<'static> {
        let parts = self.parts.map(|parts| parts.into_iter().map(Part::into_owned).collect());
        Message {
            message_id: self.message_id,
            role: self.role,
            content: Cow::Owned(self.content.into_owned()),
            created_at: self.created_at,
            parts,
            sealed: self.sealed,
            run_id: self.run_id,
            parent_tool_call_id: self.parent_tool_call_id,
        }
    }

    /// The message under this id, written `now` where its writer does not say. It has no digest.
    pub fn into_model(self, id: MessageId, now: Timestamp) -> content::Message {
        let parts = match (self.sealed, self.parts) {
            (Some(sealed), _) => Content::Sealed(sealed.into()),
            (None, Some(parts)) => Content::Open(parts.into_iter().map(Into::into).collect()),
            (None, None) => Content::Open(vec![content::Part::Text(self.content.into_owned())]),
        };
        content::Message {
            id,
            author: self.role.into(),
            parts,
            created_at: self.created_at.map_or(now, Into::into),
            run: self.run_id,
            parent: self.parent_tool_call_id,
            digest: None,
        }
    }
}

/// The text parts, a blank line between them. Nothing of what is sealed.
pub(crate) fn text_of(parts: &Content<Vec<content::Part>>) -> Cow<'_, str> {
    let mut whole = Cow::Borrowed("");
    for part in parts.open().into_iter().flatten() {
        let content::Part::Text(text) = part else { continue };
        if whole.is_empty() {
            whole = Cow::Borrowed(text);
        } else {
            let whole = whole.to_mut();
            whole.push_str("\n\n");
            whole.push_str(text);
        }
    }
    whole
}
