//! What a session's driver remembers on disk, one line each.
//!
//! Invariant: a send is noted before it is written to the program, so a send without a note was
//! never written.

use std::collections::BTreeMap;

use domain::{MessageId, Sequence, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::settings::{Abilities, Setting, Settings};
use crate::notes::{Kept, shortened};

/// A line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Note {
    /// The agent's own name of the conversation. A new name begins anew.
    Conversation {
        id: String,
        /// When it was opened, if it was opened here.
        opened_at: Option<Timestamp>,
    },
    /// The session was ready.
    Ready,
    /// As the agent last told.
    Known { settings: Settings, abilities: Abilities },
    /// What was asked for.
    Wanted(Wanted),
    /// About to be written.
    Writing { id: MessageId, attempt: Sequence, digest: String },
    /// There was evidence, or it was found.
    Delivered { id: MessageId, attempt: Sequence },
    /// An earlier conversation is in the ledger; how often it has each text of a person.
    Imported(BTreeMap<String, usize>),
}

/// Settings that a person asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Wanted {
    model: Option<String>,
    mode: Option<String>,
    effort: Option<String>,
}

impl Wanted {
    pub(super) fn new(model: Option<String>, mode: Option<String>) -> Self {
        Self { model, mode, effort: None }
    }

    fn set(&mut self, setting: Setting, value: &str) {
        let place = match setting {
            Setting::Model => &mut self.model,
            Setting::Mode => &mut self.mode,
            Setting::Effort => &mut self.effort,
        };
        *place = Some(value.to_owned());
    }

    /// The model first: what else can be chosen may depend on it.
    pub(super) fn all(&self) -> Vec<(Setting, String)> {
        let all = [
            (Setting::Model, &self.model),
            (Setting::Mode, &self.mode),
            (Setting::Effort, &self.effort),
        ];
        all.into_iter().filter_map(|(setting, value)| Some((setting, value.clone()?))).collect()
    }
}

/// A send that was written, or nearly.
#[derive(Debug)]
struct Written {
    digest: String,
    is_delivered: bool,
    /// Into which of the session's conversations.
    conversation: usize,
}

/// All that is remembered.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) conversation: Option<String>,
    pub(super) opened_at: Option<Timestamp>,
    pub(super) is_ready: bool,
    pub(super) settings: Settings,
    pub(super) abilities: Abilities,
    pub(super) wanted: Option<Wanted>,
    /// How many conversations there were.
    conversations: usize,
    written: BTreeMap<(MessageId, Sequence), Written>,
    imported: Option<BTreeMap<String, usize>>,
}

/// How often a person's text must or may be in the agent's record without a certain send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Others {
    pub(super) at_least: usize,
    pub(super) at_most: usize,
}

impl Notes {
    pub(super) fn read(text: &str) -> Self {
        let mut notes = Self::default();
        for note in text.lines().filter_map(|line| serde_json::from_str(line).ok()) {
            notes.apply(note);
        }
        notes
    }

    fn apply(&mut self, note: Note) {
        match note {
            Note::Conversation { id, opened_at } => {
                self.opened_at = opened_at;
                if self.conversation.as_ref() != Some(&id) {
                    self.conversations += 1;
                }
                self.conversation = Some(id);
            }
            Note::Ready => self.is_ready = true,
            Note::Known { settings, abilities } => {
                (self.settings, self.abilities) = (settings, abilities);
            }
            Note::Wanted(wanted) => self.wanted = Some(wanted),
            Note::Writing { id, attempt, digest } => {
                let conversation = self.conversations;
                let written = Written { digest, is_delivered: false, conversation };
                self.written.insert((id, attempt), written);
            }
            Note::Delivered { id, attempt } => {
                if let Some(written) = self.written.get_mut(&(id, attempt)) {
                    written.is_delivered = true;
                }
            }
            Note::Imported(texts) => self.imported = Some(texts),
        }
    }

    /// The lines without those that newer ones replace. Which texts were written into which
    /// conversation is counted, so each of those lines counts.
    pub(super) fn shortened(text: &str) -> String {
        shortened(text, |note: &Note| match note {
            Note::Conversation { .. } | Note::Writing { .. } | Note::Delivered { .. } => Kept::All,
            Note::Ready => Kept::Newest("ready"),
            Note::Known { .. } => Kept::Newest("known"),
            Note::Wanted(_) => Kept::Newest("wanted"),
            Note::Imported(_) => Kept::Newest("imported"),
        })
    }

    /// The line that says so; from now on it is so.
    fn note(&mut self, note: Note) -> String {
        let line = serde_json::to_string(&note).unwrap_or_default();
        self.apply(note);
        line
    }

    pub(super) fn note_conversation(&mut self, id: String, opened_at: Option<Timestamp>) -> String {
        self.note(Note::Conversation { id, opened_at })
    }

    pub(super) fn note_ready(&mut self) -> String {
        self.note(Note::Ready)
    }

    /// `None` where nothing is new.
    pub(super) fn note_known(
        &mut self,
        settings: &Settings,
        abilities: &Abilities,
    ) -> Option<String> {
        if self.settings == *settings && self.abilities == *abilities {
            return None;
        }
        let (settings, abilities) = (settings.clone(), abilities.clone());
        Some(self.note(Note::Known { settings, abilities }))
    }

