//! The shelf: uploaded files on disk, and an index of them in memory.
//!
//! **Invariant**: a file gets its final name only when it is complete and synced, and its row only
//! after that. Files that a crash leaves under another name are deleted at the next start.
//!
//! Not here: HTTP (`api::uploads`), the rows (`store`).

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use domain::content::Attachment;
use domain::{AttachmentId, CredentialId, Timestamp};
use relay::ports::NewFile;
use sha2::{Digest as _, Sha256};
use store::Upload;
use tokio::io::AsyncWriteExt as _;

use crate::auth::{self, Auth};
use crate::records::{Records, RecordsFault};

/// The end of the name of a file that is not whole yet.
const PARTIAL: &str = "part";

/// What is known of a file without opening it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// As the person's file was called.
    pub name: String,
    /// As the client declared it.
    pub media_type: String,
    /// Its length.
    pub size_bytes: u64,
    /// Of its content.
    pub sha256: [u8; 32],
}

/// Uploaded files. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Shelf {
    folder: Arc<Path>,
    records: Records,
    /// Read for every message that names a file, written at each upload.
    index: Arc<RwLock<HashMap<AttachmentId, Arc<Item>>>>,
}

/// Why a file was not kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShelfFault {
    #[error("the disk is full")]
    Full,
    #[error("the file is larger than {limit_bytes} bytes")]
    TooLarge { limit_bytes: u64 },
    #[error("cannot use the uploads folder ({0})")]
    Io(io::Error),
    #[error(transparent)]
    Records(#[from] RecordsFault),
}

/// A file on its way. Dropped before it is finished, it leaves nothing behind.
pub(crate) struct Arriving {
    shelf: Shelf,
    id: AttachmentId,
    partial: Partial,
    file: tokio::fs::File,
    hash: Sha256,
    size_bytes: u64,
    limit_bytes: u64,
}

/// Removes the file unless it got its final name.
struct Partial(Option<PathBuf>);

impl Shelf {
    /// Makes the folder when it is missing, sweeps it, and reads the index.
    pub async fn open(folder: &Path, auth: &Auth) -> Result<Self, RecordsFault> {
        let records = auth.records().clone();
        let unusable = |error: io::Error| store::Fault::from(error);
        std::fs::create_dir_all(folder).map_err(unusable)?;
        for entry in std::fs::read_dir(folder).map_err(unusable)?.flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|end| end == PARTIAL) {
                std::fs::remove_file(path).map_err(unusable)?;
            }
        }
        let rows = records.ask(|office| Ok(office.vault.uploads()?)).await?;
        let index = rows.into_iter().map(|row| (row.id.clone(), Arc::new(Item::of(&row))));
        let index = Arc::new(RwLock::new(index.collect()));
        Ok(Self { folder: folder.into(), records, index })
    }

    /// A file that is whole.
    pub fn find(&self, id: &AttachmentId) -> Option<Arc<Item>> {
        self.index.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// Begins a file.
    pub(crate) async fn begin(&self, limit_bytes: u64) -> Result<Arriving, ShelfFault> {
        let id = auth::id("upl").map_err(RecordsFault::from)?;
        let path = self.folder.join(&id).with_extension(PARTIAL);
        let file = tokio::fs::File::create_new(&path).await?;
        Ok(Arriving {
            shelf: self.clone(),
            id: id.into(),
            partial: Partial(Some(path)),
            file,
            hash: Sha256::new(),
            size_bytes: 0,
            limit_bytes,
        })
    }

    /// Keeps a file that came within a frame.
    pub(crate) async fn keep(&self, file: NewFile) -> Result<Attachment, ShelfFault> {
        let mut arriving = self.begin(file.bytes.len() as u64).await?;
        arriving.take(&file.bytes).await?;
        let NewFile { name, media_type, by, .. } = file;
        let kept = arriving.finish(name, media_type, by, crate::clock::now()).await?;
        let (name, media_type) = (kept.name, Some(kept.media_type));
        Ok(Attachment { id: kept.id, name, kind: "uploaded_file".to_owned(), media_type })
    }

    /// Opens a file that is whole.
    pub(crate) async fn read(&self, id: &AttachmentId) -> io::Result<tokio::fs::File> {
        // An id comes from the index, never from a path that somebody made up.
        tokio::fs::File::open(self.folder.join(id.as_str())).await
    }
}

impl Arriving {
    pub(crate) async fn take(&mut self, bytes: &[u8]) -> Result<(), ShelfFault> {
        self.size_bytes += bytes.len() as u64;
        if self.size_bytes > self.limit_bytes {
            return Err(ShelfFault::TooLarge { limit_bytes: self.limit_bytes });
        }
        self.hash.update(bytes);
        Ok(self.file.write_all(bytes).await?)
    }

    /// Gives the file its name and its row.
    pub(crate) async fn finish(
        mut self,
        name: String,
        media_type: String,
        by: CredentialId,
        now: Timestamp,
    ) -> Result<Upload, ShelfFault> {
        self.file.flush().await?;
        self.file.sync_all().await?;
        let last = self.shelf.folder.join(self.id.as_str());
        if let Some(partial) = &self.partial.0 {
            tokio::fs::rename(partial, &last).await?;
        }
        // Until the row is there, the file is still nobody's.
        self.partial.0 = Some(last);
        let upload = Upload {
            id: self.id.clone(),
            name,
            size_bytes: self.size_bytes,
            sha256: self.hash.clone().finalize().into(),
            media_type,
            created_at: now,
            by,
        };
        let row = upload.clone();
        self.shelf.records.ask(move |office| Ok(office.vault.insert_upload(&row)?)).await?;
        self.partial.0 = None;
        let mut index = self.shelf.index.write().unwrap_or_else(PoisonError::into_inner);
        index.insert(upload.id.clone(), Arc::new(Item::of(&upload)));
        drop(index);
        Ok(upload)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Item {
    fn of(row: &Upload) -> Self {
        Self {
            name: row.name.clone(),
            media_type: row.media_type.clone(),
            size_bytes: row.size_bytes,
            sha256: row.sha256,
        }
    }
}

impl From<io::Error> for ShelfFault {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::StorageFull { Self::Full } else { Self::Io(error) }
    }
}
