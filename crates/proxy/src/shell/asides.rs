//! Slow lookups that run beside the host's thread: agents, folders, conversations.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agents::Summary;
use domain::content::Failure;
use domain::{AgentType, RequestId};
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use wire::native::shapes::ResumableList;

use super::teller::{Teller, teller};
use crate::catalog::Catalog;
use crate::discovery::Discovery;
use crate::engine::Preparation;
use crate::host::{Act, Input, Turn};
use crate::panels::ProfileSet;
use crate::preparation::Preparer;
use crate::{ProxyConfig, conversations, processes};

/// What was found and waits for the host.
pub(super) const FOUND_MAX: usize = 256;
/// Things that are looked for at once. What is asked beyond is refused.
const LOOKING_MAX: usize = 64;
/// How often agents are looked for again.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// Agents without files that we know, and that tell their conversations.
const TELLING: [&str; 1] = ["opencode"];
/// Where working trees lie, in the data folder.
pub(super) const WORKTREES_FOLDER: &str = "worktrees";

/// All of it. Ends with the worker.
pub(super) struct Asides {
    found: mpsc::Sender<Input>,
    preparer: Arc<Preparer>,
    teller: Teller,
    look_again: Arc<Notify>,
    tasks: JoinSet<()>,
    handle: Handle,
}

impl Asides {
    pub(super) fn new(
        config: &ProxyConfig,
        catalog: &Arc<Catalog>,
        profiles: watch::Receiver<Arc<ProfileSet>>,
        found: mpsc::Sender<Input>,
        handle: Handle,
    ) -> Self {
        let preparer = Arc::new(Preparer {
            catalog: Arc::clone(catalog),
            allowed_roots: config.allowed_roots.clone(),
            worktrees: config.data.join(WORKTREES_FOLDER),
            profiles,
        });
        let look_again = Arc::new(Notify::new());
        let mut tasks = JoinSet::new();
        let discovery = Discovery::new(Arc::clone(catalog));
        tasks.spawn_on(discover(discovery, found.clone(), Arc::clone(&look_again)), &handle);
        let known = Arc::clone(catalog);
        let (teller, telling) = teller(move |agent| ask(Arc::clone(&known), agent));
        tasks.spawn_on(telling, &handle);
        Self { found, preparer, teller, look_again, tasks, handle }
    }

    /// Removes the working trees of sessions that are not there any more.
    pub(super) fn tidy(
        &mut self,
        data: &Path,
        known: std::collections::BTreeSet<domain::SessionId>,
    ) {
        let below = data.join(WORKTREES_FOLDER);
        if below.is_dir() {
            let tidy =
                move || crate::worktrees::tidy_all(&below, |session| known.contains(session));
            self.tasks.spawn_blocking_on(tidy, &self.handle);
        }
    }

    /// Begins what a turn asks for. Gives what cannot be begun.
    pub(super) fn begin(&mut self, turn: &mut Turn) -> Vec<Input> {
        let mut refused = vec![];
        let changes_sessions = |act: &Act| matches!(act, Act::Spawn(_) | Act::Forget(_));
        if turn.acts.iter().any(|(_, act)| changes_sessions(act)) {
            self.teller.forget();
        }
        for preparation in std::mem::take(&mut turn.preparations) {
            refused.extend(self.prepare(preparation));
        }
        for (request, list) in std::mem::take(&mut turn.lists) {
            refused.extend(self.list(request, list));
        }
        refused
    }

    fn prepare(&mut self, preparation: Preparation) -> Option<Input> {
        if self.is_busy() {
            return Some(Input::Prepared(preparation.session, Err(busy())));
        }
        let (preparer, found) = (Arc::clone(&self.preparer), self.found.clone());
        let look_again = Arc::clone(&self.look_again);
        let prepare = move || {
            let outcome = preparer.prepare(&preparation);
            // Whether it was found or not: what is offered may be old.
            look_again.notify_one();
            let _ = found.blocking_send(Input::Prepared(preparation.session, outcome));
        };
        self.tasks.spawn_blocking_on(prepare, &self.handle);
        None
    }

    fn list(&mut self, request: RequestId, list: ResumableList) -> Option<Input> {
        if self.is_busy() {
            return Some(Input::Listed(request, Err(busy())));
        }
        let (found, catalog) = (self.found.clone(), Arc::clone(&self.preparer.catalog));
        let teller = self.teller.clone();
        let look = async move {
            let told = told(&catalog, &teller, list.agent_type.as_ref()).await;
            let look = move || {
                let variables = |agent: &str, name: &str| {
                    let entry = catalog.entries().get(&AgentType::from(agent));
                    entry.map_or_else(|| std::env::var(name).ok(), |entry| entry.variable(name))
                };
                conversations::list(&list, told, &variables)
            };
            let listed = tokio::task::spawn_blocking(look).await;
            let listed = listed.map_err(|error| Failure::new("internal", error.to_string()));
            let _ = found.send(Input::Listed(request, listed)).await;
        };
        self.tasks.spawn_on(look, &self.handle);
        None
    }

    fn is_busy(&mut self) -> bool {
        while self.tasks.try_join_next().is_some() {}
        self.tasks.len() >= LOOKING_MAX
    }
}

/// What agents tell that keep no files we know. That takes seconds: of all agents only of those
/// that are known to tell, else of the one that is asked for.
async fn told(
    catalog: &Catalog,
    teller: &Teller,
    asked: Option<&AgentType>,
) -> Vec<conversations::Told> {
    let mut told = vec![];
    for (agent, entry) in catalog.entries() {
        let is_asked = match asked {
            Some(asked) => asked == agent && !conversations::has_files(agent.as_str()),
            None => TELLING.contains(&agent.as_str()),
        };
        if is_asked && entry.program().is_some() {
            let summaries = teller.told(agent).await;
            told.extend(summaries.into_iter().map(|summary| (agent.clone(), summary)));
        }
    }
    told
}

async fn ask(catalog: Arc<Catalog>, agent: AgentType) -> Vec<Summary> {
    let Some(entry) = catalog.entries().get(&agent) else { return vec![] };
    let folder = entry.variable("HOME").or_else(|| entry.variable("USERPROFILE"));
    let folder = PathBuf::from(folder.unwrap_or_else(|| "/".into()));
    processes::told_conversations(&entry.launcher, &folder).await
}

fn busy() -> Failure {
    Failure::new("rate_limited", "Too many requests to this machine at once. Try again in a moment")
}

/// Looks for agents now, each minute, and when somebody has reason to.
async fn discover(mut discovery: Discovery, found: mpsc::Sender<Input>, look_again: Arc<Notify>) {
    loop {
        let offers = discovery.look().await;
        if found.send(Input::Offer(offers)).await.is_err() {
            return;
        }
        let _ = tokio::time::timeout(LOOK_AGAIN, look_again.notified()).await;
    }
}
