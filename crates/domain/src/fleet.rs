//! The fleet: machines, their sessions, and launches in progress.
//!
//! One owner task and one stream of the ledger hold it. It decides which machine a session belongs
//! to and which machine gets a launch. It talks to sessions only through commands.
//!
//! Not here: what happens inside a session (`session`), sockets (`server`).

pub mod launches;
pub mod machines;
mod matching;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use launches::{Earlier, Launch, LaunchWish, Launches};
pub use machines::{AgentOffer, Limits, Machine, Machines, Offer};
pub use matching::{Claim, Named};

use crate::content::Failure;
use crate::session::status::Via;
use crate::{
    ConnectionId, MachineLabel, Principal, Refusal, RequestId, Sequence, SessionId, Timestamp,
};

/// The ledger stream of the fleet.
pub const FLEET_STREAM: &str = "$fleet";

/// Times that a person may configure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// How long a launch may take.
    pub launch_timeout_ms: u64,
    /// How much longer its result is held for a client that went away.
    pub launch_held_ms: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self { launch_timeout_ms: 30_000, launch_held_ms: 300_000 }
    }
}

/// Something said to the fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// A proxy said hello.
    Connected {
        /// Through which socket and journal.
        via: Via,
        /// Its machine.
        machine: MachineLabel,
        /// What it has to offer.
        offer: Offer,
    },
    /// A proxy's socket is gone.
    Disconnected(ConnectionId),
    /// A proxy has something else to offer: an agent was installed, or is gone.
    Offered {
        /// Through which socket.
        connection: ConnectionId,
        /// Everything that it has to offer now.
        offer: Offer,
    },
    /// The relay starts: whoever was connected is not.
    Restarted,
    /// A proxy names the sessions it has: the whole truth about its machine.
    Named {
        /// Through which socket.
        connection: ConnectionId,
        /// What it named, already resolved by [`Fleet::claim`].
        claim: Claim,
    },
    /// A person wants a new session.
    Launch(Principal, Box<LaunchWish>),
    /// A proxy started one.
    Launched {
        /// Through which socket.
        connection: ConnectionId,
        /// The client's request.
        request: RequestId,
        /// The new session.
        session: SessionId,
    },
    /// A proxy could not.
    LaunchFailed {
        /// Through which socket.
        connection: ConnectionId,
        /// The client's request.
        request: RequestId,
        /// Why.
        failure: Failure,
    },
    /// A session was closed: it belongs to no machine any more.
    Gone(SessionId),
    /// A session was erased.
    Erased(SessionId),
    /// Time passed.
    Tick,
}

/// A fact in the ledger of the fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// About machines and their sessions.
    Machine(machines::Event),
    /// About launches.
    Launch(launches::Event),
}

/// An event with its place and time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// Dense, from 1.
    #[serde(rename = "n")]
    pub sequence: Sequence,
    /// The relay's clock.
    pub at: Timestamp,
    /// What happened.
    #[serde(rename = "e")]
    pub event: Event,
}

/// State derived from recorded events alone.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Fleet {
    head: Sequence,
    machines: Machines,
    launches: Launches,
}

impl Fleet {
    /// Decides a command and records what it leads to, as [`crate::session::Session::perform`].
    pub fn perform(
        &mut self,
        command: &Command,
        policy: Policy,
        now: Timestamp,
    ) -> Result<Vec<Recorded>, Refusal> {
        let mut events = self.decide(command, policy, now)?;
        let mut recorded = vec![];
        // What is due follows from what the command led to: an answer that came in time, if only
        // just, is not followed by a timeout.
        loop {
            for event in events {
                let fact = Recorded { sequence: self.head.next(), at: now, event };
                self.apply(&fact);
                recorded.push(fact);
            }
            events = self.launches.due(policy, now).into_iter().map(Event::Launch).collect();
            if events.is_empty() {
                return Ok(recorded);
            }
        }
    }

    /// What a command leads to. Changes nothing.
    pub fn decide(
        &self,
        command: &Command,
        policy: Policy,
        now: Timestamp,
    ) -> Result<Vec<Event>, Refusal> {
        let machine = |events: Vec<machines::Event>| events.into_iter().map(Event::Machine);
        let launch = |event: Option<launches::Event>| event.into_iter().map(Event::Launch);
        Ok(match command {
            Command::Connected { via, machine: label, offer } => {
                machine(self.machines.connect(via, label, offer)).collect()
            }
            Command::Disconnected(connection) => {
                machine(self.machines.disconnect(connection)).collect()
            }
            Command::Offered { connection, offer } => {
                machine(self.machines.offer(connection, offer)?).collect()
            }
            Command::Restarted => machine(self.machines.disconnect_all()).collect(),
            Command::Named { connection, claim } => {
                machine(self.machines.name(connection, claim)?).collect()
            }
            Command::Launch(principal, wish) => {
                if !principal.may_steer() {
                    return Err(Refusal::Unauthorized);
                }
                // An argument can switch off every question that the agent would ask.
                if !wish.arguments.is_empty() && !principal.may_own() {
                    return Err(Refusal::OwnerOnly);
                }
                self.launches.check_repeat(&wish.request, &principal.key())?;
                let label = self.machines.choose(wish).ok_or(Refusal::NoProxyConnected)?;
                let via = self.machines.via(&label).ok_or(Refusal::NoProxyConnected)?;
                let requested = self.launches.request(principal, wish, label, via, policy, now)?;
                vec![Event::Launch(requested)]
            }
            Command::Launched { connection, request, session } => {
                let label = self.machines.of(connection).ok_or(Refusal::NotThisProxy)?;
                let settled = self.launches.launched(request, label, session);
                let registered = self.launches.get(request).filter(|_| settled.is_some());
                let registered = registered.and_then(|l| self.machines.register(session, l));
                launch(settled).chain(registered.map(Event::Machine)).collect()
            }
            Command::LaunchFailed { connection, request, failure } => {
                let label = self.machines.of(connection).ok_or(Refusal::NotThisProxy)?;
                launch(self.launches.failed(request, label, failure)).collect()
            }
            Command::Gone(session) => machine(self.machines.forget(session)).collect(),
            Command::Erased(session) => machine(self.machines.erase(session)).collect(),
            Command::Tick => vec![],
        })
    }

    /// Takes in one recorded event. Cannot fail: what is recorded has happened.
    pub fn apply(&mut self, recorded: &Recorded) {
        self.head = recorded.sequence;
        match &recorded.event {
            Event::Machine(event) => self.machines.apply(event, recorded.at),
            Event::Launch(event) => self.launches.apply(event),
        }
    }

    /// What a connected proxy's words about its sessions come to, before they are recorded.
    pub fn claim(&self, connection: &ConnectionId, named: Vec<Named>) -> Result<Claim, Refusal> {
        let machine = self.machines.of(connection).ok_or(Refusal::NotThisProxy)?;
        Ok(matching::claim(&self.machines, machine, named))
    }

    /// Launches that this connection must still be told of.
    pub fn owed(&self, via: &Via) -> Vec<&Launch> {
        self.launches.owed(via)
    }

    /// When to say [`Command::Tick`] next.
    pub fn deadline(&self, policy: Policy) -> Option<Timestamp> {
        self.launches.deadline(policy)
    }

    /// Machines and their sessions.
    pub fn machines(&self) -> &Machines {
        &self.machines
    }

    /// Launches on their way and their results.
    pub fn launches(&self) -> &Launches {
        &self.launches
    }

    /// The last event's number.
    pub fn head(&self) -> Sequence {
        self.head
    }
}
