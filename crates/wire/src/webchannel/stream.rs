//! Streamed text, as `assistant_chunk`s.
//!
//! The dialect has no message ids, so one message streams at a time. Other messages written
//! meanwhile are only sent whole, by their `assistant_final`.
//!
//! **Invariant**: the text of a streaming message is sent once, even when it is repeated from its
//! start.
//!
//! Not here: how a chunk is sealed (`envelope`), the finished message (`shown`).

use std::collections::{BTreeMap, VecDeque};

use domain::MessageId;
use domain::passing::{DRAFT_PARTS_MAX, DRAFTS_MAX, Delta, Voice};

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
    /// UTF-16 units told, by part.
    told: BTreeMap<u32, u64>,
}

/// How much of a delta is news.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum News<'a> {
    Nothing,
    /// All of it.
    Whole(&'a str),
    /// The end of it.
    Rest(&'a str),
}

impl Streaming {
    /// What of these words was not told yet. They count as told afterwards.
    pub(super) fn take<'a>(&mut self, delta: &'a Delta) -> News<'a> {
        let (Some(words), Voice::Text) = (delta.words.open(), delta.voice) else {
            return News::Nothing;
        };
        if words.is_empty() || delta.part >= DRAFT_PARTS_MAX {
            return News::Nothing;
        }
        let is_open = self.open.as_ref().is_some_and(|open| open.message == delta.message);
        if !is_open && !self.begin(delta) {
            return News::Nothing;
        }
        let Some(open) = &mut self.open else { return News::Nothing };
        let told = open.told.entry(delta.part).or_default();
        let end = delta.offset + words.encode_utf16().count() as u64;
        if end <= *told {
            return News::Nothing;
        }
        let known = told.saturating_sub(delta.offset);
        *told = end;
        if known == 0 {
            return News::Whole(words);
        }
        let mut units = 0;
        let rest = words.char_indices().find(|(_, letter)| {
            let is_rest = units >= known;
            units += letter.len_utf16() as u64;
            is_rest
        });
        rest.map_or(News::Nothing, |(at, _)| News::Rest(&words[at..]))
    }

    /// A message is told whole. Whatever streams in a client ends with it.
    pub(super) fn finish(&mut self, message: &MessageId) {
        self.missed.retain(|missed| missed != message);
        self.open.take_if(|open| open.message == *message);
    }

    /// Nothing is in the making any more. Whether something streamed without its end.
    pub(super) fn cut(&mut self) -> bool {
        self.missed.clear();
        self.open.take().is_some_and(|open| !open.told.is_empty())
    }

    fn begin(&mut self, delta: &Delta) -> bool {
        let is_free = self.open.is_none() && delta.offset == 0;
        if is_free && !self.missed.contains(&delta.message) {
            let (message, told) = (delta.message.clone(), BTreeMap::new());
            self.open = Some(Open { message, told });
            return true;
        }
        if !self.missed.contains(&delta.message) {
            if self.missed.len() >= DRAFTS_MAX {
                self.missed.pop_front();
            }
            self.missed.push_back(delta.message.clone());
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use domain::Content;

    use super::*;

    fn delta(message: &str, part: u32, offset: u64, words: &str) -> Delta {
        let words = Content::Open(words.to_owned());
        Delta { message: message.into(), part, voice: Voice::Text, offset, words }
    }

    #[test]
    fn words_told_again_are_told_once() {
        let mut streaming = Streaming::default();
        assert_eq!(streaming.take(&delta("m", 1, 0, "a😀b")), News::Whole("a😀b"));
        assert_eq!(streaming.take(&delta("m", 1, 0, "a😀b")), News::Nothing);
        assert_eq!(streaming.take(&delta("m", 1, 0, "a😀bcd")), News::Rest("cd"));
        assert_eq!(streaming.take(&delta("m", 1, 6, "e")), News::Whole("e"));
        assert_eq!(streaming.take(&delta("m", 2, 0, "next")), News::Whole("next"));
    }

    // spec: webchannel/assistant.4
    #[test]
    fn one_message_streams_at_a_time_and_one_without_its_beginning_never() {
        let mut streaming = Streaming::default();
        assert_eq!(streaming.take(&delta("late", 0, 5, "x")), News::Nothing);
        assert_eq!(streaming.take(&delta("m", 0, 0, "x")), News::Whole("x"));
        assert_eq!(streaming.take(&delta("n", 0, 0, "y")), News::Nothing);
        streaming.finish(&"m".into());
        assert_eq!(streaming.take(&delta("n", 0, 1, "y")), News::Nothing);
        assert_eq!(streaming.take(&delta("n", 1, 0, "y")), News::Nothing);
        assert_eq!(streaming.take(&delta("o", 0, 0, "z")), News::Whole("z"));
        assert!(streaming.cut());
        assert!(!streaming.cut());
    }

    #[test]
    fn thinking_is_not_told() {
        let thought = Delta { voice: Voice::Thinking, ..delta("m", 0, 0, "hm") };
        assert_eq!(Streaming::default().take(&thought), News::Nothing);
    }
}
