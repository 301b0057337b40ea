//! Machines: which are connected, on which connection, and which sessions each one has.
//!
//! Not here: launches (`launches`), recognising a session that a proxy names (`matching`).

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::{Claim, Launch, LaunchWish};
use crate::session::status::Via;
use crate::{
    AgentType, ConnectionId, MachineLabel, Refusal, SessionId, TargetSignature, Timestamp,
};

/// Erased sessions that are remembered, the newest ones. A machine that comes back after so many
/// more, and does not know yet that the end of an earlier one was recorded, tells of it once more.
pub const ERASED_MAX: usize = 1_024;

/// What a proxy has to offer. A plain v1 proxy does not say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Agents it can start; `None` where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<AgentType>>,
    /// Folders it knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workspaces: Vec<String>,
    /// More about the agents, also those that it could start if they were installed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<AgentOffer>,
    /// How much its agents may take; `None` where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
}

/// How much the agents of a machine may take. What is `None` has no bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Programs that run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents_max: Option<u64>,
    /// A program that had nothing to do for so long is ended until it is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_stop_ms: Option<u64>,
    /// Memory of one program and all that it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes_max: Option<u64>,
}

/// What a machine knows of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentOffer {
    /// Which agent.
    pub agent: AgentType,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Whether its program is there.
    pub is_installed: bool,
    /// As the program says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether a credential was seen, unused; `None` where that cannot be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_logged_in: Option<bool>,
    /// How a person gets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<String>,
}

/// A session as its machine named it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registered {
    /// Its machine.
    pub machine: MachineLabel,
    /// Its agent.
    pub agent: AgentType,
    /// Recognises its target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<TargetSignature>,
    /// Its folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_path: Option<String>,
}

/// Facts about machines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A proxy is there.
    Connected {
        /// Which machine.
        machine: MachineLabel,
        /// Through which socket and journal.
        via: Via,
        /// What it has to offer.
        offer: Offer,
    },
    /// It is gone.
    Disconnected {
        /// Which machine.
        machine: MachineLabel,
    },
    /// What it has to offer changed.
    Offered {
        /// Which machine.
        machine: MachineLabel,
        /// Everything that it has to offer now.
        offer: Offer,
    },
    /// A session belongs to a machine.
    Registered {
        /// Which session.
        session: SessionId,
        /// As its machine named it.
        registered: Registered,
    },
    /// A session belongs to no machine any more.
    Unregistered {
        /// Which session.
        session: SessionId,
    },
    /// A session was erased: it belongs to no machine, and is remembered as erased.
    Erased {
        /// Which session.
        session: SessionId,
    },
}

/// One machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Its proxy, if it is there.
    pub via: Option<Via>,
    /// What it has to offer.
    pub offer: Offer,
    /// When it last came, went or named a session.
    pub active_at: Timestamp,
}

/// State derived from recorded events alone.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Machines {
    #[serde(rename = "machines")]
    by_label: BTreeMap<MachineLabel, Machine>,
    sessions: BTreeMap<SessionId, Registered>,
    /// The oldest first.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    erased: VecDeque<SessionId>,
}

impl Machines {
    /// A proxy says hello. A newer connection of the same machine takes over.
    pub fn connect(&self, via: &Via, machine: &MachineLabel, offer: &Offer) -> Vec<Event> {
        let (machine, via, offer) = (machine.clone(), via.clone(), offer.clone());
        vec![Event::Connected { machine, via, offer }]
    }

    /// A socket is gone. Nothing is recorded for one that was taken over before.
    pub fn disconnect(&self, connection: &ConnectionId) -> Vec<Event> {
        let machine = self.of(connection).cloned();
        machine.map(|machine| Event::Disconnected { machine }).into_iter().collect()
    }

    /// Nobody is there.
    pub fn disconnect_all(&self) -> Vec<Event> {
        let there = self.by_label.iter().filter(|(_, machine)| machine.via.is_some());
        there.map(|(machine, _)| Event::Disconnected { machine: machine.clone() }).collect()
    }

    /// A proxy has something else to offer than before.
    pub fn offer(&self, connection: &ConnectionId, offer: &Offer) -> Result<Vec<Event>, Refusal> {
        let machine = self.of(connection).ok_or(Refusal::NotThisProxy)?;
        let is_news = self.by_label.get(machine).is_none_or(|known| known.offer != *offer);
        let offered = Event::Offered { machine: machine.clone(), offer: offer.clone() };
        Ok(is_news.then_some(offered).into_iter().collect())
    }

    /// A proxy names its sessions.
    pub fn name(&self, connection: &ConnectionId, claim: &Claim) -> Result<Vec<Event>, Refusal> {
        let machine = self.of(connection).ok_or(Refusal::NotThisProxy)?;
        let accepted = claim.accepted.iter().filter_map(|(session, named)| {
            let registered = Registered {
                machine: machine.clone(),
                agent: named.meta.agent.clone(),
                signature: named.meta.signature.clone(),
                workspace_path: named.meta.workspace_path.clone(),
            };
            let known = self.sessions.get(session) == Some(&registered);
            (!known).then(|| Event::Registered { session: session.clone(), registered })
        });
        Ok(accepted.collect())
    }

