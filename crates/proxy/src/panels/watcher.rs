//! One target of a browser: finds the panels in it, has each observed, and forwards what the
//! observers report.
//!
//! Invariant: a panel is announced once it has settled, and again whenever its document is
//! replaced. Its updates in between are forwarded once and in order.
//!
//! Not here: which targets there are (`port`), which session a panel belongs to (`service`), acting
//! in it (`acting`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agents::panel::Profile;
use agents::panel::profile::TargetKind;
use cdp::{Browser, Event, Fault, Place};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};

use super::about::About;
use super::acting::Actor;
use super::candidates::{Candidate, candidates};
use super::port::{LOOK_EVERY, Shared};
use super::sights::{Hand, Leaving, Number, Peek, Queue, Seen, Sight, Window};

/// The binding that observers push through.
pub(crate) const BINDING: &str = "farhelmPush";
/// After something moved, before it is looked at: more will move.
const SETTLE: Duration = Duration::from_millis(150);
/// A panel that has not come to rest for so long is told of as it is.
const REST_WITHIN: Duration = Duration::from_secs(5);
/// An observer that was silent for so long is asked whether it is there. It beats more often,
/// but not in a window that nobody sees.
const SILENCE_MAX: Duration = Duration::from_secs(15);
/// How often the whole view is asked for, by which the observer knows that it is wanted.
const LEASE: Duration = Duration::from_secs(120);
/// The longest that an observer may wait to be woken.
const DUE_MAX: Duration = Duration::from_millis(500);
/// Looks in a row that do not find the panel's element before it counts as hidden.
const MISSES_MAX: u8 = 2;

/// What a watcher is told.
pub(super) enum Told {
    /// Something happened in its target.
    Event(Arc<Event>),
    /// Something may have.
    Missed,
    /// The target is gone.
    Ended(Leaving),
}

/// A panel that is observed.
struct Watched {
    number: Number,
    profile: Arc<Profile>,
    place: Place,
    tell_place: watch::Sender<Option<Place>>,
    is_told: bool,
    /// Whether it has come to rest.
    is_settled: bool,
    is_blind: bool,
    misses: u8,
    installed_at: Instant,
    heard_at: Instant,
    leased_at: Instant,
    /// What was passed on last.
    last: (String, u64),
}

pub(super) struct Watcher {
    address: String,
    target: String,
    kind: TargetKind,
    browser: Browser,
    session: cdp::SessionId,
    queue: Queue,
    about: watch::Receiver<About>,
    shared: Shared,
    panels: BTreeMap<String, Watched>,
    /// The profiles whose panels can be opened here.
    openings: Vec<String>,
}

impl Watcher {
    pub(super) fn new(
        (address, target, kind): (String, String, TargetKind),
        (browser, session, queue): (Browser, cdp::SessionId, Queue),
        about: watch::Receiver<About>,
        shared: Shared,
    ) -> Self {
        let (panels, openings) = (BTreeMap::new(), vec![]);
        Self { address, target, kind, browser, session, queue, about, shared, panels, openings }
    }

