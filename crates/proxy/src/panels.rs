//! Agents in panels of IDEs and browsers: finds, observes, recognises and operates them.
//!
//! One task, the service, knows which panel belongs to which session. Each debug port has a task
//! that tracks its targets, each target has one that watches its panels, and each window has one
//! that performs actions one at a time. A session's driver (`agents`) requests jobs and receives
//! news.
//!
//! Invariants: only ports of this machine are contacted. A panel that does not certainly belong to
//! a known session becomes a new session. Nothing is polled more often than every five seconds
//! without a reason. No target id leaves this module.
//!
//! Not here: the browser protocol (`cdp`), the meaning of what a panel shows (`agents`).

mod about;
pub mod acting;
mod book;
mod candidates;
mod config;
mod drivers;
mod inspect;
mod launching;
mod port;
mod profiles;
mod service;
mod sights;
mod skeletons;
mod watcher;

use std::path::Path;
use std::sync::Arc;

use agents::Input as AgentInput;
use agents::panel::News;
use domain::SessionId;
use domain::content::Failure;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::host::{Input, PanelJob};
pub use config::{IdeConfig, IdeProgram, PORTS_MAX};
pub(crate) use drivers::drivers;
pub use inspect::{Landmark, SeenPanel, SeenPort, SeenTarget, look};
pub use profiles::ProfileSet;
pub use skeletons::{Skeleton, saved};

/// What was heard of panels and waits for the host.
pub(crate) const NEWS_MAX: usize = 1_024;
/// Jobs that wait for the service. Beyond, they are refused.
const ASKS_MAX: usize = 256;

/// Makes names for sessions that nobody else has.
pub(crate) type NewId = fn() -> Option<String>;

/// What the host asks of the service.
#[derive(Debug)]
pub(crate) enum Ask {
    /// Do this.
    Job(PanelJob),
    /// The session is over.
    Forget(SessionId),
    /// Its panel looks otherwise than it should: keep its bones for a person to look at.
    Look(SessionId),
}

/// A handle to the service. It ends with this.
pub(crate) struct Panels {
    asks: mpsc::Sender<Ask>,
    task: JoinHandle<()>,
}

impl Panels {
    /// Starts the service.
    pub(crate) fn new(
        config: &IdeConfig,
        data: &Path,
        profiles: watch::Sender<Arc<ProfileSet>>,
        news: mpsc::Sender<Input>,
        new_id: NewId,
        handle: &Handle,
    ) -> Self {
        let (asks, asked) = mpsc::channel(ASKS_MAX);
        let service = service::Service::new(config.clone(), data, profiles, news, new_id);
        let task = handle.spawn(service.run(asked));
        Self { asks, task }
    }

    /// Never waits. Gives what cannot be done.
    pub(crate) fn carry_out(&self, job: PanelJob) -> Option<Input> {
        let (session, number) = (job.session.clone(), job.job.number);
        self.asks.try_send(Ask::Job(job)).err()?;
        let words = "Too many requests to this machine's panels at once. Try again in a moment";
        let outcome = Err(Failure::new("rate_limited", words));
        let news = News::Done { job: number, outcome };
        Some(Input::Agent(session, AgentInput::Panel(news)))
    }

    /// The session is over.
    pub(crate) fn forget(&self, session: &SessionId) {
        if self.asks.try_send(Ask::Forget(session.clone())).is_err() {
            tracing::warn!(
                %session,
                "could not release a session's panel: too many requests at once"
            );
        }
    }

    /// A panel changed.
    pub(crate) fn look_at(&self, session: &SessionId) {
        // What is missed is only a help for people.
        let _ = self.asks.try_send(Ask::Look(session.clone()));
    }
}

impl Drop for Panels {
    fn drop(&mut self) {
        self.task.abort();
    }
}
