//! The notes that drivers keep for their sessions, and the pictures that are waiting for upload to
//! the relay. The demo agent's notes are the messages that it received.
//!
//! A line is on disk once it is written; a line that a crash cut off never happened.
//!
//! Not here: the content of a line (`agents`).

mod pictures;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agents::Picture;
use domain::{AgentType, MessageId, SessionId};

use crate::disk;
use pictures::Pictures;

/// Bytes of a demo record that are read back: far more than the lines that are ever looked up.
const DEMO_BYTES_MAX: u64 = 4 << 20;
/// Notes smaller than this are not worth shortening.
const NOTES_BYTES_MIN: u64 = 1 << 20;
/// Notes are shortened when they have grown to this many times what was left the last time.
const NOTES_GROWTH_MAX: u64 = 4;

const DEMO_FOLDER: &str = "demo";
const NOTES_FOLDER: &str = "agents";
const PICTURES_FOLDER: &str = "pictures";

/// Where agents' records lie.
pub trait Records {
    /// The whole lines of a session's record; of a demo session's the last, where they are many.
    fn read(&mut self, session: &SessionId, agent: &AgentType) -> io::Result<String>;
    /// Adds a line to a record that was read, synced.
    fn append(&mut self, session: &SessionId, line: &str) -> io::Result<()>;
    /// Writes a record that has grown long anew, with the lines that still count: all or nothing,
    /// and synced.
    fn shorten(
        &mut self,
        session: &SessionId,
        shortened: &dyn Fn(&str) -> Option<String>,
    ) -> io::Result<()>;
    /// Holds a picture until the relay has it. One that is held already stays as it is.
    fn hold(&mut self, session: &SessionId, picture: &Picture) -> io::Result<()>;
    /// A picture is told, as itself or in words.
    fn let_go(&mut self, session: &SessionId, picture: &MessageId);
    /// The pictures of a session that are held.
    fn held(&mut self, session: &SessionId) -> Vec<Picture>;
    /// The session is over: its pictures are nobody's.
    fn forget_pictures(&mut self, session: &SessionId);
}

/// `<data>/demo/<session>.received` for the demo agent, `<data>/agents/<session>.notes` for others.
#[derive(Debug)]
pub struct FileRecords {
    data: PathBuf,
    open: BTreeMap<SessionId, Notes>,
    pictures: Pictures,
}

/// A record that was read.
#[derive(Debug)]
struct Notes {
    path: PathBuf,
    file: File,
    length: Length,
}

/// How long a record is, and was when it was shortened.
#[derive(Debug, Default)]
struct Length {
    bytes: u64,
    shortened_bytes: u64,
}

impl Length {
    fn is_long(&self) -> bool {
        self.bytes > NOTES_BYTES_MIN
            && self.bytes > self.shortened_bytes.saturating_mul(NOTES_GROWTH_MAX)
    }
}

impl FileRecords {
    /// Records in this data folder.
    pub fn open(data: PathBuf) -> io::Result<Self> {
        for folder in [DEMO_FOLDER, NOTES_FOLDER] {
            fs::create_dir_all(data.join(folder))?;
        }
        let pictures = Pictures::new(data.join(PICTURES_FOLDER));
        Ok(Self { data, open: BTreeMap::new(), pictures })
    }
}

impl Records for FileRecords {
    fn read(&mut self, session: &SessionId, agent: &AgentType) -> io::Result<String> {
        // Session ids are plain characters: they can name a file.
        let (path, bytes_max) = match agent.as_str() {
            agents::demo::AGENT => {
                (self.data.join(DEMO_FOLDER).join(format!("{session}.received")), DEMO_BYTES_MAX)
            }
            _ => (self.data.join(NOTES_FOLDER).join(format!("{session}.notes")), u64::MAX),
        };
        let mut file =
            OpenOptions::new().create(true).read(true).truncate(false).write(true).open(&path)?;
        let length = file.seek(SeekFrom::End(0))?;
        let start = length.saturating_sub(bytes_max);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = vec![];
        file.read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if whole < bytes.len() {
            // The next line must not be glued to one that was cut off.
            file.set_len(start + whole as u64)?;
            bytes.truncate(whole);
        }
        let length = Length { bytes: file.seek(SeekFrom::End(0))?, shortened_bytes: 0 };
        file.sync_all()?;
        self.open.insert(session.clone(), Notes { path, file, length });
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn append(&mut self, session: &SessionId, line: &str) -> io::Result<()> {
        let Some(Notes { file, length, .. }) = self.open.get_mut(session) else {
            return Err(io::Error::other("the record was never opened"));
        };
        file.write_all(format!("{line}\n").as_bytes())?;
        length.bytes += line.len() as u64 + 1;
        file.sync_data()
    }

    fn shorten(
        &mut self,
        session: &SessionId,
        shortened: &dyn Fn(&str) -> Option<String>,
    ) -> io::Result<()> {
        let notes = self.open.get_mut(session).filter(|notes| notes.length.is_long());
        let Some(Notes { path, file, length }) = notes else { return Ok(()) };
        if let Some(text) = shortened(&String::from_utf8_lossy(&fs::read(&*path)?)) {
            *file = disk::write_anew(path, text.as_bytes())?;
            length.bytes = text.len() as u64;
        }
        length.shortened_bytes = length.bytes;
        Ok(())
    }

    fn hold(&mut self, session: &SessionId, picture: &Picture) -> io::Result<()> {
        self.pictures.hold(session, picture)
    }

    fn let_go(&mut self, session: &SessionId, picture: &MessageId) {
        self.pictures.let_go(session, picture);
    }

    fn held(&mut self, session: &SessionId) -> Vec<Picture> {
        self.pictures.held(session)
    }

    fn forget_pictures(&mut self, session: &SessionId) {
        self.pictures.forget(session);
    }
}

/// Records in memory, for tests and simulations. A handle; clones see the same records.
#[derive(Debug, Clone, Default)]
pub struct MemoryRecords {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    lines: BTreeMap<SessionId, Vec<String>>,
    pictures: BTreeMap<(SessionId, MessageId), Picture>,
    fails: Option<Failing>,
}

/// How the next write fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failing {
    /// Before anything is written.
    Before,
    /// After the line is on disk, but before anybody is told.
    After,
}

