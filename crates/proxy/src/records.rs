//! The notes that drivers take of their sessions, and the pictures that are on their way to the
//! relay. The demo agent's notes are what it received.
//!
//! A line is on disk when it is written; a line that was cut off by a crash never happened.
//!
//! Not here: what a line says (`agents`).

mod pictures;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agents::Picture;
use domain::{AgentType, MessageId, SessionId};

use pictures::Pictures;

/// Bytes of a record that are read back: far more than the lines that are ever looked up.
const READ_BYTES_MAX: u64 = 4 << 20;

const DEMO_FOLDER: &str = "demo";
const NOTES_FOLDER: &str = "agents";
const PICTURES_FOLDER: &str = "pictures";

/// Where agents' records lie.
pub trait Records {
    /// The whole lines of a session's record, or the last of them where they are many.
    fn read(&mut self, session: &SessionId, agent: &AgentType) -> io::Result<String>;
    /// Adds a line to a record that was read, synced.
    fn append(&mut self, session: &SessionId, line: &str) -> io::Result<()>;
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
    open: BTreeMap<SessionId, File>,
    pictures: Pictures,
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
        let path = match agent.as_str() {
            agents::demo::AGENT => self.data.join(DEMO_FOLDER).join(format!("{session}.received")),
            _ => self.data.join(NOTES_FOLDER).join(format!("{session}.notes")),
        };
        let mut file =
            OpenOptions::new().create(true).read(true).truncate(false).write(true).open(path)?;
        let length = file.seek(SeekFrom::End(0))?;
        let start = length.saturating_sub(READ_BYTES_MAX);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = vec![];
        file.read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if whole < bytes.len() {
            // The next line must not be glued to one that was cut off.
            file.set_len(start + whole as u64)?;
            bytes.truncate(whole);
        }
        file.seek(SeekFrom::End(0))?;
        file.sync_all()?;
        self.open.insert(session.clone(), file);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn append(&mut self, session: &SessionId, line: &str) -> io::Result<()> {
        let Some(file) = self.open.get_mut(session) else {
            return Err(io::Error::other("the record was never opened"));
        };
        file.write_all(format!("{line}\n").as_bytes())?;
        file.sync_data()
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
            Some(_) => Err(io::Error::other("the record was told to fail")),
            None => Ok(()),
        }
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
}
