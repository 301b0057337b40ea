//! How many programs may run, and how long one may be idle.
//!
//! At the limit, the program that has been idle longest makes room for the next. An idle program is
//! ended after a while; its session stays, and restarts it when it is needed.
//!
//! Not here: memory (`processes`), what counts as idle (`agents`).

use std::collections::{BTreeMap, BTreeSet};

use agents::{Ended, Input as AgentInput, Order as AgentOrder};
use domain::content::Failure;
use domain::{SessionId, Timestamp};

use super::{Host, Turn};
use crate::Fault;
use crate::config::Guards;
use crate::disk::Disk;
use crate::records::Records;

/// What is known of the programs that run.
#[derive(Debug)]
pub(super) struct Guard {
    guards: Guards,
    running: BTreeSet<SessionId>,
    /// Since when each of them has nothing to do.
    resting: BTreeMap<SessionId, Timestamp>,
    /// Programs that were not started; their drivers hear of it with the next turn.
    denied: Vec<(SessionId, AgentInput)>,
}

impl Guard {
    pub(super) fn new(guards: Guards) -> Self {
        let (running, resting) = (BTreeSet::new(), BTreeMap::new());
        Self { guards, running, resting, denied: vec![] }
    }

    pub(super) fn take_denied(&mut self) -> Vec<(SessionId, AgentInput)> {
        std::mem::take(&mut self.denied)
    }

    pub(super) fn ended(&mut self, session: &SessionId) {
        self.running.remove(session);
        self.resting.remove(session);
    }

    /// A session that is asked something does not rest.
    pub(super) fn asked(&mut self, session: &SessionId) {
        self.resting.remove(session);
    }

    pub(super) fn deadline(&self, now: Timestamp) -> Option<Timestamp> {
        if !self.denied.is_empty() {
            return Some(now);
        }
        let idle_stop_ms = self.guards.idle_stop_ms?;
        self.resting.values().min().map(|since| since.plus_ms(idle_stop_ms))
    }

    fn is_full_for(&self, session: &SessionId) -> bool {
        !self.running.contains(session) && self.running.len() >= self.guards.programs_max
    }

    fn deny(&mut self, session: &SessionId) {
        let limit = self.guards.programs_max;
        let words = format!(
            "{limit} agents are running on this machine, which is the limit. Wait for one to \
             finish, close one, or raise the limit with --agents-max"
        );
        let failure = Failure::new("too_many_agents", words);
        let ended = AgentInput::Ended(Ended::NotStarted(failure));
        self.denied.push((session.clone(), ended));
    }
}

impl<D: Disk, R: Records> Host<D, R> {
    /// Whether a program may be started for this session; one that rests makes room for it.
    pub(super) fn make_room(&mut self, session: &SessionId, now: Timestamp) -> Result<bool, Fault> {
        if self.guard.is_full_for(session) {
            self.note_resting(now);
            let rested = self.guard.resting.iter().filter(|(resting, _)| *resting != session);
            let longest = rested.min_by_key(|(_, since)| **since).map(|(rested, _)| rested.clone());
            let Some(longest) = longest else {
                self.guard.deny(session);
                return Ok(false);
            };
            let effects = self.rest(&longest, now)?;
            self.later.extend(effects);
        }
        self.guard.running.insert(session.clone());
        Ok(true)
    }

    /// Ends the programs that had nothing to do for long.
    pub(super) fn let_rest(&mut self, turn: &mut Turn, now: Timestamp) -> Result<(), Fault> {
        self.note_resting(now);
        let mut effects = std::mem::take(&mut self.later);
        if let Some(idle_stop_ms) = self.guard.guards.idle_stop_ms {
            let due = self.guard.resting.iter();
            let due = due.filter(|(_, since)| since.plus_ms(idle_stop_ms) <= now);
            let due: Vec<_> = due.map(|(session, _)| session.clone()).collect();
            for session in due {
                tracing::debug!(%session, "stopping an idle agent");
                effects.extend(self.rest(&session, now)?);
            }
        }
        self.settle(effects, turn, now)
    }

    fn rest(
        &mut self,
        session: &SessionId,
        now: Timestamp,
    ) -> Result<Vec<crate::engine::Effect>, Fault> {
        let effects = self.order(session, &AgentOrder::Rest, now)?;
        // It is on its way out, and makes room at once.
        self.guard.ended(session);
        Ok(effects)
    }

    /// Takes down since when drivers rest.
    fn note_resting(&mut self, now: Timestamp) {
        let Guard { running, resting, .. } = &mut self.guard;
        for session in running.iter() {
            let is_at_rest = self.drivers.get(session).is_some_and(|driver| driver.is_at_rest());
            if is_at_rest {
                let since = resting.entry(session.clone()).or_insert(now);
                // A clock that was set back must not keep it for ever.
                *since = (*since).min(now);
            } else {
                resting.remove(session);
            }
        }
    }
}

#[cfg(test)]
mod tests;
