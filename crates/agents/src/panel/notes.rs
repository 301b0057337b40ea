//! What a panel's driver remembers on disk, one line each.
//!
//! Invariant: a send is noted before it is typed, so a send without a note was never typed. A row
//! is noted after its report is on disk: a crash between the two reports it again, under the same
//! id, by which it is recognised.

use std::collections::{BTreeMap, BTreeSet};

use domain::{MessageId, Sequence};
use serde::{Deserialize, Serialize};

use super::tellings::{TELLINGS_MAX, Telling, Tellings};
use crate::notes::{Kept, shortened};

/// A line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Note {
    /// All of these, in one line.
    Several(Vec<Note>),
    /// The session was ready.
    Ready,
    /// Another chat is shown.
    Chapter(String),
    /// How often another chat was shown, where lines that said so were left out.
    Chapters(u32),
    /// The chat that is shown has a name of its own now.
    Renamed(String),
    /// A row was told.
    Told(Telling),
    /// About to be typed; the fingerprint of its words.
    Writing { id: MessageId, attempt: Sequence, print: String },
    /// The composer was emptied by it.
    Delivered { id: MessageId, attempt: Sequence },
    /// Its row was seen.
    Echoed { id: MessageId, attempt: Sequence },
}

/// A send that was typed, or nearly.
#[derive(Debug, Clone)]
pub(super) struct Written {
    pub(super) print: String,
    pub(super) is_delivered: bool,
    pub(super) is_echoed: bool,
}

/// All that is remembered.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) is_ready: bool,
    pub(super) tellings: Tellings,
    written: BTreeMap<(MessageId, Sequence), Written>,
    /// What is so already, and is written down next time.
    later: Vec<Note>,
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
            Note::Several(notes) => notes.into_iter().for_each(|note| self.apply(note)),
            Note::Ready => self.is_ready = true,
            Note::Chapter(name) => self.tellings.turn_to(name),
            Note::Chapters(count) => self.tellings.chapters = count,
            Note::Renamed(name) => self.tellings.rename(name),
            Note::Told(telling) => self.tellings.add(telling),
            Note::Writing { id, attempt, print } => {
                let written = Written { print, is_delivered: false, is_echoed: false };
                self.written.insert((id, attempt), written);
            }
            Note::Delivered { id, attempt } => {
                if let Some(written) = self.written.get_mut(&(id, attempt)) {
                    written.is_delivered = true;
                }
            }
            Note::Echoed { id, attempt } => {
                if let Some(written) = self.written.get_mut(&(id, attempt)) {
                    written.is_echoed = true;
                }
            }
        }
    }

    /// The lines without those that no longer count: rows beyond those that are remembered, but
    /// for the one of each chat that says how far it was told; and chats that were left again
    /// without getting a name. What is left does not grow with switching between chats. Each note
    /// becomes a line of its own.
    pub(super) fn shortened(text: &str) -> String {
        let mut flat = String::new();
        let mut tops = Tops::default();
        for line in text.lines() {
            match serde_json::from_str(line) {
                Ok(Note::Several(notes)) => {
                    for note in notes {
                        tops.see(&note);
                        flat.extend(serde_json::to_string(&note).ok());
                        flat.push('\n');
                    }
                }
                Ok(note) => {
                    tops.see(&note);
                    flat.extend([line, "\n"]);
                }
                Err(_) => flat.extend([line, "\n"]),
            }
        }
        // Chats without a name are numbered by this count, and no number may come twice.
        if tops.chapters > 0 {
            flat.extend(serde_json::to_string(&Note::Chapters(tops.chapters)).ok());
            flat.push('\n');
        }
        let rows = tops.rows;
        let tops: BTreeSet<usize> = tops.of.into_values().map(|(_, row)| row).collect();
        // From the newest to the oldest.
        let mut newer = 0;
        let mut was_left = false;
        shortened(&flat, |note: &Note| match note {
            Note::Ready => Kept::Newest("ready"),
            Note::Chapters(_) => Kept::Newest("chapters"),
            // A name is that of the chat that was shown when it came.
            Note::Renamed(_) => {
                was_left = false;
                Kept::All
            }
            Note::Chapter(_) if was_left => Kept::Last("left", 0),
            Note::Chapter(_) => {
                was_left = true;
                Kept::All
            }
            Note::Told(_) => {
                newer += 1;
                let is_forgotten = newer > TELLINGS_MAX;
                if is_forgotten && tops.contains(&(rows - newer)) {
                    Kept::All
                } else {
                    Kept::Last("told", TELLINGS_MAX)
                }
            }
            Note::Several(_)
            | Note::Writing { .. }
            | Note::Delivered { .. }
            | Note::Echoed { .. } => Kept::All,
        })
    }

    /// The line that says so; from now on it is so.
    fn note(&mut self, note: Note) -> String {
        let line = serde_json::to_string(&note).unwrap_or_default();
        self.apply(note);
        line
    }

    pub(super) fn note_ready(&mut self) -> String {
        self.note(Note::Ready)
    }

    pub(super) fn note_chapter(&mut self, name: String) -> String {
        self.note(Note::Chapter(name))
    }

    pub(super) fn note_renamed(&mut self, name: String) -> String {
        self.note(Note::Renamed(name))
    }

    /// A row was told.
    pub(super) fn told(&mut self, telling: Telling) {
        self.apply(Note::Told(telling.clone()));
        self.later.push(Note::Told(telling));
    }

    /// The row of a send was seen.
    pub(super) fn echoed(&mut self, id: &MessageId, attempt: Sequence) {
        let note = Note::Echoed { id: id.clone(), attempt };
        self.apply(note.clone());
        self.later.push(note);
    }

    /// Whether something is to be written down.
    pub(super) fn has_later(&self) -> bool {
        !self.later.is_empty()
    }

    /// The line for what was told last time.
    pub(super) fn take_later(&mut self) -> Option<String> {
        let later = std::mem::take(&mut self.later);
        (!later.is_empty()).then(|| serde_json::to_string(&Note::Several(later)).ok()).flatten()
    }

    pub(super) fn note_writing(
        &mut self,
        id: &MessageId,
        attempt: Sequence,
        print: String,
    ) -> String {
        self.note(Note::Writing { id: id.clone(), attempt, print })
    }

    pub(super) fn note_delivered(&mut self, id: &MessageId, attempt: Sequence) -> String {
        self.note(Note::Delivered { id: id.clone(), attempt })
    }

    /// Whether a send was typed, or nearly.
    pub(super) fn was_written(&self, id: &MessageId, attempt: Sequence) -> bool {
        self.written.contains_key(&(id.clone(), attempt))
    }

    /// Sends that may have reached the panel and whose rows were not seen. After a crash nobody
    /// knows of the last one whether it did: its row, if it is there, is its own.
    pub(super) fn awaited(&self) -> impl Iterator<Item = (&MessageId, Sequence, &Written)> {
        let open = self.written.iter().filter(|(_, written)| !written.is_echoed);
        open.map(|((id, attempt), written)| (id, *attempt, written))
    }
}

