//! The pages of histories that a client was told, including the events that it already knew.
//!
//! Not here: what they should have held (`check::pages`).

use client::Machine;
use serde_json::Value;

use super::Seen;

/// What the ids of requests for a part of a history that was shown before begin with.
pub(crate) const REPEAT_REQUEST: &str = "again-";

/// One page of a history.
#[derive(Debug, PartialEq)]
pub(crate) struct Page {
    /// Whose history.
    pub(crate) session: String,
    /// The request that it answers; none when the relay told it without being asked.
    pub(crate) request: Option<String>,
    /// The event after which that request asked to read.
    pub(crate) asked_after: Option<u64>,
    /// The event up to which it reaches.
    pub(crate) last: u64,
    /// Whether another page follows, for a client that is told so.
    pub(crate) has_more: Option<bool>,
    /// The last event that the client had been shown before this page came.
    pub(crate) shown_before: u64,
    /// What it holds.
    pub(crate) content: Content,
}

/// What a page holds.
#[derive(Debug, PartialEq)]
pub(crate) enum Content {
    /// The events after `from`.
    Events { from: u64, events: Vec<Value> },
    /// Every message that is kept.
    Messages(Vec<Value>),
}

impl Page {
    /// Whether it answers a request to read again, with events that were shown before.
    pub(crate) fn repeats_events(&self) -> bool {
        let is_asked = self.request.as_ref().is_some_and(|it| it.starts_with(REPEAT_REQUEST));
        match &self.content {
            Content::Events { from, events } => {
                is_asked && !events.is_empty() && *from < self.shown_before
            }
            Content::Messages(_) => false,
        }
    }
}

impl Seen {
    /// Notes a page of a history, or the error that is told in its place.
    pub(super) fn note_history(&mut self, text: &str, machine: &Machine) {
        let is_one = ["\"history_delta\"", "\"history_snapshot\"", "\"connection_error\""];
        if !is_one.iter().any(|kind| text.contains(kind)) {
            return;
        }
        let frame: Value = serde_json::from_str(text).unwrap_or_default();
        let request = frame["request_id"].as_str().map(str::to_owned);
        let list = |name: &str| frame[name].as_array().cloned().unwrap_or_default();
        let content = match frame["type"].as_str() {
            Some("history_delta") => {
                let from = frame["from_sequence"].as_u64().unwrap_or_default();
                Content::Events { from, events: list("events") }
            }
            Some("history_snapshot") => Content::Messages(list("messages")),
            Some("connection_error") => {
                let code = frame["code"].as_str().unwrap_or_default();
                // What replaces a history that is gone follows the error that says so.
                if let Some(request) = request
                    && code != "resume_cursor_invalid"
                {
                    self.read.insert(request, code.to_owned());
                }
                return;
            }
            Some(_) | None => return,
        };
        let has_more = frame["has_more"].as_bool();
        if let Some(request) = &request
            && has_more != Some(true)
        {
            self.read.insert(request.clone(), "told".to_owned());
        }
        let session = frame["session_id"].as_str().unwrap_or_default().to_owned();
        let asked_after = request.as_ref().and_then(|it| self.asked_after.get(it).copied());
        self.pages.push(Page {
            asked_after,
            request,
            last: frame["last_sequence"].as_u64().unwrap_or_default(),
            has_more,
            shown_before: machine.cursor(&session).unwrap_or_default(),
            session,
            content,
        });
    }
}