    pub(super) fn note_wanted(&mut self, setting: Setting, value: &str) -> String {
        let mut wanted = self.wanted.clone().unwrap_or_default();
        wanted.set(setting, value);
        self.note(Note::Wanted(wanted))
    }

    pub(super) fn note_writing(&mut self, id: &MessageId, attempt: Sequence, text: &str) -> String {
        let (id, digest) = (id.clone(), digest_of(text));
        self.note(Note::Writing { id, attempt, digest })
    }

    pub(super) fn note_delivered(&mut self, id: &MessageId, attempt: Sequence) -> String {
        self.note(Note::Delivered { id: id.clone(), attempt })
    }

    pub(super) fn note_imported(&mut self, texts: BTreeMap<String, usize>) -> String {
        self.note(Note::Imported(texts))
    }

    pub(super) fn is_imported(&self) -> bool {
        self.imported.is_some()
    }

    /// Whether the agent can have a record of this conversation: some keep none of an empty one.
    pub(super) fn has_begun(&self) -> bool {
        let now = self.conversations;
        self.written.values().any(|written| written.conversation == now)
            || (self.is_imported() && now <= 1)
    }

    /// The digest of a send, if it was written or nearly.
    pub(super) fn digest(&self, id: &MessageId, attempt: Sequence) -> Option<&str> {
        let written = self.written.get(&(id.clone(), attempt))?;
        Some(&written.digest)
    }

    /// Whether a send was written into a conversation that is given up.
    pub(super) fn is_of_another_conversation(&self, id: &MessageId, attempt: Sequence) -> bool {
        let written = self.written.get(&(id.clone(), attempt));
        written.is_some_and(|written| written.conversation != self.conversations)
    }

    /// Whatever else has the same text as this send.
    pub(super) fn others(&self, id: &MessageId, attempt: Sequence) -> Others {
        let key = (id.clone(), attempt);
        let Some(digest) = self.digest(id, attempt) else {
            return Others { at_least: 0, at_most: 0 };
        };
        let imported = self.imported.as_ref().and_then(|texts| texts.get(digest)).copied();
        let alike = self.written.iter().filter(|(other, written)| {
            let is_here = written.conversation == self.conversations;
            **other != key && written.digest == digest && is_here
        });
        let (mut at_least, mut at_most) = (imported.unwrap_or(0), imported.unwrap_or(0));
        for (_, written) in alike {
            at_most += 1;
            at_least += usize::from(written.is_delivered);
        }
        Others { at_least, at_most }
    }
}

/// Recognises a text without keeping it.
pub(super) fn digest_of(text: &str) -> String {
    let digest = Sha256::digest(text.trim().as_bytes());
    digest.iter().take(12).fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_is_known_again_and_a_torn_line_is_passed_over() {
        let mut notes = Notes::default();
        let mut lines = vec![
            notes.note_conversation("c1".to_owned(), None),
            notes.note_writing(&"m1".into(), Sequence(1), "hello"),
            notes.note_delivered(&"m1".into(), Sequence(1)),
            notes.note_writing(&"m2".into(), Sequence(2), " hello\n"),
            notes.note_wanted(Setting::Mode, "plan"),
            notes.note_ready(),
        ];
        lines.push("{\"ready".to_owned());
        let again = Notes::read(&lines.join("\n"));
        assert_eq!(again.conversation.as_deref(), Some("c1"));
        assert!(again.is_ready && again.has_begun());
        assert_eq!(again.others(&"m2".into(), Sequence(2)), Others { at_least: 1, at_most: 1 });
        assert_eq!(again.others(&"m1".into(), Sequence(1)), Others { at_least: 0, at_most: 1 });
        assert_eq!(again.wanted.unwrap().all(), [(Setting::Mode, "plan".to_owned())]);
    }

    #[test]
    fn shortened_notes_say_the_same() {
        let mut notes = Notes::default();
        let mut lines = vec![
            notes.note_imported(BTreeMap::from([(digest_of("hello"), 2)])),
            notes.note_conversation("c1".to_owned(), None),
            notes.note_ready(),
            notes.note_writing(&"m1".into(), Sequence(1), "hello"),
            notes.note_delivered(&"m1".into(), Sequence(1)),
        ];
        for number in 0..500 {
            let model = format!("model-{number}");
            lines.push(notes.note_wanted(Setting::Model, &model));
            let mut settings = Settings::default();
            settings.set(Setting::Model, &model);
            lines.extend(notes.note_known(&settings, &Abilities::default()));
        }
        lines.push(notes.note_writing(&"m2".into(), Sequence(2), "hello"));
        let short = Notes::shortened(&lines.join("\n"));
        assert!(short.lines().count() <= 8, "{short}");
        let again = Notes::read(&short);
        assert!(again.is_ready && again.is_imported() && again.has_begun());
        assert_eq!(again.conversation.as_deref(), Some("c1"));
        assert_eq!(again.wanted, notes.wanted);
        assert_eq!(again.settings, notes.settings);
        assert_eq!(again.others(&"m2".into(), Sequence(2)), Others { at_least: 3, at_most: 3 });
    }

    #[test]
    fn a_new_conversation_has_not_begun() {
        let mut notes = Notes::default();
        notes.note_conversation("c1".to_owned(), None);
        notes.note_writing(&"m1".into(), Sequence(1), "hello");
        notes.note_conversation("c2".to_owned(), None);
        assert!(!notes.has_begun());
        assert!(notes.is_of_another_conversation(&"m1".into(), Sequence(1)));
    }
}
