//! Which session each panel belongs to, on disk: `panels.json`, replaced as a whole.
//!
//! Invariant: a session's id is on disk before it is announced. Losing the rest costs at most a new
//! session where an old one could have been recognised.
//!
//! Not here: recognising (`agents`), the panels that exist now (`service`).

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use agents::panel::identity::{Mark, Match, PRINTS_MAX, recognise};
use domain::SessionId;
use serde::{Deserialize, Serialize};

/// Panels that are remembered; beyond, those that are put away and the oldest are forgotten.
const ENTRIES_MAX: usize = 512;
/// The name of the file in its folder.
const FILE_NAME: &str = "panels.json";

/// A panel that was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) session: SessionId,
    #[serde(flatten)]
    pub(super) mark: Mark,
    /// A person closed the session, but its chat goes on: nobody is told of it until something
    /// new is said in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_put_away: bool,
    /// All that is known of it where this book was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
}

impl Entry {
    /// Whether a panel shows this very chat, and nothing new in it. An empty one in another window
    /// is another chat.
    pub(super) fn is_still(&self, seen: &Mark) -> bool {
        let conversation = &seen.traits.conversation;
        let is_named = conversation.is_some() && *conversation == self.mark.traits.conversation;
        let is_here = self.mark.target == seen.target || is_named || !seen.prints.is_empty();
        is_here && seen.prints.iter().all(|print| self.mark.prints.contains(print))
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Written {
    panels: Vec<Entry>,
}

/// The panels that are known.
#[derive(Debug)]
pub(super) struct Book {
    path: PathBuf,
    entries: Vec<Entry>,
    is_dirty: bool,
}

impl Book {
    /// Reads the file. One that cannot be read is as none, and says so.
    pub(super) fn open(folder: &Path) -> Self {
        let path = folder.join(FILE_NAME);
        let written = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|error| {
                tracing::warn!(path = %path.display(), %error, "could not read the known panels");
                Written::default()
            }),
            Err(_) => Written::default(),
        };
        Self { path, entries: written.panels, is_dirty: false }
    }

    pub(super) fn get(&self, session: &SessionId) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.session == *session)
    }

    /// The entry that a panel is, but for those that are on show already.
    pub(super) fn recognise(
        &self,
        seen: &Mark,
        is_shown: impl Fn(&SessionId) -> bool,
    ) -> Option<&Entry> {
        let known: Vec<Mark> = self.entries.iter().map(|entry| entry.mark.clone()).collect();
        match recognise(seen, &known, |at| is_shown(&self.entries[at].session)) {
            Match::Known(at) => self.entries.get(at),
            Match::New => {
                let signature = Some(seen.traits.signature());
                let mut lost = self
                    .entries
                    .iter()
                    .filter(|entry| entry.signature == signature && !is_shown(&entry.session));
                lost.next().filter(|_| lost.next().is_none())
            }
        }
    }

    /// The first number that no panel of this kind in this workspace has.
    pub(super) fn free_ordinal(&self, mark: &Mark) -> usize {
        let is_used = |ordinal: usize| {
            let mut traits = mark.traits.clone();
            traits.ordinal = ordinal;
            let signature = traits.signature();
            self.entries.iter().any(|entry| entry.mark.traits.signature() == signature)
        };
        (0..=self.entries.len()).find(|ordinal| !is_used(*ordinal)).unwrap_or_default()
    }

    /// Takes down what a session's panel is like.
    pub(super) fn note(&mut self, session: &SessionId, mark: Mark) {
        self.is_dirty = true;
        if let Some(known) = self.entries.iter_mut().find(|entry| entry.session == *session) {
            known.mark = mark;
            known.is_put_away = false;
            known.signature = None;
            return;
        }
        if self.entries.len() >= ENTRIES_MAX {
            let put_away = self.entries.iter().position(|entry| entry.is_put_away);
            self.entries.remove(put_away.unwrap_or_default());
        }
        let session = session.clone();
        self.entries.push(Entry { session, mark, is_put_away: false, signature: None });
    }

    /// A session whose panel is not in the book.
    pub(super) fn note_lost(&mut self, session: &SessionId, profile: &str, signature: String) {
        let mut mark = Mark::default();
        profile.clone_into(&mut mark.traits.profile);
        self.note(session, mark);
        if let Some(noted) = self.entries.last_mut() {
            noted.signature = Some(signature);
        }
    }

    /// Somebody said something in it.
    pub(super) fn note_print(&mut self, session: &SessionId, print: &str) -> bool {
        let known = self.entries.iter_mut().find(|entry| entry.session == *session);
        let Some(Entry { mark, .. }) = known else { return false };
        if mark.prints.iter().any(|it| it == print) {
            return false;
        }
        mark.prints.push(print.to_owned());
        let surplus = mark.prints.len().saturating_sub(PRINTS_MAX);
        mark.prints.drain(..surplus);
        self.is_dirty = true;
        true
    }

    /// Its conversation has a name now.
    pub(super) fn note_conversation(&mut self, session: &SessionId, conversation: &str) {
        if let Some(known) = self.entries.iter_mut().find(|entry| entry.session == *session) {
            known.mark.traits.conversation = Some(conversation.to_owned());
            self.is_dirty = true;
        }
    }

    /// Its window shows something else.
    pub(super) fn unhand(&mut self, session: &SessionId) {
        if let Some(known) = self.entries.iter_mut().find(|entry| entry.session == *session) {
            known.mark.target.clear();
            self.is_dirty = true;
        }
    }

    /// The session is over, its panel is not.
    pub(super) fn put_away(&mut self, session: &SessionId) {
        if let Some(known) = self.entries.iter_mut().find(|entry| entry.session == *session) {
            known.is_put_away = true;
            self.is_dirty = true;
        }
    }

    pub(super) fn remove(&mut self, session: &SessionId) {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.session != *session);
        self.is_dirty |= self.entries.len() < before;
    }

    /// Writes the file if it says anything else.
    pub(super) fn save(&mut self) {
        if !self.is_dirty {
            return;
        }
        match self.write() {
            Ok(()) => self.is_dirty = false,
            Err(error) => {
                tracing::warn!(
                    path = %self.path.display(),
                    %error,
                    "could not save the known panels"
                );
            }
        }
    }

    fn write(&self) -> io::Result<()> {
        let written = Written { panels: self.entries.clone() };
        let text = serde_json::to_vec_pretty(&written)?;
        replace(&self.path, &text)
    }
}

