//! A session as `farhelm tail` shows it to a person.
//!
//! **Invariant**: text from other programs cannot control the terminal. On a terminal, text streams
//! in place as it arrives; elsewhere each message is printed once, complete.
//!
//! Not here: which events come (`client`), printing (`output`).

mod draft;
mod words;

use std::collections::BTreeMap;

use client::Event;
use serde_json::Value;

use self::draft::Draft;

/// Tool calls whose names are remembered; beyond it all are forgotten, and shown by their id.
const TOOLS_KNOWN_MAX: usize = 1_000;

/// Draws one session.
#[derive(Debug)]
pub(crate) struct View {
    session: String,
    streams: bool,
    draft: Option<Draft>,
    tools: BTreeMap<String, String>,
    status: String,
    /// Whether questions are answered right here, without another command.
    answers_here: bool,
}

impl View {
    /// Of this session, as it is to be named in commands; `streams` on a terminal.
    pub(crate) fn new(session: &str, streams: bool) -> Self {
        let (session, status) = (session.to_owned(), words::HEALTHY.to_owned());
        let (draft, tools) = (None, BTreeMap::new());
        Self { session, streams, draft, tools, status, answers_here: false }
    }

    /// The same where questions are answered right here.
    pub(crate) fn answering(session: &str, streams: bool) -> Self {
        Self { answers_here: true, ..Self::new(session, streams) }
    }

    /// What to print for an event.
    pub(crate) fn on_event(&mut self, event: &Event) -> String {
        if event.kind == "message_event" {
            return self.on_message(&event.frame["message"]);
        }
        let text = match event.kind.as_str() {
            "tool_call" | "tool_update" => self.on_tool(&event.frame),
            "session_status" => self.on_status(&event.frame),
            "permission_prompt" if self.answers_here => words::question(&event.frame),
            kind => words::of(kind, &event.frame, &self.session),
        };
        if text.is_empty() { text } else { self.end_line() + &text }
    }

    /// Told when it changes: most events of this kind are about what the agent is busy with.
    fn on_status(&mut self, frame: &Value) -> String {
        let status = frame["status"].as_str().unwrap_or(words::HEALTHY);
        if self.status == status {
            return String::new();
        }
        status.clone_into(&mut self.status);
        words::status(frame)
    }

    /// An update does not repeat what its call is named.
    fn on_tool(&mut self, frame: &Value) -> String {
        let id = frame["tool_call_id"].as_str().unwrap_or_default();
        if let Some(name) = words::tool_name(frame) {
            if self.tools.len() >= TOOLS_KNOWN_MAX {
                self.tools.clear();
            }
            self.tools.entry(id.to_owned()).or_insert(name);
        }
        words::tool(frame, self.tools.get(id).map_or(id, String::as_str))
    }

    /// What to print for a message of a history that begins anew.
    pub(crate) fn on_message(&mut self, message: &Value) -> String {
        let whole = words::message(message);
        let draft = self.draft.take();
        match draft {
            // It stands there already.
            Some(draft) if draft.says(message) => "\n".to_owned(),
            Some(_) => format!("\n{whole}"),
            None => whole,
        }
    }

    /// What to print for a few more words.
    pub(crate) fn on_delta(&mut self, delta: &Value) -> String {
        if !self.streams {
            return String::new();
        }
        if let Some(draft) = &mut self.draft
            && let Some(more) = draft.go_on(delta)
        {
            return more;
        }
        let Some((draft, begun)) = Draft::begin(delta) else { return String::new() };
        let earlier = self.draft.take();
        let (draft, begun) = match &earlier {
            Some(earlier) => (draft.below(earlier), format!("\n{begun}")),
            None => (draft, begun),
        };
        self.draft = Some(draft);
        begun
    }

    /// Words that were cut off stay on their line.
    pub(crate) fn end_line(&mut self) -> String {
        self.draft.take().map(|_| "\n".to_owned()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
