//! JSON-RPC over lines, for the agents that speak it, with or without the `jsonrpc` field.
//!
//! Both ends number their own requests. Our requests are found by our number and carry a tag that
//! says why we asked; their requests keep their id, whatever its form, until they are answered.
//!
//! Invariant: an answer is returned once; an answer to an unknown request is reported as strange,
//! never fatal.
//!
//! Not here: what any method means (the drivers), how lines travel (`proxy`).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Requests of ours that wait for an answer at once. At the bound the oldest is given up: its
/// answer, should it come, is strange.
const PENDING_MAX: usize = 256;
/// Bytes of a strange line that are kept.
const STRANGE_BYTES_MAX: usize = 1_024;

/// The code of an answer to a method that is not known here.
pub const METHOD_NOT_FOUND: i64 = -32_601;
/// The code of an answer to a request whose arguments make no sense.
pub const INVALID_PARAMS: i64 = -32_602;
/// The code of an answer to a request that went wrong here.
pub const INTERNAL_ERROR: i64 = -32_603;

/// Whether messages carry `"jsonrpc": "2.0"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// They do, as the standard wants it.
    Told,
    /// They do not.
    Left,
}

/// The other end's name for a request of its own: a number or a text, given back as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TheirId(Value);

impl TheirId {
    /// As it stands in a notification that names a request.
    pub fn of(value: &Value) -> Option<Self> {
        (value.is_number() || value.is_string()).then(|| Self(value.clone()))
    }
}

/// For names that are derived from it.
impl std::fmt::Display for TheirId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.as_str() {
            Some(text) => f.write_str(text),
            None => write!(f, "{}", self.0),
        }
    }
}

/// Why a request of ours was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcError {
    /// As the standard or the agent numbers it.
    pub code: i64,
    /// In the agent's words.
    pub message: String,
    /// What else it says.
    pub data: Option<Value>,
}

impl std::fmt::Display for RpcError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

/// What a line says.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming<T> {
    /// The answer to a request of ours.
    Answer {
        /// Why we asked.
        tag: T,
        /// What came of it.
        result: Result<Value, RpcError>,
    },
    /// They ask, and wait.
    Request {
        /// To be given back with the answer.
        id: TheirId,
        /// What they ask.
        method: String,
        /// Its arguments; `Null` where there are none.
        params: Value,
    },
    /// They tell.
    Notification {
        /// What they tell.
        method: String,
        /// Its arguments; `Null` where there are none.
        params: Value,
    },
    /// Not such a message, or an answer to nothing: the line, cut.
    Strange(String),
}

/// One conversation over the lines of one program. `T` says why a request was made.
#[derive(Debug)]
pub struct Rpc<T> {
    version: Version,
    next: u64,
    pending: BTreeMap<u64, T>,
}

impl<T> Rpc<T> {
    /// A conversation in which nothing was said yet.
    pub fn new(version: Version) -> Self {
        Self { version, next: 1, pending: BTreeMap::new() }
    }

    /// The line that asks. The answer will carry the tag.
    pub fn request(&mut self, tag: T, method: &str, params: Value) -> String {
        if self.pending.len() >= PENDING_MAX {
            self.pending.pop_first();
        }
        let id = self.next;
        self.next += 1;
        self.pending.insert(id, tag);
        let mut message = self.message();
        message.insert("id".to_owned(), id.into());
        message.insert("method".to_owned(), method.into());
        message.insert("params".to_owned(), params);
        Value::Object(message).to_string()
    }

    /// The line that tells. `Null` leaves the arguments out.
    pub fn notification(&self, method: &str, params: Value) -> String {
        let mut message = self.message();
        message.insert("method".to_owned(), method.into());
        if !params.is_null() {
            message.insert("params".to_owned(), params);
        }
        Value::Object(message).to_string()
    }

    /// The line that answers what they asked.
    pub fn answer(&self, id: &TheirId, result: Value) -> String {
        let mut message = self.message();
        message.insert("id".to_owned(), id.0.clone());
        message.insert("result".to_owned(), result);
        Value::Object(message).to_string()
    }

    /// The line that refuses what they asked.
    pub fn refusal(&self, id: &TheirId, code: i64, words: &str) -> String {
        let mut message = self.message();
        message.insert("id".to_owned(), id.0.clone());
        message.insert("error".to_owned(), json!({ "code": code, "message": words }));
        Value::Object(message).to_string()
    }

    /// What a line says.
    pub fn read(&mut self, line: &str) -> Incoming<T> {
        let Ok(Value::Object(mut message)) = serde_json::from_str(line) else {
            return strange(line);
        };
        let id = message.remove("id").filter(|id| !id.is_null());
        if let Some(Value::String(method)) = message.remove("method") {
            let params = message.remove("params").unwrap_or(Value::Null);
            return match id {
                None => Incoming::Notification { method, params },
                Some(id) => Incoming::Request { id: TheirId(id), method, params },
            };
        }
        let Some(tag) = id.and_then(|id| self.pending.remove(&id.as_u64()?)) else {
            return strange(line);
        };
        let result = match message.remove("error").filter(|error| !error.is_null()) {
            Some(error) => Err(error_of(&error)),
            None => Ok(message.remove("result").unwrap_or(Value::Null)),
        };
        Incoming::Answer { tag, result }
    }

