//! Streamed text, as `message_update`s.
//!
//! The text itself is encoded once for all connections. Where a message or part starts and ends
//! depends on what this connection saw, so each connection tracks it separately. When a text is
//! repeated from its start, the client receives only the part that it does not have yet. The
//! dialect streams one message at a time; other messages written meanwhile are sent when they are
//! finished.
//!
//! Not here: the finished message (`messages`, `events`).

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use domain::content::{Message, Part};
use domain::passing::{DRAFT_UNITS_MAX, DRAFTS_MAX, Delta, Voice};
use domain::{Content, MessageId, Timestamp, ToolCallId};
use serde::Serialize;
use serde_json::{Value, json};

use super::messages::{self, encode, framed, joined};
use super::view::View;

/// The message of an update that says only what is new.
const MINIMAL: &str = r#"{"role":"assistant","content":[]}"#;

/// What a connection has told of messages in the making.
#[derive(Debug, Default)]
pub(super) struct Streaming {
    /// Whether every update carries the whole message so far.
    is_full: bool,
    open: Option<Open>,
    /// Messages whose beginning was not told.
    missed: VecDeque<MessageId>,
    /// A message of which the first piece was ended, and how far it was told.
    broken: Option<Broken>,
}

#[derive(Debug)]
struct Broken {
    id: MessageId,
    /// UTF-16 units of its parts.
    units: BTreeMap<u32, u64>,
    calls: Vec<Value>,
}

#[derive(Debug)]
struct Open {
    id: MessageId,
    /// The first part that is told in it: another piece of the same message had those before.
    first: u32,
    model: String,
    at: Timestamp,
    parts: BTreeMap<u32, Spoken>,
    last: Option<u32>,
    calls: Vec<Value>,
}

#[derive(Debug)]
struct Spoken {
    voice: Voice,
    text: String,
    /// How far it was told, in UTF-16 units.
    units: u64,
}

/// Who hears of words, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// As they come.
    Live,
    /// What was said before a client came: no beginnings, only the words.
    Joining,
}

/// What to send for a few more words.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// These frames, and then the words as everybody gets them.
    Shared(Vec<Bytes>),
    /// These frames alone.
    Own(Vec<Bytes>),
}

#[derive(Serialize)]
struct Update<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    message: Minimal,
    #[serde(rename = "assistantMessageEvent")]
    event: More<'a>,
}

#[derive(Serialize)]
struct Minimal {
    role: &'static str,
    content: [(); 0],
}

#[derive(Serialize)]
struct More<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(rename = "contentIndex")]
    part: u32,
    delta: &'a str,
}

/// A few more words, the same for everybody.
pub(super) fn words(voice: Voice, part: u32, text: &str) -> Bytes {
    let kind = match voice {
        Voice::Text => "text_delta",
        Voice::Thinking => "thinking_delta",
    };
    encode(&Update {
        kind: "message_update",
        message: Minimal { role: "assistant", content: [] },
        event: More { kind, part, delta: text },
    })
}

/// The end of the agent's message, as an update. `reason` is pi's word for how it ended.
pub(super) fn over(reason: &str, message: &[u8]) -> Bytes {
    let (kind, name) = match reason {
        "aborted" | "error" => ("error", "error"),
        _ => ("done", "message"),
    };
    joined(&[
        b"{\"type\":\"message_update\",\"message\":",
        MINIMAL.as_bytes(),
        b",\"assistantMessageEvent\":{\"type\":\"",
        kind.as_bytes(),
        b"\",\"reason\":\"",
        reason.as_bytes(),
        b"\",\"",
        name.as_bytes(),
        b"\":",
        message,
        b"}}",
    ])
}

impl Streaming {
    pub(super) fn new(is_full: bool) -> Self {
        Self { is_full, ..Self::default() }
    }

    /// Whether this message is being told.
    pub(super) fn is_open(&self, id: &MessageId) -> bool {
        self.open.as_ref().is_some_and(|open| open.id == *id)
    }