impl MemoryRecords {
    /// Everything a session's agent received.
    pub fn lines(&self, session: &SessionId) -> Vec<String> {
        self.lock().lines.get(session).cloned().unwrap_or_default()
    }

    /// Makes the next write fail.
    pub fn fail_next(&self, failing: Failing) {
        self.lock().fails = Some(failing);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Records for MemoryRecords {
    fn read(&mut self, session: &SessionId, _agent: &AgentType) -> io::Result<String> {
        Ok(self.lines(session).join("\n"))
    }

    fn append(&mut self, session: &SessionId, line: &str) -> io::Result<()> {
        let mut inner = self.lock();
        let failing = inner.fails.take();
        if failing != Some(Failing::Before) {
            inner.lines.entry(session.clone()).or_default().push(line.to_owned());
        }
        match failing {
            Some(_) => Err(io::Error::other("the test made the record fail")),
            None => Ok(()),
        }
    }

    fn shorten(
        &mut self,
        session: &SessionId,
        shortened: &dyn Fn(&str) -> Option<String>,
    ) -> io::Result<()> {
        let mut inner = self.lock();
        let lines = inner.lines.entry(session.clone()).or_default();
        let bytes = lines.iter().map(|line| line.len() as u64 + 1).sum();
        let length = Length { bytes, shortened_bytes: 0 };
        if length.is_long()
            && let Some(text) = shortened(&lines.join("\n"))
        {
            *lines = text.lines().map(str::to_owned).collect();
        }
        Ok(())
    }

    fn hold(&mut self, session: &SessionId, picture: &Picture) -> io::Result<()> {
        let name = (session.clone(), picture.message.clone());
        self.lock().pictures.entry(name).or_insert_with(|| picture.clone());
        Ok(())
    }

    fn let_go(&mut self, session: &SessionId, picture: &MessageId) {
        self.lock().pictures.remove(&(session.clone(), picture.clone()));
    }

    fn held(&mut self, session: &SessionId) -> Vec<Picture> {
        let inner = self.lock();
        let own = inner.pictures.iter().filter(|((of, _), _)| of == session);
        own.map(|(_, picture)| picture.clone()).collect()
    }

    fn forget_pictures(&mut self, session: &SessionId) {
        self.lock().pictures.retain(|(of, _), _| of != session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_off_is_gone_and_the_next_one_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let session = SessionId::from("sess_1");
        let mut records = FileRecords::open(folder.path().to_owned()).unwrap();
        let demo = AgentType::from("demo");
        records.read(&session, &demo).unwrap();
        records.append(&session, "one").unwrap();
        let path = folder.path().join("demo/sess_1.received");
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"tw").unwrap();

        let mut reborn = FileRecords::open(folder.path().to_owned()).unwrap();
        assert_eq!(reborn.read(&session, &demo).unwrap(), "one\n");
        reborn.append(&session, "three").unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), "one\nthree\n");
    }

    #[test]
    fn notes_that_grew_long_are_shortened_and_go_on_from_there() {
        let folder = tempfile::tempdir().unwrap();
        let (session, agent) = (SessionId::from("sess_1"), AgentType::from("gemini"));
        let mut records = FileRecords::open(folder.path().to_owned()).unwrap();
        records.read(&session, &agent).unwrap();
        let last = |text: &str| text.lines().last().map(|line| format!("{line}\n"));
        records.append(&session, "short").unwrap();
        records.shorten(&session, &last).unwrap();
        let path = folder.path().join("agents/sess_1.notes");
        assert_eq!(fs::read_to_string(&path).unwrap(), "short\n", "it is not long");
        records.append(&session, &"x".repeat(1 << 20)).unwrap();
        records.append(&session, "counts").unwrap();
        records.shorten(&session, &last).unwrap();
        records.append(&session, "next").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "counts\nnext\n");
        let mut reborn = FileRecords::open(folder.path().to_owned()).unwrap();
        assert_eq!(reborn.read(&session, &agent).unwrap(), "counts\nnext\n");
    }

    #[test]
    fn the_first_note_is_read_however_many_follow() {
        let folder = tempfile::tempdir().unwrap();
        let (session, agent) = (SessionId::from("sess_1"), AgentType::from("gemini"));
        let mut records = FileRecords::open(folder.path().to_owned()).unwrap();
        records.read(&session, &agent).unwrap();
        records.append(&session, "\"ready\"").unwrap();
        let long = "x".repeat(1 << 20);
        for _ in 0..5 {
            records.append(&session, &long).unwrap();
        }
        let mut reborn = FileRecords::open(folder.path().to_owned()).unwrap();
        let read = reborn.read(&session, &agent).unwrap();
        assert_eq!(read.lines().next(), Some("\"ready\""));
        assert_eq!(read.lines().count(), 6);
    }
}
