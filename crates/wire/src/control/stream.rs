//! Streamed text, in the form of the Messages API.
//!
//! The text itself is encoded once for all connections. Where a message or block starts and ends
//! depends on what this connection saw, so each connection tracks it separately. The dialect
//! streams one message at a time; other messages written meanwhile are only sent whole.
//!
//! Not here: the finished message (`messages`).

use std::collections::VecDeque;

use bytes::Bytes;
use domain::content::{Message, Part};
use domain::passing::{DRAFTS_MAX, Delta, Voice};
use domain::{MessageId, SessionId};
use serde::Serialize;
use serde_json::{Value, json};

use super::messages::encode;
use super::names;
use super::view::View;

/// What a connection has told of messages in the making.
#[derive(Debug, Default)]
pub(super) struct Streaming {
    open: Option<Open>,
    /// Messages whose beginning was not told.
    missed: VecDeque<MessageId>,
}

#[derive(Debug)]
struct Open {
    message: MessageId,
    block: Option<u32>,
}

#[derive(Serialize)]
struct Words<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    event: BlockDelta<'a>,
    session_id: &'a SessionId,
    parent_tool_use_id: Option<&'a str>,
    uuid: String,
}

#[derive(Serialize)]
struct BlockDelta<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    index: u32,
    delta: Piece<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type")]
enum Piece<'a> {
    #[serde(rename = "text_delta")]
    Text { text: &'a str },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: &'a str },
}

/// A few more words, the same for everybody. Sealed words have no frame.
pub(super) fn words(session: &SessionId, delta: &Delta) -> Option<Bytes> {
    let text = delta.words.open()?;
    let piece = match delta.voice {
        Voice::Text => Piece::Text { text },
        Voice::Thinking => Piece::Thinking { thinking: text },
    };
    let place = [delta.part.to_string(), delta.offset.to_string()];
    Some(encode(&Words {
        kind: "stream_event",
        event: BlockDelta { kind: "content_block_delta", index: delta.part, delta: piece },
        session_id: session,
        parent_tool_use_id: None,
        uuid: names::of(&[session.as_str(), delta.message.as_str(), &place[0], &place[1]]),
    }))
}

impl Streaming {
    /// What comes before these words: the beginning of their message and block. `None`: these
    /// words are not to be told.
    pub(super) fn before(&mut self, view: &View, delta: &Delta) -> Option<Vec<Bytes>> {
        let mut events = vec![];
        let anew = delta.part == 0 && delta.offset == 0;
        match &self.open {
            Some(open) if open.message != delta.message => {
                self.miss(&delta.message);
                return None;
            }
            Some(_) if !anew => {}
            // From the start, or once more from the start.
            Some(_) | None => {
                if delta.offset != 0 || self.missed.contains(&delta.message) {
                    self.miss(&delta.message);
                    return None;
                }
                self.open = Some(Open { message: delta.message.clone(), block: None });
                events.push(message_start(view, &delta.message));
            }
        }
        let open = self.open.as_mut()?;
        if open.block != Some(delta.part) {
            if let Some(block) = open.block {
                events.push(json!({ "type": "content_block_stop", "index": block }));
            }
            let block = match delta.voice {
                Voice::Text => json!({ "type": "text", "text": "" }),
                Voice::Thinking => json!({ "type": "thinking", "thinking": "", "signature": "" }),
            };
            let index = delta.part;
            events.push(
                json!({ "type": "content_block_start", "index": index, "content_block": block }),
            );
            open.block = Some(index);
        }
        Some(framed(view, &delta.message, events))
    }

    /// The message is finished and about to be told whole.
    pub(super) fn finish(&mut self, view: &View, message: &Message) -> Vec<Bytes> {
        self.missed.retain(|missed| *missed != message.id);
        let Some(open) = self.open.take_if(|open| open.message == message.id) else {
            return vec![];
        };
        let calls_tool = message
            .parts
            .open()
            .is_some_and(|parts| parts.iter().any(|part| matches!(part, Part::ToolCall(_))));
        end(view, &open, if calls_tool { "tool_use" } else { "end_turn" })
    }

    /// Nothing is in the making any more.
    pub(super) fn cut(&mut self, view: &View) -> Vec<Bytes> {
        self.missed.clear();
        self.open.take().map(|open| end(view, &open, "end_turn")).unwrap_or_default()
    }

    /// Passing words may have been lost: what is in the making is told from its start.
    pub(super) fn restart(&mut self) {
        *self = Self::default();
    }

    fn miss(&mut self, message: &MessageId) {
        if self.missed.contains(message) {
            return;
        }
        if self.missed.len() >= DRAFTS_MAX {
            self.missed.pop_front();
        }
        self.missed.push_back(message.clone());
    }
}

fn message_start(view: &View, id: &MessageId) -> Value {
    json!({ "type": "message_start", "message": {
        "id": id, "type": "message", "role": "assistant", "model": view.model(), "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": { "input_tokens": 0, "output_tokens": 0 },
    } })
}

fn end(view: &View, open: &Open, stop_reason: &str) -> Vec<Bytes> {
    let mut events = vec![];
    if let Some(block) = open.block {
        events.push(json!({ "type": "content_block_stop", "index": block }));
    }
    events.push(json!({
        "type": "message_delta", "delta": { "stop_reason": stop_reason, "stop_sequence": null },
        "usage": { "output_tokens": 0 },
    }));
    events.push(json!({ "type": "message_stop" }));
    framed(view, &open.message, events)
}

fn framed(view: &View, message: &MessageId, events: Vec<Value>) -> Vec<Bytes> {
    let frame = |event: Value| {
        let (kind, index) = (event["type"].to_string(), event["index"].to_string());
        encode(&json!({
            "type": "stream_event", "event": event, "session_id": view.session,
            "parent_tool_use_id": null,
            "uuid": names::of(&[view.session.as_str(), message.as_str(), &kind, &index]),
        }))
    };
    events.into_iter().map(frame).collect()
}