    /// Whether any message is.
    pub(super) fn is_any_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether these words would begin the telling of a message.
    pub(super) fn begins(&self, delta: &Delta) -> bool {
        if self.open.is_some() {
            return false;
        }
        match self.broken.as_ref().filter(|broken| broken.id == delta.message) {
            Some(broken) => {
                let said = delta.words.open().map_or("", String::as_str);
                let known = broken.units.get(&delta.part).copied().unwrap_or(0);
                delta.offset <= known && end_of(delta, said) > known
            }
            None => delta.offset == 0 && !self.missed.contains(&delta.message),
        }
    }

    /// A few more words.
    pub(super) fn take(&mut self, view: &View, delta: &Delta, how: How) -> Told {
        let nothing = Told::Own(vec![]);
        let Some(said) = delta.words.open() else { return nothing };
        if self.begins(delta) {
            return self.begin(view, delta, said, how);
        }
        if !self.is_open(&delta.message) {
            self.miss(&delta.message);
            return nothing;
        }
        self.go_on(delta, said, how, vec![])
    }

    fn begin(&mut self, view: &View, delta: &Delta, said: &str, how: How) -> Told {
        let mut open = Open::new(view, &delta.message);
        let known = self.broken.as_ref().filter(|broken| broken.id == delta.message);
        if known.is_some() {
            open.first = delta.part;
        }
        let known = known.and_then(|broken| broken.units.get(&delta.part).copied());
        let mut frames = vec![framed("message_start", &encode(&open.message()))];
        self.open = Some(open);
        if how == How::Live {
            frames.push(self.update(json!({ "type": "start" })));
        }
        if let Some(units) = known {
            frames.extend(self.begin_part(delta.part, delta.voice, how));
            if let Some(part) = self.open.as_mut().and_then(|it| it.parts.get_mut(&delta.part)) {
                part.units = units;
            }
        }
        self.go_on(delta, said, how, frames)
    }

    fn go_on(&mut self, delta: &Delta, said: &str, how: How, mut frames: Vec<Bytes>) -> Told {
        let is_new = self
            .open
            .as_ref()
            .is_some_and(|open| delta.part >= open.first && !open.parts.contains_key(&delta.part));
        if is_new && delta.offset == 0 {
            frames.extend(self.begin_part(delta.part, delta.voice, how));
        }
        let first = self.open.as_ref().map_or(0, |open| open.first);
        if delta.part < first {
            return Told::Own(frames);
        }
        let Some(part) = self.open.as_mut().and_then(|open| open.parts.get_mut(&delta.part)) else {
            return Told::Own(frames);
        };
        let end = end_of(delta, said);
        if delta.offset > part.units || end <= part.units {
            // A gap, or nothing new.
            return Told::Own(frames);
        }
        let news = past(said, part.units - delta.offset);
        part.units = end;
        if end <= DRAFT_UNITS_MAX {
            part.text.push_str(news);
        }
        let is_shared = news.len() == said.len() && part.voice == delta.voice && first == 0;
        if !self.is_full && is_shared {
            return Told::Shared(frames);
        }
        let (voice, index) = (part.voice, delta.part - first);
        frames.push(self.more(voice, index, news));
        Told::Own(frames)
    }

    /// A few more words, for this connection.
    fn more(&self, voice: Voice, index: u32, news: &str) -> Bytes {
        if !self.is_full {
            return words(voice, index, news);
        }
        let kind = word(voice, "delta");
        self.update(json!({ "type": kind, "contentIndex": index, "delta": news }))
    }

    fn begin_part(&mut self, part: u32, voice: Voice, how: How) -> Vec<Bytes> {
        let mut frames = vec![];
        if how == How::Live {
            frames.extend(self.end_part());
        }
        let Some(open) = &mut self.open else { return frames };
        open.parts.insert(part, Spoken { voice, text: String::new(), units: 0 });
        open.last = Some(part);
        let index = part - open.first;
        if how == How::Live {
            let kind = word(voice, "start");
            frames.push(self.update(json!({ "type": kind, "contentIndex": index })));
        }
        frames
    }

