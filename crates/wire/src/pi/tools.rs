//! Tool calls: `tool_execution_*`, and the messages around them.
//!
//! pi's agents call tools within their messages. A call that an agent reports while one of its
//! messages is being written becomes part of that message; otherwise it becomes a separate
//! message.
//!
//! Not here: the shapes of messages (`messages`).

use bytes::Bytes;
use domain::content::{ToolCall, ToolDetail, ToolUpdate};
use domain::session::Recorded;
use domain::{Timestamp, ToolCallId};
use serde_json::{Value, json};

use super::messages::{self, encode, framed, inside};
use super::view::Tool;
use super::{Connection, stream};
use crate::visitor::{Encoded, Slot};

/// A tool prints something: everything so far.
pub(super) fn progress(id: &ToolCallId, tool: &Tool, result: &Value) -> Bytes {
    encode(&json!({
        "type": "tool_execution_update", "toolCallId": id, "toolName": tool.name,
        "args": tool.arguments, "partialResult": result,
    }))
}

/// A tool is done: its end, and its result as a message. The last frame is the message's end.
fn end(id: &ToolCallId, name: &str, result: &Value, is_error: bool, at: Timestamp) -> Vec<Bytes> {
    let over = encode(&json!({
        "type": "tool_execution_end", "toolCallId": id, "toolName": name, "result": result,
        "isError": is_error,
    }));
    let message = encode(&messages::tool_result(id, name, result, is_error, at));
    vec![over, framed("message_start", &message), framed("message_end", &message)]
}

impl Connection {
    pub(super) fn tool_call(
        &mut self,
        recorded: &Recorded,
        call: &ToolCall,
        encoded: &Encoded,
    ) -> Vec<Bytes> {
        if self.view.tools.get(&call.id).is_some() {
            // Told before: what is new is how it goes on.
            let (id, status, detail) = (call.id.clone(), call.status, call.detail.clone());
            return self.tool_update(recorded, &ToolUpdate { id, status, detail }, encoded);
        }
        let is_within = self.streaming.is_any_open();
        self.view.tools.begin(call, true, !is_within);
        let told = messages::tool_call(&call.id, &call.tool, &messages::arguments(&call.detail));
        let mut frames =
            if is_within { self.streaming.call(&told) } else { self.call_alone(told, recorded.at) };
        frames.extend_from_slice(encoded.frames(Slot::Pi, || begin(recorded, call)));
        if messages::is_over(call.status).is_some() {
            self.keep_result(frames.last().cloned());
        }
        frames
    }

    /// A message of the agent in which it only calls this tool.
    fn call_alone(&mut self, call: Value, at: Timestamp) -> Vec<Bytes> {
        let mut frames = self.begin_message();
        let model = self.view.model().to_owned();
        let id = call["id"].as_str().unwrap_or_default().into();
        let parts = domain::Content::Open(vec![domain::content::Part::ToolCall(id)]);
        let message = domain::content::Message {
            id: format!("call:{}", call["id"].as_str().unwrap_or_default()).into(),
            author: domain::content::Author::Assistant,
            parts,
            created_at: at,
            run: None,
            parent: None,
            digest: None,
        };
        frames.extend(self.streaming.whole(&self.view, &message, |_| call.clone()));
        let whole = encode(&messages::calls(&model, call, at));
        frames.push(stream::over("toolUse", &whole));
        frames.push(framed("message_end", &whole));
        self.keep_said(whole);
        frames
    }

    pub(super) fn tool_update(
        &mut self,
        recorded: &Recorded,
        update: &ToolUpdate,
        encoded: &Encoded,
    ) -> Vec<Bytes> {
        let unread = ToolDetail::default();
        let detail = update.detail.open().unwrap_or(&unread);
        let known = self.view.tools.get(&update.id);
        let is_whole = known.is_some_and(|tool| tool.is_whole);
        let Some(is_error) = messages::is_over(update.status) else {
            // A sign of life without words is none to pi.
            if detail.output.is_none() {
                return vec![];
            }
            let Some(tool) = known else { return vec![] };
            let encode = || {
                let result = messages::result(update.status, detail, None);
                vec![progress(&update.id, tool, &result)]
            };
            let frames =
                if is_whole { encoded.frames(Slot::Pi, encode).to_vec() } else { encode() };
            if let Some(tool) = self.view.tools.get_mut(&update.id) {
                tool.printed = frames.first().cloned();
            }
            return frames;
        };
        let encode = || {
            let name = known.map_or("tool", |tool| tool.name.as_str());
            let printed = known.and_then(|tool| tool.printed.as_ref());
            let printed = printed.filter(|_| detail.output.is_none()).and_then(printed_words);
            let result = messages::result(update.status, detail, printed.as_deref());
            end(&update.id, name, &result, is_error, recorded.at)
        };
        let frames = if is_whole { encoded.frames(Slot::Pi, encode).to_vec() } else { encode() };
        self.keep_result(frames.last().cloned());
        frames
    }

    /// Takes the message of the last frame for the ends of the turn and the run.
    fn keep_result(&mut self, last: Option<Bytes>) {
        let Some(message) = last.map(|frame| inside(&frame, "message_end")) else { return };
        if let Some(run) = &mut self.view.run {
            self.turn.keep(message.clone());
            run.keep(message);
        }
    }
}

/// A call begins, and may be over at once.
fn begin(recorded: &Recorded, call: &ToolCall) -> Vec<Bytes> {
    let arguments = messages::arguments(&call.detail);
    let mut frames = vec![encode(&json!({
        "type": "tool_execution_start", "toolCallId": call.id, "toolName": call.tool,
        "args": arguments,
    }))];
    if let Some(is_error) = messages::is_over(call.status) {
        let unread = ToolDetail::default();
        let detail = call.detail.open().unwrap_or(&unread);
        let result = messages::result(call.status, detail, None);
        frames.extend(end(&call.id, &call.tool, &result, is_error, recorded.at));
    }
    frames
}

/// The words of the frame that told what a tool printed.
fn printed_words(frame: &Bytes) -> Option<String> {
    let frame = serde_json::from_slice::<Value>(frame).ok()?;
    frame["partialResult"]["content"][0]["text"].as_str().map(str::to_owned)
}
