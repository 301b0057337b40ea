//! TLS from certificate files, which are reloaded when they change.
//!
//! **Invariant**: unusable files never replace usable ones: the old certificate stays in use, and
//! the log says why.
//!
//! Not here: sockets (`listen`).

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::config::TlsFiles;

/// How often the files are looked at, at most.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsFault {
    /// A file cannot be read, or holds something else.
    #[error("cannot use {path} as {what} ({detail}); give a PEM file that this user can read")]
    File {
        /// Which file.
        path: String,
        /// What it should hold.
        what: &'static str,
        /// What is wrong.
        detail: String,
    },
    /// The two do not belong together.
    #[error("cannot use certificate {certificate} with key {key} ({detail})")]
    Pair {
        /// The chain.
        certificate: String,
        /// The key.
        key: String,
        /// What is wrong.
        detail: String,
    },
}

/// What tells that a file changed.
type Stamp = [Option<(SystemTime, u64)>; 2];

/// The current certificate.
pub(crate) struct Tls {
    files: TlsFiles,
    stamp: Stamp,
    /// The last change that could not be used: said once, tried again.
    refused: Option<Stamp>,
    looked_at: Instant,
    acceptor: TlsAcceptor,
}

impl Tls {
    /// Reads the files.
    pub(crate) fn open(files: TlsFiles) -> Result<Self, TlsFault> {
        let stamp = stamp(&files);
        let acceptor = load(&files)?;
        Ok(Self { files, stamp, refused: None, looked_at: Instant::now(), acceptor })
    }

    /// For the next connection. Looks at the files at most once in [`LOOK_EVERY`].
    pub(crate) fn acceptor(&mut self, now: Instant) -> TlsAcceptor {
        if now.duration_since(self.looked_at) >= LOOK_EVERY {
            self.looked_at = now;
            self.look();
        }
        self.acceptor.clone()
    }

    fn look(&mut self) {
        let found = stamp(&self.files);
        if found == self.stamp {
            return;
        }
        match load(&self.files) {
            Ok(acceptor) => {
                (self.acceptor, self.stamp, self.refused) = (acceptor, found, None);
                tracing::info!("the certificate files changed; reloaded them");
            }
            Err(fault) => {
                if self.refused != Some(found) {
                    tracing::warn!(%fault, "cannot use the changed certificates; keeping the old ones");
                }
                self.refused = Some(found);
            }
        }
    }
}

fn stamp(files: &TlsFiles) -> Stamp {
    let of = |path: &Path| {
        let found = std::fs::metadata(path).ok()?;
        Some((found.modified().ok()?, found.len()))
    };
    [of(&files.certificate), of(&files.key)]
}

fn load(files: &TlsFiles) -> Result<TlsAcceptor, TlsFault> {
    let file = |path: &Path, what: &'static str, detail: String| TlsFault::File {
        path: path.display().to_string(),
        what,
        detail,
    };
    let unusable = |detail: String| file(&files.certificate, "a certificate", detail);
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(&files.certificate)
        .map_err(|error| unusable(error.to_string()))?
        .collect();
    let chain = chain.map_err(|error| unusable(error.to_string()))?;
    if chain.is_empty() {
        return Err(unusable("it contains no certificate".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| file(&files.key, "a private key", error.to_string()))?;
    let pair = |error: rustls::Error| TlsFault::Pair {
        certificate: files.certificate.display().to_string(),
        key: files.key.display().to_string(),
        detail: error.to_string(),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(pair)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