    fn end_part(&mut self) -> Option<Bytes> {
        let open = self.open.as_mut()?;
        let last = open.last.take()?;
        let part = open.parts.get(&last)?;
        let event = json!({
            "type": word(part.voice, "end"), "contentIndex": last - open.first,
            "content": part.text,
        });
        Some(self.update(event))
    }

    /// The message that is being told calls a tool.
    pub(super) fn call(&mut self, call: &Value) -> Vec<Bytes> {
        let mut frames: Vec<_> = self.end_part().into_iter().collect();
        let Some(open) = &mut self.open else { return frames };
        let index = open.index_of_call(open.calls.len());
        open.calls.push(call.clone());
        frames.extend(self.call_events(index, call));
        frames
    }

    fn call_events(&self, index: u32, call: &Value) -> [Bytes; 3] {
        let arguments = call["arguments"].to_string();
        [
            json!({ "type": "toolcall_start", "contentIndex": index }),
            json!({ "type": "toolcall_delta", "contentIndex": index, "delta": arguments }),
            json!({ "type": "toolcall_end", "contentIndex": index, "toolCall": call }),
        ]
        .map(|event| self.update(event))
    }

    /// The message that is being told, from its beginning: for a page that has just replaced all
    /// that it showed.
    pub(super) fn again(&self) -> Vec<Bytes> {
        let Some(open) = &self.open else { return vec![] };
        let empty = messages::begun(&open.model, &open.id, &[], open.at);
        let mut frames = vec![framed("message_start", &encode(&empty))];
        for (index, part) in &open.parts {
            frames.push(self.more(part.voice, index - open.first, &part.text));
        }
        for (at, call) in open.calls.iter().enumerate() {
            frames.extend(self.call_events(open.index_of_call(at), call));
        }
        frames
    }

    /// Ends the message that is being told, for now: how its last part ends, and the message with
    /// what it said so far.
    pub(super) fn break_off(&mut self) -> Option<(Vec<Bytes>, Value)> {
        let frames = self.end_part().into_iter().collect();
        let open = self.open.take()?;
        let message = messages::broken_off(&open.model, &open.id, &open.content(), open.at);
        let before = self.broken.take().filter(|broken| broken.id == open.id);
        let (mut units, mut calls) =
            before.map(|broken| (broken.units, broken.calls)).unwrap_or_default();
        units.extend(open.parts.iter().map(|(index, part)| (*index, part.units)));
        calls.extend(open.calls);
        self.broken = Some(Broken { id: open.id, units, calls });
        Some((frames, message))
    }

