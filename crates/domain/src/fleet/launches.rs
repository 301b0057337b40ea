//! Launches: `pending → launched / failed`, each identified by its client's `request_id`.
//!
//! A result is held for the client that asked, so a client that was offline gets it when it comes
//! back. A machine that answers after the timeout is still believed.
//!
//! Not here: choosing the machine (`machines`), starting programs (`proxy`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Policy;
use crate::content::Failure;
use crate::session::status::Via;
use crate::{
    AgentType, ClientKey, MachineLabel, ModelId, Principal, Refusal, RequestId, SessionId,
    Timestamp,
};

/// Launches on their way or held. At the bound, new ones are refused.
pub const LAUNCHES_MAX: usize = 1_024;

/// The code of a launch that nobody answered in time.
pub const LAUNCH_TIMEOUT: &str = "launch_timeout";

/// What a person wants to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchWish {
    /// The client's id for this request.
    pub request: RequestId,
    /// Which agent.
    pub agent: AgentType,
    /// In which folder.
    pub workspace_path: Option<String>,
    /// A hint for the new session's name.
    pub window_title: Option<String>,
    /// On which machine.
    pub machine: Option<MachineLabel>,
    /// With which model.
    pub model: Option<ModelId>,
    /// In which permission mode.
    pub permission_mode: Option<String>,
    /// Whether it gets a working tree of its own.
    pub has_worktree: bool,
    /// The agent's earlier conversation that it goes on with.
    pub earlier: Option<Earlier>,
    /// For the agent's program, besides its driver's own. Only an owner gives any.
    pub arguments: Vec<String>,
}

/// An earlier conversation of an agent's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Earlier {
    /// As the agent names it.
    pub id: String,
    /// Whether to go on in a copy.
    #[serde(default)]
    pub fork: bool,
}

/// A launch on its way, or its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// The client's id for it.
    pub request: RequestId,
    /// Who asked.
    pub by: ClientKey,
    /// Which agent.
    pub agent: AgentType,
    /// In which folder.
    pub workspace_path: Option<String>,
    /// A hint for the new session's name.
    pub window_title: Option<String>,
    /// With which model.
    pub model: Option<ModelId>,
    /// In which permission mode.
    pub permission_mode: Option<String>,
    /// Whether it gets a working tree of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_worktree: bool,
    /// The agent's earlier conversation that it goes on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Earlier>,
    /// For the agent's program, besides its driver's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// The machine it went to.
    pub machine: MachineLabel,
    /// The connection it went through.
    pub via: Via,
    /// When it was asked for.
    pub launched_at: Timestamp,
    /// When it counts as failed.
    pub timeout_at: Timestamp,
    /// What came of it, if anything yet.
    pub outcome: Option<Outcome>,
}

impl Launch {
    /// Whether its machine may still say what came of it: late is better than never.
    fn may_be_answered(&self) -> bool {
        match &self.outcome {
            None => true,
            Some(Outcome::Launched(_)) => false,
            Some(Outcome::Failed(failure)) => failure.code.as_str() == LAUNCH_TIMEOUT,
        }
    }
}

/// What came of a launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A session.
    Launched(SessionId),
    /// Nothing.
    Failed(Failure),
}

/// Facts about launches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// On its way.
    Requested(Box<Launch>),
    /// Something came of it.
    Settled {
        /// Which launch.
        request: RequestId,
        /// Who asked.
        by: ClientKey,
        /// Which agent.
        agent: AgentType,
        /// What came of it.
        outcome: Outcome,
    },
    /// Nobody came back for its result in time.
    Forgotten {
        /// Which launch.
        request: RequestId,
    },
}

/// State derived from recorded events alone.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Launches {
    launches: BTreeMap<RequestId, Launch>,
    /// Settled ones, still held, whose id another client has used since. Oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    displaced: Vec<Launch>,
}

impl Launches {
    /// Refuses an id that was used before: told again to its own client, refused to others while
    /// it is in flight.
    pub fn check_repeat(&self, request: &RequestId, by: &ClientKey) -> Result<(), Refusal> {
        if let Some(own) = self.all().find(|launch| launch.request == *request && launch.by == *by)
        {
            return Err(Refusal::LaunchRepeated(Box::new(own.clone())));
        }
        match self.launches.get(request) {
            Some(launch) if launch.may_be_answered() => Err(Refusal::RequestInUse(request.clone())),
            Some(_) | None => Ok(()),
        }
    }

