//! What a pi session remembers across restarts: its last settings, what the person allowed
//! permanently, and the state of pi's own record before each message was written.
//!
//! Not here: reading pi's record (`stored`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;

use domain::session::config::SlashCommand;
use domain::{MessageId, Sequence};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::Output;
use crate::notes::{Kept, shortened};

/// Attempts that are remembered. Of older ones nobody asks any more.
const ATTEMPTS_MAX: usize = 256;

/// A pi session as it was last read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Known {
    pub(super) session: String,
    pub(super) file: Option<PathBuf>,
    /// `provider/id`.
    pub(super) model: Option<String>,
    pub(super) models: Vec<String>,
    pub(super) effort: Option<String>,
    pub(super) efforts: Option<Vec<String>>,
    pub(super) takes_images: bool,
    #[serde(default)]
    pub(super) commands: Vec<SlashCommand>,
}

/// Where pi's record stood before a message was written to it, and what the message was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Attempt {
    /// The last entry; where pi cannot tell, the time stands in for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) leaf: Option<String>,
    pub(super) at_ms: u64,
    /// pi may add to the words of a person, so the length belongs to the fingerprint.
    pub(super) bytes: usize,
    pub(super) hash: String,
}

impl Attempt {
    pub(super) fn new(text: &str, leaf: Option<String>, at_ms: u64) -> Self {
        Self { leaf, at_ms, bytes: text.len(), hash: hash(text) }
    }

    /// Whether a message of pi's record begins with what was sent.
    pub(super) fn is_in(&self, text: &str) -> bool {
        text.get(..self.bytes).is_some_and(|start| hash(start) == self.hash)
    }
}

fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let mut bytes = [0_u8; 16];
    bytes.copy_from_slice(&digest[..16]);
    format!("{:032x}", u128::from_be_bytes(bytes))
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// It is ready to be used, or was read anew.
    Ready(Known),
    /// How it asks for permission.
    Mode(String),
    /// This tool needs no permission any more.
    Always(String),
    /// The earlier conversation is in the ledger.
    Imported,
    /// pi has a file from now on: it writes none before the first answer.
    Answered,
    /// A message is about to be written to pi.
    Attempt { id: MessageId, attempt: Sequence, before: Attempt },
}

#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) known: Option<Known>,
    pub(super) mode: Option<String>,
    pub(super) always: BTreeSet<String>,
    pub(super) is_imported: bool,
    pub(super) has_answered: bool,
    attempts: BTreeMap<(MessageId, Sequence), Attempt>,
    order: VecDeque<(MessageId, Sequence)>,
}

impl Notes {
    /// Lines that cannot be read are passed over: the last may have been cut by a crash.
    pub(super) fn read(text: &str) -> Self {
        let mut notes = Self::default();
        for line in text.lines().filter_map(|line| serde_json::from_str(line).ok()) {
            notes.apply(line);
        }
        notes
    }

    /// The lines without those that newer ones replace.
    pub(super) fn shortened(text: &str) -> String {
        shortened(text, |line: &Line| match line {
            Line::Ready(_) => Kept::Newest("ready"),
            Line::Mode(_) => Kept::Newest("mode"),
            Line::Always(_) => Kept::All,
            Line::Imported => Kept::Newest("imported"),
            Line::Answered => Kept::Newest("answered"),
            Line::Attempt { .. } => Kept::Last("attempt", ATTEMPTS_MAX),
        })
    }

    /// Takes a line in, and says that it is to be kept.
    pub(super) fn take(&mut self, line: Line) -> Output {
        let text = serde_json::to_string(&line).unwrap_or_default();
        self.apply(line);
        Output::Remember(text)
    }

