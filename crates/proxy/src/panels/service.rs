//! The one task that knows which panel belongs to which session.
//!
//! Invariant: a panel has at most one session and a session at most one panel. A session that loses
//! its panel learns it before another session gets the panel.
//!
//! Not here: watching browsers (`port`, `watcher`), doing jobs (`acting`), opening chats
//! (`launching`).

mod anew;
mod jobs;
mod whose;

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use agents::Input as AgentInput;
use agents::panel::{News, Profile};
use domain::SessionId;
use domain::fleet::AgentOffer;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::book::Book;
use super::launching::Launch;
use super::port::{LOOK_EVERY, Shared, watch_port};
use super::profiles::ProfileSet;
use super::sights::{Hand, Leaving, Number, Seen, Window};
use super::{Ask, IdeConfig, NewId, skeletons};
use crate::host::Input;

/// What the watchers saw and the service has not heard yet.
const SEEN_MAX: usize = 1_024;
/// How often launches are looked at, while there are any.
const LAUNCH_TICK: Duration = Duration::from_secs(1);
/// A page that was closed may be one that is loaded anew, or the first of an IDE that ends.
const CLOSED_AFTER: Duration = Duration::from_secs(10);
/// Panels that were closed a moment ago.
const LEAVING_MAX: usize = 256;

/// A panel that is observed.
pub(super) struct Live {
    pub(super) address: String,
    pub(super) target: String,
    pub(super) window: String,
    pub(super) profile: Arc<Profile>,
    pub(super) workspace_path: Option<String>,
    pub(super) window_title: Option<String>,
    pub(super) mark: agents::panel::identity::Mark,
    pub(super) session: Option<SessionId>,
    pub(super) hand: Hand,
    /// Since when its conversation has no name any more.
    pub(super) nameless_since: Option<Instant>,
    /// How often the person asked for a new chat in its document.
    pub(super) new_chats: u64,
    /// Until then a transcript that is emptied is a new chat.
    pub(super) begins_until: Option<Instant>,
    look: anew::Look,
}

/// A session whose panel went away.
struct Left {
    session: SessionId,
    address: String,
    window: String,
    until: Instant,
}

pub(super) struct Service {
    pub(super) config: IdeConfig,
    folder: PathBuf,
    pub(super) profiles: watch::Sender<Arc<ProfileSet>>,
    news: mpsc::Sender<Input>,
    new_id: NewId,
    pub(super) book: Book,
    pub(super) seen: mpsc::Sender<Seen>,
    sights: Option<mpsc::Receiver<Seen>>,
    hurry: watch::Sender<bool>,
    pub(super) ports_up: Vec<String>,
    pub(super) windows: BTreeMap<(String, String), Window>,
    pub(super) panels: BTreeMap<Number, Live>,
    pub(super) shown: BTreeMap<SessionId, Number>,
    pub(super) launches: BTreeMap<SessionId, Launch>,
    /// Sessions whose panels went away, until it is clear whether their windows were closed.
    leaving: VecDeque<Left>,
    offered: Vec<AgentOffer>,
    pub(super) tasks: JoinSet<()>,
}

impl Service {
    pub(super) fn new(
        config: IdeConfig,
        data: &Path,
        profiles: watch::Sender<Arc<ProfileSet>>,
        news: mpsc::Sender<Input>,
        new_id: NewId,
    ) -> Self {
        let folder = skeletons::own(data);
        let book = Book::open(&folder);
        let (seen, sights) = mpsc::channel(SEEN_MAX);
        Self {
            config,
            folder,
            profiles,
            news,
            new_id,
            book,
            seen,
            sights: Some(sights),
            hurry: watch::Sender::new(false),
            ports_up: vec![],
            windows: BTreeMap::new(),
            panels: BTreeMap::new(),
            shown: BTreeMap::new(),
            launches: BTreeMap::new(),
            leaving: VecDeque::new(),
            offered: vec![],
            tasks: JoinSet::new(),
        }
    }

