//! One debug port: connects and reconnects, tracks its targets, and has each one watched that may
//! contain a panel.
//!
//! Invariant: a browser that does not respond is retried at most every five seconds, except while a
//! launch waits for an IDE that was just started.
//!
//! Not here: what is in a target (`watcher`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use agents::panel::profile::TargetKind;
use cdp::{Browser, Event, Heard};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::about::About;
use super::candidates::is_worth;
use super::profiles::ProfileSet;
use super::sights::{Deed, Leaving, QUEUE_MAX, Queue, Seen};
use super::watcher::{Told, Watcher};

/// How often a port is tried, and how often anything is looked at without a reason.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How often while somebody waits for it.
const HURRY_EVERY: Duration = Duration::from_millis(500);
/// Targets of one browser that are attached to. A browser with more is somebody's, not an IDE.
const TARGETS_MAX: usize = 64;
/// Targets of one browser that are remembered.
const INFOS_MAX: usize = 1_024;
/// What one target may be told and not have heard yet. Beyond, it looks again.
const TOLD_MAX: usize = 1_024;
/// How long watchers may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(2);

/// What all ports share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) profiles: watch::Receiver<Arc<ProfileSet>>,
    pub(super) tell: mpsc::Sender<Seen>,
    pub(super) numbers: Arc<AtomicU64>,
    /// Whether somebody waits for an IDE that was just started.
    pub(super) hurry: watch::Receiver<bool>,
}

/// Watches a port for ever.
pub(super) async fn watch_port(address: String, mut shared: Shared) {
    let mut is_told = false;
    loop {
        match Browser::connect(&address).await {
            Ok(browser) => {
                is_told = false;
                tracing::info!(address, "attached to a browser's debug port");
                if shared.tell.send(Seen::PortUp(address.clone())).await.is_err() {
                    return;
                }
                let mut port = Port::new(address.clone(), browser, shared.clone());
                if let Err(fault) = port.converse().await {
                    tracing::warn!(address, %fault, "could not watch the browser");
                }
                port.leave().await;
                tracing::info!(address, "lost the browser; looking for it again");
                if shared.tell.send(Seen::PortDown(address.clone())).await.is_err() {
                    return;
                }
            }
            Err(fault @ (cdp::Fault::NotLoopback(_) | cdp::Fault::NotABrowser { .. })) => {
                if !std::mem::replace(&mut is_told, true) {
                    tracing::warn!(address, %fault, "could not attach to the debug port");
                }
            }
            Err(fault) => tracing::debug!(address, %fault, "no browser at this debug port"),
        }
        let is_hurried = *shared.hurry.borrow();
        let pause = if is_hurried { HURRY_EVERY } else { LOOK_EVERY };
        let _ = timeout(pause, shared.hurry.changed()).await;
    }
}

/// A target as the browser describes it.
#[derive(Debug, Clone, PartialEq)]
struct Info {
    kind: TargetKind,
    title: String,
    url: String,
    /// The page that holds it, for a frame.
    parent: Option<String>,
}

impl Info {
    fn read(info: &Value) -> Option<(String, Self)> {
        let text = |name: &str| info[name].as_str().map(str::to_owned);
        let kind = match info["type"].as_str()? {
            "page" | "webview" => TargetKind::Page,
            "iframe" => TargetKind::Iframe,
            _ => return None,
        };
        let parent = text("parentId").or_else(|| text("parentFrameId"));
        let (title, url) = (text("title").unwrap_or_default(), text("url").unwrap_or_default());
        Some((text("targetId")?, Self { kind, title, url, parent }))
    }
}

struct Watching {
    session: cdp::SessionId,
    told: mpsc::Sender<Told>,
    has_missed: bool,
    about: watch::Sender<About>,
}

struct Port {
    address: String,
    browser: Browser,
    shared: Shared,
    infos: BTreeMap<String, Info>,
    watched: BTreeMap<String, Watching>,
    queues: BTreeMap<String, Queue>,
    tasks: JoinSet<()>,
}