    pub(super) async fn run(mut self, mut told: mpsc::Receiver<Told>) {
        if let Err(fault) = self.begin().await {
            tracing::debug!(%fault, "could not watch a target");
        }
        let mut tick = interval(LOOK_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut look_at: Option<Instant> = None;
        let leaving = loop {
            let due = look_at.unwrap_or_else(|| Instant::now() + LOOK_EVERY);
            let has_moved = tokio::select! {
                told = told.recv() => match told {
                    None => break Leaving::Lost,
                    Some(Told::Ended(leaving)) => break leaving,
                    Some(Told::Event(event)) => self.hear(&event).await,
                    Some(Told::Missed) => {
                        self.see_all_again().await;
                        true
                    }
                },
                () = sleep_until(due), if look_at.is_some() => {
                    look_at = None;
                    self.look(false).await;
                    false
                }
                _ = tick.tick() => {
                    self.look(true).await;
                    self.tend().await;
                    false
                }
                changed = self.about.changed() => {
                    if changed.is_ok() {
                        self.tell_titles().await;
                    }
                    false
                }
                changed = self.shared.profiles.changed() => {
                    if changed.is_err() {
                        break Leaving::Lost;
                    }
                    self.drop_changed().await;
                    true
                }
            };
            if has_moved && look_at.is_none() {
                look_at = Some(Instant::now() + SETTLE);
            }
        };
        for (_, panel) in std::mem::take(&mut self.panels) {
            self.tell(Seen::Gone(panel.number, leaving)).await;
        }
        if self.kind == TargetKind::Page {
            let (address, target) = (self.address.clone(), self.target.clone());
            self.tell(Seen::WindowGone { address, target }).await;
        }
    }

    /// Only what is needed to hear of frames and pushes.
    async fn begin(&mut self) -> Result<(), Fault> {
        self.call("Page.enable", json!({})).await?;
        self.bind().await?;
        if self.kind == TargetKind::Page {
            self.tell_window().await;
        }
        Ok(())
    }

    async fn tell_window(&self) {
        let About { window_title: title, window_url: url, .. } = self.about.borrow().clone();
        let hand = self.hand(watch::Sender::new(None).subscribe());
        let (address, target) = (self.address.clone(), self.target.clone());
        let openings = self.openings.clone();
        self.tell(Seen::Window(Window { address, target, title, url, openings, hand })).await;
    }

    /// What observers push through.
    async fn bind(&self) -> Result<(), Fault> {
        let binding = json!({"name": BINDING, "executionContextName": cdp::WORLD});
        self.call("Runtime.addBinding", binding).await.map(drop)
    }

    /// Whether frames or documents moved.
    async fn hear(&mut self, event: &Event) -> bool {
        match event.method.as_str() {
            "Runtime.bindingCalled" if event.params["name"] == BINDING => {
                let context = event.params["executionContextId"].as_i64();
                let frame = self.panels.iter().find(|(_, it)| Some(it.place.context) == context);
                let frame = frame.map(|(frame, _)| frame.clone());
                if let (Some(frame), Some(push)) = (frame, event.params["payload"].as_str()) {
                    self.pushed(&frame, push).await;
                }
                false
            }
            "Page.frameNavigated"
            | "Page.frameDetached"
            | "Page.frameAttached"
            | "Page.navigatedWithinDocument"
            | "Page.loadEventFired"
            | "Page.domContentEventFired"
            | "Runtime.executionContextsCleared" => true,
            _ => false,
        }
    }

    async fn pushed(&mut self, frame: &str, push: &str) {
        let Some(panel) = self.panels.get_mut(frame) else { return };
        panel.heard_at = Instant::now();
        panel.is_blind = false;
        let peek = Peek::read(push);
        if let Some(due_ms) = peek.due_ms {
            let (browser, place) = (self.browser.clone(), panel.place.clone());
            return wake_after(browser, place, Duration::from_millis(due_ms).min(DUE_MAX));
        }
        if !panel.is_told {
            panel.is_settled = peek.is_settled();
            if panel.is_settled && (self.kind == TargetKind::Page || self.about.borrow().is_named())
            {
                self.tell_of(frame).await;
            }
            return;
        }
        // Older than what was passed on already.
        if panel.last.0 == peek.epoch && peek.n <= panel.last.1 {
            return;
        }
        panel.last = (peek.epoch, peek.n);
        let number = panel.number;
        self.tell(Seen::Pushed(number, push.to_owned())).await;
    }

    /// Looks which panels there are. Without a reason also at those that are known.
    async fn look(&mut self, is_thorough: bool) {
        let Ok(frames) = cdp::frames::all(&self.browser, &self.session).await else { return };
        let profiles = Arc::clone(&self.shared.profiles.borrow());
        let found = candidates(self.kind, &frames, profiles.all());
        let is_found = |frame: &String| found.iter().any(|it| it.frame == *frame);
        let gone: Vec<_> = self.panels.keys().filter(|it| !is_found(it)).cloned().collect();
        for frame in gone {
            self.hide(&frame).await;
        }
        for candidate in found {
            self.look_at(&candidate, is_thorough).await;
        }
        // What was found once is looked for again only when the page moved.
        if self.kind == TargetKind::Page && (self.openings.is_empty() || !is_thorough) {
            let outermost = frames.iter().find(|frame| frame.parent.is_none());
            if let Some(frame) = outermost
                && let Ok(openings) = self.find_openings(&frame.id, profiles.all()).await
                && self.openings != openings
            {
                self.openings = openings;
                self.tell_window().await;
            }
        }
    }

    /// The profiles whose panels could be opened in this window.
    async fn find_openings(
        &self,
        frame: &str,
        profiles: &[Arc<Profile>],
    ) -> Result<Vec<String>, Fault> {
        let is_openable =
            |it: &&Arc<Profile>| !it.open_panel.is_empty() && !it.target.window.is_empty();
        let openable: Vec<_> = profiles.iter().filter(is_openable).collect();
        let signs: Vec<_> = openable.iter().map(|profile| &profile.target.window).collect();
        let shown = self.shown(frame, &signs).await?;
        let found = openable.iter().zip(shown).filter(|(_, is_shown)| *is_shown);
        Ok(found.map(|(profile, _)| profile.id.clone()).collect())
    }

    async fn look_at(&mut self, candidate: &Candidate, is_thorough: bool) {
        let frame = candidate.frame.as_str();
        let Some(panel) = self.panels.get(frame) else {
            if let Ok(Some(profile)) = self.probe(frame, &candidate.profiles).await {
                self.install(frame, profile, None).await;
            }
            return;
        };
        let (profile, number) = (Arc::clone(&panel.profile), panel.number);
        let is_there = self.browser.is_there(&panel.place).await.unwrap_or(false);
        if is_there && !is_thorough {
            return;
        }
        let one = [Arc::clone(&profile)];
        let Ok(shown) = self.probe(frame, &one).await else { return };
        match (shown, is_there) {
            (Some(_), true) => {
                if let Some(panel) = self.panels.get_mut(frame) {
                    panel.misses = 0;
                }
            }
            // Another document, and the same panel.
            (Some(_), false) => self.install(frame, profile, Some(number)).await,
            (None, _) => {
                let Some(panel) = self.panels.get_mut(frame) else { return };
                panel.misses += 1;
                if panel.misses >= MISSES_MAX {
                    self.hide(frame).await;
                }
            }
        }
    }

    /// The first profile whose panel is in a frame's document. Turns nothing on.
    async fn probe(
        &self,
        frame: &str,
        profiles: &[Arc<Profile>],
    ) -> Result<Option<Arc<Profile>>, Fault> {
        if let Some(first) = profiles.first()
            && first.target.scope.is_empty()
        {
            return Ok(Some(Arc::clone(first)));
        }
        let scopes: Vec<_> = profiles.iter().map(|profile| &profile.target.scope).collect();
        let shown = self.shown(frame, &scopes).await?;
        let found = profiles.iter().zip(shown).find(|(_, is_shown)| *is_shown);
        Ok(found.map(|(profile, _)| Arc::clone(profile)))
    }

    /// Of which of these lists of alternatives something is in a frame's document; of an empty
    /// list always. Turns nothing on.
    async fn shown(&self, frame: &str, lists: &[&Vec<String>]) -> Result<Vec<bool>, Fault> {
        let world = json!({"frameId": frame, "worldName": cdp::WORLD});
        let world = self.call("Page.createIsolatedWorld", world).await?;
        let expression = format!(
            "({}).map((any) => !any.length || any.some((one) => {{ try {{ return \
             document.querySelector(one) }} catch {{ return false }} }}))",
            json!(lists)
        );
        let evaluate = json!({
            "contextId": world["executionContextId"],
            "expression": expression,
            "returnByValue": true,
        });
        let answer = self.call("Runtime.evaluate", evaluate).await?;
        let shown = answer["result"]["value"].as_array().into_iter().flatten();
        Ok(shown.map(|is_shown| is_shown.as_bool() == Some(true)).collect())
    }

    /// Has a panel observed; it is told of when it has come to rest.
    async fn install(&mut self, frame: &str, profile: Arc<Profile>, number: Option<Number>) {
        let number = number.unwrap_or_else(|| self.shared.numbers.fetch_add(1, Ordering::Relaxed));
        match self.observe(frame, &profile, number).await {
            Ok(place) => {
                let known = self.panels.remove(frame).map(|panel| panel.tell_place);
                let tell_place = known.unwrap_or_else(|| watch::Sender::new(None));
                tell_place.send_replace(Some(place.clone()));
                let now = Instant::now();
                let panel = Watched {
                    number,
                    profile,
                    place,
                    tell_place,
                    is_told: false,
                    is_settled: false,
                    is_blind: false,
                    misses: 0,
                    installed_at: now,
                    heard_at: now,
                    leased_at: now,
                    last: (String::new(), 0),
                };
                self.panels.insert(frame.to_owned(), panel);
            }
            // It was reloaded once more.
            Err(Fault::Gone | Fault::Closed) => {}
            Err(fault) => {
                tracing::debug!(profile = profile.id, %fault, "could not observe a panel");
                self.blind(frame, &fault.to_string()).await;
            }
        }
    }

    async fn observe(
        &self,
        frame: &str,
        profile: &Arc<Profile>,
        number: Number,
    ) -> Result<Place, Fault> {
        let place = cdp::world(&self.browser, &self.session, frame).await?;
        // Once more: a world that was made for a look, before anything was turned on, has none.
        self.bind().await?;
        let expression = format!(
            "(void ({})({}, {}, {}), true)",
            agents::panel::OBSERVER,
            json!(profile),
            json!(BINDING),
            json!(format!("{number}-{}", now_ms())),
        );
        self.browser.evaluate(&place, &expression, false).await?;
        let (browser, page) = (self.browser.clone(), self.session.clone());
        let actor = Actor { browser, place: place.clone(), page, profile: Arc::clone(profile) };
        // Whoever acts later looks for itself, and says what is wrong.
        let _ = actor.prepare().await;
        Ok(place)
    }

    /// Tells of a panel, with everything that it shows.
    async fn tell_of(&mut self, frame: &str) {
        let Some(panel) = self.panels.get(frame) else { return };
        let place = panel.place.clone();
        let push = match self.whole(&place).await {
            Ok(push) => push,
            Err(Fault::Gone | Fault::Closed) => return,
            Err(fault) => return self.blind(frame, &fault.to_string()).await,
        };
        let peek = Peek::read(&push);
        let Some(panel) = self.panels.get_mut(frame) else { return };
        panel.is_told = true;
        panel.leased_at = Instant::now();
        panel.last = (peek.epoch, peek.n);
        let (number, profile) = (panel.number, Arc::clone(&panel.profile));
        let place = panel.tell_place.subscribe();
        let about = self.about.borrow().clone();
        let is_named = about.is_named();
        let sight = Sight {
            number,
            address: self.address.clone(),
            target: self.target.clone(),
            window: about.window,
            profile,
            window_title: if is_named { about.window_title } else { String::new() },
            window_url: about.window_url,
            target_url: about.url,
            push,
            hand: self.hand(place),
        };
        self.tell(Seen::Appeared(Box::new(sight))).await;
    }

    /// What needs a look from time to time: silence, leases, panels that never rest.
    async fn tend(&mut self) {
        let frames: Vec<_> = self.panels.keys().cloned().collect();
        for frame in frames {
            let Some(panel) = self.panels.get(&frame) else { continue };
            let now = Instant::now();
            if !panel.is_told {
                // A window without a name may be given one by the next look at the targets.
                let is_named = self.kind == TargetKind::Page || self.about.borrow().is_named();
                let within = if is_named { REST_WITHIN } else { REST_WITHIN * 3 };
                if now - panel.installed_at >= within {
                    self.tell_of(&frame).await;
                }
            } else if now - panel.heard_at >= SILENCE_MAX || now - panel.leased_at >= LEASE {
                self.see_again(&frame).await;
            }
        }
    }

    async fn see_all_again(&mut self) {
        let frames: Vec<_> = self.panels.keys().cloned().collect();
        for frame in frames {
            self.see_again(&frame).await;
        }
    }

    /// The whole view of a panel that is told of already.
    async fn see_again(&mut self, frame: &str) {
        let Some(panel) = self.panels.get_mut(frame) else { return };
        panel.heard_at = Instant::now();
        let place = panel.place.clone();
        match self.whole(&place).await {
            Ok(push) => {
                if let Some(panel) = self.panels.get_mut(frame) {
                    panel.leased_at = Instant::now();
                }
                self.pushed(frame, &push).await;
            }
            Err(Fault::Closed) => {}
            Err(Fault::Gone) => self.observe_again(frame).await,
            Err(fault) => self.blind(frame, &fault.to_string()).await,
        }
    }

    /// Its document is another one, or somebody took the observer out of it.
    async fn observe_again(&mut self, frame: &str) {
        let Some(panel) = self.panels.get(frame) else { return };
        let (profile, number) = (Arc::clone(&panel.profile), panel.number);
        match self.browser.is_there(&panel.place).await {
            Ok(true) => self.install(frame, profile, Some(number)).await,
            Ok(false) | Err(_) => self.look(false).await,
        }
    }

    async fn whole(&self, place: &Place) -> Result<String, Fault> {
        whole(&self.browser, place).await
    }

    async fn blind(&mut self, frame: &str, reason: &str) {
        let Some(panel) = self.panels.get_mut(frame) else { return };
        if !std::mem::replace(&mut panel.is_blind, true) && panel.is_told {
            let seen = Seen::Blind(panel.number, reason.to_owned());
            self.tell(seen).await;
        }
    }

    /// The window is called otherwise now.
    async fn tell_titles(&mut self) {
        let about = self.about.borrow_and_update().clone();
        if !about.is_named() {
            return;
        }
        let waiting = self.panels.iter().filter(|(_, panel)| !panel.is_told && panel.is_settled);
        let waiting: Vec<_> = waiting.map(|(frame, _)| frame.clone()).collect();
        for frame in waiting {
            self.tell_of(&frame).await;
        }
        let About { window_title, window_url, .. } = about;
        for panel in self.panels.values().filter(|panel| panel.is_told) {
            let (window_title, window_url) = (window_title.clone(), window_url.clone());
            self.tell(Seen::Titled { panel: panel.number, window_title, window_url }).await;
        }
    }

    /// The panel is not shown any more.
    async fn hide(&mut self, frame: &str) {
        let Some(panel) = self.panels.remove(frame) else { return };
        panel.tell_place.send_replace(None);
        let _ = self.browser.evaluate(&panel.place, STOP, false).await;
        if panel.is_told {
            self.tell(Seen::Gone(panel.number, Leaving::Hidden)).await;
        }
    }

    /// Panels whose profile is another one now are found anew.
    async fn drop_changed(&mut self) {
        let profiles = Arc::clone(&self.shared.profiles.borrow());
        let is_same = |panel: &Watched| profiles.get(&panel.profile.id) == Some(&panel.profile);
        let changed = self.panels.iter().filter(|(_, panel)| !is_same(panel));
        let changed: Vec<_> = changed.map(|(frame, _)| frame.clone()).collect();
        for frame in changed {
            self.hide(&frame).await;
        }
    }

    fn hand(&self, place: watch::Receiver<Option<Place>>) -> Hand {
        let (browser, page) = (self.browser.clone(), self.session.clone());
        Hand { browser, page, place, queue: self.queue.clone() }
    }

    async fn call(&self, method: &str, params: Value) -> Result<Value, Fault> {
        self.browser.call(Some(&self.session), method, params).await
    }

    async fn tell(&self, seen: Seen) {
        let _ = self.shared.tell.send(seen).await;
    }
}

const STOP: &str = "(globalThis.__farhelm?.stop(), true)";
const DUE: &str = "(globalThis.__farhelm?.due(), true)";
const WHOLE: &str = "globalThis.__farhelm ? globalThis.__farhelm.snapshot() : null";

/// Wakes an observer whose own clock hardly ticks. It asks once for each time that it looks, so
/// there is one of these for each panel.
fn wake_after(browser: Browser, place: Place, pause: Duration) {
    tokio::spawn(async move {
        sleep(pause).await;
        // If it fails, its own clock does it, later.
        let _ = browser.evaluate(&place, DUE, false).await;
    });
}

/// The observer's whole view, now.
pub(super) async fn whole(browser: &Browser, place: &Place) -> Result<String, Fault> {
    match browser.evaluate(place, WHOLE, false).await? {
        Value::String(push) => Ok(push),
        Value::Null => Err(Fault::Gone),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Ok(other.to_string())
        }
    }
}

fn now_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()
}
