//! The health of a panel: the native document's five states, each with its reason.
//!
//! | state | when |
//! |---|---|
//! | healthy | everything is where the profile expects it first |
//! | degraded | a fallback was needed, something optional is missing, or a person has to act |
//! | `agent_ui_changed` | the panel is loaded and a required element was missing for too long |
//! | `scraping_failed` | the observer failed, is silent, or its place was lost |
//! | disconnected | the panel, its window or the browser is gone |
//!
//! Not here: the reaction to it (`driver`).

use domain::Timestamp;
use domain::session::status::Health;

use super::Profile;
use super::frames::Push;
use super::profile::Press;

/// How long something that is needed may be missing.
const MISSING_MS_MAX: u64 = 10_000;
/// How often it must have been looked for in that time.
const MISSING_CHECKS_MIN: u32 = 3;
/// The least time between two looks for it.
const CHECK_EVERY_MS: u64 = 1_000;

/// How well a panel is, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The state.
    pub health: Health,
    /// Why, in words for a person; `None` where all is well.
    pub reason: Option<String>,
}

impl Verdict {
    fn new(health: Health, reason: impl Into<String>) -> Self {
        Self { health, reason: Some(reason.into()) }
    }
}

/// Watches one panel.
#[derive(Debug, Default)]
pub struct Watch {
    /// The panel is gone, and why. One that was never seen is gone too.
    gone: Option<String>,
    /// Nothing can be seen, and why.
    blind: Option<String>,
    /// What is needed and missing now.
    missing: Option<Missing>,
    /// What is optional and missing, since when.
    lacking: Option<(String, Timestamp)>,
    /// Of the last push: what else is not as it should be.
    degraded: Option<String>,
}

#[derive(Debug)]
struct Missing {
    what: &'static str,
    since: Timestamp,
    checks: u32,
}

impl Missing {
    fn is_long(&self, now: Timestamp) -> bool {
        self.checks >= MISSING_CHECKS_MIN && now.ms_since(self.since) >= MISSING_MS_MAX
    }
}

impl Watch {
    /// The panel is there.
    pub fn attached(&mut self) {
        *self = Self::default();
    }

    /// The panel is gone.
    pub fn gone(&mut self, reason: impl Into<String>) {
        *self = Self { gone: Some(reason.into()), ..Self::default() };
    }

    /// Nothing can be seen.
    pub fn blind(&mut self, reason: impl Into<String>) {
        self.blind = Some(reason.into());
    }

    /// The observer told this.
    pub fn look(&mut self, push: &Push, profile: &Profile, now: Timestamp) {
        self.gone = None;
        self.blind = push.error.as_ref().map(|error| format!("Could not read the panel: {error}"));
        if self.blind.is_some() {
            return;
        }
        self.missing = match needed(push, profile) {
            None => None,
            Some(what) => {
                let before = self.missing.take().filter(|before| before.what == what);
                let mut missing = before.unwrap_or(Missing { what, since: now, checks: 0 });
                missing.checks += 1;
                Some(missing)
            }
        };
        let lacking = lacking(push, profile);
        let since = self.lacking.take().filter(|(what, _)| Some(what) == lacking.as_ref());
        self.lacking = lacking.map(|what| (what, since.map_or(now, |(_, since)| since)));
        self.degraded = degraded(push, profile);
    }

    /// How well it is.
    pub fn verdict(&self, profile: &Profile, now: Timestamp) -> Verdict {
        if let Some(reason) = &self.gone {
            return Verdict::new(Health::Disconnected, reason.clone());
        }
        if let Some(reason) = &self.blind {
            return Verdict::new(Health::ScrapingFailed, reason.clone());
        }
        if let Some(missing) = self.missing.as_ref().filter(|missing| missing.is_long(now)) {
            let words = format!(
                "{} of {} is not where revision {} of its profile expects it. Farhelm types \
                 nothing into this panel until the profile is fixed: run `farhelm doctor cdp`",
                missing.what, profile.display_name, profile.revision
            );
            return Verdict::new(Health::AgentUiChanged, words);
        }
        if let Some(reason) = &self.degraded {
            return Verdict::new(Health::Degraded, reason.clone());
        }
        if let Some((what, since)) = &self.lacking
            && now.ms_since(*since) >= MISSING_MS_MAX
        {
            return Verdict::new(Health::Degraded, what.clone());
        }
        Verdict { health: Health::Healthy, reason: None }
    }

