//! Frames as text: a client's requests, and the responses and events for it.
//!
//! **Invariant**: no input makes reading panic. Text that is not JSON ends the connection; JSON
//! that is not a request is answered with an error.
//!
//! Not here: what follows from a request (the file of its family).

use bytes::Bytes;
use domain::Sequence;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::visitor::Act;

/// Bytes of a request's id. It becomes part of a send's id, which has at most 256.
pub(super) const ID_BYTES_MAX: usize = 200;
/// The id in an answer to a request whose own cannot be read.
const UNKNOWN_ID: &str = "unknown";

/// A request of a client.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) id: String,
    pub(super) method: String,
    pub(super) params: Value,
}

/// Why a text is no request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// It is not JSON.
    NotJson,
    /// It is JSON: the id to answer under, and what is wrong.
    Shape(String, String),
}

#[derive(Deserialize)]
struct Raw {
    #[serde(default, rename = "type")]
    kind: Value,
    #[serde(default)]
    id: Value,
    #[serde(default)]
    method: Value,
    #[serde(default)]
    params: Value,
}

/// Reads a request.
pub(super) fn read(text: &str) -> Result<Request, Broken> {
    let Ok(raw) = serde_json::from_str::<Raw>(text) else {
        let is_json = serde_json::from_str::<IgnoredAny>(text).is_ok();
        return Err(if is_json {
            shape(UNKNOWN_ID, "a frame must be an object")
        } else {
            Broken::NotJson
        });
    };
    let id = match raw.id {
        Value::String(id) if !id.is_empty() && id.len() <= ID_BYTES_MAX => id,
        Value::String(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Array(_)
        | Value::Object(_) => {
            let words = format!("id must be a string of 1 to {ID_BYTES_MAX} bytes");
            return Err(shape(UNKNOWN_ID, &words));
        }
    };
    if raw.kind != "req" {
        return Err(shape(&id, "type must be \"req\""));
    }
    let Value::String(method) = raw.method else {
        return Err(shape(&id, "method must be a string"));
    };
    match raw.params {
        params @ Value::Object(_) => Ok(Request { id, method, params }),
        Value::Null => Ok(Request { id, method, params: json!({}) }),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(shape(&id, "params must be an object"))
        }
    }
}

fn shape(id: &str, words: &str) -> Broken {
    Broken::Shape(id.to_owned(), format!("Invalid request format: {words}"))
}

/// Reads what a method needs; else what is wrong, in words.
pub(super) fn params<T: DeserializeOwned>(params: Value) -> Result<T, String> {
    serde_json::from_value(params).map_err(|error| format!("Invalid parameters: {error}"))
}

/// Any frame as bytes.
pub(super) fn encode(frame: &impl Serialize) -> Bytes {
    // Cannot fail: a vector takes everything and no value refuses to be written.
    serde_json::to_vec(frame).unwrap_or_default().into()
}

/// A response with what was asked for.
pub(super) fn granted(id: &str, payload: &Value) -> Bytes {
    encode(&json!({ "type": "res", "id": id, "ok": true, "payload": payload, "error": null }))
}

/// A response that says why not.
pub(super) fn refused(id: &str, words: &str) -> Bytes {
    encode(&json!({ "type": "res", "id": id, "ok": false, "payload": null, "error": words }))
}

/// The same, as an act.
pub(super) fn refuse(id: &str, words: &str) -> Vec<Act> {
    vec![Act::Send(refused(id, words))]
}

/// An event; `seq` is its number in the session's ledger, where it has one.
pub(super) fn event(name: &str, payload: &Value, sequence: Option<Sequence>) -> Bytes {
    let mut frame = json!({ "type": "event", "event": name, "payload": payload });
    if let Some(sequence) = sequence {
        frame["seq"] = json!(sequence);
    }
    encode(&frame)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // spec: blob/requests.1, blob/errors.2
    #[test]
    fn a_request_is_told_from_what_is_none() {
        let read_one = read(r#"{"type":"req","id":"1","method":"status","more":[]}"#).unwrap();
        assert_eq!((read_one.id.as_str(), read_one.method.as_str()), ("1", "status"));
        assert_eq!(read("{").unwrap_err(), Broken::NotJson);
        for (text, id) in [
            ("7", "unknown"),
            ("{}", "unknown"),
            (r#"{"type":"req","id":7,"method":"x","params":{}}"#, "unknown"),
            (r#"{"type":"event","id":"a","method":"x","params":{}}"#, "a"),
            (r#"{"type":"req","id":"a","params":{}}"#, "a"),
            (r#"{"type":"req","id":"a","method":"x","params":[]}"#, "a"),
        ] {
            let Broken::Shape(told, words) = read(text).unwrap_err() else { panic!("{text}") };
            assert_eq!(told, id, "{text}");
            assert!(words.starts_with("Invalid request format: "), "{words}");
        }
        let long = "x".repeat(ID_BYTES_MAX + 1);
        assert!(read(&format!(r#"{{"type":"req","id":"{long}","method":"x"}}"#)).is_err());
    }

    // spec: blob/requests.2
    #[test]
    fn every_response_has_payload_and_error() {
        let value = |bytes: Bytes| serde_json::from_slice::<Value>(&bytes).unwrap();
        assert_eq!(
            value(granted("1", &json!({ "a": 1 }))),
            json!({ "type": "res", "id": "1", "ok": true, "payload": { "a": 1 }, "error": null })
        );
        assert_eq!(
            value(refused("1", "no")),
            json!({ "type": "res", "id": "1", "ok": false, "payload": null, "error": "no" })
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn no_text_makes_reading_panic(text in "[\\PC\"{}\\[\\]:,a-z0-9_]{0,120}") {
            let _ = read(&text);
        }

        #[test]
        fn a_request_with_any_field_spoilt_is_survived(field in 0..4_usize, value in 0..9_usize) {
            let values = ["null", "true", "-1", "1e999", "\"\\udc00\"", "[]", "{}",
                "18446744073709551616", "\"\""];
            let mut fields = [("type", "\"req\""), ("id", "\"r\""), ("method", "\"agent\""),
                ("params", r#"{"message":"x"}"#)];
            fields[field].1 = values[value];
            let body: Vec<_> = fields.iter().map(|(k, v)| format!("\"{k}\":{v}")).collect();
            let _ = read(&format!("{{{}}}", body.join(",")));
        }
    }
}
