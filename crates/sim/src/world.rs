//! The simulated world: a relay, proxies and people, and everything that goes wrong between them.
//!
//! One thread, virtual time, chance from the seed. After the troubles everything is made whole
//! again and given time; then [`crate::check`] looks at what is left.

use std::time::Duration;

use domain::SessionId;
use relay::Policies;
use serde_json::json;
use store::{Failure, MemoryDisk};

use crate::check;
use crate::client_node::{ClientNode, Deed};
use crate::clock::SimClock;
use crate::net::{self, Break, Weather};
use crate::proxy_node::ProxyNode;
use crate::relay_node::RelayNode;
use crate::rng::Rng;
use crate::sabotage::Sabotage;

/// How a world is made.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Troubles and deeds.
    pub steps: u64,
    /// What is broken on purpose.
    pub sabotage: Sabotage,
}

impl Default for Options {
    fn default() -> Self {
        Self { steps: 80, sabotage: Sabotage::None }
    }
}

/// What a run came to.
#[derive(Debug)]
pub struct Outcome {
    /// What was violated; empty when all is well.
    pub wrong: Vec<String>,
    /// What happened, step by step.
    pub trace: Vec<String>,
    /// The ledgers at the end, when something was violated.
    pub ledger: Vec<String>,
    /// Sends that were tried.
    pub sends: u64,
    /// Events in the ledgers at the end.
    pub events: usize,
}

/// Virtual time that a healed world gets to come to rest.
const REST_MS_MAX: u64 = 600_000;

const WORDS: [&str; 10] = [
    "hello",
    "say: one two three",
    "slow: 5",
    "ask: rm -rf target",
    "tool: read",
    "think: hard",
    "fail: send_rejected",
    "degrade",
    "recover",
    "say: four five six seven eight nine ten",
];

struct World {
    rng: Rng,
    clock: SimClock,
    disk: MemoryDisk,
    relay: RelayNode,
    proxies: Vec<ProxyNode>,
    people: Vec<ClientNode>,
    breaks: Vec<Break>,
    sessions: Vec<String>,
    sent: Vec<(String, String, String)>,
    trace: Vec<String>,
    healing: bool,
}

/// Runs one world from its seed.
pub fn run(seed: u64, options: Options) -> Outcome {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    match runtime {
        Ok(runtime) => runtime.block_on(live(seed, options)),
        Err(error) => {
            let wrong = vec![format!("no runtime: {error}")];
            Outcome { wrong, trace: vec![], ledger: vec![], sends: 0, events: 0 }
        }
    }
}

async fn live(seed: u64, options: Options) -> Outcome {
    let mut world = World::begin(seed, options).await;
    for step in 0..options.steps {
        world.step(step).await;
        let pause = world.rng.below(400);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        world.reconnect();
    }
    world.heal().await;
    world.judge().await
}

