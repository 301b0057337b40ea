//! Errors on the machine's side. Each says what happened and what to do.

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
    #[error("{0:?} is not a relay address: use one like wss://relay.example/ws/proxy")]
    Address(String),
    /// The relay does not take the token.
    #[error(
        "the relay at {address} rejected the token ({status}): create one with `farhelm token \
         create --role proxy` and pass it with --token"
    )]
    Refused {
        /// Whom.
        address: String,
        /// The HTTP status.
        status: u16,
    },
    /// The system's certificates could not be read.
    #[error(
        "could not read the system's trusted certificates ({0}): install them (on Debian: apt \
         install ca-certificates), or pass your own with --tls-ca FILE"
    )]
    Certificates(String),
    /// Nor those that somebody named.
    #[error(
        "could not read certificates from {} ({detail}): --tls-ca expects a PEM file",
        path.display()
    )]
    TrustFile {
        /// Where.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// The token has characters that no token has.
    #[error("the token is not valid: pass it exactly as `farhelm token create` printed it")]
    NotAToken,
    /// The system gives no randomness.
    #[error("the system provides no random bytes: {0}")]
    Randomness(String),
    /// The thread that does the work is gone.
    #[error("the proxy's worker thread stopped unexpectedly")]
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