impl Port {
    fn new(address: String, browser: Browser, shared: Shared) -> Self {
        let (infos, watched, queues) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { address, browser, shared, infos, watched, queues, tasks: JoinSet::new() }
    }

    async fn converse(&mut self) -> Result<(), cdp::Fault> {
        let mut events = self.browser.events().await?;
        let filter =
            json!([{"type": "page"}, {"type": "iframe"}, {"type": "webview"}, {"exclude": true}]);
        let discover = json!({"discover": true, "filter": filter});
        self.browser.call(None, "Target.setDiscoverTargets", discover).await?;
        let mut tick = tokio::time::interval(LOOK_EVERY);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                // Not every change of a title is told.
                _ = tick.tick() => self.ask_again().await?,
                heard = events.next() => match heard {
                    Some(Heard::Event(event)) => self.hear(&event).await?,
                    Some(Heard::Missed(count)) => self.look_again(count).await?,
                    None => return Ok(()),
                },
                // Other profiles may make other targets worth it.
                changed = self.shared.profiles.changed() => {
                    if changed.is_err() {
                        return Ok(());
                    }
                    let all: Vec<_> = self.infos.keys().cloned().collect();
                    for target in all {
                        self.consider(&target).await?;
                    }
                }
            }
            while self.tasks.try_join_next().is_some() {}
        }
    }

    async fn hear(&mut self, event: &Arc<Event>) -> Result<(), cdp::Fault> {
        if let Some(session) = &event.session {
            let watching = self.watched.values_mut().find(|it| it.session == *session);
            if let Some(watching) = watching {
                watching.tell(Told::Event(Arc::clone(event)));
            }
            return Ok(());
        }
        match event.method.as_str() {
            "Target.targetCreated" | "Target.targetInfoChanged" => {
                self.learn(&event.params["targetInfo"]).await
            }
            "Target.targetDestroyed" | "Target.targetCrashed" => {
                self.forget(event.params["targetId"].as_str().unwrap_or_default());
                Ok(())
            }
            "Target.detachedFromTarget" => {
                let session = event.params["sessionId"].as_str().unwrap_or_default();
                let gone = self.watched.iter().find(|(_, it)| it.session.0 == session);
                let gone = gone.map(|(target, _)| target.clone());
                if let Some(target) = gone {
                    self.unwatch(&target, Leaving::Hidden);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn learn(&mut self, info: &Value) -> Result<(), cdp::Fault> {
        let Some((target, info)) = Info::read(info) else { return Ok(()) };
        if self.infos.len() >= INFOS_MAX && !self.infos.contains_key(&target) {
            return Ok(());
        }
        self.infos.insert(target.clone(), info);
        self.tell_about(&target);
        self.consider(&target).await
    }

    /// Tells the watchers of a target and of the frames in it what they are called now.
    fn tell_about(&self, target: &str) {
        for (watched, watching) in &self.watched {
            let Some(info) = self.infos.get(watched) else { continue };
            if watched == target || info.parent.as_deref() == Some(target) {
                let about = self.about(watched, info);
                watching.about.send_if_modified(|known| {
                    let is_new = *known != about;
                    *known = about;
                    is_new
                });
            }
        }
    }

    fn about(&self, target: &str, info: &Info) -> About {
        let window = self.window_of(target);
        let page = self.infos.get(&window).unwrap_or(info);
        About {
            window,
            window_title: page.title.clone(),
            window_url: page.url.clone(),
            url: info.url.clone(),
        }
    }

    /// The page around a target.
    fn window_of(&self, target: &str) -> String {
        let mut window = target;
        for _ in 0..8 {
            let parent = self.infos.get(window).and_then(|info| info.parent.as_deref());
            let Some(parent) = parent.filter(|parent| self.infos.contains_key(*parent)) else {
                break;
            };
            window = parent;
        }
        window.to_owned()
    }

    async fn consider(&mut self, target: &str) -> Result<(), cdp::Fault> {
        let Some(info) = self.infos.get(target) else { return Ok(()) };
        let is_worth = is_worth(info.kind, &info.url, self.shared.profiles.borrow().all());
        if !is_worth || self.watched.contains_key(target) || self.watched.len() >= TARGETS_MAX {
            return Ok(());
        }
        let (kind, about) = (info.kind, self.about(target, info));
        let session = match self.browser.attach(target).await {
            Ok(session) => session,
            Err(cdp::Fault::Closed) => return Err(cdp::Fault::Closed),
            // It is gone again, or does not let itself be attached to.
            Err(fault) => {
                tracing::debug!(%fault, "could not attach to a target");
                return Ok(());
            }
        };
        let queue = self.queue(&about.window);
        let (tell, told) = mpsc::channel(TOLD_MAX);
        let (about, heard) = watch::channel(about);
        let watcher = Watcher::new(
            (self.address.clone(), target.to_owned(), kind),
            (self.browser.clone(), session.clone(), queue),
            heard,
            self.shared.clone(),
        );
        self.tasks.spawn(watcher.run(told));
        let watching = Watching { session, told: tell, has_missed: false, about };
        self.watched.insert(target.to_owned(), watching);
        Ok(())
    }

    fn queue(&mut self, window: &str) -> Queue {
        if let Some(queue) = self.queues.get(window) {
            return queue.clone();
        }
        let (queue, mut deeds) = mpsc::channel::<Deed>(QUEUE_MAX);
        self.tasks.spawn(async move {
            while let Some(deed) = deeds.recv().await {
                deed.await;
            }
        });
        self.queues.insert(window.to_owned(), queue.clone());
        queue
    }

    fn forget(&mut self, target: &str) {
        let is_page = self.infos.remove(target).is_some_and(|info| info.kind == TargetKind::Page);
        self.queues.remove(target);
        self.unwatch(target, if is_page { Leaving::Closed } else { Leaving::Hidden });
    }

    fn unwatch(&mut self, target: &str, leaving: Leaving) {
        if let Some(mut watching) = self.watched.remove(target) {
            watching.tell(Told::Ended(leaving));
        }
    }

    /// Something was missed: what there is now is asked for.
    async fn look_again(&mut self, count: u64) -> Result<(), cdp::Fault> {
        tracing::debug!(count, "missed some browser events");
        self.ask_again().await?;
        for watching in self.watched.values_mut() {
            watching.tell(Told::Missed);
        }
        Ok(())
    }

    /// What there is now.
    async fn ask_again(&mut self) -> Result<(), cdp::Fault> {
        let answer = self.browser.call(None, "Target.getTargets", json!({})).await?;
        let infos = answer["targetInfos"].as_array().cloned().unwrap_or_default();
        let is_there = |target: &String| infos.iter().any(|it| it["targetId"] == target.as_str());
        let gone: Vec<_> = self.infos.keys().filter(|it| !is_there(it)).cloned().collect();
        for target in gone {
            self.forget(&target);
        }
        for info in &infos {
            self.learn(info).await?;
        }
        Ok(())
    }

    /// The browser is gone: every watcher says so.
    async fn leave(&mut self) {
        for watching in std::mem::take(&mut self.watched).values_mut() {
            watching.tell(Told::Ended(Leaving::Lost));
        }
        self.queues.clear();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(GOODBYE, all).await.is_err() {
            self.tasks.shutdown().await;
        }
    }
}

impl Watching {
    /// Never waits. A watcher that is too far behind is told that it missed something.
    fn tell(&mut self, told: Told) {
        if self.has_missed && self.told.try_send(Told::Missed).is_ok() {
            self.has_missed = false;
        }
        if self.told.try_send(told).is_err() {
            self.has_missed = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_and_frames_are_targets() {
        let info =
            json!({"targetId": "a", "type": "iframe", "title": "t", "url": "u", "parentId": "p"});
        let (target, read) = Info::read(&info).unwrap();
        assert_eq!((target.as_str(), read.kind), ("a", TargetKind::Iframe));
        assert_eq!(read.parent.as_deref(), Some("p"));
        for kind in ["browser_ui", "service_worker", "tab", "browser"] {
            assert_eq!(Info::read(&json!({"targetId": "a", "type": kind})), None);
        }
    }
}
