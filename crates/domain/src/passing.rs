//! Passing events: shown live, never numbered, never recorded.
//!
//! A delta carries its position (`message`, `part`, `offset`), so a repeat is harmless and a gap
//! is noticed. The finished message is recorded and replaces its drafts.
//!
//! Not here: recorded events (`session`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Content, MessageId, Sequence};

/// Messages that may be in the making at once in one session; an older draft makes room.
pub const DRAFTS_MAX: usize = 16;
/// Parts of one draft. A delta beyond is not kept for late joiners.
pub const DRAFT_PARTS_MAX: u32 = 256;
/// UTF-16 units of one draft part that are kept for late joiners; the recorded message is whole.
pub const DRAFT_UNITS_MAX: u64 = 1 << 20;

/// Which voice a part is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Voice {
    /// Meant for the reader.
    Text,
    /// Reasoning.
    Thinking,
}

/// A few more words of a message in the making.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delta {
    /// The message in the making.
    pub message: MessageId,
    /// Which of its parts, from 0.
    pub part: u32,
    /// In which voice.
    pub voice: Voice,
    /// Where the words begin within the part, in UTF-16 units.
    pub offset: u64,
    /// The words.
    pub words: Content<String>,
}

/// A delta with its place among the recorded events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passing {
    /// The newest recorded event that it follows.
    pub after: Sequence,
    /// The words.
    pub delta: Delta,
}

/// The messages in the making, for those who join late.
#[derive(Debug, Clone, Default)]
pub struct Drafts {
    /// Oldest first.
    open: Vec<(MessageId, BTreeMap<u32, Draft>)>,
    is_wordless: bool,
}

#[derive(Debug, Clone)]
struct Draft {
    voice: Voice,
    units: u64,
    pieces: Vec<Content<String>>,
}

impl Drafts {
    /// For whoever needs to know only how far they heard: one of many watchers.
    pub fn without_words() -> Self {
        Self { open: vec![], is_wordless: true }
    }

    /// Takes in a delta. Returns whether it is news: repeats and what leaves a gap are not shown.
    pub fn take(&mut self, delta: &Delta) -> bool {
        let at = self.open.iter().position(|(id, _)| *id == delta.message).unwrap_or_else(|| {
            if self.open.len() >= DRAFTS_MAX {
                self.open.remove(0);
            }
            self.open.push((delta.message.clone(), BTreeMap::new()));
            self.open.len() - 1
        });
        let parts = &mut self.open[at].1;
        if delta.part >= DRAFT_PARTS_MAX {
            return true;
        }
        let draft = parts.entry(delta.part).or_insert_with(|| Draft {
            voice: delta.voice,
            units: 0,
            pieces: vec![],
        });
        if delta.offset == 0 && draft.units > 0 {
            // A proxy that came back tells its draft from the start.
            *draft = Draft { voice: delta.voice, units: 0, pieces: vec![] };
        }
        if delta.offset != draft.units {
            return false;
        }
        draft.units += units(&delta.words);
        if draft.units <= DRAFT_UNITS_MAX && !self.is_wordless {
            draft.pieces.push(delta.words.clone());
        }
        true
    }

    /// The recorded message supersedes its draft.
    pub fn finish(&mut self, message: &MessageId) {
        self.open.retain(|(id, _)| id != message);
    }

    /// Nothing is in the making any more: the run is over or the proxy is gone.
    pub fn clear(&mut self) {
        self.open.clear();
    }

    /// Only these stay in the making.
    pub fn keep(&mut self, is_kept: impl Fn(&MessageId) -> bool) {
        self.open.retain(|(id, _)| is_kept(id));
    }

    /// Whether a message is in the making.
    pub fn has(&self, message: &MessageId) -> bool {
        self.open.iter().any(|(id, _)| id == message)
    }

    /// Whether anything is in the making.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Everything in the making as deltas from offset 0.
    pub fn replay(&self) -> Vec<Delta> {
        let mut deltas = vec![];
        for (message, parts) in &self.open {
            for (part, draft) in parts {
                let (message, part, voice) = (message.clone(), *part, draft.voice);
                deltas.extend(joined(&draft.pieces).into_iter().map(|(offset, words)| Delta {
                    message: message.clone(),
                    part,
                    voice,
                    offset,
                    words,
                }));
            }
        }
        deltas
    }
}

/// Open pieces become one; a sealed one stays as it was sealed.
fn joined(pieces: &[Content<String>]) -> Vec<(u64, Content<String>)> {
    let mut whole: Vec<(u64, Content<String>)> = vec![];
    let mut offset = 0;
    for piece in pieces {
        match (whole.last_mut(), piece) {
            (Some((_, Content::Open(text))), Content::Open(more)) => text.push_str(more),
            _ => whole.push((offset, piece.clone())),
        }
        offset += units(piece);
    }
    whole
}

/// The length of words in UTF-16 units; of sealed words the relay knows only that they are some.
fn units(words: &Content<String>) -> u64 {
    match words {
        Content::Open(text) => text.encode_utf16().count() as u64,
        Content::Sealed(_) => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: native/extensions.4, native/extensions.5
    #[test]
    fn a_repeat_is_not_news_and_a_gap_is_not_shown() {
        let mut drafts = Drafts::default();
        assert!(drafts.take(&delta(0, "ab")));
        assert!(drafts.take(&delta(2, "c")));
        assert!(!drafts.take(&delta(2, "c")));
        assert!(!drafts.take(&delta(9, "z")));
        assert_eq!(drafts.replay(), [delta(0, "abc")]);
    }

    #[test]
    fn a_draft_told_anew_from_the_start_replaces_the_old_one() {
        let mut drafts = Drafts::default();
        drafts.take(&delta(0, "old"));
        assert!(drafts.take(&delta(0, "new words")));
        assert_eq!(drafts.replay(), [delta(0, "new words")]);
    }

    // spec: native/extensions.4
    #[test]
    fn offsets_count_utf16_units() {
        let mut drafts = Drafts::default();
        drafts.take(&delta(0, "😀"));
        assert!(drafts.take(&delta(2, "!")));
    }

    // spec: native/extensions.5
    #[test]
    fn the_recorded_message_ends_its_draft() {
        let mut drafts = Drafts::default();
        drafts.take(&delta(0, "ab"));
        drafts.finish(&"m".into());
        assert!(drafts.is_empty());
    }

    #[test]
    fn without_words_the_places_are_the_same() {
        let mut drafts = Drafts::without_words();
        assert!(drafts.take(&delta(0, "ab")) && drafts.take(&delta(2, "c")));
        assert!(!drafts.take(&delta(2, "c")) && !drafts.take(&delta(9, "z")));
        assert_eq!(drafts.replay(), []);
    }

    #[test]
    fn more_messages_than_the_bound_push_out_the_oldest() {
        let mut drafts = Drafts::default();
        for n in 0..=DRAFTS_MAX {
            let message = format!("m{n}").into();
            drafts.take(&Delta { message, ..delta(0, "x") });
        }
        assert_eq!(drafts.replay().len(), DRAFTS_MAX);
        assert_eq!(drafts.replay()[0].message, "m1".into());
    }

    fn delta(offset: u64, words: &str) -> Delta {
        let words = Content::Open(words.to_owned());
        Delta { message: "m".into(), part: 0, voice: Voice::Text, offset, words }
    }
}