    /// The tags of what is still unanswered, the oldest first.
    pub fn pending(&self) -> impl Iterator<Item = &T> {
        self.pending.values()
    }

    /// The program is no more: nothing will be answered. The tags, the oldest first; the next
    /// program is numbered from the beginning.
    pub fn reset(&mut self) -> Vec<T> {
        self.next = 1;
        std::mem::take(&mut self.pending).into_values().collect()
    }

    fn message(&self) -> Map<String, Value> {
        let mut message = Map::new();
        match self.version {
            Version::Told => {
                message.insert("jsonrpc".to_owned(), "2.0".into());
            }
            Version::Left => {}
        }
        message
    }
}

fn strange<T>(line: &str) -> Incoming<T> {
    let end = (0..=STRANGE_BYTES_MAX.min(line.len())).rev().find(|at| line.is_char_boundary(*at));
    Incoming::Strange(line[..end.unwrap_or(0)].to_owned())
}

fn error_of(error: &Value) -> RpcError {
    RpcError {
        code: error.get("code").and_then(Value::as_i64).unwrap_or(INTERNAL_ERROR),
        message: error.get("message").and_then(Value::as_str).unwrap_or("no reason given").into(),
        data: error.get("data").filter(|data| !data.is_null()).cloned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, PartialEq)]
    enum Why {
        First,
        Second,
    }

    #[test]
    fn an_answer_finds_the_request_by_our_number_once() {
        let mut rpc = Rpc::new(Version::Left);
        assert_eq!(
            rpc.request(Why::First, "a/b", json!({ "x": 1 })),
            r#"{"id":1,"method":"a/b","params":{"x":1}}"#
        );
        let _ = rpc.request(Why::Second, "c", json!({}));
        let answer = r#"{"id":2,"result":{"y":2}}"#;
        let expected = Incoming::Answer { tag: Why::Second, result: Ok(json!({ "y": 2 })) };
        assert_eq!(rpc.read(answer), expected);
        assert_eq!(rpc.read(answer), Incoming::Strange(answer.to_owned()));
        assert_eq!(rpc.pending().collect::<Vec<_>>(), [&Why::First]);
    }

    #[test]
    fn their_ids_are_apart_from_ours_and_given_back_as_they_came() {
        let mut rpc = Rpc::new(Version::Told);
        let _ = rpc.request(Why::First, "ours", json!({}));
        let Incoming::Request { id, method, params } =
            rpc.read(r#"{"jsonrpc":"2.0","id":1,"method":"theirs"}"#)
        else {
            panic!("a request");
        };
        assert_eq!((method.as_str(), &params), ("theirs", &Value::Null));
        assert_eq!(rpc.answer(&id, json!(true)), r#"{"id":1,"jsonrpc":"2.0","result":true}"#);
        let text = TheirId::of(&json!("one")).unwrap();
        assert_eq!(
            rpc.refusal(&text, METHOD_NOT_FOUND, "no"),
            r#"{"error":{"code":-32601,"message":"no"},"id":"one","jsonrpc":"2.0"}"#
        );
        assert_eq!(rpc.pending().count(), 1);
    }

    #[test]
    fn an_error_is_told_with_its_code_and_words() {
        let mut rpc = Rpc::new(Version::Told);
        let _ = rpc.request(Why::First, "ours", json!({}));
        let line = r#"{"id":1,"error":{"code":-32600,"message":"bad","data":null}}"#;
        let error = RpcError { code: -32_600, message: "bad".to_owned(), data: None };
        assert_eq!(rpc.read(line), Incoming::Answer { tag: Why::First, result: Err(error) });
    }

    #[test]
    fn what_is_no_message_is_strange() {
        let mut rpc = Rpc::<Why>::new(Version::Told);
        for line in ["", "hello", "[1]", r#"{"id":7,"result":1}"#, r#"{"id":null}"#] {
            assert_eq!(rpc.read(line), Incoming::Strange(line.to_owned()));
        }
    }

    #[test]
    fn the_next_program_is_numbered_anew_and_what_waited_is_handed_back() {
        let mut rpc = Rpc::new(Version::Left);
        let _ = rpc.request(Why::First, "a", json!({}));
        let _ = rpc.request(Why::Second, "b", json!({}));
        assert_eq!(rpc.reset(), [Why::First, Why::Second]);
        assert!(rpc.request(Why::First, "a", json!({})).contains(r#""id":1"#));
    }
}
