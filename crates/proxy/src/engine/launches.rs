//! Launches. Each is started once, however often it is requested.

use std::path::{Component, Path};

use agents::Output;
use domain::content::Failure;
use domain::session::Report;
use domain::session::status::Health;
use domain::{AgentType, RequestId, SessionId, Timestamp};
use wire::native::proxy_frames::{self, LaunchOrder};

use super::live::Live;
use super::{Effect, Engine, Prepared, SESSIONS_MAX};
use crate::journal::{Opened, Record};

/// How long a launch may take for a relay that does not say.
const TIMEOUT_MS: u64 = 30_000;
/// What its answer needs to reach the relay in time: a tenth of the time, at most so much.
const ANSWERED_WITHIN_MS_MAX: u64 = 2_000;
/// What an agent may tell before it is ready. What is more is dropped: it is told again.
const HELD_MAX: usize = 10_000;

/// When a launch has to be over, by the relay's one deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Deadline {
    /// The agent is ready by then, or its driver says why it is not.
    pub(super) ready_by: Timestamp,
    /// A launch that is still open then has failed: its driver did not say why.
    pub(super) until: Timestamp,
}

impl Deadline {
    pub(super) fn of(launch: &LaunchOrder, now: Timestamp) -> Self {
        let timeout_ms = launch.timeout_ms.unwrap_or(TIMEOUT_MS);
        let reserve_ms = (timeout_ms / 10).min(ANSWERED_WITHIN_MS_MAX);
        let ready_by = now.plus_ms(timeout_ms - reserve_ms);
        Self { ready_by, until: now.plus_ms(timeout_ms - reserve_ms / 2) }
    }
}

/// A launch whose agent is not ready yet.
#[derive(Debug)]
pub(super) struct Starting {
    pub(super) opened: Opened,
    until: Timestamp,
    held: Vec<Output>,
}

impl Engine {
    pub(super) fn launch(&mut self, launch: LaunchOrder, now: Timestamp) {
        if let Some(session) = self.book.launched(&launch.request).cloned() {
            self.tell_launched(&launch.request, &session, &launch.agent);
            return;
        }
        let request = Some(&launch.request);
        if self.starting.values().any(|starting| starting.opened.launch.as_ref() == request) {
            return;
        }
        if self.is_preparing(&launch.request) {
            return;
        }
        if let Some(failure) = self.refuse_launch(&launch) {
            self.tell_launch_failed(&launch.request, &launch.agent, &failure);
            return;
        }
        let session = self.new_session();
        let is_demo = launch.agent.as_str() == agents::demo::AGENT;
        if is_demo && launch.workspace_path.is_none() {
            // There is nothing to look at.
            let deadline = Deadline::of(&launch, now);
            self.launch_prepared(session, launch, Prepared::default(), deadline);
        } else {
            self.prepare(session, launch, now);
        }
    }

    /// Everything is there that the session needs.
    pub(super) fn launch_prepared(
        &mut self,
        session: SessionId,
        launch: LaunchOrder,
        prepared: Prepared,
        deadline: Deadline,
    ) {
        let details = self.settings.details.iter();
        let known =
            details.filter(|it| it.agent == launch.agent).find_map(|it| it.display_name.clone());
        let name = launch.window_title.clone().or(known);
        let opened = Opened {
            display_name: name.or_else(|| Some(title(launch.agent.as_str()))),
            agent: launch.agent,
            workspace_path: prepared.workspace_path,
            window_title: launch.window_title,
            model: launch.model,
            mode: launch.permission_mode,
            earlier: prepared.earlier,
            worktree: prepared.worktree,
            arguments: launch.arguments,
            launch: Some(launch.request),
            signature: None,
        };
        let until = deadline.until;
        let starting = Starting { opened: opened.clone(), until, held: vec![] };
        self.starting.insert(session.clone(), starting);
        self.live.insert(session.clone(), Live::default());
        self.effects.push(Effect::Start(session, opened, Some(deadline.ready_by)));
    }

    /// What an agent tells before it is ready is told after.
    pub(super) fn hold_while_starting(
        &mut self,
        session: &SessionId,
        outputs: Vec<Output>,
    ) -> Vec<Output> {
        let Some(starting) = self.starting.get_mut(session) else { return outputs };
        let failed = outputs.iter().find_map(|output| {
            let Output::Unusable(failure) = output else { return None };
            Some(failure.clone())
        });
        if let Some(failure) = failed {
            self.launch_failed(session, &failure);
            return vec![];
        }
        let is_ready = outputs.contains(&Output::Ready);
        let room = HELD_MAX.saturating_sub(starting.held.len());
        starting.held.extend(outputs.into_iter().take(room));
        if !is_ready {
            return vec![];
        }
        let Some(Starting { opened, held, .. }) = self.starting.remove(session) else {
            return vec![];
        };
        self.persist(Record::Opened(session.clone(), opened.clone()));
        // The session is the relay's before the launch is answered with it.
        self.send_snapshot(false);
        if let Some(request) = &opened.launch {
            self.tell_launched(request, session, &opened.agent);
        }
        held
    }