    fn apply(&mut self, line: Line) {
        match line {
            Line::Ready(known) => self.known = Some(known),
            Line::Mode(mode) => self.mode = Some(mode),
            Line::Always(tool) => {
                self.always.insert(tool);
            }
            Line::Imported => self.is_imported = true,
            Line::Answered => self.has_answered = true,
            Line::Attempt { id, attempt, before } => {
                let key = (id, attempt);
                if self.attempts.insert(key.clone(), before).is_none() {
                    self.order.push_back(key);
                }
                if self.order.len() > ATTEMPTS_MAX
                    && let Some(oldest) = self.order.pop_front()
                {
                    self.attempts.remove(&oldest);
                }
            }
        }
    }

    /// The last entry of pi's record that is known.
    pub(super) fn last_leaf(&self) -> Option<&str> {
        let newest = self.order.iter().rev().find_map(|key| self.attempts.get(key))?;
        newest.leaf.as_deref()
    }

    pub(super) fn attempt(&self, id: &MessageId, attempt: Sequence) -> Option<&Attempt> {
        self.attempts.get(&(id.clone(), attempt))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_is_read_again_and_a_torn_line_is_passed_over() {
        let mut notes = Notes::default();
        let before = Attempt::new("hello", Some("a1".to_owned()), 5);
        let lines = [
            Line::Ready(Known { session: "s".to_owned(), ..Known::default() }),
            Line::Always("bash".to_owned()),
            Line::Attempt { id: "m1".into(), attempt: Sequence(2), before: before.clone() },
        ];
        let mut text = String::new();
        for line in lines {
            let Output::Remember(line) = notes.take(line) else { panic!() };
            text.push_str(&line);
            text.push('\n');
        }
        text.push_str("{\"mode\":\"yo");
        let read = Notes::read(&text);
        assert_eq!(read.known, notes.known);
        assert!(read.always.contains("bash"));
        assert_eq!(read.attempt(&"m1".into(), Sequence(2)), Some(&before));
        assert_eq!(read.attempt(&"m1".into(), Sequence(3)), None);
        assert_eq!(read.mode, None);
    }

    #[test]
    fn shortened_notes_say_what_all_of_them_said() {
        let ready =
            |session: &str| Line::Ready(Known { session: session.to_owned(), ..Known::default() });
        let mut lines = vec![
            ready("s1"),
            Line::Mode("ask".to_owned()),
            Line::Always("bash".to_owned()),
            Line::Imported,
            Line::Answered,
        ];
        let attempts = 0..=u64::try_from(ATTEMPTS_MAX).unwrap();
        lines.extend(attempts.map(|number| Line::Attempt {
            id: format!("m{number}").as_str().into(),
            attempt: Sequence(number),
            before: Attempt::new("hello", Some(format!("leaf-{number}")), number),
        }));
        let newer = ["edit", "write"].map(|tool| Line::Always(tool.to_owned()));
        lines.extend(newer);
        lines.extend([ready("s2"), Line::Mode("yolo".to_owned()), Line::Imported, Line::Answered]);
        let line = |line: &Line| format!("{}\n", serde_json::to_string(line).unwrap());
        let text: String = lines.iter().map(line).collect();
        let short = Notes::shortened(&text);
        assert_eq!(short.lines().count(), ATTEMPTS_MAX + 7);

        let (all, again) = (Notes::read(&text), Notes::read(&short));
        let told = |notes: &Notes| {
            (notes.known.clone(), notes.mode.clone(), notes.always.clone(), notes.order.clone())
        };
        assert_eq!(told(&again), told(&all));
        assert_eq!(again.known.as_ref().unwrap().session, "s2");
        assert_eq!(again.always.len(), 3);
        assert_eq!(again.attempts, all.attempts);
        assert_eq!(again.attempt(&"m0".into(), Sequence(0)), None);
        assert!(again.is_imported && again.has_answered);
        assert_eq!(again.last_leaf(), all.last_leaf());
    }

    #[test]
    fn a_message_is_recognised_with_what_pi_added_to_it() {
        let before = Attempt::new("hello", None, 5);
        assert!(before.is_in("hello"));
        assert!(before.is_in("hello\n\n[image was scaled]"));
        assert!(!before.is_in("hell"));
        assert!(!before.is_in("hallo there"));
    }
}