    pub(super) async fn run(mut self, mut asked: mpsc::Receiver<Ask>) {
        let Some(mut sights) = self.sights.take() else { return };
        let shared = Shared {
            profiles: self.profiles.subscribe(),
            tell: self.seen.clone(),
            numbers: Arc::new(AtomicU64::new(1)),
            hurry: self.hurry.subscribe(),
        };
        for address in self.config.all_ports() {
            self.tasks.spawn(watch_port(address, shared.clone()));
        }
        self.tell_faults();
        self.tell_offer().await;
        let mut tick = interval(LOOK_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut launch_tick = interval(LAUNCH_TICK);
        launch_tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                ask = asked.recv() => match ask {
                    Some(Ask::Job(job)) => self.job(job).await,
                    Some(Ask::Forget(session)) => self.forget(&session),
                    Some(Ask::Look(session)) => self.take_skeleton(&session),
                    None => return,
                },
                seen = sights.recv() => match seen {
                    Some(seen) => self.see(seen).await,
                    None => return,
                },
                _ = tick.tick() => self.look().await,
                _ = launch_tick.tick(), if !self.launches.is_empty() => self.tend_launches(),
            }
            let is_hurried = !self.launches.is_empty();
            self.hurry.send_if_modified(|known| std::mem::replace(known, is_hurried) != is_hurried);
        }
    }

    async fn see(&mut self, seen: Seen) {
        match seen {
            Seen::PortUp(address) => {
                self.ports_up.push(address);
                self.tell_offer().await;
            }
            Seen::PortDown(address) => {
                self.ports_up.retain(|up| *up != address);
                self.windows.retain(|(at, _), _| *at != address);
                self.leaving.retain(|left| left.address != address);
                self.tell_offer().await;
            }
            Seen::Window(window) => {
                self.windows.insert((window.address.clone(), window.target.clone()), window);
                self.tell_offer().await;
            }
            Seen::WindowGone { address, target } => {
                self.windows.remove(&(address, target));
                self.tell_offer().await;
            }
            Seen::Appeared(sight) => {
                self.appeared(*sight).await;
                self.tell_offer().await;
            }
            Seen::Titled { panel, window_title, window_url } => {
                self.titled(panel, &window_title, &window_url).await;
            }
            Seen::Pushed(number, push) => self.pushed(number, push).await,
            Seen::Anew(number, push) => self.seen_anew(number, push).await,
            Seen::Blind(number, reason) => {
                let session = self.panels.get(&number).and_then(|panel| panel.session.clone());
                if let Some(session) = session {
                    self.tell(&session, News::Blind { reason }).await;
                }
            }
            Seen::Gone(number, leaving) => {
                self.gone(number, leaving).await;
                self.tell_offer().await;
            }
            Seen::Did { session, job, outcome } => {
                self.tell(&session, News::Done { job, outcome }).await;
            }
            Seen::ChatOpened { session, panel, outcome } => {
                self.chat_opened(&session, panel, outcome).await;
            }
            Seen::PanelOpened { session, outcome } => self.panel_opened(&session, outcome).await,
            Seen::Skeleton(session, profile, bones) => {
                tracing::debug!(%session, "a panel no longer matches its profile");
                skeletons::keep(&self.folder, &profile, bones, now_ms());
            }
        }
        while self.tasks.try_join_next().is_some() {}
    }

    async fn gone(&mut self, number: Number, leaving: Leaving) {
        let Some(panel) = self.panels.remove(&number) else { return };
        let Some(session) = panel.session else { return };
        self.shown.remove(&session);
        let reason = match leaving {
            Leaving::Hidden => "The panel is not open in its window",
            Leaving::Closed => "The panel's window was closed",
            Leaving::Lost => "The IDE is not running, or was started without its debug port",
        };
        let news = News::Gone { reason: reason.to_owned(), is_closed: false };
        self.tell(&session, news).await;
        if leaving != Leaving::Lost && self.leaving.len() < LEAVING_MAX {
            let (address, window) = (panel.address, panel.window);
            let until = Instant::now() + CLOSED_AFTER;
            self.leaving.push_back(Left { session, address, window, until });
        }
    }

    /// From time to time.
    async fn look(&mut self) {
        let now = Instant::now();
        while self.leaving.front().is_some_and(|left| left.until <= now) {
            let Some(left) = self.leaving.pop_front() else { break };
            let Left { session, address, window, .. } = left;
            let is_up = self.ports_up.contains(&address);
            if self.shown.contains_key(&session)
                || !is_up
                || self.windows.contains_key(&(address, window))
            {
                continue;
            }
            let reason = "Somebody closed the panel's window".to_owned();
            self.tell(&session, News::Gone { reason, is_closed: true }).await;
        }
        if !self.config.is_empty() {
            self.reload_profiles().await;
        }
        self.book.save();
    }

    async fn reload_profiles(&mut self) {
        let (folder, known) = (self.config.profiles.clone(), Arc::clone(&self.profiles.borrow()));
        let load = move || {
            let folder = folder.as_deref();
            (!known.is_current(folder)).then(|| ProfileSet::load(folder))
        };
        if let Ok(Some(set)) = tokio::task::spawn_blocking(load).await {
            tracing::info!("reloaded the panel profiles");
            self.profiles.send_replace(Arc::new(set));
            self.tell_faults();
            self.tell_offer().await;
        }
    }

    fn tell_faults(&self) {
        for (file, fault) in &self.profiles.borrow().faults {
            tracing::warn!(file = %file.display(), %fault, "ignored an invalid panel profile");
        }
    }

    /// The agents that can be opened here now.
    async fn tell_offer(&mut self) {
        let profiles = Arc::clone(&self.profiles.borrow());
        let is_startable = |id: &String| {
            self.config.programs.iter().any(|program| program.profiles.contains(id))
                || self.panels.values().any(|panel| panel.profile.id == *id)
                || self.windows.values().any(|window| window.openings.contains(id))
        };
        let offers: Vec<_> = profiles
            .all()
            .iter()
            .filter(|profile| is_startable(&profile.id))
            .map(|profile| AgentOffer {
                agent: profile.id.as_str().into(),
                display_name: Some(profile.display_name.clone()),
                is_installed: true,
                version: None,
                is_logged_in: None,
                install: None,
            })
            .collect();
        if offers != self.offered {
            self.offered.clone_from(&offers);
            let _ = self.news.send(Input::PanelOffer(offers)).await;
        }
    }

    pub(super) async fn tell(&self, session: &SessionId, news: News) {
        let _ = self.news.send(Input::Agent(session.clone(), AgentInput::Panel(news))).await;
    }

    pub(super) async fn say(&self, input: Input) {
        let _ = self.news.send(input).await;
    }

    pub(super) fn new_session(&self) -> Option<SessionId> {
        (self.new_id)().map(SessionId::from)
    }
}

fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}
