//! Launches: each client receives the results of its own, also after it was offline.

use domain::fleet::launches::{self, Outcome};
use domain::fleet::{self, Launch};
use domain::{AgentType, Principal, RequestId, Timestamp};

use super::{ClientConnection, LAUNCHES_TOLD_MAX, Output, Stage};
use crate::native::frames::{RelayFrame, SessionLaunchAck, SessionLaunchFailed, SessionLaunching};
use crate::native::shapes::Envelope;

impl ClientConnection {
    /// Something happened in the fleet.
    pub fn on_fleet(&mut self, recorded: &fleet::Recorded, _now: Timestamp) -> Vec<Output> {
        if self.stage != Stage::Joined {
            // The welcome will say how it stands.
            return vec![];
        }
        let at = recorded.at;
        match &recorded.event {
            fleet::Event::Machine(_) => vec![],
            fleet::Event::Launch(launches::Event::Requested(launch)) => {
                let mine = self.is_mine(&launch.request, &launch.by);
                mine.then(|| launching(&launch.request, &launch.agent, at)).into_iter().collect()
            }
            fleet::Event::Launch(launches::Event::Settled { request, by, agent, outcome }) => {
                if !self.is_mine(request, by) {
                    return vec![];
                }
                self.tell_launch(request, agent, outcome, at).into_iter().collect()
            }
            fleet::Event::Launch(launches::Event::Forgotten { request }) => {
                self.launches.remove(request);
                vec![]
            }
        }
    }

    /// The launches of this client as they stand: on their way, or held for it.
    pub(super) fn on_launches(&mut self, launches: &[Launch], now: Timestamp) -> Vec<Output> {
        let mut outputs = vec![];
        for launch in launches {
            let known = self.launches.contains_key(&launch.request);
            if !known && self.launches.len() >= LAUNCHES_TOLD_MAX {
                continue;
            }
            self.launches.entry(launch.request.clone()).or_insert(None);
            if let Some(outcome) = &launch.outcome {
                outputs.extend(self.tell_launch(&launch.request, &launch.agent, outcome, now));
            }
        }
        outputs
    }

    /// The same launch was asked for again: this is how it stands.
    pub(super) fn tell_again(&mut self, launch: &Launch, now: Timestamp) -> Vec<Output> {
        match &launch.outcome {
            None => vec![launching(&launch.request, &launch.agent, launch.launched_at)],
            Some(outcome) => {
                self.launches.insert(launch.request.clone(), None);
                let told = self.tell_launch(&launch.request, &launch.agent, outcome, now);
                told.into_iter().collect()
            }
        }
    }

    fn is_mine(&self, request: &RequestId, by: &domain::ClientKey) -> bool {
        let me = self.principal.as_ref().map(Principal::key);
        self.launches.contains_key(request) && me.as_ref() == Some(by)
    }

    /// Tells an outcome, unless it was told before.
    fn tell_launch(
        &mut self,
        request: &RequestId,
        agent: &AgentType,
        outcome: &Outcome,
        at: Timestamp,
    ) -> Option<Output> {
        let told = self.launches.get_mut(request)?;
        if told.as_ref() == Some(outcome) {
            return None;
        }
        *told = Some(outcome.clone());
        let agent_type = Some(agent.clone());
        Some(match outcome {
            Outcome::Launched(session) => {
                let envelope =
                    Envelope { session_id: Some(session.clone()), ..answer(request, at) };
                let body = SessionLaunchAck { agent_type };
                Output::Send(RelayFrame::SessionLaunchAck(body).encode(envelope))
            }
            Outcome::Failed(failure) => {
                let (error_code, reason) = (failure.code.to_string(), failure.message.clone());
                let body = SessionLaunchFailed { agent_type, reason, error_code };
                launch_failed(request, body, at)
            }
        })
    }
}

fn launching(request: &RequestId, agent: &AgentType, at: Timestamp) -> Output {
    let body = SessionLaunching { agent_type: agent.clone() };
    Output::Send(RelayFrame::SessionLaunching(body).encode(answer(request, at)))
}

fn answer(request: &RequestId, at: Timestamp) -> Envelope {
    let (request_id, server_ts) = (Some(request.clone()), Some(at.into()));
    Envelope { request_id, server_ts, ..Envelope::new("") }
}

pub(super) fn launch_failed(
    request: &RequestId,
    body: SessionLaunchFailed,
    now: Timestamp,
) -> Output {
    Output::Send(RelayFrame::SessionLaunchFailed(body).encode(answer(request, now)))
}