    /// A launched session belongs to its machine, even before that machine names it.
    pub fn register(&self, session: &SessionId, launch: &Launch) -> Option<Event> {
        let registered = Registered {
            machine: launch.machine.clone(),
            agent: launch.agent.clone(),
            signature: None,
            workspace_path: launch.workspace_path.clone(),
        };
        let session = session.clone();
        let unknown = !self.sessions.contains_key(&session);
        unknown.then_some(Event::Registered { session, registered })
    }

    /// A session is over.
    pub fn forget(&self, session: &SessionId) -> Vec<Event> {
        let known = self.sessions.contains_key(session);
        known.then(|| Event::Unregistered { session: session.clone() }).into_iter().collect()
    }

    /// A session is erased. A machine that has not heard that its end was recorded will name it
    /// once more.
    pub fn erase(&self, session: &SessionId) -> Vec<Event> {
        vec![Event::Erased { session: session.clone() }]
    }

    /// Whether a session was erased, and did not begin anew since.
    pub fn is_erased(&self, session: &SessionId) -> bool {
        self.erased.contains(session)
    }

    /// The machine that a launch goes to: the named one; else one that knows the folder; else the
    /// most recently active one that offers the agent; else one that does not say what it offers;
    /// else any, which will say why it cannot.
    pub fn choose(&self, wish: &LaunchWish) -> Option<MachineLabel> {
        if let Some(named) = &wish.machine {
            return self.via(named).map(|_| named.clone());
        }
        let rank = |label: &MachineLabel, machine: &Machine| {
            let folder = wish.workspace_path.as_ref();
            let knows = folder.is_some_and(|path| self.knows_folder(label, machine, path));
            let offers = match &machine.offer.agents {
                Some(agents) => agents.contains(&wish.agent),
                None => self.has_agent(label, &wish.agent),
            };
            (knows, offers, machine.offer.agents.is_none(), machine.active_at)
        };
        let there = self.by_label.iter().filter(|(_, machine)| machine.via.is_some());
        there.max_by_key(|(label, machine)| rank(label, machine)).map(|(label, _)| label.clone())
    }

    /// The machine behind a socket.
    pub fn of(&self, connection: &ConnectionId) -> Option<&MachineLabel> {
        let via =
            |machine: &Machine| machine.via.as_ref().is_some_and(|v| v.connection == *connection);
        self.by_label.iter().find(|(_, machine)| via(machine)).map(|(label, _)| label)
    }

    /// How a machine is reached, if it is.
    pub fn via(&self, machine: &MachineLabel) -> Option<&Via> {
        self.by_label.get(machine)?.via.as_ref()
    }

    /// Every machine ever seen.
    pub fn all(&self) -> impl Iterator<Item = (&MachineLabel, &Machine)> {
        self.by_label.iter()
    }

    /// Every session that belongs to a machine.
    pub fn sessions(&self) -> impl Iterator<Item = (&SessionId, &Registered)> {
        self.sessions.iter()
    }

    /// Who has a session.
    pub fn registered(&self, session: &SessionId) -> Option<&Registered> {
        self.sessions.get(session)
    }

    /// Cannot fail: what is recorded has happened.
    pub fn apply(&mut self, event: &Event, at: Timestamp) {
        match event {
            Event::Connected { machine, via, offer } => {
                let (via, offer) = (Some(via.clone()), offer.clone());
                self.by_label.insert(machine.clone(), Machine { via, offer, active_at: at });
            }
            Event::Disconnected { machine } => {
                if let Some(machine) = self.by_label.get_mut(machine) {
                    machine.via = None;
                    machine.active_at = at;
                }
            }
            Event::Offered { machine, offer } => {
                if let Some(machine) = self.by_label.get_mut(machine) {
                    machine.offer = offer.clone();
                }
            }
            Event::Registered { session, registered } => {
                if let Some(machine) = self.by_label.get_mut(&registered.machine) {
                    machine.active_at = at;
                }
                self.erased.retain(|erased| erased != session);
                self.sessions.insert(session.clone(), registered.clone());
            }
            Event::Unregistered { session } => {
                self.sessions.remove(session);
            }
            Event::Erased { session } => {
                self.sessions.remove(session);
                self.erased.retain(|erased| erased != session);
                self.erased.push_back(session.clone());
                if self.erased.len() > ERASED_MAX {
                    self.erased.pop_front();
                }
            }
        }
    }

    fn knows_folder(&self, label: &MachineLabel, machine: &Machine, path: &String) -> bool {
        let has = |r: &Registered| r.machine == *label && r.workspace_path.as_ref() == Some(path);
        machine.offer.workspaces.contains(path) || self.sessions.values().any(has)
    }

    fn has_agent(&self, label: &MachineLabel, agent: &AgentType) -> bool {
        self.sessions.values().any(|r| r.machine == *label && r.agent == *agent)
    }
}