    /// Whether something that is needed is missing, though perhaps not for long.
    pub fn is_missing(&self) -> bool {
        self.missing.is_some()
    }

    /// When the verdict may change though nothing is heard: look again then.
    pub fn deadline(&self, now: Timestamp) -> Option<Timestamp> {
        let missing = self.missing.as_ref().filter(|missing| !missing.is_long(now));
        let missing = missing.map(|missing| {
            let checks = MISSING_CHECKS_MIN.saturating_sub(missing.checks).max(1);
            let step_ms = MISSING_MS_MAX / u64::from(checks);
            let at = missing.since.plus_ms(MISSING_MS_MAX).min(now.plus_ms(step_ms));
            at.max(now.plus_ms(CHECK_EVERY_MS))
        });
        let lacking = self.lacking.as_ref().map(|(_, since)| since.plus_ms(MISSING_MS_MAX));
        let lacking = lacking.filter(|at| *at > now);
        [missing, lacking].into_iter().flatten().min()
    }
}

/// What is needed and not there.
fn needed(push: &Push, profile: &Profile) -> Option<&'static str> {
    // Some panels put a question where the composer was; a login page has none.
    let is_excused = !push.ready || push.waiting.is_some() || !push.dialogs.is_empty();
    if is_excused {
        return None;
    }
    if push.landmarks.composer.is_none() {
        return Some("The input field");
    }
    // While a run goes on, many show the stop button in its place.
    let needs_button = !profile.send.any.is_empty() && !profile.send.ladder.contains(&Press::Enter);
    (needs_button && !push.busy && push.landmarks.send.is_none()).then_some("The send button")
}

/// What is optional and not there.
fn lacking(push: &Push, profile: &Profile) -> Option<String> {
    if push.waiting.is_some() || !push.dialogs.is_empty() || !push.ready {
        return None;
    }
    let has_enter = profile.send.ladder.contains(&Press::Enter);
    if !profile.send.any.is_empty() && has_enter && !push.busy && push.landmarks.send.is_none() {
        return Some(
            "The send button is not visible; Farhelm uses the Enter key instead".to_owned(),
        );
    }
    if profile.stop.is_some() && push.busy && push.landmarks.stop.is_none() {
        return Some("The stop button is not visible: Farhelm cannot stop the run".to_owned());
    }
    if profile.model.is_some() && push.landmarks.model.is_none() {
        return Some("Farhelm cannot read the current model".to_owned());
    }
    None
}

