//! What the relay needs from the world besides a store: the time, and names for new things.
//!
//! A simulation gives its own.
//!
//! Not here: the store (`books`), sockets (`gate`).

use std::sync::Arc;

use domain::{AttachmentId, ConnectionId, Timestamp};

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
}

/// No uploads at all.
#[derive(Debug, Clone, Copy)]
pub struct NoUploads;

impl Uploads for NoUploads {
    fn media_type(&self, _id: &AttachmentId) -> Option<String> {
        None
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
