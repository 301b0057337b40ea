//! Disk and database failures, with messages that say what to do.
//!
//! Not here: why a single append is refused while the rest of its group commits
//! ([`AppendRefused`](crate::AppendRefused)).

use std::path::PathBuf;

use domain::SessionId;

/// The store could not do it. `Clone`, because one failed group answers many waiting commands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Another process owns the data folder.
    #[error(
        "the data folder {} is in use by {}; stop that process, or choose another folder with --data",
        folder.display(),
        match process { Some(process) => format!("process {process}"), None => "another process".into() }
    )]
    Locked {
        /// The folder that both want.
        folder: PathBuf,
        /// Who has it, as it wrote there itself.
        process: Option<u32>,
    },
    /// Written by a later release.
    #[error(
        "{} has format {found}, and this release reads formats up to {known}; run the newer \
         release, or restore the copy {}.before-v{found} to go back",
        path.display(),
        path.display()
    )]
    NewerVersion {
        /// The database.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest that this release can read.
        known: u32,
    },
    /// Not a database, or not ours.
    #[error(
        "{} is not a Farhelm database or its header is damaged ({detail}); restore a backup, or \
         move the file away to start with an empty database",
        path.display()
    )]
    NotALedger {
        /// The file.
        path: PathBuf,
        /// What was found instead.
        detail: String,
    },
    /// No room. Nothing of the group was recorded.
    #[error("the disk is full and nothing was recorded; free some space and try again")]
    Full,
    /// A page or a checksum is wrong.
    #[error(
        "cannot read {} ({detail}); restore a backup of the database",
        match stream { Some(stream) => format!("session {stream}"), None => "part of the database".into() }
    )]
    Corrupt {
        /// Whose history it is; `None` when the damage cannot be told apart.
        stream: Option<SessionId>,
        /// What was found.
        detail: String,
    },
    /// The disk or the database failed. A commit may or may not have happened: reopen, then look.
    #[error(
        "the database failed ({detail}); check the disk and the permissions of the data folder"
    )]
    Io {
        /// What the system said.
        detail: String,
    },
    /// An earlier [`Fault::Io`] left the outcome open.
    #[error("the database must be reopened after an earlier failure")]
    NeedsReopen,
    /// Such a row is there already.
    #[error("{what} already exists; choose another")]
    Exists {
        /// What was to be inserted.
        what: String,
    },
}

impl Fault {
    pub(crate) fn corrupt(stream: &SessionId, detail: impl Into<String>) -> Self {
        Self::Corrupt { stream: Some(stream.clone()), detail: detail.into() }
    }

    /// Damage that was found while working on this stream belongs to it.
    pub(crate) fn of_stream(self, stream: &SessionId) -> Self {
        if let Self::Corrupt { stream: None, detail } = self {
            return Self::corrupt(stream, detail);
        }
        self
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::StorageFull {
            return Self::Full;
        }
        Self::Io { detail: error.to_string() }
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        let detail = error.to_string();
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => Self::Full,
            Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => {
                Self::Corrupt { stream: None, detail }
            }
            Some(_) => Self::Io { detail },
            // Not from SQLite: a column that holds what we never wrote.
            None => Self::Corrupt { stream: None, detail },
        }
    }
}
