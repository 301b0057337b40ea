//! What goes wrong on the machine's side, in words that say what to do.

use std::io;
use std::path::{Path, PathBuf};

/// Something that the proxy cannot go on with.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// A file could not be read or written.
    #[error("{what}: {source}")]
    Disk {
        /// What was being done.
        what: String,
        /// What the system says.
        source: io::Error,
    },
    /// Another proxy has the data folder.
    #[error(
        "another proxy is using {}: stop it, or give this one its own folder with --data",
        .0.display()
    )]
    Locked(PathBuf),
    /// The relay's address is not one.
    #[error("{0:?} is not a relay's address: give one like wss://relay.example/ws/proxy")]
    Address(String),
    /// The relay does not take the token.
    #[error(
        "the relay at {address} refused the token ({status}): make one with \
         `farhelm token create --role proxy` and give it with --token"
    )]
    Refused {
        /// Whom.
        address: String,
        /// The HTTP status.
        status: u16,
    },
    /// The system's certificates could not be read.
    #[error(
        "no trusted certificates could be read from the system ({0}): install them (on Debian: \
         apt install ca-certificates), or name yours with --tls-ca FILE"
    )]
    Certificates(String),
    /// Nor those that somebody named.
    #[error("no certificates can be read from {} ({detail}): --tls-ca wants a PEM file", path.display())]
    TrustFile {
        /// Where.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// The token has characters that no token has.
    #[error("the token is not one: give it as `farhelm token create` printed it")]
    NotAToken,
    /// The system gives no randomness.
    #[error("the system gives no randomness: {0}")]
    Randomness(String),
    /// The thread that does the work is gone.
    #[error("the proxy's worker ended unexpectedly")]
    Worker,
}

impl Fault {
    /// A failed file operation.
    pub fn disk(what: impl Into<String>, source: io::Error) -> Self {
        Self::Disk { what: what.into(), source }
    }

    /// A file of certificates that is none.
    pub(crate) fn trust_file(path: &Path, detail: &dyn std::fmt::Display) -> Self {
        Self::TrustFile { path: path.to_path_buf(), detail: detail.to_string() }
    }
}
