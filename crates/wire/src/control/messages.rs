//! SDK messages: what the agent and people said, in the form that this dialect's clients read.
//!
//! **Invariant**: the frames of an event depend only on the event and the shared part of the view.
//! Whatever differs between connections is built elsewhere.
//!
//! Not here: streamed text (`stream`), results and the session's state (`system`).

use bytes::Bytes;
use domain::content::{
    Attachment, Author, Message, Part, ToolCall, ToolDetail, ToolStatus, ToolUpdate,
};
use domain::session::Recorded;
use domain::{Content, Sequence, SessionId, ToolCallId};
use serde::Serialize;
use serde_json::{Value, json};

use super::names;
use super::view::View;

/// What a reader without the key sees.
const SEALED: &str = "[sealed]";

/// The frames of one event; the last carries the event's number, from which a client resumes.
#[derive(Debug)]
pub(super) struct Frames<'a> {
    session: &'a SessionId,
    sequence: Sequence,
    list: Vec<Value>,
}

impl<'a> Frames<'a> {
    pub(super) fn of(view: &'a View, recorded: &Recorded) -> Self {
        Self { session: &view.session, sequence: recorded.sequence, list: vec![] }
    }

    /// Adds a message; its session and uuid are filled in.
    pub(super) fn push(&mut self, mut frame: Value) {
        let place = self.list.len();
        if frame["uuid"].is_null() {
            frame["uuid"] = json!(names::of_event(self.session, self.sequence, place));
        }
        frame["session_id"] = json!(self.session);
        self.list.push(frame);
    }

    /// Adds a control frame as it is.
    pub(super) fn push_plain(&mut self, frame: Value) {
        self.list.push(frame);
    }

    /// Where more frames of the same event follow.
    pub(super) fn unnumbered(self) -> Vec<Bytes> {
        self.list.iter().map(encode).collect()
    }

    pub(super) fn bytes(mut self) -> Vec<Bytes> {
        if let Some(last) = self.list.last_mut() {
            last["sequence_num"] = json!(self.sequence);
        }
        self.list.iter().map(encode).collect()
    }
}

/// Any frame as bytes.
pub(super) fn encode(frame: &impl Serialize) -> Bytes {
    // Cannot fail: a vector takes everything and no value refuses to be written.
    serde_json::to_vec(frame).unwrap_or_default().into()
}

/// A recorded message. `is_replay` tells a sender that these are its own words.
pub(super) fn message(frames: &mut Frames<'_>, view: &View, message: &Message, is_replay: bool) {
    match message.author {
        Author::User => {
            let mut frame = user(&message.parts, message.parent.as_ref());
            frame["uuid"] = json!(message.id);
            if is_replay {
                frame["isReplay"] = json!(true);
            }
            frames.push(frame);
        }
        Author::Assistant => {
            for block in blocks(&message.parts) {
                let id = message.id.as_str();
                frames.push(assistant(view, id, &block, message.parent.as_ref()));
            }
        }
        Author::System => {
            let words: Vec<_> = blocks(&message.parts)
                .iter()
                .filter_map(|block| block["text"].as_str().map(str::to_owned))
                .collect();
            frames.push(informational(&words.join("\n"), "notice"));
        }
    }
}

/// A tool call, and its result if it is over already.
pub(super) fn tool_call(frames: &mut Frames<'_>, view: &View, call: &ToolCall) {
    let unread = ToolDetail::default();
    let detail = call.detail.open().unwrap_or(&unread);
    let block =
        json!({ "type": "tool_use", "id": call.id, "name": call.tool, "input": input(detail) });
    // Claude Code's own calls are blocks of a message; here each is a message by itself.
    let message = format!("msg_{}", call.id);
    frames.push(assistant(view, &message, &block, call.parent.as_ref()));
    if let Some(is_error) = is_over(call.status) {
        let silent = silence(call.status);
        frames.push(tool_result(&call.id, detail, silent, is_error, call.parent.as_ref()));
    }
}