/// Which row says how far each chat was told, as `Tellings` will understand it.
#[derive(Debug, Default)]
struct Tops {
    /// How many rows were told.
    rows: usize,
    /// The chat that is shown, and how often it was another one.
    chapter: String,
    chapters: u32,
    /// The highest place of each chat, and which row has it, counted from the first.
    of: BTreeMap<String, (u64, usize)>,
}

impl Tops {
    fn see(&mut self, note: &Note) {
        match note {
            Note::Told(telling) => {
                let top = (telling.ordinal, self.rows);
                self.rows += 1;
                let known = self.of.entry(telling.chapter.clone()).or_insert(top);
                *known = top.max(*known);
            }
            Note::Chapter(name) => {
                self.chapters += u32::from(self.chapter != *name);
                self.chapter.clone_from(name);
            }
            Note::Chapters(count) => self.chapters = *count,
            Note::Renamed(name) => {
                let old = std::mem::replace(&mut self.chapter, name.clone());
                if let Some(top) = self.of.remove(&old) {
                    self.of.insert(name.clone(), top);
                }
            }
            Note::Ready
            | Note::Several(_)
            | Note::Writing { .. }
            | Note::Delivered { .. }
            | Note::Echoed { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortened_notes_remember_the_newest_rows_and_that_the_session_was_ready() {
        let mut notes = Notes::default();
        let mut lines = vec![
            notes.note_ready(),
            notes.note_chapter("c1".to_owned()),
            notes.note_writing(&"m1".into(), Sequence(1), "p".to_owned()),
            notes.note_delivered(&"m1".into(), Sequence(1)),
        ];
        notes.echoed(&"m1".into(), Sequence(1));
        for number in 0..=TELLINGS_MAX as u64 {
            let key = format!("row-{number}");
            notes.told(Telling::new("c1", &key, "user", &key, number, 1));
            lines.extend(notes.take_later());
        }
        let short = Notes::shortened(&lines.join("\n"));
        assert_eq!(short.lines().count(), TELLINGS_MAX + 6);
        let again = Notes::read(&short);
        assert!(again.is_ready && again.was_written(&"m1".into(), Sequence(1)));
        assert_eq!(again.awaited().count(), 0);
        assert_eq!(again.tellings.chapter, "c1");
        let told = |notes: &Notes, number: usize| {
            let key = format!("row-{number}");
            let telling = Telling::new("c1", &key, "user", &key, 0, 1);
            notes.tellings.count("user", &telling.print)
        };
        for number in [0, 1, TELLINGS_MAX] {
            assert_eq!(told(&again, number), told(&notes, number), "{number}");
        }
    }

    #[test]
    fn shortened_notes_remember_how_far_each_chat_was_told() {
        let mut notes = Notes::default();
        let mut lines = vec![notes.note_ready()];
        // Two chats without a name of their own, which get one, and one that is named at once.
        for name in ["c1", "c2"] {
            lines.push(notes.note_chapter(String::new()));
            for ordinal in [3, 9, 5] {
                notes.told(Telling::new("", &format!("row-{ordinal}"), "user", name, ordinal, 1));
                lines.extend(notes.take_later());
            }
            lines.push(notes.note_renamed(name.to_owned()));
        }
        lines.push(notes.note_chapter("c3".to_owned()));
        for number in 0..TELLINGS_MAX as u64 {
            let key = format!("row-{number}");
            notes.told(Telling::new("c3", &key, "user", &key, number, 1));
            lines.extend(notes.take_later());
        }
        let short = Notes::shortened(&lines.join("\n"));
        assert_eq!(short.lines().count(), TELLINGS_MAX + 9);
        for mut read in [Notes::read(&lines.join("\n")), Notes::read(&short)] {
            for (chapter, top) in [("c1", 9), ("c2", 9), ("c3", TELLINGS_MAX as u64 - 1)] {
                assert!(read.tellings.knows(chapter), "{chapter}");
                read.tellings.turn_to(chapter.to_owned());
                assert_eq!(read.tellings.top(), Some(top), "{chapter}");
            }
            read.tellings.turn_to("c1".to_owned());
            let rows = Telling::new("c1", "row-9", "user", "c1", 9, 1);
            assert_eq!(read.tellings.count("user", &rows.print), 0, "its rows fell out");
        }
        assert_eq!(Notes::shortened(&short), short);
    }

    #[test]
    fn shortened_notes_do_not_grow_with_switching_back_and_forth() {
        let after = |switches: u64| {
            let mut notes = Notes::default();
            let mut lines = vec![];
            for switch in 0..switches {
                for chapter in ["c1", "c2"] {
                    lines.push(notes.note_chapter(chapter.to_owned()));
                    let key = format!("{chapter}-{switch}");
                    notes.told(Telling::new(chapter, &key, "user", &key, switch, 1));
                    lines.extend(notes.take_later());
                }
            }
            // A chat that gets its name only now, and rows that push all others out.
            lines.push(notes.note_chapter("#7".to_owned()));
            notes.told(Telling::new("#7", "named", "user", "named", 4, 1));
            lines.extend(notes.take_later());
            lines.push(notes.note_renamed("c7".to_owned()));
            lines.push(notes.note_chapter("c3".to_owned()));
            for number in 0..TELLINGS_MAX as u64 {
                let key = format!("row-{number}");
                notes.told(Telling::new("c3", &key, "user", &key, number, 1));
                lines.extend(notes.take_later());
            }
            lines.join("\n")
        };
        let count = |text: &str| Notes::shortened(text).lines().count();
        assert_eq!(count(&after(3)), count(&after(40)));
        let (long, short) = (after(40), Notes::shortened(&after(40)));
        for mut read in [Notes::read(&long), Notes::read(&short)] {
            assert_eq!((read.tellings.chapter.as_str(), read.tellings.chapters), ("c3", 82));
            for (chapter, top) in [("c1", 39), ("c2", 39), ("c7", 4)] {
                read.tellings.turn_to(chapter.to_owned());
                assert_eq!(read.tellings.top(), Some(top), "{chapter}");
            }
            assert!(!read.tellings.knows("#7"));
        }
        assert_eq!(Notes::shortened(&short), short);
    }

    #[test]
    fn what_was_noted_is_known_again_and_a_torn_line_is_passed_over() {
        let mut notes = Notes::default();
        let telling = Telling::new("", "user#0", "user", "hello", 0, 1);
        let mut lines = vec![
            notes.note_ready(),
            notes.note_writing(&"m1".into(), Sequence(1), "p".to_owned()),
            notes.note_delivered(&"m1".into(), Sequence(1)),
        ];
        notes.told(telling.clone());
        notes.echoed(&"m2".into(), Sequence(1));
        lines.push(notes.take_later().unwrap());
        assert_eq!(notes.take_later(), None);
        lines.push("{\"told".to_owned());
        let again = Notes::read(&lines.join("\n"));
        assert!(again.is_ready && again.was_written(&"m1".into(), Sequence(1)));
        assert!(!again.was_written(&"m1".into(), Sequence(2)));
        assert_eq!(again.awaited().count(), 1);
        assert_eq!(again.tellings.count("user", &telling.print), 1);
    }
}
