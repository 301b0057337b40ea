//! What a Codex session remembers across restarts of the proxy, one line of JSON each.
//!
//! Invariant: the newest line of a kind counts; a line that cannot be read is ignored.
//!
//! Not here: where the lines are stored (`proxy`).

use domain::session::config::AgentConfig;
use serde::{Deserialize, Serialize};

use crate::notes::{Kept, shortened};

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Note {
    /// The session answered its launch, or moved to another thread of Codex.
    Ready {
        /// As Codex names the conversation.
        thread: String,
    },
    /// The configuration as it was last read.
    Config(Box<AgentConfig>),
    /// The permission mode was chosen by a person: it is asked for again at the next start.
    ModeChosen(String),
    /// A message reached this thread: from here on Codex has a record of it.
    Reached,
}

impl Note {
    /// As a line.
    pub(super) fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// All lines, read.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) thread: Option<String>,
    pub(super) config: Option<AgentConfig>,
    pub(super) mode: Option<String>,
    pub(super) is_reached: bool,
}

impl Notes {
    pub(super) fn read(text: &str) -> Self {
        let mut notes = Self::default();
        for note in text.lines().filter_map(|line| serde_json::from_str(line).ok()) {
            notes.take(note);
        }
        notes
    }

    /// The lines without those that newer ones replace.
    pub(super) fn shortened(text: &str) -> String {
        shortened(text, |note: &Note| match note {
            Note::Ready { .. } => Kept::Newest("ready"),
            Note::Config(_) => Kept::Newest("config"),
            Note::ModeChosen(_) => Kept::Newest("mode"),
            Note::Reached => Kept::Newest("reached"),
        })
    }

    /// What is remembered now is known at once.
    pub(super) fn take(&mut self, note: Note) {
        match note {
            Note::Ready { thread } => {
                if self.thread.as_ref() != Some(&thread) {
                    self.is_reached = false;
                }
                self.thread = Some(thread);
            }
            Note::Config(config) => self.config = Some(*config),
            Note::ModeChosen(mode) => self.mode = Some(mode),
            Note::Reached => self.is_reached = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortened_notes_say_the_same() {
        let mut lines = vec![Note::Ready { thread: "t1".into() }.line(), Note::Reached.line()];
        lines.extend((0..500).map(|number| Note::ModeChosen(format!("mode-{number}")).line()));
        let short = Notes::shortened(&lines.join("\n"));
        assert_eq!(short.lines().count(), 3);
        let notes = Notes::read(&short);
        assert_eq!(notes.thread.as_deref(), Some("t1"));
        assert_eq!(notes.mode.as_deref(), Some("mode-499"));
        assert!(notes.is_reached);
        lines.push(Note::Ready { thread: "t2".into() }.line());
        let notes = Notes::read(&Notes::shortened(&lines.join("\n")));
        assert_eq!(notes.thread.as_deref(), Some("t2"));
        assert!(!notes.is_reached, "another thread has its own record");
    }

    #[test]
    fn the_newest_line_counts_and_a_strange_one_is_passed_over() {
        let lines = [
            Note::Ready { thread: "t1".into() }.line(),
            Note::Reached.line(),
            "half a li".to_owned(),
            Note::ModeChosen("auto".into()).line(),
        ];
        let notes = Notes::read(&lines.join("\n"));
        assert_eq!(notes.thread.as_deref(), Some("t1"));
        assert_eq!(notes.mode.as_deref(), Some("auto"));
        assert!(notes.is_reached);
        let moved = Note::Ready { thread: "t2".into() }.line();
        let notes = Notes::read(&format!("{}\n{moved}", lines.join("\n")));
        assert!(!notes.is_reached, "another thread has its own record");
    }
}