/// The end of a tool call; `None` while it goes on.
pub(super) fn tool_end(
    view: &View,
    update: &ToolUpdate,
    parent: Option<&ToolCallId>,
) -> Option<Value> {
    let unread = ToolDetail::default();
    let detail = update.detail.open().unwrap_or(&unread);
    let is_error = is_over(update.status)?;
    let refusal = view.refusal(update).filter(|_| is_error);
    let silent = refusal.unwrap_or_else(|| silence(update.status));
    Some(tool_result(&update.id, detail, silent, is_error, parent))
}

/// What is told of a call that gave nothing.
fn silence(status: ToolStatus) -> &'static str {
    if status == ToolStatus::Cancelled { "The call was cancelled or denied" } else { "" }
}

/// Something to know.
pub(super) fn informational(words: &str, level: &str) -> Value {
    json!({ "type": "system", "subtype": "informational", "content": words, "level": level })
}

fn assistant(view: &View, id: &str, block: &Value, parent: Option<&ToolCallId>) -> Value {
    json!({
        "type": "assistant",
        "message": {
            "id": id, "type": "message", "role": "assistant", "model": view.model(),
            "content": [block], "stop_reason": null, "stop_sequence": null,
            "usage": {
                "input_tokens": 0, "output_tokens": 0,
                "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0,
            },
        },
        "parent_tool_use_id": parent,
    })
}

/// Plain words as text, anything more as blocks.
pub(super) fn user(parts: &Content<Vec<Part>>, parent: Option<&ToolCallId>) -> Value {
    let mut blocks = blocks(parts);
    let content = match blocks.as_mut_slice() {
        [only] if only["type"] == "text" => only["text"].take(),
        _ => json!(blocks),
    };
    json!({
        "type": "user", "message": { "role": "user", "content": content },
        "parent_tool_use_id": parent,
    })
}

fn blocks(parts: &Content<Vec<Part>>) -> Vec<Value> {
    let text = |text: &str| json!({ "type": "text", "text": text });
    let file = |kind: &str, file: &Attachment| text(&format!("[{kind}: {}]", file.name));
    let Some(parts) = parts.open() else { return vec![text(SEALED)] };
    let block = |part: &Part| match part {
        Part::Text(words) => Some(text(words)),
        Part::Thinking(words) => {
            Some(json!({ "type": "thinking", "thinking": words, "signature": "" }))
        }
        Part::Image(image) => Some(file("image", image)),
        Part::File(other) => Some(file("file", other)),
        // The call is a message of its own.
        Part::ToolCall(_) => None,
    };
    parts.iter().filter_map(block).collect()
}

fn input(detail: &ToolDetail) -> Value {
    let Some(text) = &detail.input else {
        return detail.title.as_ref().map_or(json!({}), |title| json!({ "title": title }));
    };
    match serde_json::from_str::<Value>(text) {
        Ok(value @ Value::Object(_)) => value,
        Ok(other) => json!({ "input": other }),
        Err(_) => json!({ "input": text }),
    }
}

/// Whether a call is over, and then whether it went wrong.
fn is_over(status: ToolStatus) -> Option<bool> {
    match status {
        ToolStatus::Pending | ToolStatus::Running => None,
        ToolStatus::Completed => Some(false),
        ToolStatus::Failed | ToolStatus::Cancelled => Some(true),
    }
}

fn tool_result(
    id: &ToolCallId,
    detail: &ToolDetail,
    silent: &str,
    is_error: bool,
    parent: Option<&ToolCallId>,
) -> Value {
    let output = detail.output.as_deref().unwrap_or(silent);
    json!({
        "type": "user",
        "message": { "role": "user", "content": [{
            "type": "tool_result", "tool_use_id": id, "content": output, "is_error": is_error,
        }] },
        "parent_tool_use_id": parent,
    })
}
