//! The envelope: the fields that any frame may carry besides its body.
//!
//! A frame is read in two steps over the same text, first the envelope and then the body. A frame
//! with an invalid body can therefore still be answered with its type and its request. Text that
//! is not JSON ends the connection; JSON that breaks a rule is answered.

use std::borrow::Cow;

use bytes::Bytes;
use domain::{ConnectionId, MessageId, RequestId, Sequence, SessionId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Time, id};

/// The version that is spoken here.
pub const VERSION: u64 = 1;

/// What every frame may carry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct Envelope {
    /// What the frame is.
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    /// [`VERSION`]; `None` where the frame has none or not a whole number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<u64>,
    /// Names one recorded event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// Its place in its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<u64>"))]
    pub sequence: Option<Sequence>,
    /// Chosen by a requester, repeated by the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub request_id: Option<RequestId>,
    /// Names one socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub connection_id: Option<ConnectionId>,
    /// The session that it concerns.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub session_id: Option<SessionId>,
    /// The relay's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub server_ts: Option<Time>,
}

/// Why a text is no frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Not JSON: the connection ends with 1007.
    #[error("the text is not JSON")]
    NotJson,
    /// JSON that breaks a rule: answered `invalid_message`.
    #[error("{message}")]
    Invalid {
        /// The frame's type, where it had one.
        kind: Option<String>,
        /// The frame's request, where it had one.
        request: Option<RequestId>,
        /// The send that it was about, where it named one.
        send: Option<MessageId>,
        /// What is wrong with it.
        message: String,
    },
}

/// The same fields, each as it stands: none can spoil the others.
#[derive(Deserialize)]
struct Loose<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    request_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    client_message_id: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Strict<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    protocol_version: Option<&'a RawValue>,
    #[serde(default)]
    event_id: Option<String>,
    #[serde(default)]
    sequence: Option<Sequence>,
    #[serde(default, deserialize_with = "id::optional")]
    request_id: Option<RequestId>,
    #[serde(default, deserialize_with = "id::optional")]
    connection_id: Option<ConnectionId>,
    #[serde(default, deserialize_with = "id::session")]
    session_id: Option<SessionId>,
    #[serde(default)]
    server_ts: Option<Time>,
}

impl Envelope {
    /// An envelope of this type and nothing else.
    pub fn new(kind: &'static str) -> Self {
        let protocol_version = Some(VERSION);
        Self { kind: Cow::Borrowed(kind), protocol_version, ..Self::default() }
    }

    /// Reads the envelope of a frame. The version is not judged here: hello has its own rule.
    pub fn read(text: &str) -> Result<Self, Malformed> {
        if !text.trim_start().starts_with('{') {
            return Err(malformed(text, "a frame must be a JSON object"));
        }
        let strict: Strict<'_> =
            serde_json::from_str(text).map_err(|error| malformed(text, &words(&error)))?;
        Ok(Self {
            kind: Cow::Owned(strict.kind.into_owned()),
            protocol_version: strict.protocol_version.and_then(|raw| raw.get().parse().ok()),
            event_id: strict.event_id,
            sequence: strict.sequence,
            request_id: strict.request_id,
            connection_id: strict.connection_id,
            session_id: strict.session_id,
            server_ts: strict.server_ts,
        })
    }

    /// The session, which this type of frame must name.
    pub fn session(&self, text: &str) -> Result<SessionId, Malformed> {
        let missing = || malformed(text, &format!("{} needs session_id", self.kind));
        self.session_id.clone().ok_or_else(missing)
    }

    /// The request, which this type of frame must name.
    pub fn request(&self, text: &str) -> Result<RequestId, Malformed> {
        let missing = || malformed(text, &format!("{} needs request_id", self.kind));
        self.request_id.clone().ok_or_else(missing)
    }
}

impl Malformed {
    /// A frame that parses but breaks a rule, in these words.
    pub fn rule(text: &str, words: &str) -> Self {
        malformed(text, words)
    }
}

/// Reads what only this type of frame has, from the same text as its envelope.
pub fn read_body<T: DeserializeOwned>(text: &str) -> Result<T, Malformed> {
    serde_json::from_str(text).map_err(|error| malformed(text, &words(&error)))
}

/// Writes a frame.
pub fn encode<T: Serialize>(envelope: &Envelope, body: &T) -> Bytes {
    #[derive(Serialize)]
    struct Whole<'a, T> {
        #[serde(flatten)]
        envelope: &'a Envelope,
        #[serde(flatten)]
        body: &'a T,
    }
    // Cannot fail: keys are strings and no value refuses to be written.
    serde_json::to_vec(&Whole { envelope, body }).map_or_else(
        |_| {
            Bytes::from_static(
                br#"{"type":"connection_error","protocol_version":1,"code":"internal","message":"a frame could not be written"}"#,
            )
        },
        Bytes::from,
    )
}

/// `line 1 column 7` means nothing to who reads it in a frame.
fn words(error: &serde_json::Error) -> String {
    let words = error.to_string();
    words.rfind(" at line ").map_or(words.clone(), |end| words[..end].to_owned())
}

fn malformed(text: &str, message: &str) -> Malformed {
    if serde_json::from_str::<&RawValue>(text).is_err() {
        return Malformed::NotJson;
    }
    let object = text.trim_start().starts_with('{');
    let loose = object.then(|| serde_json::from_str::<Loose<'_>>(text).ok()).flatten();
    let string = |raw: Option<&RawValue>| -> Option<String> {
        let string: String = serde_json::from_str(raw?.get()).ok()?;
        (string.len() <= id::ID_BYTES_MAX).then_some(string)
    };
    let kind = loose.as_ref().and_then(|loose| string(loose.kind));
    let request = loose.as_ref().and_then(|loose| string(loose.request_id)).map(Into::into);
    let send = loose.as_ref().and_then(|loose| string(loose.client_message_id)).map(Into::into);
    let message = match &kind {
        Some(kind) if !message.starts_with(kind.as_str()) => format!("{kind}: {message}"),
        _ => message.to_owned(),
    };
    Malformed::Invalid { kind, request, send, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_json_is_told_apart_from_what_makes_no_sense() {
        for text in ["", "hello", "{", "{\"type\":}", "[1,2", "\"\u{1}\""] {
            assert_eq!(Envelope::read(text), Err(Malformed::NotJson), "{text}");
        }
        for text in ["[]", "1", "null", "{}", r#"{"type":7}"#, r#"{"type":"\ud800"}"#] {
            assert!(matches!(Envelope::read(text), Err(Malformed::Invalid { .. })), "{text}");
        }
    }

    #[test]
    fn a_broken_field_leaves_type_and_request_readable() {
        let text = r#"{"type":"agent_interrupt","request_id":"r1","session_id":7}"#;
        let Err(Malformed::Invalid { kind, request, .. }) = Envelope::read(text) else {
            panic!("the session id is a number");
        };
        assert_eq!(kind.as_deref(), Some("agent_interrupt"));
        assert_eq!(request, Some("r1".into()));
    }

    #[test]
    fn nesting_without_end_is_ignored_where_nobody_looks() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let text = format!(r#"{{"type":"heartbeat","protocol_version":1,"x":{deep}}}"#);
        assert_eq!(Envelope::read(&text).unwrap().kind, "heartbeat");
    }
}
