//! A client's frames: reading them.
//!
//! **Invariant**: no input makes reading panic. Unknown frames are ignored; malformed frames are
//! answered.
//!
//! Not here: what follows from a frame (`requests`, `answers`, `sends`).

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Bytes of an id that a client chooses.
pub(super) const ID_BYTES_MAX: usize = 256;

/// A frame of a client.
#[derive(Debug)]
pub(super) enum Frame {
    /// Words for the agent.
    User(User),
    /// Something is asked. Only an interrupt may come without an id.
    Request { id: Option<Value>, request: Request },
    /// Something that was asked is answered.
    Response(Response),
    /// The client no longer waits for the answer to a request of its own.
    Cancel(Value),
    /// Nothing, to keep the line open.
    KeepAlive,
    /// A type that this dialect does not take from clients.
    Unknown,
}

/// Why a text is no frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// It is not JSON.
    NotJson,
    /// A request that cannot be read: its id, and what is wrong.
    Request(Value, String),
    /// Words for the agent that cannot be read: their id, and what is wrong.
    User(Option<String>, String),
    /// Anything else that cannot be read, and nobody waits for an answer to it.
    Other,
}

/// A user message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct User {
    pub(super) message: Spoken,
    pub(super) uuid: Option<String>,
    pub(super) priority: Option<String>,
    #[serde(rename = "shouldQuery")]
    pub(super) should_query: Option<bool>,
}

/// What a user message says.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Spoken {
    pub(super) content: Spoke,
}

/// Words, or blocks of several kinds.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Spoke {
    Words(String),
    Blocks(Vec<Block>),
}

impl Default for Spoke {
    fn default() -> Self {
        Self::Words(String::new())
    }
}

/// One block of a user message.
#[derive(Debug, Deserialize)]
pub(super) struct Block {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) text: Option<String>,
    #[serde(default)]
    pub(super) title: Option<String>,
    #[serde(default)]
    pub(super) source: Option<Source>,
}

/// The bytes of a picture or document.
#[derive(Debug, Deserialize)]
pub(super) struct Source {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) media_type: Option<String>,
    #[serde(default)]
    pub(super) data: Option<String>,
}

/// What a client asks.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Request {
    pub(super) subtype: String,
    pub(super) model: Value,
    #[serde(deserialize_with = "lenient")]
    pub(super) mode: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) title: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) message_uuid: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) cancel_queued: bool,
    pub(super) hooks: Option<IgnoredAny>,
}

/// A client's answer to a request.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Response {
    #[serde(deserialize_with = "lenient")]
    pub(super) subtype: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) request_id: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) error: Option<String>,
    #[serde(rename = "response", deserialize_with = "lenient")]
    pub(super) answer: Option<Permission>,
}

/// A client's answer to a permission request.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Permission {
    #[serde(deserialize_with = "lenient")]
    pub(super) behavior: String,
    #[serde(rename = "updatedInput")]
    pub(super) updated_input: Option<Box<RawValue>>,
    #[serde(rename = "updatedPermissions", deserialize_with = "lenient")]
    pub(super) updated_permissions: Option<Vec<Value>>,
    #[serde(deserialize_with = "lenient")]
    pub(super) message: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) interrupt: bool,
}

/// A field of another shape than its name promises counts as absent: an answer that was dropped
/// for it would leave the agent waiting, a request would not be told that it is unknown.
fn lenient<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).unwrap_or_default())
}

#[derive(Deserialize)]
struct Head {
    #[serde(default, rename = "type")]
    kind: Option<Value>,
    #[serde(default)]
    request_id: Option<Value>,
    #[serde(default)]
    uuid: Option<Value>,
}

#[derive(Deserialize)]
struct Asked {
    request: Request,
}

#[derive(Deserialize)]
struct Answered {
    response: Response,
}

/// Reads a frame.
pub(super) fn read(text: &str) -> Result<Frame, Broken> {
    let Ok(head) = serde_json::from_str::<Head>(text) else {
        let is_json = serde_json::from_str::<IgnoredAny>(text).is_ok();
        return Err(if is_json { Broken::Other } else { Broken::NotJson });
    };
    let word = |value: Option<Value>| match value {
        Some(Value::String(word)) => Some(word),
        _ => None,
    };
    let (id, uuid) = (head.request_id, word(head.uuid));
    match word(head.kind).as_deref() {
        Some("user") => read_user(text, uuid),
        Some("control_request") => read_request(text, id),
        Some("control_response") => {
            let read = serde_json::from_str::<Answered>(text);
            read.map(|it| Frame::Response(it.response)).map_err(|_| Broken::Other)
        }
        Some("control_cancel_request") => id.map(Frame::Cancel).ok_or(Broken::Other),
        Some("keep_alive") => Ok(Frame::KeepAlive),
        Some(_) | None => Ok(Frame::Unknown),
    }
}

