//! Words in the making, as `token` events.
//!
//! **Invariant**: within a run the contents of a connection's tokens, put together, are what the
//! agent said; no word is sent twice, whatever was missed or repeated in between. `seq` counts
//! them from 1.
//!
//! Not here: messages that are told whole (`events`).

use std::collections::BTreeMap;

use bytes::Bytes;
use domain::content::{Message, Part};
use domain::passing::{DRAFTS_MAX, Delta, Voice};
use domain::{Content, MessageId};
use serde::Serialize;

use super::events::status_event;
use super::frames::encode;
use super::view::View;
use crate::visitor::{Encoded, Slot};

/// Parts of messages in the making that are followed at once; of more, the first is forgotten and
/// comes again whole at its end.
const PARTS_MAX: usize = DRAFTS_MAX * 64;

/// How far the words of a run were shown.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    /// UTF-16 units of each part.
    shown: BTreeMap<(MessageId, u32), u64>,
    /// Tokens of the run.
    count: u64,
    said: Option<&'static str>,
}

#[derive(Serialize)]
struct Payload<'a> {
    #[serde(rename = "runId")]
    run: Option<&'a str>,
    content: &'a str,
    delta: bool,
    #[serde(rename = "messageId")]
    message: &'a MessageId,
}

#[derive(Serialize)]
struct Frame<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    event: &'static str,
    payload: Payload<'a>,
    seq: u64,
}

impl Tokens {
    /// A run begins, or ended.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// The agent turned to something else than talking.
    pub(super) fn pause(&mut self) {
        self.said = None;
    }

    /// A few more words.
    pub(super) fn on_delta(
        &mut self,
        view: &View,
        delta: &Delta,
        encoded: &Encoded,
        frames: &mut Vec<Bytes>,
    ) {
        if delta.voice == Voice::Thinking {
            return self.turn(view, "thinking", frames);
        }
        let Content::Open(words) = &delta.words else { return };
        let key = (delta.message.clone(), delta.part);
        let shown = self.shown.get(&key).copied().unwrap_or(0);
        let end = delta.offset + units(words);
        // Nothing new, or words in between were missed: these come at the message's end.
        if end <= shown || delta.offset > shown {
            return;
        }
        if self.shown.len() >= PARTS_MAX && !self.shown.contains_key(&key) {
            self.shown.pop_first();
        }
        self.shown.insert(key, end);
        self.turn(view, "streaming", frames);
        self.count += 1;
        if delta.offset < shown {
            let rest = after_units(words, shown - delta.offset);
            frames.push(token(view, &delta.message, rest, self.count));
            return;
        }
        // Made by whoever needs it first; a connection that counts otherwise makes its own.
        let (own, message) = (self.count, &delta.message);
        let mark = own.to_le_bytes();
        let shared = encoded.frames(Slot::Blob, || {
            vec![token(view, message, words, own), Bytes::copy_from_slice(&mark)]
        });
        match shared {
            [frame, count] if count[..] == mark => frames.push(frame.clone()),
            _ => frames.push(token(view, message, words, own)),
        }
    }

    /// The message is finished: what was not shown of it follows.
    pub(super) fn on_message(&mut self, view: &View, message: &Message, frames: &mut Vec<Bytes>) {
        let mut shown = 0;
        self.shown.retain(|(id, _), units| {
            let is_other = *id != message.id;
            shown += if is_other { 0 } else { *units };
            is_other
        });
        let Some(parts) = message.parts.open() else { return };
        if message.parent.is_some() {
            return;
        }
        for part in parts {
            let Part::Text(text) = part else { continue };
            let length = units(text);
            let rest = after_units(text, shown);
            shown = shown.saturating_sub(length);
            if !rest.is_empty() {
                self.turn(view, "streaming", frames);
                self.count += 1;
                frames.push(token(view, &message.id, rest, self.count));
            }
        }
    }

    fn turn(&mut self, view: &View, word: &'static str, frames: &mut Vec<Bytes>) {
        if self.said != Some(word) {
            self.said = Some(word);
            frames.push(status_event(view.run_name(), word, None));
        }
    }
}

fn token(view: &View, message: &MessageId, content: &str, seq: u64) -> Bytes {
    let payload = Payload { run: view.run_name(), content, delta: true, message };
    encode(&Frame { kind: "event", event: "token", payload, seq })
}

fn units(text: &str) -> u64 {
    text.encode_utf16().count() as u64
}

/// What follows the first so many UTF-16 units.
fn after_units(text: &str, mut skip: u64) -> &str {
    for (at, character) in text.char_indices() {
        if skip == 0 {
            return &text[at..];
        }
        skip = skip.saturating_sub(character.len_utf16() as u64);
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_skipped_by_whole_characters() {
        assert_eq!(after_units("a😀b", 0), "a😀b");
        assert_eq!(after_units("a😀b", 1), "😀b");
        assert_eq!(after_units("a😀b", 3), "b");
        assert_eq!(after_units("a😀b", 9), "");
    }
}