    /// What a message says that no earlier piece of it did. `None`: it has no earlier piece.
    pub(super) fn rest<'m>(&self, message: &'m Message) -> Option<Cow<'m, Message>> {
        let broken = self.broken.as_ref().filter(|broken| broken.id == message.id)?;
        let parts = message.parts.open()?;
        let left = (0_u32..).zip(parts).filter_map(|(index, part)| {
            let told = broken.units.get(&index).copied();
            let left = |said: &str| Some(past(said, told?).to_owned()).filter(|it| !it.is_empty());
            match part {
                Part::Text(said) if told.is_some() => left(said).map(Part::Text),
                Part::Thinking(said) if told.is_some() => left(said).map(Part::Thinking),
                Part::ToolCall(id) if broken.calls.iter().any(|it| it["id"] == *id.as_str()) => {
                    None
                }
                Part::Text(_)
                | Part::Thinking(_)
                | Part::ToolCall(_)
                | Part::Image(_)
                | Part::File(_) => Some(part.clone()),
            }
        });
        let parts = Content::Open(left.collect());
        Some(Cow::Owned(Message { parts, ..message.clone() }))
    }

    /// Tells a message that was not told in the making, up to its end.
    pub(super) fn whole(
        &mut self,
        view: &View,
        message: &Message,
        call: impl Fn(&ToolCallId) -> Value,
    ) -> Vec<Bytes> {
        let before = self.open.take();
        let open = Open::new(view, &message.id);
        let mut frames = vec![framed("message_start", &encode(&open.message()))];
        self.open = Some(open);
        frames.push(self.update(json!({ "type": "start" })));
        for (index, part) in (0_u32..).zip(message.parts.open().into_iter().flatten()) {
            let (voice, said) = match part {
                Part::Text(said) => (Voice::Text, said),
                Part::Thinking(said) => (Voice::Thinking, said),
                Part::ToolCall(id) => {
                    frames.extend(self.call(&call(id)));
                    continue;
                }
                Part::Image(_) | Part::File(_) => continue,
            };
            let words_said = Content::Open(said.clone());
            let (message, offset) = (message.id.clone(), 0);
            let delta = Delta { message, part: index, voice, offset, words: words_said };
            match self.go_on(&delta, said, How::Live, vec![]) {
                Told::Shared(more) => {
                    frames.extend(more);
                    frames.push(words(voice, index, said));
                }
                Told::Own(more) => frames.extend(more),
            }
        }
        frames.extend(self.end_part());
        self.open = before;
        frames
    }

    /// The message that was told in the making is finished.
    pub(super) fn finish(&mut self, id: &MessageId) -> Vec<Bytes> {
        self.missed.retain(|missed| missed != id);
        self.broken.take_if(|broken| broken.id == *id);
        if !self.is_open(id) {
            return vec![];
        }
        let frames = self.end_part().into_iter().collect();
        self.open = None;
        frames
    }

    /// Nothing is in the making any more: how a message that nobody finished ends, and what it
    /// said.
    pub(super) fn cut(&mut self) -> Option<(Vec<Bytes>, Vec<Value>)> {
        self.missed.clear();
        self.broken = None;
        let frames = self.end_part().into_iter().collect();
        let open = self.open.take()?;
        Some((frames, open.content()))
    }

    fn update(&self, mut event: Value) -> Bytes {
        let full = self.open.as_ref().filter(|_| self.is_full);
        let message = full.map(Open::message);
        if let Some(message) = &message {
            event["partial"] = message.clone();
        }
        let message = message.unwrap_or_else(|| json!({ "role": "assistant", "content": [] }));
        encode(&json!({
            "type": "message_update", "message": message, "assistantMessageEvent": event,
        }))
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

impl Open {
    fn new(view: &View, id: &MessageId) -> Self {
        Self {
            id: id.clone(),
            first: 0,
            model: view.model().to_owned(),
            at: view.at,
            parts: BTreeMap::new(),
            last: None,
            calls: vec![],
        }
    }

    /// The message so far.
    fn message(&self) -> Value {
        messages::begun(&self.model, &self.id, &self.content(), self.at)
    }

    /// Calls stand after the words.
    fn index_of_call(&self, at: usize) -> u32 {
        let after = self.parts.keys().next_back().map_or(0, |last| last + 1 - self.first);
        after.saturating_add(u32::try_from(at).unwrap_or(u32::MAX))
    }

    fn content(&self) -> Vec<Value> {
        let spoken = self.parts.values().map(|part| match part.voice {
            Voice::Text => messages::text(&part.text),
            Voice::Thinking => messages::thinking(&part.text),
        });
        spoken.chain(self.calls.iter().cloned()).collect()
    }
}

fn word(voice: Voice, what: &str) -> String {
    match voice {
        Voice::Text => format!("text_{what}"),
        Voice::Thinking => format!("thinking_{what}"),
    }
}

/// Where a delta's words end within their part, in UTF-16 units.
fn end_of(delta: &Delta, said: &str) -> u64 {
    delta.offset + said.encode_utf16().count() as u64
}

/// The words after so many UTF-16 units.
fn past(words: &str, units: u64) -> &str {
    let mut left = units;
    for (at, character) in words.char_indices() {
        if left == 0 {
            return &words[at..];
        }
        left = left.saturating_sub(character.len_utf16() as u64);
    }
    if units == 0 { words } else { "" }
}
