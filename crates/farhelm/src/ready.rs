//! The files by which programs find a running relay: `relay.json` in the data folder, and the ready
//! file if one was requested.
//!
//! **Invariant**: each file is complete or absent, readable by its owner alone, and gone after a
//! clean stop.
//!
//! Not here: finding the relay by them (`discovery`), tokens (`server`).

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::problem::{Context as _, Problem};

/// In the data folder.
pub(crate) const RELAY_FILE_NAME: &str = "relay.json";

/// `relay.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RelayFile {
    /// The HTTP base.
    pub(crate) url: String,
    /// Of the relay.
    pub(crate) pid: u32,
    /// Of the program.
    #[serde(default)]
    pub(crate) version: String,
}

/// The ready file.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ReadyFile {
    /// The HTTP base.
    pub(crate) url: String,
    /// The full address of `/ws`.
    pub(crate) ws: String,
    /// The owner's.
    pub(crate) token: String,
    /// One of role proxy.
    pub(crate) proxy_token: String,
    /// Of the relay.
    pub(crate) pid: u32,
    /// Of the program.
    pub(crate) version: String,
}

/// A file that goes with the process.
#[derive(Debug)]
pub(crate) struct Posted {
    path: PathBuf,
}

impl Posted {
    /// Writes it whole, in one step.
    pub(crate) fn write(path: &Path, content: &impl Serialize) -> Result<Self, Problem> {
        let posted = write_whole(path, content);
        posted.context(format_args!("could not write {}", path.display()))?;
        Ok(Self { path: path.to_path_buf() })
    }

    /// Takes it away.
    pub(crate) fn remove(self) {
        if let Err(error) = std::fs::remove_file(&self.path)
            && error.kind() != ErrorKind::NotFound
        {
            tracing::warn!(path = %self.path.display(), %error, "could not remove a file");
        }
    }
}

/// What `relay.json` in this folder says.
pub(crate) fn read_relay_file(data: &Path) -> Option<RelayFile> {
    let text = std::fs::read(data.join(RELAY_FILE_NAME)).ok()?;
    serde_json::from_slice(&text).ok()
}

/// The WebSocket address that belongs to an HTTP one.
pub(crate) fn socket_url(url: &str, path: &str) -> String {
    let base = url.trim_end_matches('/');
    let swapped = match base.split_once("://") {
        Some(("https" | "wss", rest)) => format!("wss://{rest}"),
        Some((_, rest)) => format!("ws://{rest}"),
        None => format!("ws://{base}"),
    };
    format!("{swapped}{path}")
}

fn write_whole(path: &Path, content: &impl Serialize) -> std::io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.new", std::process::id()));
    let beside = path.with_file_name(name);
    let _ = std::fs::remove_file(&beside);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&beside)?;
    let mut text = serde_json::to_vec(content)?;
    text.push(b'\n');
    file.write_all(&text)?;
    drop(file);
    std::fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_posted_file_is_private_whole_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(RELAY_FILE_NAME);
        let content = RelayFile { url: "http://127.0.0.1:1".into(), pid: 7, version: "1".into() };

        let posted = Posted::write(&path, &content).unwrap();

        assert_eq!(read_relay_file(folder.path()), Some(content));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        posted.remove();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn an_address_of_http_has_one_of_websockets() {
        assert_eq!(socket_url("http://h:1/", "/ws"), "ws://h:1/ws");
        assert_eq!(socket_url("https://h", "/ws/native"), "wss://h/ws/native");
        assert_eq!(socket_url("wss://h", "/ws"), "wss://h/ws");
    }
}