impl World {
    async fn begin(seed: u64, options: Options) -> Self {
        let mut rng = Rng::new(seed);
        let (clock, disk) = (SimClock::new(), MemoryDisk::new());
        let policies = Policies::default();
        let mut relay = RelayNode::new(disk.clone(), clock.clone(), policies, options.sabotage);
        relay.start().await;
        let machines = 1 + rng.below(2);
        let proxies: Vec<_> = (0..machines)
            .map(|n| ProxyNode::new(&format!("machine-{n}"), clock.clone(), rng.fork()))
            .collect();
        let sessions: Vec<_> = proxies.iter().map(|proxy| proxy.session().to_string()).collect();
        let people = (0..2 + rng.below(2))
            .map(|n| ClientNode::spawn(&format!("person-{n}"), &sessions, clock.clone()))
            .collect();
        let mut world = Self {
            rng,
            clock,
            disk,
            relay,
            proxies,
            people,
            breaks: vec![],
            sessions,
            sent: vec![],
            trace: vec![],
            healing: false,
        };
        // A person can follow a session only once the relay has heard of it.
        for machine in 0..world.proxies.len() {
            world.dial_proxy(machine);
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        for person in 0..world.people.len() {
            world.dial_person(person);
        }
        world
    }

    async fn step(&mut self, step: u64) {
        match self.rng.below(100) {
            0..40 => self.send(step),
            40..48 => self.send_again(),
            48..56 => self.one_person(Deed::Answer, "answers"),
            56..61 => self.control(step),
            61..67 => self.one_person(Deed::HangUp, "hangs up"),
            67..74 => self.break_something(),
            74..79 => self.crash_relay().await,
            79..86 => self.crash_proxy().await,
            86..92 => self.fail_disk(),
            92..95 => self.jump_clock(),
            _ => {
                self.note("a while passes");
                tokio::time::sleep(Duration::from_secs(self.rng.below(45))).await;
            }
        }
    }

    fn send(&mut self, step: u64) {
        let (Some(session), Some(words)) =
            (self.rng.pick(&self.sessions).cloned(), self.rng.pick(&WORDS).copied())
        else {
            return;
        };
        let id = format!("m{step}");
        self.sent.push((session.clone(), id.clone(), words.to_owned()));
        self.note(&format!("somebody sends {id} {words:?} to {session}"));
        let text = words.to_owned();
        self.one_person(Deed::Send { session, id, text }, "sends");
    }

    /// The same id again, perhaps from somebody else.
    fn send_again(&mut self) {
        let Some((session, id, text)) = self.rng.pick(&self.sent).cloned() else { return };
        self.note(&format!("somebody sends {id} again"));
        self.one_person(Deed::Send { session, id, text }, "sends again");
    }

    fn control(&mut self, step: u64) {
        let Some(session) = self.rng.pick(&self.sessions).cloned() else { return };
        let kind = self.rng.below(3);
        let request = format!("r{step}");
        let mut frame = json!({
            "type": "agent_interrupt",
            "protocol_version": 1,
            "request_id": request,
            "session_id": session,
        });
        if kind == 1 {
            frame["type"] = json!("agent_set_model");
            frame["model_id"] = json!("demo-large");
        } else if kind == 2 {
            frame["type"] = json!("queue_resume");
        }
        self.note(&format!("somebody asks {}", frame["type"]));
        self.one_person(Deed::Control(frame), "controls");
    }

    fn one_person(&mut self, deed: Deed, what: &str) {
        let index = self.rng.below(self.people.len() as u64);
        self.note(&format!("person {index} {what}"));
        if let Some(person) = usize::try_from(index).ok().and_then(|i| self.people.get(i)) {
            person.does(deed);
        }
    }

    fn break_something(&mut self) {
        let silent = self.rng.once_in(3);
        let Some(broken) = self.rng.pick(&self.breaks).cloned() else { return };
        if silent {
            broken.silence();
        } else {
            broken.cut();
        }
        self.note(if silent { "a connection goes silent" } else { "a connection is cut" });
    }

    async fn crash_relay(&mut self) {
        self.note("the relay crashes");
        self.relay.crash();
        tokio::time::sleep(Duration::from_millis(self.rng.below(3_000))).await;
        self.relay.start().await;
    }

    async fn crash_proxy(&mut self) {
        let index = usize::try_from(self.rng.below(self.proxies.len() as u64)).unwrap_or_default();
        self.note(&format!("proxy {index} crashes"));
        self.proxies[index].crash();
        tokio::time::sleep(Duration::from_millis(self.rng.below(3_000))).await;
        self.proxies[index].restart();
    }

    fn fail_disk(&mut self) {
        let failure = match self.rng.below(3) {
            0 => Failure::BeforeCommit,
            1 => Failure::AfterCommit,
            _ => Failure::Full,
        };
        self.note(&format!("the disk will fail: {failure:?}"));
        self.disk.fail_next(failure);
    }

    fn jump_clock(&mut self) {
        let by_ms = i64::try_from(self.rng.below(120_000)).unwrap_or_default() - 60_000;
        self.note(&format!("the clock jumps by {by_ms} ms"));
        self.clock.jump(by_ms);
    }

    /// Whoever is not connected tries again, most of the time.
    fn reconnect(&mut self) {
        for person in 0..self.people.len() {
            let connected = self.people[person].look(|seen| seen.connected);
            if !connected && (self.healing || !self.rng.once_in(4)) {
                self.dial_person(person);
            }
        }
        for machine in 0..self.proxies.len() {
            if self.proxies[machine].is_dead() {
                self.note(&format!("proxy {machine} had died and starts again"));
                self.proxies[machine].restart();
            }
            if self.proxies[machine].wants_connection() && (self.healing || !self.rng.once_in(4)) {
                self.dial_proxy(machine);
            }
        }
    }

    fn dial_person(&mut self, person: usize) {
        if !self.relay.is_up() {
            return;
        }
        let (near, far, broken) = net::connect(self.weather(), &mut self.rng);
        self.breaks.push(broken);
        self.relay.accept_client(far, &format!("person-{person}"));
        self.people[person].dial(near);
    }

    fn dial_proxy(&mut self, machine: usize) {
        if !self.relay.is_up() {
            return;
        }
        let (near, far, broken) = net::connect(self.weather(), &mut self.rng);
        self.breaks.push(broken);
        self.relay.accept_proxy(far, &format!("machine-{machine}"));
        self.proxies[machine].dial(near);
    }

    fn weather(&mut self) -> Weather {
        let twice_in = if self.healing { 0 } else { 20 };
        Weather { delay_ms_max: self.rng.below(80), twice_in }
    }

    /// No more troubles: everything comes back and comes to rest.
    async fn heal(&mut self) {
        self.note("the troubles end");
        self.healing = true;
        self.disk.heal();
        let begun = tokio::time::Instant::now();
        loop {
            if !self.relay.is_up() {
                self.relay.start().await;
            }
            self.reconnect();
            for person in &self.people {
                person.does(Deed::Answer);
            }
            // An interrupt held the queue: what waits goes on when somebody says so.
            for session in self.sessions.clone() {
                let resume = json!({
                    "type": "queue_resume",
                    "protocol_version": 1,
                    "session_id": session,
                });
                self.people[0].does(Deed::Control(resume));
            }
            tokio::time::sleep(Duration::from_secs(5)).await;
            let elapsed = begun.elapsed();
            if elapsed > Duration::from_secs(120) && self.is_at_rest() {
                return;
            }
            if elapsed > Duration::from_millis(REST_MS_MAX) {
                self.note("the world did not come to rest");
                return;
            }
        }
    }

    fn is_at_rest(&self) -> bool {
        let confirmed = |person: &ClientNode| person.look(|seen| seen.unconfirmed == 0);
        let mut same = self.people.iter().map(|person| person.look(|seen| seen.cursors.clone()));
        let first = same.next();
        self.people.iter().all(confirmed) && same.all(|cursors| Some(cursors) == first)
    }

    async fn judge(mut self) -> Outcome {
        self.relay.crash();
        let sessions: Vec<SessionId> = self.sessions.iter().map(|id| id.as_str().into()).collect();
        let histories = loop {
            match check::read(&self.disk, &sessions) {
                Ok(histories) => break Ok(histories),
                Err(words) if words.contains("in use") => tokio::task::yield_now().await,
                Err(words) => break Err(words),
            }
        };
        let mut wrong = vec![];
        let (mut events, mut ledger) = (0, vec![]);
        match histories {
            Err(words) => wrong.push(format!("the ledger cannot be read: {words}")),
            Ok(histories) => {
                for (history, proxy) in histories.iter().zip(&self.proxies) {
                    events += history.events.len();
                    ledger.extend(history.events.iter().map(|recorded| format!("{recorded:?}")));
                    wrong.extend(check::check_ledger(history));
                    wrong.extend(check::check_agent(history, &proxy.received()));
                    for (number, person) in self.people.iter().enumerate() {
                        let name = format!("person-{number}");
                        wrong.extend(person.look(|seen| check::check_client(&name, history, seen)));
                    }
                }
            }
        }
        for (number, person) in self.people.iter().enumerate() {
            let open = person.look(|seen| seen.unconfirmed);
            if open > 0 {
                wrong.push(format!("person-{number}: {open} sends were never answered"));
            }
        }
        let sends = self.sent.len() as u64;
        if wrong.is_empty() {
            ledger.clear();
        }
        Outcome { wrong, trace: self.trace, ledger, sends, events }
    }

    fn note(&mut self, what: &str) {
        use relay::ports::Clock;
        let at_ms = self.clock.now().0 % 100_000_000;
        self.trace.push(format!("{at_ms:>9} {what}"));
    }
}
