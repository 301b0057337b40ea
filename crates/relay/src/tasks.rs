//! Tasks: everything the relay runs. A panic is always logged, and all tasks can be stopped.
//!
//! Not here: threads (`books`).

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinSet;

/// The tasks of one relay. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Tasks(Arc<Mutex<JoinSet<()>>>);

impl Tasks {
    /// Runs a task. One that panics is logged under its name; the others go on.
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(ended) = tasks.try_join_next() {
            if let Err(error) = ended
                && error.is_panic()
            {
                tracing::error!(%error, "a task panicked");
            }
        }
        tasks.spawn(async move {
            let _named = Named(name);
            task.await;
        });
    }

    /// Ends them all where they stand.
    pub fn abort_all(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }
}

/// Names the task in the log while its panic unwinds.
struct Named(&'static str);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!(task = self.0, "a task is unwinding");
        }
    }
}
