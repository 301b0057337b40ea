//! The files that people uploaded, which outlive the relay.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use domain::AttachmentId;
use domain::content::{Attachment, Failure};
use relay::ports::{NewFile, Uploads, Work};

/// A handle; clones see the same files.
#[derive(Debug, Clone, Default)]
pub(crate) struct SimUploads(Arc<Mutex<BTreeMap<AttachmentId, (String, Bytes)>>>);

impl SimUploads {
    /// Somebody uploads a file.
    pub(crate) fn put(&self, id: &str, media_type: &str, bytes: Bytes) {
        self.lock().insert(id.into(), (media_type.to_owned(), bytes));
    }

    /// A file, whole.
    pub(crate) fn get(&self, id: &AttachmentId) -> Option<Bytes> {
        self.lock().get(id).map(|(_, bytes)| bytes.clone())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<AttachmentId, (String, Bytes)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Uploads for SimUploads {
    fn media_type(&self, id: &AttachmentId) -> Option<String> {
        self.lock().get(id).map(|(media_type, _)| media_type.clone())
    }

    fn store(&self, file: NewFile) -> Work<Result<Attachment, Failure>> {
        let mut files = self.lock();
        let id = AttachmentId::from(format!("file-{}", files.len()));
        files.insert(id.clone(), (file.media_type.clone(), file.bytes));
        drop(files);
        let (name, media_type) = (file.name, Some(file.media_type));
        let kept = Attachment { id, name, kind: "image".to_owned(), media_type };
        Box::pin(async move { Ok(kept) })
    }

    fn load(&self, id: &AttachmentId) -> Work<Result<Bytes, Failure>> {
        let file = self.get(id);
        let unknown = || Failure::new("attachment_unknown", "File not found");
        Box::pin(async move { file.ok_or_else(unknown) })
    }
}
