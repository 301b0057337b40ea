//! Pictures that are waiting for upload to the relay, one file each, so that a proxy that was
//! killed can upload them later.
//!
//! Invariant: a picture is on disk before it is uploaded, and is removed once its message is in the
//! journal.
//!
//! Not here: how many there may be (`agents`), uploading (`shell`).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use agents::{Picture, Place};
use domain::{MessageId, RunId, SessionId, Timestamp, ToolCallId};
use serde::{Deserialize, Serialize};

/// Files of one session that are read after a crash; a session never has so many on their way.
const HELD_MAX: usize = 64;
/// How a file is called that may not be whole.
const UNFINISHED: &str = "part";

/// `<folder>/<session>/<number>`.
#[derive(Debug)]
pub(super) struct Pictures {
    folder: PathBuf,
    files: BTreeMap<(SessionId, MessageId), PathBuf>,
    count: u64,
}

/// A picture as it is written down.
#[derive(Serialize, Deserialize)]
struct Line {
    message: MessageId,
    name: String,
    media_type: String,
    run: Option<RunId>,
    parent: Option<ToolCallId>,
    seen_at: Timestamp,
    base64: String,
}

impl Pictures {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, files: BTreeMap::new(), count: 0 }
    }

    pub(super) fn hold(&mut self, session: &SessionId, picture: &Picture) -> io::Result<()> {
        let name = (session.clone(), picture.message.clone());
        let Some(place) = picture.place.clone() else { return Ok(()) };
        if self.files.contains_key(&name) {
            return Ok(());
        }
        let line = Line {
            message: picture.message.clone(),
            name: picture.name.clone(),
            media_type: picture.media_type.clone(),
            run: place.run,
            parent: place.parent,
            seen_at: place.seen_at,
            base64: picture.base64.clone(),
        };
        // Session ids are plain characters: they can name a folder.
        let folder = self.folder.join(session.as_str());
        fs::create_dir_all(&folder)?;
        let path = self.unused(&folder);
        let unfinished = path.with_extension(UNFINISHED);
        let mut file = File::create(&unfinished)?;
        file.write_all(&serde_json::to_vec(&line)?)?;
        file.sync_data()?;
        fs::rename(&unfinished, &path)?;
        self.files.insert(name, path);
        Ok(())
    }

    fn unused(&mut self, folder: &Path) -> PathBuf {
        loop {
            self.count += 1;
            let path = folder.join(self.count.to_string());
            if !path.exists() {
                return path;
            }
        }
    }

    pub(super) fn let_go(&mut self, session: &SessionId, picture: &MessageId) {
        if let Some(path) = self.files.remove(&(session.clone(), picture.clone())) {
            // One that stays is handed over once more, and its message is recorded once.
            let _ = fs::remove_file(path);
            let _ = fs::remove_dir(self.folder.join(session.as_str()));
        }
    }

    /// What an earlier life left, in the order in which it came.
    pub(super) fn held(&mut self, session: &SessionId) -> Vec<Picture> {
        let Ok(entries) = fs::read_dir(self.folder.join(session.as_str())) else { return vec![] };
        let mut paths: Vec<(u64, PathBuf)> = vec![];
        for path in entries.flatten().map(|entry| entry.path()).take(HELD_MAX) {
            let number = path.file_name().and_then(|name| name.to_str()?.parse().ok());
            match number {
                Some(number) => paths.push((number, path)),
                None => drop(fs::remove_file(path)),
            }
        }
        paths.sort();
        let mut held = vec![];
        for (_, path) in paths {
            let line = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
            let Some(line) = line else {
                tracing::warn!(path = %path.display(), "could not read a picture");
                let _ = fs::remove_file(path);
                continue;
            };
            let Line { message, name, media_type, run, parent, seen_at, base64 } = line;
            self.files.insert((session.clone(), message.clone()), path);
            let place = Some(Place { run, parent, seen_at });
            held.push(Picture { message, name, media_type, base64, place });
        }
        held
    }

    pub(super) fn forget(&mut self, session: &SessionId) {
        self.files.retain(|(of, _), _| of != session);
        let _ = fs::remove_dir_all(self.folder.join(session.as_str()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(id: &str) -> Picture {
        let place = Place { run: Some("r1".into()), parent: None, seen_at: Timestamp(7) };
        Picture {
            message: id.into(),
            name: "shot.png".to_owned(),
            media_type: "image/png".to_owned(),
            base64: "AAAA".to_owned(),
            place: Some(place),
        }
    }

    #[test]
    fn what_was_on_its_way_is_there_in_the_next_life_until_it_is_let_go() {
        let folder = tempfile::tempdir().unwrap();
        let session = SessionId::from("sess_1");
        let mut first = Pictures::new(folder.path().to_owned());
        for id in ["one/../x", "two", "two", "three"] {
            first.hold(&session, &picture(id)).unwrap();
        }
        first.let_go(&session, &"two".into());
        fs::write(folder.path().join("sess_1/9.part"), "{\"mess").unwrap();
        fs::write(folder.path().join("sess_1/8"), "{\"mess").unwrap();

        let mut second = Pictures::new(folder.path().to_owned());
        assert_eq!(second.held(&session), [picture("one/../x"), picture("three")]);
        assert_eq!(second.held(&"sess_2".into()), []);
        second.hold(&session, &picture("four")).unwrap();
        for id in ["one/../x", "three", "four"] {
            second.let_go(&session, &id.into());
        }
        assert!(!folder.path().join("sess_1").exists(), "nothing is left");
    }

    #[test]
    fn a_session_that_is_over_leaves_none() {
        let folder = tempfile::tempdir().unwrap();
        let session = SessionId::from("sess_1");
        let mut pictures = Pictures::new(folder.path().to_owned());
        pictures.hold(&session, &picture("one")).unwrap();
        pictures.forget(&session);
        assert_eq!(pictures.held(&session), []);
    }
}