    /// A person asks, and a machine is there.
    pub fn request(
        &self,
        principal: &Principal,
        wish: &LaunchWish,
        machine: MachineLabel,
        via: &Via,
        policy: Policy,
        now: Timestamp,
    ) -> Result<Event, Refusal> {
        if self.launches.len() + self.displaced.len() >= LAUNCHES_MAX {
            return Err(Refusal::TooManyRequests { limit: LAUNCHES_MAX });
        }
        let wish = wish.clone();
        Ok(Event::Requested(Box::new(Launch {
            request: wish.request,
            by: principal.key(),
            agent: wish.agent,
            workspace_path: wish.workspace_path,
            window_title: wish.window_title,
            model: wish.model,
            permission_mode: wish.permission_mode,
            has_worktree: wish.has_worktree,
            earlier: wish.earlier,
            arguments: wish.arguments,
            machine,
            via: via.clone(),
            launched_at: now,
            timeout_at: now.plus_ms(policy.launch_timeout_ms),
            outcome: None,
        })))
    }

    /// The machine has a new session. Believed even when the time was up.
    pub fn launched(
        &self,
        request: &RequestId,
        machine: &MachineLabel,
        session: &SessionId,
    ) -> Option<Event> {
        let launch = self.launches.get(request).filter(|launch| launch.machine == *machine)?;
        match &launch.outcome {
            Some(Outcome::Launched(_)) => None,
            Some(Outcome::Failed(_)) | None => {
                Some(settled(launch, Outcome::Launched(session.clone())))
            }
        }
    }

    /// The machine could not.
    pub fn failed(
        &self,
        request: &RequestId,
        machine: &MachineLabel,
        failure: &Failure,
    ) -> Option<Event> {
        let launch = self.launches.get(request).filter(|launch| launch.machine == *machine)?;
        launch.outcome.is_none().then(|| settled(launch, Outcome::Failed(failure.clone())))
    }

    /// What time brings.
    pub fn due(&self, policy: Policy, now: Timestamp) -> Vec<Event> {
        let mut events = vec![];
        for launch in self.all() {
            if launch.outcome.is_none() && launch.timeout_at <= now {
                let words = "The machine did not start the session in time";
                let failure = Failure::new(LAUNCH_TIMEOUT, words);
                events.push(settled(launch, Outcome::Failed(failure)));
            } else if launch.timeout_at.plus_ms(policy.launch_held_ms) <= now {
                events.push(Event::Forgotten { request: launch.request.clone() });
            }
        }
        events
    }

    /// When [`Launches::due`] has something next.
    pub fn deadline(&self, policy: Policy) -> Option<Timestamp> {
        let next = |launch: &Launch| match launch.outcome {
            None => launch.timeout_at,
            Some(_) => launch.timeout_at.plus_ms(policy.launch_held_ms),
        };
        self.all().map(next).min()
    }

    /// Pending launches of this connection; of its predecessor too when the journal is the same,
    /// because then the proxy knows which ones it has begun.
    pub fn owed(&self, via: &Via) -> Vec<&Launch> {
        let same_journal = |launch: &Launch| via.link.is_some() && launch.via.link == via.link;
        let theirs = |l: &&Launch| l.via.connection == via.connection || same_journal(l);
        self.launches.values().filter(|l| l.outcome.is_none()).filter(theirs).collect()
    }

    /// Everything on its way or held for a client.
    pub fn of(&self, client: &ClientKey) -> impl Iterator<Item = &Launch> {
        self.all().filter(move |launch| launch.by == *client)
    }

    /// One launch.
    pub fn get(&self, request: &RequestId) -> Option<&Launch> {
        self.launches.get(request)
    }

    /// Cannot fail: what is recorded has happened.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Requested(launch) => {
                let displaced = self.launches.insert(launch.request.clone(), (**launch).clone());
                self.displaced.extend(displaced);
            }
            Event::Settled { request, outcome, .. } => {
                if let Some(launch) = self.launches.get_mut(request) {
                    launch.outcome = Some(outcome.clone());
                }
            }
            Event::Forgotten { request } => {
                // The displaced one is the older.
                let place = self.displaced.iter().position(|launch| launch.request == *request);
                match place {
                    Some(place) => drop(self.displaced.remove(place)),
                    None => drop(self.launches.remove(request)),
                }
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = &Launch> {
        self.displaced.iter().chain(self.launches.values())
    }
}

fn settled(launch: &Launch, outcome: Outcome) -> Event {
    Event::Settled {
        request: launch.request.clone(),
        by: launch.by.clone(),
        agent: launch.agent.clone(),
        outcome,
    }
}