/// What is not as it should be, at once.
fn degraded(push: &Push, _: &Profile) -> Option<String> {
    if let Some(waiting) = &push.waiting {
        return Some(waiting.clone());
    }
    if !push.ready {
        return Some("The panel is still loading".to_owned());
    }
    let landmarks = &push.landmarks;
    let all = [
        ("the panel", landmarks.scope),
        ("the input field", landmarks.composer),
        ("the send button", landmarks.send),
        ("the stop button", landmarks.stop),
    ];
    let fallbacks: Vec<_> = all
        .into_iter()
        .filter_map(|(name, found)| {
            let alternative = found.filter(|alternative| *alternative > 0)?;
            Some(format!("{name} (alternative {})", alternative + 1))
        })
        .collect();
    (!fallbacks.is_empty())
        .then(|| format!("Found only by a fallback selector: {}", fallbacks.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::super::frames::Landmarks;
    use super::*;
    use crate::panel::profile::built_in;

    fn profile() -> Profile {
        built_in().into_iter().find(|profile| profile.id == "claude-vscode").unwrap()
    }

    fn well() -> Push {
        let landmarks = Landmarks {
            scope: Some(0),
            composer: Some(0),
            send: Some(0),
            model: Some(0),
            ..Landmarks::default()
        };
        Push { ready: true, landmarks, ..Push::default() }
    }

    fn without_composer() -> Push {
        let push = well();
        Push { landmarks: Landmarks { composer: None, ..push.landmarks }, ..push }
    }

    fn at(ms: u64) -> Timestamp {
        Timestamp(1_000_000 + ms)
    }

    fn health(watch: &Watch, ms: u64) -> Health {
        let verdict = watch.verdict(&profile(), at(ms));
        assert_eq!(verdict.reason.is_none(), verdict.health == Health::Healthy, "{verdict:?}");
        verdict.health
    }

    #[test]
    fn everything_in_its_first_place_is_healthy_and_a_second_place_is_degraded() {
        let mut watch = Watch::default();
        watch.look(&well(), &profile(), at(0));
        assert_eq!(health(&watch, 0), Health::Healthy);
        let landmarks = Landmarks { send: Some(1), ..well().landmarks };
        watch.look(&Push { landmarks, ..well() }, &profile(), at(0));
        assert_eq!(health(&watch, 0), Health::Degraded);
    }

    #[test]
    fn a_missing_composer_is_a_changed_panel_only_after_ten_seconds_and_three_looks() {
        let mut watch = Watch::default();
        watch.look(&without_composer(), &profile(), at(0));
        watch.look(&without_composer(), &profile(), at(5_000));
        assert_ne!(health(&watch, 11_000), Health::AgentUiChanged, "two looks");
        watch.look(&without_composer(), &profile(), at(9_000));
        assert_ne!(health(&watch, 9_900), Health::AgentUiChanged, "too early");
        assert_eq!(health(&watch, 10_000), Health::AgentUiChanged);
        watch.look(&well(), &profile(), at(11_000));
        assert_eq!(health(&watch, 11_000), Health::Healthy);
    }

    #[test]
    fn a_login_page_a_question_and_a_loading_page_are_no_changed_panel() {
        let waiting = Some("Log in".to_owned());
        let dialogs = vec![super::super::frames::DialogSeen::default()];
        for push in [
            Push { waiting, ..without_composer() },
            Push { dialogs, ..without_composer() },
            Push { ready: false, ..without_composer() },
        ] {
            let mut watch = Watch::default();
            for ms in [0, 5_000, 10_000, 15_000] {
                watch.look(&push, &profile(), at(ms));
            }
            assert_ne!(health(&watch, 20_000), Health::AgentUiChanged);
        }
    }

    #[test]
    fn a_renamed_send_button_is_a_changed_panel_unless_a_run_hides_it() {
        let landmarks = Landmarks { send: None, ..well().landmarks };
        let push = Push { landmarks, ..well() };
        for (busy, changed) in [(false, true), (true, false)] {
            let mut watch = Watch::default();
            for ms in [0, 5_000, 10_000] {
                watch.look(&Push { busy, ..push.clone() }, &profile(), at(ms));
            }
            assert_eq!(health(&watch, 10_000) == Health::AgentUiChanged, changed);
        }
    }

    #[test]
    fn a_script_that_stumbles_is_scraping_failed_and_a_panel_that_went_is_disconnected() {
        let mut watch = Watch::default();
        let error = Some("x is not a selector".to_owned());
        watch.look(&Push { error, ..Push::default() }, &profile(), at(0));
        assert_eq!(health(&watch, 0), Health::ScrapingFailed);
        watch.look(&well(), &profile(), at(0));
        assert_eq!(health(&watch, 0), Health::Healthy);
        watch.gone("the browser ended");
        assert_eq!(health(&watch, 0), Health::Disconnected);
    }

    #[test]
    fn it_says_when_to_look_again_while_something_is_missing() {
        let mut watch = Watch::default();
        watch.look(&well(), &profile(), at(0));
        assert_eq!(watch.deadline(at(0)), None);
        watch.look(&without_composer(), &profile(), at(0));
        assert!(watch.deadline(at(0)).is_some_and(|when| when <= at(10_000)));
    }
}
