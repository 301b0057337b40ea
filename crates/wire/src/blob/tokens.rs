//! Streamed text, as `token` events.
//!
//! **Invariant**: within a run, the contents of a connection's tokens, joined together, are what
//! the agent said. No text is sent twice, whatever was missed or repeated in between. `seq` counts
//! the tokens from 1.
//!
//! Not here: messages that are sent whole (`events`).

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
    /// The parts in the making, the newest last: nearly all words are that one's.
    shown: Vec<Shown>,
    /// Tokens of the run.
    count: u64,
    said: Option<&'static str>,
}

#[derive(Debug)]
struct Shown {
    message: MessageId,
    part: u32,
    /// How far, in UTF-16 units.
    units: u64,
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

    /// A few more words: what the agent turned to, where that is news, and its words.
    pub(super) fn on_delta(
        &mut self,
        view: &View,
        delta: &Delta,
        encoded: &Encoded,
    ) -> [Option<Bytes>; 2] {
        if delta.voice == Voice::Thinking {
            return [self.turn(view, "thinking"), None];
        }
        let Content::Open(words) = &delta.words else { return [None, None] };
        let shown = self.shown(delta);
        let (before, end) = (shown.units, delta.offset + units(words));
        // Nothing new, or words in between were missed: these come at the message's end.
        if end <= before || delta.offset > before {
            return [None, None];
        }
        shown.units = end;
        let status = self.turn(view, "streaming");
        self.count += 1;
        if delta.offset < before {
            let rest = after_units(words, before - delta.offset);
            return [status, Some(token(view, &delta.message, rest, self.count))];
        }
        // The same for everybody but for the count, which stands at its end: most connections
        // count alike, the others put theirs to the rest.
        let (own, message) = (self.count, &delta.message);
        let shared = encoded.frames(Slot::Blob, || vec![token(view, message, words, own)]);
        [status, shared.first().map(|frame| counted(frame, own))]
    }

    /// How far a part was shown.
    fn shown(&mut self, delta: &Delta) -> &mut Shown {
        let is_it = |it: &Shown| it.part == delta.part && it.message == delta.message;
        let place = self.shown.iter().rposition(is_it).unwrap_or_else(|| {
            if self.shown.len() >= PARTS_MAX {
                self.shown.remove(0);
            }
            self.shown.push(Shown { message: delta.message.clone(), part: delta.part, units: 0 });
            self.shown.len() - 1
        });
        &mut self.shown[place]
    }

    /// The message is finished: what was not shown of it follows.
    pub(super) fn on_message(&mut self, view: &View, message: &Message, frames: &mut Vec<Bytes>) {
        let mut shown = 0;
        self.shown.retain(|it| {
            let is_other = it.message != message.id;
            shown += if is_other { 0 } else { it.units };
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
                frames.extend(self.turn(view, "streaming"));
                self.count += 1;
                frames.push(token(view, &message.id, rest, self.count));
            }
        }
    }

    fn turn(&mut self, view: &View, word: &'static str) -> Option<Bytes> {
        let is_news = self.said.replace(word) != Some(word);
        is_news.then(|| status_event(view.run_name(), word, None))
    }
}

/// A token with this count instead of its own.
fn counted(frame: &Bytes, count: u64) -> Bytes {
    let digits = frame.iter().rev().skip(1).take_while(|byte| byte.is_ascii_digit()).count();
    let (rest, own) = frame.split_at(frame.len() - 1 - digits);
    let own = own[..digits].iter().fold(0, |sum: u64, digit| sum * 10 + u64::from(digit - b'0'));
    if own == count {
        return frame.clone();
    }
    [rest, count.to_string().as_bytes(), b"}"].concat().into()
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
    fn a_token_counts_for_each_connection() {
        let frame = Bytes::from_static(br#"{"content":"7","seq":99}"#);
        assert_eq!(counted(&frame, 99), frame);
        assert_eq!(counted(&frame, 9), &br#"{"content":"7","seq":9}"#[..]);
        assert_eq!(counted(&frame, 100), &br#"{"content":"7","seq":100}"#[..]);
    }

    #[test]
    fn units_are_skipped_by_whole_characters() {
        assert_eq!(after_units("a😀b", 0), "a😀b");
        assert_eq!(after_units("a😀b", 1), "😀b");
        assert_eq!(after_units("a😀b", 3), "b");
        assert_eq!(after_units("a😀b", 9), "");
    }
}