    /// A session that was ready once cannot be used any more: it stays, and says so.
    pub(super) fn came_to_nothing(
        &mut self,
        session: &SessionId,
        failure: Failure,
        now: Timestamp,
    ) {
        let report = Report::Status {
            health: Health::Degraded,
            activity: None,
            reason: Some(failure.message),
        };
        self.told(session, &report, now);
    }

    pub(super) fn give_up_launches(&mut self, now: Timestamp) {
        let late = self.starting.iter().filter(|(_, starting)| starting.until <= now);
        let late: Vec<_> = late.map(|(session, _)| session.clone()).collect();
        self.give_up_preparing(now);
        for session in late {
            let words = "The agent started but was not ready in time";
            self.launch_failed(&session, &Failure::new("launch_timeout", words));
        }
    }

    pub(super) fn launch_due(&self) -> Option<Timestamp> {
        let starting = self.starting.values().map(|starting| starting.until);
        starting.chain(self.preparing_until()).min()
    }

    fn launch_failed(&mut self, session: &SessionId, failure: &Failure) {
        let Some(starting) = self.starting.remove(session) else { return };
        self.live.remove(session);
        self.effects.push(Effect::Stop(session.clone(), starting.opened.worktree));
        if let Some(request) = &starting.opened.launch {
            self.tell_launch_failed(request, &starting.opened.agent, failure);
        }
    }

    pub(super) fn tell_launch_failed(
        &mut self,
        request: &RequestId,
        agent: &AgentType,
        failure: &Failure,
    ) {
        let number = self.book.outbox.next_number();
        let frame = proxy_frames::encode_launch_failed(request, agent, failure, Some(number));
        self.post(number, frame, None);
    }

    pub(super) fn tell_launched(
        &mut self,
        request: &RequestId,
        session: &SessionId,
        agent: &AgentType,
    ) {
        let number = self.book.outbox.next_number();
        let frame = proxy_frames::encode_launched(request, session, agent, Some(number));
        self.post(number, frame, None);
    }

    /// What can be refused at once. Whether a program and a folder are there is looked at first.
    fn refuse_launch(&self, launch: &LaunchOrder) -> Option<Failure> {
        let is_known = self.settings.agents.contains(&launch.agent)
            || self.settings.missing.contains_key(&launch.agent);
        if !is_known {
            let words =
                format!("Unknown agent \"{}\": this machine has no driver for it", launch.agent);
            return Some(Failure::new("launch_not_supported", words));
        }
        let sessions = self.book.sessions.len() + self.starting.len() + self.preparing.len();
        if sessions >= SESSIONS_MAX {
            let words = format!(
                "This machine already has {SESSIONS_MAX} sessions, the maximum. Close some first"
            );
            return Some(Failure::new("launch_not_supported", words));
        }
        if launch.agent.as_str() != agents::demo::AGENT {
            return None;
        }
        if !launch.arguments.is_empty() {
            let words = "The demo agent does not take arguments";
            return Some(Failure::new("launch_not_supported", words));
        }
        if launch.has_worktree || launch.earlier.is_some() {
            let words = "The demo agent cannot resume conversations or use a working tree";
            return Some(Failure::new("launch_not_supported", words));
        }
        let path = launch.workspace_path.as_deref()?;
        if is_allowed(path, &self.settings.allowed_roots) {
            return None;
        }
        let words =
            format!("Agents may not be started in {path}: it is outside the allowed folders");
        Some(Failure::new("path_not_allowed", words))
    }
}

/// Inside one of the roots, by its name alone. `..` is never allowed where roots are given.
fn is_allowed(path: &str, roots: &[String]) -> bool {
    let climbs = Path::new(path).components().any(|part| part == Component::ParentDir);
    roots.is_empty() || (!climbs && roots.iter().any(|root| Path::new(path).starts_with(root)))
}

/// `demo` → `Demo`.
fn title(agent: &str) -> String {
    let mut letters = agent.chars();
    letters
        .next()
        .map_or(String::new(), |first| first.to_uppercase().collect::<String>() + letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_allowed_inside_a_root_and_anywhere_without_roots() {
        let roots = ["/home/ada".to_owned()];
        assert!(is_allowed("/home/ada/kite", &roots));
        assert!(!is_allowed("/home/adam", &roots));
        assert!(!is_allowed("/home/ada/../eve", &roots));
        assert!(is_allowed("/anywhere", &[]));
    }
}