fn read_user(text: &str, uuid: Option<String>) -> Result<Frame, Broken> {
    if uuid.as_ref().is_some_and(|uuid| uuid.is_empty() || uuid.len() > ID_BYTES_MAX) {
        let words = format!("A message uuid must have 1 to {ID_BYTES_MAX} bytes");
        return Err(Broken::User(None, words));
    }
    let read = serde_json::from_str::<User>(text);
    read.map(Frame::User).map_err(|_| {
        Broken::User(uuid, "A user message needs message.content: a string or blocks".to_owned())
    })
}

/// An id is said back as it came, so that whoever waits for the answer finds it.
fn read_request(text: &str, id: Option<Value>) -> Result<Frame, Broken> {
    match &id {
        Some(Value::String(word)) if word.is_empty() || word.len() > ID_BYTES_MAX => {
            let words = format!("A request_id must have 1 to {ID_BYTES_MAX} bytes");
            return Err(Broken::Request(json!(word), words));
        }
        Some(other @ (Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_))) => {
            let words = "A request_id must be a string or a number".to_owned();
            return Err(Broken::Request(other.clone(), words));
        }
        Some(Value::String(_) | Value::Number(_)) | None => {}
    }
    match (serde_json::from_str::<Asked>(text), id) {
        (Ok(asked), id) => Ok(Frame::Request { id, request: asked.request }),
        (Err(_), Some(id)) => Err(Broken::Request(id, "The request is malformed".to_owned())),
        (Err(_), None) => Err(Broken::Other),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // spec: control/transport.2, control/transport.3
    #[test]
    fn what_is_unknown_is_told_from_what_is_broken() {
        assert!(matches!(read(r#"{"type":"keep_alive"}"#), Ok(Frame::KeepAlive)));
        assert!(matches!(read(r#"{"type":"tomorrow","x":1}"#), Ok(Frame::Unknown)));
        assert!(matches!(read("{}"), Ok(Frame::Unknown)));
        assert_eq!(read("{").unwrap_err(), Broken::NotJson);
        assert_eq!(read("7").unwrap_err(), Broken::Other);
        let broken = read(r#"{"type":"control_request","request_id":"r"}"#).unwrap_err();
        assert!(matches!(broken, Broken::Request(id, _) if id == "r"));
        let broken = read(r#"{"type":"user","uuid":"u","message":{"content":7}}"#).unwrap_err();
        assert!(matches!(broken, Broken::User(Some(id), _) if id == "u"));
        let numbered = read(r#"{"type":"control_request","request_id":7,"request":{}}"#).unwrap();
        assert!(matches!(numbered, Frame::Request { id: Some(id), .. } if id == 7));
        let broken = read(r#"{"type":"control_request","request_id":[7],"request":{}}"#);
        assert!(matches!(broken, Err(Broken::Request(id, _)) if id == json!([7])));
        let long = "x".repeat(ID_BYTES_MAX + 1);
        let broken =
            format!(r#"{{"type":"control_request","request_id":"{long}","request":{{}}}}"#);
        assert!(matches!(read(&broken), Err(Broken::Request(..))));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn no_text_makes_reading_panic(text in "[\\PC\"{}\\[\\]:,a-z0-9_]{0,120}") {
            let _ = read(&text);
        }

        #[test]
        fn a_frame_with_any_field_spoilt_is_survived(
            kind in 0..5_usize, field in 0..8_usize, value in 0..9_usize,
        ) {
            let kinds = ["user", "control_request", "control_response", "control_cancel_request",
                "keep_alive"];
            let values = ["null", "true", "-1", "1e999", "\"\\udc00\"", "[]", "{}",
                "18446744073709551616", "\"\""];
            let mut fields = [
                ("request_id", "\"r\""), ("uuid", "\"u\""), ("message", r#"{"content":"x"}"#),
                ("request", r#"{"subtype":"interrupt"}"#), ("priority", "\"now\""),
                ("response", r#"{"request_id":"p","response":{"behavior":"allow"}}"#),
                ("shouldQuery", "true"), ("session_id", "\"\""),
            ];
            fields[field].1 = values[value];
            let body: Vec<_> = fields.iter().map(|(k, v)| format!("\"{k}\":{v}")).collect();
            let _ = read(&format!(r#"{{"type":"{}",{}}}"#, kinds[kind], body.join(",")));
        }
    }
}