/// Puts a file in another's place, whole or not at all.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let Some(folder) = path.parent() else { return Err(io::ErrorKind::InvalidInput.into()) };
    fs::create_dir_all(folder)?;
    let beside = path.with_extension("new");
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use agents::panel::identity::Traits;

    use super::*;

    fn mark(target: &str, workspace: &str, conversation: Option<&str>) -> Mark {
        let traits = Traits {
            profile: "cursor".to_owned(),
            workspace: Some(workspace.to_owned()),
            conversation: conversation.map(str::to_owned),
            ..Traits::default()
        };
        Mark { target: target.to_owned(), traits, prints: vec![] }
    }

    fn name(book: &Book, seen: &Mark) -> Option<String> {
        book.recognise(seen, |_| false).map(|entry| entry.session.to_string())
    }

    #[test]
    fn what_is_saved_is_known_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let mut book = Book::open(folder.path());
        book.note(&"s-1".into(), mark("t1", "kite", Some("c1")));
        book.note(&"s-2".into(), mark("t2", "gull", None));
        assert!(book.note_print(&"s-2".into(), "p1") && !book.note_print(&"s-2".into(), "p1"));
        book.save();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let about = folder.path().join(FILE_NAME).metadata().unwrap();
            assert_eq!(about.permissions().mode() & 0o777, 0o600, "for nobody else");
        }

        let book = Book::open(folder.path());
        assert_eq!(name(&book, &mark("t9", "kite", Some("c1"))).as_deref(), Some("s-1"));
        assert_eq!(name(&book, &mark("t9", "gull", None)).as_deref(), Some("s-2"));
        assert_eq!(name(&book, &mark("t9", "kite", Some("c2"))), None);
        assert_eq!(book.get(&"s-2".into()).unwrap().mark.prints, ["p1"]);
        assert!(book.recognise(&mark("t1", "kite", Some("c1")), |_| true).is_none());
    }

    #[test]
    fn a_chat_that_was_left_is_not_known_by_its_window() {
        let folder = tempfile::tempdir().unwrap();
        let mut book = Book::open(folder.path());
        book.note(&"old".into(), mark("t1", "kite", None));
        book.unhand(&"old".into());
        let mut new = mark("t1", "kite", None);
        new.traits.ordinal = book.free_ordinal(&new);
        assert_eq!(new.traits.ordinal, 1);
        book.note(&"new".into(), new);
        assert_eq!(name(&book, &mark("t1", "kite", None)).as_deref(), Some("new"));
    }

    #[test]
    fn a_session_whose_book_was_lost_is_known_by_its_signature() {
        let folder = tempfile::tempdir().unwrap();
        let mut book = Book::open(folder.path());
        let seen = mark("t1", "kite", Some("c1"));
        book.note_lost(&"s-1".into(), "cursor", seen.traits.signature());
        assert_eq!(name(&book, &mark("t1", "gull", Some("c1"))), None);
        assert_eq!(name(&book, &seen).as_deref(), Some("s-1"));
        book.note(&"s-1".into(), seen.clone());
        assert_eq!(name(&book, &seen).as_deref(), Some("s-1"));
    }

    #[test]
    fn a_chat_that_was_put_away_is_still_so_until_something_is_said_or_it_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let mut book = Book::open(folder.path());
        book.note(&"s-1".into(), mark("t1", "kite", None));
        book.note_print(&"s-1".into(), "p1");
        book.put_away(&"s-1".into());
        let entry = book.get(&"s-1".into()).unwrap();
        let with = |target: &str, prints: &[&str]| {
            let prints = prints.iter().map(|it| (*it).to_owned()).collect();
            Mark { prints, ..mark(target, "kite", None) }
        };
        assert!(entry.is_still(&with("t1", &["p1"])) && entry.is_still(&with("t1", &[])));
        assert!(entry.is_still(&with("t2", &["p1"])), "in a window that was opened again");
        assert!(!entry.is_still(&with("t1", &["p1", "p2"])), "somebody said something");
        assert!(!entry.is_still(&with("t2", &[])), "an empty chat elsewhere");
    }

    #[test]
    fn a_file_that_is_no_book_is_as_none() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE_NAME), "{broken").unwrap();
        let mut book = Book::open(folder.path());
        assert!(book.entries.is_empty());
        book.note(&"s".into(), mark("t", "w", None));
        book.save();
        assert_eq!(Book::open(folder.path()).entries.len(), 1);
    }

    #[test]
    fn the_book_is_bounded_and_forgets_what_is_put_away_first() {
        let folder = tempfile::tempdir().unwrap();
        let mut book = Book::open(folder.path());
        for number in 0..ENTRIES_MAX {
            let session = SessionId::from(format!("s-{number}"));
            book.note(&session, mark(&number.to_string(), "w", None));
        }
        book.put_away(&"s-7".into());
        book.note(&"one-more".into(), mark("x", "w", None));
        assert_eq!(book.entries.len(), ENTRIES_MAX);
        assert!(book.get(&"s-7".into()).is_none() && book.get(&"s-0".into()).is_some());
    }
}
