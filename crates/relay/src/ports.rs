//! What the relay needs from outside besides a store: the time, and new ids.
//!
//! A simulation provides its own.
//!
//! Not here: the store (`books`), sockets (`gate`).

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use domain::content::{Attachment, Failure};
use domain::{AttachmentId, ConnectionId, CredentialId, Principal, Timestamp};

use wire::visitor::Recognised;

use crate::tasks::Tasks;

/// Wall-clock time.
pub trait Clock: Send + Sync + 'static {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// Names for new things.
pub trait Ids: Send + Sync + 'static {
    /// A name that no other connection has or had.
    fn connection(&self) -> ConnectionId;
}

/// Files that people uploaded.
pub trait Uploads: Send + Sync + 'static {
    /// The media type of an upload; `None` when there is none of this id.
    fn media_type(&self, id: &AttachmentId) -> Option<String>;
    /// Keeps a file that came within a frame.
    fn store(&self, file: NewFile) -> Work<Result<Attachment, Failure>>;
    /// A file that was kept, whole.
    fn load(&self, id: &AttachmentId) -> Work<Result<Bytes, Failure>>;
}

/// A file that came within a frame.
#[derive(Debug, Clone)]
pub struct NewFile {
    /// As the person calls it.
    pub name: String,
    /// What it is.
    pub media_type: String,
    /// The file.
    pub bytes: Bytes,
    /// Whose.
    pub by: CredentialId,
}

/// Something that takes time.
pub type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Who comes in by a word within a frame, for dialects that do it there.
pub trait Door: Send + Sync + 'static {
    /// Exchanges a pairing code for a credential and its token. The key is kept with it.
    fn pair(
        &self,
        code: String,
        name: String,
        key: Option<[u8; 32]>,
    ) -> Work<Result<(Principal, String), Failure>>;
    /// Who shows this token, with what was kept at its pairing; `None` for nobody.
    fn recognise(&self, token: String) -> Work<Option<Recognised>>;
    /// Notes a nonce for good. Whether it was new under this credential's key.
    fn spend(&self, credential: CredentialId, nonce: [u8; 12]) -> Work<bool>;
    /// Ends when this credential is revoked.
    fn revoked(&self, credential: &CredentialId) -> Work<()>;
    /// Who shows this token; `None` for nobody.
    fn identify(&self, token: String) -> Work<Option<Principal>>;
}

/// Nobody comes in by a frame.
#[derive(Debug, Clone, Copy)]
pub struct NoDoor;

impl Door for NoDoor {
    fn pair(
        &self,
        _code: String,
        _name: String,
        _key: Option<[u8; 32]>,
    ) -> Work<Result<(Principal, String), Failure>> {
        let words = "Pairing is not available";
        Box::pin(async move { Err(Failure::new("pairing_failed", words)) })
    }

    fn recognise(&self, _token: String) -> Work<Option<Recognised>> {
        Box::pin(async { None })
    }

    fn spend(&self, _credential: CredentialId, _nonce: [u8; 12]) -> Work<bool> {
        Box::pin(async { false })
    }

    fn revoked(&self, _credential: &CredentialId) -> Work<()> {
        Box::pin(std::future::pending())
    }

    fn identify(&self, _token: String) -> Work<Option<Principal>> {
        Box::pin(async { None })
    }
}

/// No uploads at all.
#[derive(Debug, Clone, Copy)]
pub struct NoUploads;

impl Uploads for NoUploads {
    fn media_type(&self, _id: &AttachmentId) -> Option<String> {
        None
    }

    fn store(&self, _file: NewFile) -> Work<Result<Attachment, Failure>> {
        Box::pin(async { Err(Failure::new("internal", "This relay does not store files")) })
    }

    fn load(&self, _id: &AttachmentId) -> Work<Result<Bytes, Failure>> {
        Box::pin(async { Err(Failure::new("attachment_unknown", "File not found")) })
    }
}

/// The ports together.
#[derive(Clone)]
pub struct Ports {
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Names.
    pub ids: Arc<dyn Ids>,
    /// Uploads.
    pub uploads: Arc<dyn Uploads>,
    /// Where tasks run.
    pub tasks: Tasks,
}
