//! The APIs: how each asks, and how each is answered, whole or as a stream.
//!
//! Invariant: pure. A request becomes [`Asked`], a [`Reply`] becomes JSON; what is said is decided
//! in `script` alone.
//!
//! Not here: sockets and waiting (`server`).

mod anthropic;
mod chat;
mod gemini;
mod responses;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::pace::Pause;
use crate::script::{self, Asked, Failure, Reply};

/// An API whose requests are scripted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Anthropic,
    Responses,
    Chat,
    Gemini,
}

/// What distinguishes one answer from another.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The number of the request, for ids.
    pub(crate) number: u64,
    pub(crate) model: String,
    pub(crate) now_seconds: u64,
}

impl Answer {
    /// An id such as `msg_fake0007`.
    fn id(&self, prefix: &str) -> String {
        format!("{prefix}fake{:04}", self.number)
    }
}

/// One server-sent event, and the pause after it.
#[derive(Debug)]
pub(crate) struct Beat {
    pub(crate) event: Option<&'static str>,
    pub(crate) data: String,
    pub(crate) pause: Pause,
}

impl Beat {
    fn new(event: Option<&'static str>, data: &Value, pause: Pause) -> Self {
        Self { event, data: data.to_string(), pause }
    }

    /// As it goes over the wire.
    pub(crate) fn encoded(&self) -> String {
        let event = self.event.map(|event| format!("event: {event}\n")).unwrap_or_default();
        format!("{event}data: {}\n\n", self.data)
    }
}

/// What a path of a POST asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    Generate {
        api: Api,
        streamed: Streamed,
    },
    /// Anthropic and Gemini count tokens on request.
    CountTokens,
}

/// Whether an answer is streamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Streamed {
    Yes,
    No,
    /// The request's body tells, in its field `stream`.
    AsBodySays,
}

/// Finds the API by the end of the path, so that any prefix will do as a base address.
pub(crate) fn route(path: &str) -> Option<Route> {
    let generate = |api, streamed| Some(Route::Generate { api, streamed });
    let ends = |end: &str| path.ends_with(end);
    if ends("/messages/count_tokens") || ends(":countTokens") {
        Some(Route::CountTokens)
    } else if ends("/messages") {
        generate(Api::Anthropic, Streamed::AsBodySays)
    } else if ends("/responses") {
        generate(Api::Responses, Streamed::AsBodySays)
    } else if ends("/chat/completions") {
        generate(Api::Chat, Streamed::AsBodySays)
    } else if ends(":streamGenerateContent") {
        generate(Api::Gemini, Streamed::Yes)
    } else if ends(":generateContent") {
        generate(Api::Gemini, Streamed::No)
    } else {
        None
    }
}

impl Api {
    /// Reads a request.
    pub(crate) fn asked(self, path: &str, body: &Value) -> Asked {
        match self {
            Self::Anthropic => anthropic::asked(body),
            Self::Responses => responses::asked(body),
            Self::Chat => chat::asked(body),
            Self::Gemini => gemini::asked(path, body),
        }
    }

    /// Decides the reply to a request.
    pub(crate) fn reply(self, asked: &Asked, body: &Value) -> Result<Reply, Failure> {
        let aside = match self {
            Self::Gemini => gemini::aside(body),
            Self::Anthropic | Self::Responses | Self::Chat => None,
        };
        aside.map_or_else(|| script::reply(asked), Ok)
    }

    /// The reply in one piece.
    pub(crate) fn whole(self, answer: &Answer, reply: &Reply) -> Value {
        match self {
            Self::Anthropic => anthropic::whole(answer, reply),
            Self::Responses => responses::whole(answer, reply),
            Self::Chat => chat::whole(answer, reply),
            Self::Gemini => gemini::whole(answer, reply),
        }
    }

    /// The reply event by event.
    pub(crate) fn stream(self, answer: &Answer, reply: &Reply) -> Vec<Beat> {
        match self {
            Self::Anthropic => anthropic::stream(answer, reply),
            Self::Responses => responses::stream(answer, reply),
            Self::Chat => chat::stream(answer, reply),
            Self::Gemini => gemini::stream(answer, reply),
        }
    }

    /// The body of an HTTP error.
    pub(crate) fn failure(self, status: u16) -> Value {
        const MESSAGE: &str = "scripted failure";
        match self {
            Self::Anthropic => {
                let kind = match status {
                    400 => "invalid_request_error",
                    401 => "authentication_error",
                    403 => "permission_error",
                    404 => "not_found_error",
                    429 => "rate_limit_error",
                    529 => "overloaded_error",
                    _ => "api_error",
                };
                json!({"type": "error", "error": {"type": kind, "message": MESSAGE}})
            }
            Self::Responses | Self::Chat => {
                let kind = if status < 500 { "invalid_request_error" } else { "server_error" };
                json!({"error": {"message": MESSAGE, "type": kind, "param": null, "code": null}})
            }
            Self::Gemini => {
                let kind = match status {
                    400 => "INVALID_ARGUMENT",
                    401 => "UNAUTHENTICATED",
                    403 => "PERMISSION_DENIED",
                    404 => "NOT_FOUND",
                    429 => "RESOURCE_EXHAUSTED",
                    503 => "UNAVAILABLE",
                    _ => "INTERNAL",
                };
                json!({"error": {"code": status, "message": MESSAGE, "status": kind}})
            }
        }
    }
}

/// The text in a content that is a string, or a list of strings and blocks.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().map(|block| match (block, &block["text"]) {
                (Value::String(text), _) | (_, Value::String(text)) => text.clone(),
                _ => text_of(&block["content"]),
            });
            texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
        }
        Value::Object(_) => text_of(&content["content"]),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

/// The entries of a list; nothing where there is none.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
