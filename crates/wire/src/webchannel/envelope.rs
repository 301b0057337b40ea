//! Envelopes: what clients say, read; and what they are told, written.
//!
//! ```json
//! {"v": 1, "type": "…", "session_id": "…", "request_id": "…", "payload": {}}
//! ```
//!
//! Not here: what is done about any of it (`pairing`, `sends`, `approvals`).

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::seal;

/// The only version.
const VERSION: u64 = 1;
/// Bytes of an id that a client chooses.
const REQUEST_BYTES_MAX: usize = 256;
/// Bytes of the session's name in envelopes.
const SESSION_BYTES_MAX: usize = 64;
/// What the session of a client is called that does not say.
pub(super) const DEFAULT_SESSION: &str = "default";

/// An envelope of a client.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) session: String,
    pub(super) request: Option<String>,
    /// The token that this message is said under.
    pub(super) token: Option<String>,
    pub(super) said: Said,
}

impl Frame {
    /// Whether it is something to say to the agent.
    pub(super) fn is_send(&self) -> bool {
        matches!(self.said, Said::User { .. })
    }
}

/// What an envelope holds.
#[derive(Debug)]
pub(super) enum Said {
    Pairing { code: Option<String>, public: Option<Value>, name: Option<String> },
    User { content: Option<String>, sealed: Option<Value> },
    Approval { approved: Option<bool>, reason: Option<String>, is_sealed: bool },
}

/// Why an envelope cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Broken {
    NotJson,
    Envelope { request: Option<String>, words: String },
}

/// Reads a text frame.
pub(super) fn read(text: &str) -> Result<Frame, Broken> {
    let value: Value = serde_json::from_str(text).map_err(|_| Broken::NotJson)?;
    let Value::Object(mut envelope) = value else {
        let words = "An envelope must be a JSON object".to_owned();
        return Err(Broken::Envelope { request: None, words });
    };
    let request = take_text(&mut envelope, "request_id");
    if request.as_ref().is_some_and(|it| it.len() > REQUEST_BYTES_MAX) {
        let words = format!("A request_id can have at most {REQUEST_BYTES_MAX} bytes");
        return Err(Broken::Envelope { request: None, words });
    }
    let broken =
        |words: &str| Err(Broken::Envelope { request: request.clone(), words: words.to_owned() });
    if envelope.get("v").and_then(Value::as_u64) != Some(VERSION) {
        return broken("The version v of an envelope must be 1");
    }
    let session = take_text(&mut envelope, "session_id").filter(|it| !it.is_empty());
    let session = session.unwrap_or_else(|| DEFAULT_SESSION.to_owned());
    if session.len() > SESSION_BYTES_MAX {
        return broken("A session_id can have at most 64 bytes");
    }
    let mut payload = match envelope.remove("payload") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(payload)) => payload,
        Some(_) => return broken("The payload must be a JSON object"),
    };
    let mut token =
        |name: &str| take_text(&mut payload, name).or_else(|| take_text(&mut envelope, name));
    let token = token("access_token").or_else(|| token("auth_token"));
    let said = match take_text(&mut envelope, "type").as_deref() {
        Some("pairing_request") => Said::Pairing {
            code: take_text(&mut payload, "pairing_code"),
            public: take(&mut payload, "client_pub")
                .or_else(|| take(&mut payload, "client_public_key")),
            name: take_text(&mut payload, "client_name"),
        },
        Some("user_message") => Said::User {
            content: take_text(&mut payload, "content")
                .or_else(|| take_text(&mut envelope, "content")),
            sealed: take(&mut payload, "e2e"),
        },
        Some("approval_response") => Said::Approval {
            approved: payload.get("approved").and_then(Value::as_bool),
            reason: take_text(&mut payload, "reason"),
            is_sealed: take(&mut payload, "e2e").is_some(),
        },
        Some(_) => {
            return broken("type must be pairing_request, user_message or approval_response");
        }
        None => return broken("type is missing"),
    };
    Ok(Frame { session, request, token, said })
}

