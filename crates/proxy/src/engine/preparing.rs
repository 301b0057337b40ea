//! Launches that are being prepared: checking the folder and the program takes time and is not done
//! on this thread.

use domain::content::Failure;
use domain::{AgentType, RequestId, SessionId, Timestamp, fleet};
use wire::native::proxy_frames::LaunchOrder;

use super::launches::Deadline;
use super::{Effect, Engine};
use crate::journal::Earlier;

/// What is to be looked at and made ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preparation {
    /// For which session.
    pub session: SessionId,
    /// Its agent.
    pub agent: AgentType,
    /// The folder that was named.
    pub workspace_path: Option<String>,
    /// Whether it gets a working tree of its own.
    pub has_worktree: bool,
    /// The conversation it goes on with.
    pub earlier: Option<fleet::Earlier>,
}

/// What a session starts with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prepared {
    /// The folder it works in.
    pub workspace_path: Option<String>,
    /// The conversation it goes on with.
    pub earlier: Option<Earlier>,
    /// The working tree that was made for it.
    pub worktree: Option<String>,
}

/// A launch that is being looked at.
#[derive(Debug)]
pub(super) struct Preparing {
    launch: LaunchOrder,
    deadline: Deadline,
}

impl Engine {
    pub(super) fn prepare(&mut self, session: SessionId, launch: LaunchOrder, now: Timestamp) {
        if let Some(going_on) = self.goes_on_with(&launch) {
            return match going_on {
                GoesOn::In(session) => {
                    self.tell_launched(&launch.request, &session, &launch.agent);
                }
                GoesOn::Soon => {
                    let words = "This conversation is already being resumed. Look for it in the \
                                 session list";
                    let failure = Failure::new("launch_not_supported", words);
                    self.tell_launch_failed(&launch.request, &launch.agent, &failure);
                }
            };
        }
        self.effects.push(Effect::Prepare(Preparation {
            session: session.clone(),
            agent: launch.agent.clone(),
            workspace_path: launch.workspace_path.clone(),
            has_worktree: launch.has_worktree,
            earlier: launch.earlier.clone(),
        }));
        let deadline = Deadline::of(&launch, now);
        self.preparing.insert(session, Preparing { launch, deadline });
    }

    /// What came of [`Effect::Prepare`].
    pub fn on_prepared(
        &mut self,
        session: &SessionId,
        outcome: Result<Prepared, Failure>,
    ) -> Vec<Effect> {
        match (self.preparing.remove(session), outcome) {
            (Some(Preparing { launch, deadline }), Ok(prepared)) => {
                self.launch_prepared(session.clone(), launch, prepared, deadline);
            }
            (Some(Preparing { launch, .. }), Err(failure)) => {
                self.tell_launch_failed(&launch.request, &launch.agent, &failure);
            }
            // Nobody waits for it any more.
            (None, Ok(prepared)) => {
                self.effects.push(Effect::Stop(session.clone(), prepared.worktree));
            }
            (None, Err(_)) => {}
        }
        self.take()
    }

    /// The conversation that was to be gone on with is open in a session already.
    pub fn on_open_already(&mut self, session: &SessionId, open_in: &SessionId) -> Vec<Effect> {
        if let Some(Preparing { launch, .. }) = self.preparing.remove(session) {
            self.tell_launched(&launch.request, open_in, &launch.agent);
        }
        self.take()
    }

    pub(super) fn is_preparing(&self, request: &RequestId) -> bool {
        self.preparing.values().any(|preparing| preparing.launch.request == *request)
    }

    pub(super) fn preparing_until(&self) -> impl Iterator<Item = Timestamp> {
        self.preparing.values().map(|preparing| preparing.deadline.ready_by)
    }

    pub(super) fn give_up_preparing(&mut self, now: Timestamp) {
        let late =
            self.preparing.iter().filter(|(_, preparing)| preparing.deadline.ready_by <= now);
        let late: Vec<_> = late.map(|(session, _)| session.clone()).collect();
        for session in late {
            let Some(Preparing { launch, .. }) = self.preparing.remove(&session) else { continue };
            let words = "The machine's disk did not respond in time";
            let failure = Failure::new("launch_timeout", words);
            self.tell_launch_failed(&launch.request, &launch.agent, &failure);
        }
    }

    /// Whether a session goes on with the same conversation, by what it was launched with.
    fn goes_on_with(&self, launch: &LaunchOrder) -> Option<GoesOn> {
        let wanted = launch.earlier.as_ref().filter(|earlier| !earlier.fork)?;
        let opened = self.book.sessions.iter().find(|(_, opened)| {
            let same = |earlier: &Earlier| earlier.id == wanted.id && !earlier.fork;
            opened.agent == launch.agent && opened.earlier.as_ref().is_some_and(same)
        });
        if let Some((session, _)) = opened {
            return Some(GoesOn::In(session.clone()));
        }
        let starting = self.starting.values().any(|starting| {
            let same = |earlier: &Earlier| earlier.id == wanted.id && !earlier.fork;
            starting.opened.agent == launch.agent
                && starting.opened.earlier.as_ref().is_some_and(same)
        });
        let preparing = self.preparing.values().any(|preparing| {
            preparing.launch.agent == launch.agent && preparing.launch.earlier == launch.earlier
        });
        (starting || preparing).then_some(GoesOn::Soon)
    }
}

/// Where a conversation is gone on with.
enum GoesOn {
    In(SessionId),
    Soon,
}
