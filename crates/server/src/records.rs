//! The task that owns the vault: credentials, uploads, and pairing codes.
//!
//! **Invariant**: every change of a credential runs here, one job after the other, and publishes
//! the new book before the next job starts: a change that was answered is in the book.
//!
//! Not here: what the jobs do (`auth`, `api::uploads`), the rows (`store`).

use std::sync::Arc;

use store::{Fault, Vault};
use tokio::sync::{mpsc, oneshot, watch};

use crate::auth::{Book, Pairing};

/// Jobs that wait; who asks beyond that waits for room.
const JOBS_WAITING_MAX: usize = 256;

/// What the owner task holds.
pub(crate) struct Office {
    pub(crate) vault: Box<dyn Vault>,
    pub(crate) pairing: Pairing,
    pub(crate) book: watch::Sender<Arc<Book>>,
}

type Job = Box<dyn FnOnce(&mut Office) + Send>;

/// Why a job brought nothing.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RecordsFault {
    /// The database said no.
    #[error(transparent)]
    Store(#[from] Fault),
    /// The owner task is gone: the relay is stopping, or has a defect.
    #[error("the relay is stopping and its records are closed")]
    Closed,
    /// The thread could not be started.
    #[error("could not start the thread for the relay's records ({0})")]
    Thread(String),
    /// No secret could be made.
    #[error(transparent)]
    Randomness(#[from] crate::auth::NoRandomness),
    /// The bound of credentials is met.
    #[error("at most {limit} tokens can be valid at once; revoke one that you no longer use")]
    TooManyCredentials {
        /// The bound that was met.
        limit: usize,
    },
    /// The token file could not be read or written.
    #[error("cannot use the token file {path} ({detail}); check the permissions of its folder")]
    TokenFile {
        /// Which file.
        path: String,
        /// What the system said.
        detail: String,
    },
}

/// A handle to the owner task; it ends with the last one.
#[derive(Debug, Clone)]
pub(crate) struct Records {
    jobs: mpsc::Sender<Job>,
}

impl Records {
    /// Starts the owner task and reads the book.
    pub(crate) fn open(
        mut vault: Box<dyn Vault>,
    ) -> Result<(Self, watch::Receiver<Arc<Book>>), RecordsFault> {
        let book = Book::new(&vault.credentials()?);
        let (book, reader) = watch::channel(Arc::new(book));
        let mut office = Office { vault, pairing: Pairing::default(), book };
        let (jobs, mut waiting) = mpsc::channel::<Job>(JOBS_WAITING_MAX);
        // A thread, because the vault waits for the disk.
        let work = move || {
            while let Some(job) = waiting.blocking_recv() {
                job(&mut office);
            }
        };
        let thread = std::thread::Builder::new().name("farhelm-records".into());
        thread.spawn(work).map_err(|error| RecordsFault::Thread(error.to_string()))?;
        Ok((Self { jobs }, reader))
    }

    /// Runs a job and waits for what it brings.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Office) -> Result<T, RecordsFault> + Send + 'static,
    ) -> Result<T, RecordsFault> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |office| {
            let _ = answer.send(job(office));
        });
        self.jobs.send(job).await.map_err(|_| RecordsFault::Closed)?;
        answered.await.map_err(|_| RecordsFault::Closed)?
    }

    /// Runs a job some time, unless too many wait: for what may be left out.
    pub(crate) fn mention(&self, job: impl FnOnce(&mut Office) + Send + 'static) {
        let _ = self.jobs.try_send(Box::new(job));
    }
}