/// The beginning of a text, of at most so many bytes; an ellipsis stands for the rest.
pub(super) fn cut(text: &str, bytes_max: usize) -> Cow<'_, str> {
    if text.len() <= bytes_max {
        return Cow::Borrowed(text);
    }
    let end = (0..=bytes_max).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    Cow::Owned(format!("{}…", &text[..end]))
}

fn take(object: &mut Map<String, Value>, name: &str) -> Option<Value> {
    object.remove(name).filter(|value| !value.is_null())
}

fn take_text(object: &mut Map<String, Value>, name: &str) -> Option<String> {
    if let Value::String(text) = object.remove(name)? { Some(text) } else { None }
}

/// How an envelope is sealed.
pub(super) struct Seal<'a> {
    pub(super) key: &'a seal::Key,
    /// Never used before under this key.
    pub(super) nonce: [u8; seal::NONCE_BYTES],
    /// The end of the sealed object, from its last comma.
    pub(super) mark: &'a str,
}

/// The beginning of every envelope to one client.
#[derive(Debug)]
pub(super) struct Writer {
    label: String,
    /// Of the session's name, as JSON.
    label_json: String,
}

impl Writer {
    /// Envelopes that call the session this.
    pub(super) fn new(label: &str) -> Self {
        Self { label: label.to_owned(), label_json: Value::from(label).to_string() }
    }

    pub(super) fn label(&self) -> &str {
        &self.label
    }

    /// An envelope around this payload, which is JSON.
    pub(super) fn write(&self, kind: &str, request: Option<&str>, payload: &[u8]) -> Bytes {
        let mut frame = self.begin(kind, request, payload.len());
        frame.push_str("\"payload\":");
        let mut bytes = frame.into_bytes();
        bytes.extend_from_slice(payload);
        bytes.push(b'}');
        bytes.into()
    }

    /// The same, sealed. The payload is a JSON object that is not empty.
    pub(super) fn write_sealed(
        &self,
        kind: &str,
        request: Option<&str>,
        payload: &[u8],
        seal: &Seal<'_>,
    ) -> Bytes {
        const TAG_BYTES: usize = 16;
        let Seal { key, nonce, mark } = *seal;
        let mut matter = Vec::with_capacity(payload.len() + mark.len() + TAG_BYTES);
        matter.extend_from_slice(payload.strip_suffix(b"}").unwrap_or(payload));
        matter.extend_from_slice(mark.as_bytes());
        key.seal_in_place(nonce, &mut matter);
        let mut frame = self.begin(kind, request, matter.len() * 4 / 3 + 112);
        frame.push_str("\"payload\":{\"e2e\":{\"alg\":\"");
        frame.push_str(seal::ALGORITHM);
        frame.push_str("\",\"nonce\":\"");
        seal::encode_into(&nonce, &mut frame);
        frame.push_str("\",\"ciphertext\":\"");
        seal::encode_into(&matter, &mut frame);
        frame.push_str("\"}}}");
        frame.into()
    }

    /// Something went wrong.
    pub(super) fn error(&self, request: Option<&str>, code: &str, message: &str) -> Bytes {
        let payload = json!({ "message": message, "code": code });
        self.write("error", request, payload.to_string().as_bytes())
    }

    fn begin(&self, kind: &str, request: Option<&str>, more: usize) -> String {
        const FIXED_BYTES: usize = 64;
        let ids = self.label_json.len() + request.map_or(0, str::len);
        let mut frame = String::with_capacity(FIXED_BYTES + kind.len() + ids + more);
        frame.push_str("{\"v\":1,\"type\":\"");
        frame.push_str(kind);
        frame.push_str("\",\"session_id\":");
        frame.push_str(&self.label_json);
        frame.push(',');
        if let Some(request) = request {
            frame.push_str("\"request_id\":");
            frame.push_str(&Value::from(request).to_string());
            frame.push(',');
        }
        frame
    }
}
