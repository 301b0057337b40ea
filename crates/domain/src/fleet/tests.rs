//! Tests of machines, their sessions and launches.

mod launches;
mod machines;
mod matching;
mod properties;

use super::{
    Claim, Command, Earlier, Event, Fleet, LaunchWish, Named, Offer, Policy, Recorded,
    launches as facts, machines as places,
};
use crate::content::Failure;
use crate::session::status::{Health, Meta, Via};
use crate::{Principal, Refusal, Role, Timestamp};

/// The time at which every story begins.
const START: Timestamp = Timestamp(1_000_000);

struct Story {
    fleet: Fleet,
    history: Vec<Recorded>,
    now: Timestamp,
}

type Told = Result<Vec<String>, Refusal>;

impl Story {
    fn new() -> Self {
        Self { fleet: Fleet::default(), history: vec![], now: START }
    }

    /// One machine, `attic`, with the journal `j`.
    fn with_attic() -> Self {
        let mut story = Self::new();
        story.connect("attic", "socket-1", Some("j"), Offer::default());
        story
    }

    fn perform(&mut self, command: &Command) -> Told {
        let recorded = self.fleet.perform(command, Policy::default(), self.now)?;
        self.history.extend(recorded.clone());
        Ok(recorded.iter().map(|recorded| brief(&recorded.event)).collect())
    }

    fn wait_ms(&mut self, duration_ms: u64) -> Vec<String> {
        self.now = self.now.plus_ms(duration_ms);
        self.perform(&Command::Tick).unwrap()
    }

    fn connect(&mut self, machine: &str, socket: &str, link: Option<&str>, offer: Offer) {
        let (via, machine) = (via(socket, link), machine.into());
        self.perform(&Command::Connected { via, machine, offer }).unwrap();
    }

    fn disconnect(&mut self, socket: &str) -> Vec<String> {
        self.perform(&Command::Disconnected(socket.into())).unwrap()
    }

    /// A proxy names its sessions; what that comes to is recorded.
    fn name(&mut self, socket: &str, named: Vec<Named>) -> Claim {
        let connection = socket.into();
        let claim = self.fleet.claim(&connection, named).unwrap();
        self.perform(&Command::Named { connection, claim: claim.clone() }).unwrap();
        claim
    }

    fn launch(&mut self, who: &Principal, wish: LaunchWish) -> Told {
        self.perform(&Command::Launch(who.clone(), Box::new(wish)))
    }

    fn launched(&mut self, socket: &str, request: &str, session: &str) -> Told {
        let (connection, request, session) = (socket.into(), request.into(), session.into());
        self.perform(&Command::Launched { connection, request, session })
    }

    fn failed(&mut self, socket: &str, request: &str, code: &str) -> Told {
        let (connection, request) = (socket.into(), request.into());
        let failure = Failure::new(code, "words");
        self.perform(&Command::LaunchFailed { connection, request, failure })
    }

    fn owed(&self, socket: &str, link: Option<&str>) -> Vec<String> {
        self.fleet.owed(&via(socket, link)).iter().map(|l| l.request.to_string()).collect()
    }

    /// What a client finds when it comes back, in the short form.
    fn held(&self, who: &Principal) -> Vec<String> {
        let key = who.key();
        let held = self.fleet.launches().of(&key);
        held.map(|launch| format!("{}: {}", launch.request, outcome(launch.outcome.as_ref())))
            .collect()
    }
}

fn via(socket: &str, link: Option<&str>) -> Via {
    Via { connection: socket.into(), link: link.map(Into::into) }
}

fn ada() -> Principal {
    person("ada", Role::Operator)
}

fn bob() -> Principal {
    person("bob", Role::Owner)
}

fn person(name: &str, role: Role) -> Principal {
    Principal { credential: name.into(), role, client: None, name: name.to_owned() }
}

fn wish(request: &str) -> LaunchWish {
    LaunchWish {
        request: request.into(),
        agent: "demo".into(),
        workspace_path: None,
        window_title: None,
        machine: None,
        model: None,
        permission_mode: None,
        has_worktree: false,
        earlier: None,
        arguments: vec![],
    }
}

fn named(session: Option<&str>, signature: Option<&str>) -> Named {
    let meta = Meta { signature: signature.map(Into::into), ..Meta::of_agent("demo".into()) };
    let session = session.map(Into::into);
    Named { session, meta, health: Health::Healthy, activity: None, is_over: false }
}

fn brief(event: &Event) -> String {
    match event {
        Event::Machine(event) => match event {
            places::Event::Connected { machine, via, .. } => {
                format!("{machine} came through {}", via.connection)
            }
            places::Event::Disconnected { machine } => format!("{machine} went"),
            places::Event::Offered { machine, offer } => {
                format!("{machine} offers {}", offer.agents.iter().flatten().count())
            }
            places::Event::Registered { session, registered } => {
                format!("{session} is on {}", registered.machine)
            }
            places::Event::Unregistered { session } => format!("{session} is gone"),
            places::Event::Erased { session } => format!("{session} is erased"),
        },
        Event::Launch(event) => match event {
            facts::Event::Requested(launch) => {
                format!("launch {} on {}", launch.request, launch.machine)
            }
            facts::Event::Settled { request, outcome: came_of_it, .. } => {
                format!("{request}: {}", outcome(Some(came_of_it)))
            }
            facts::Event::Forgotten { request } => format!("{request} is forgotten"),
        },
    }
}

fn outcome(outcome: Option<&facts::Outcome>) -> String {
    match outcome {
        None => "pending".to_owned(),
        Some(facts::Outcome::Launched(session)) => session.to_string(),
        Some(facts::Outcome::Failed(failure)) => failure.code.to_string(),
    }
}
