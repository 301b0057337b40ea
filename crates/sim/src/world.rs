//! The simulated world: a relay, proxies and people, and everything that goes wrong between them.
//!
//! One thread, virtual time, chance from the seed. After the troubles everything is made whole
//! again and given time; then [`crate::check`] looks at what is left.
//!
//! Not here: what people do and what breaks (`steps`), the way to rest (`rest`), what is compared
//! then (`judge`), what is counted then (`counts`).

mod counts;
mod judge;
mod rest;
mod steps;

use std::collections::BTreeSet;
use std::time::Duration;

use domain::SessionId;
use relay::ports::Clock as _;
use relay::{Bounds, Policies};
use store::Retention;
use tokio::time::Instant;

use crate::archive::Archive;
use crate::client_node::{self, ClientNode};
use crate::clock::SimClock;
use crate::credentials::Credentials;
use crate::disk::{FileDisk, Flaws, SimDisk};
use crate::effects::{Effect, Effects, Met};
use crate::net::{self, Break, Weather};
use crate::plain_proxy::PlainProxy;
use crate::proxy_node::ProxyNode;
use crate::relay_node::{RelayNode, Settings, Surroundings};
use crate::rng::Rng;
use crate::sabotage::Sabotage;
use crate::uploads::SimUploads;
use crate::visitor_node::{self, Dialect, VisitorNode};
use crate::witness::Testimony;

/// How a world is made.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Troubles and deeds.
    pub steps: u64,
    /// What is broken on purpose.
    pub sabotage: Sabotage,
    /// Whether the outcome has the ledgers although nothing was violated.
    pub tells_ledgers: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { steps: 80, sabotage: Sabotage::None, tells_ledgers: false }
    }
}

/// What a run came to.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What was violated; empty when all is well.
    pub wrong: Vec<String>,
    /// What happened, step by step.
    pub trace: Vec<String>,
    /// The ledgers at the end, if something was violated or they were asked for.
    pub ledger: Vec<String>,
    /// The same of what the clients of other dialects heard, connection by connection.
    pub shown: Vec<String>,
    /// Sends that were tried.
    pub sends: u64,
    /// Events in the ledgers at the end.
    pub events: usize,
    /// What really happened: every fault that took effect, and every rare path.
    pub met: Met,
    /// How long it took in the simulated world.
    pub simulated: Duration,
}

/// The rings that watchers read from, in bursts: the small one makes them lag.
const RINGS: [usize; 2] = [4, 64];
/// What the ledger may hold in worlds in which it forgets, in bytes.
const RETENTION_BYTES: u64 = 20_000;
/// One client connection in so many is slow: what it is sent at once takes up to so long.
const SLOW_ONE_IN: u64 = 5;
const SLOWNESS_MS_MAX: u64 = 1_500;
/// What was on its way when a credential was revoked has arrived after this.
const REVOKED_AFTER: Duration = Duration::from_millis(200);

struct World {
    rng: Rng,
    effects: Effects,
    clock: SimClock,
    policies: Policies,
    disk: SimDisk,
    flaws: Flaws,
    archive: Archive,
    credentials: Credentials,
    uploads: SimUploads,
    relay: RelayNode,
    proxies: Vec<ProxyNode>,
    plain: Vec<PlainProxy>,
    people: Vec<ClientNode>,
    visitors: Vec<VisitorNode>,
    breaks: Vec<Break>,
    /// Those that are there from the start.
    sessions: Vec<String>,
    /// Those that people started.
    launched: BTreeSet<String>,
    launches: u64,
    closed: BTreeSet<String>,
    erased: BTreeSet<String>,
    /// A session in whose words a bit was flipped on the disk.
    damaged: Option<SessionId>,
    sent: Vec<(String, String, String)>,
    trace: Vec<String>,
    /// What was wrong before the ledgers were looked at.
    wrong: Vec<String>,
    probes: Vec<rest::Probe>,
    clock_jumps: bool,
    healing: bool,
}

/// Runs one world from its seed.
pub fn run(seed: u64, options: Options) -> Outcome {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    match runtime {
        Ok(runtime) => runtime.block_on(live(seed, options)),
        Err(error) => Outcome { wrong: vec![format!("no runtime: {error}")], ..Outcome::default() },
    }
}

async fn live(seed: u64, options: Options) -> Outcome {
    let begun = Instant::now();
    let mut rng = Rng::new(seed);
    let effects = Effects::default();
    let disk = match SimDisk::of(seed, &mut rng, effects.clone()) {
        Ok(disk) => disk,
        Err(error) => {
            return Outcome { wrong: vec![format!("no disk: {error}")], ..Outcome::default() };
        }
    };
    let mut world = World::begin(rng, effects, disk, options).await;
    for step in 0..options.steps {
        world.step(step).await;
        let pause = world.rng.below(400);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        world.relight().await;
        world.reconnect();
        world.notice_launches();
    }
    world.heal().await;
    let mut outcome = world.judge(options.tells_ledgers).await;
    outcome.simulated = begun.elapsed();
    outcome
}

/// What the relay of a world is like.
fn settings(rng: &mut Rng, mut policies: Policies, sabotage: Sabotage) -> Settings {
    if sabotage == Sabotage::ForgetsDeadlines {
        policies.session.send_grace_ms = u64::MAX / 4;
    }
    let size_bytes_max = rng.once_in(5).then_some(RETENTION_BYTES);
    let ring_bursts = RINGS[usize::from(rng.once_in(3))];
    Settings {
        policies,
        bounds: Bounds { ring_bursts, snapshot_every_events: 16 + rng.below(48) },
        retention: Retention { age_ms_max: None, size_bytes_max },
        sabotage,
    }
}

impl World {
    /// A world in which everybody who can has arrived.
    async fn begin(rng: Rng, effects: Effects, disk: SimDisk, options: Options) -> Self {
        let mut world = Self::made(rng, effects, disk, options.sabotage);
        world.relay.start().await;
        // A person can follow a session only once the relay has heard of it.
        for machine in 0..world.proxies.len() {
            world.dial_proxy(machine);
        }
        for machine in 0..world.plain.len() {
            world.dial_plain(machine);
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        world.reconnect();
        world
    }

    fn made(mut rng: Rng, effects: Effects, disk: SimDisk, sabotage: Sabotage) -> Self {
        let clock = SimClock::new();
        let policies = Policies::default();
        let settings = settings(&mut rng, policies, sabotage);
        let archive = Archive::default();
        let credentials = Credentials::new(sabotage == Sabotage::IgnoresRevocations);
        let uploads = SimUploads::default();
        let flaws = Flaws::new(effects.clone());
        let around = Surroundings {
            disk: disk.clone(),
            flaws: flaws.clone(),
            archive: archive.clone(),
            credentials: credentials.clone(),
            uploads: uploads.clone(),
            clock: clock.clone(),
            effects: effects.clone(),
        };
        let relay = RelayNode::new(settings, around);
        let lies = sabotage == Sabotage::DeliversTwice;
        let proxies: Vec<_> = (0..=rng.below(2))
            .map(|n| {
                let name = format!("machine-{n}");
                ProxyNode::new(&name, lies, uploads.clone(), clock.clone(), rng.fork())
            })
            .collect();
        let plain: Vec<_> = (0..u64::from(rng.once_in(3)))
            .map(|n| PlainProxy::new(n, clock.clone(), effects.clone(), &mut rng))
            .collect();
        let own = proxies.iter().flat_map(ProxyNode::sessions);
        let sessions = own.chain(plain.iter().map(|it| it.session().clone()));
        let sessions: Vec<String> = sessions.map(|session| session.to_string()).collect();
        let people = (0..2 + rng.below(2))
            .map(|n| {
                let is_full = n == 0 || !rng.once_in(4);
                ClientNode::spawn(&format!("person-{n}"), is_full, &sessions, clock.clone())
            })
            .collect();
        let visitors = (0..=rng.below(3))
            .filter_map(|number| {
                let dialect = *rng.pick(&Dialect::ALL)?;
                let session = rng.pick(&sessions)?.clone();
                let number = usize::try_from(number).unwrap_or_default();
                Some(VisitorNode::spawn(number, dialect, &session, &credentials, &mut rng))
            })
            .collect();
        let clock_jumps = rng.once_in(2);
        Self {
            rng,
            effects,
            clock,
            policies,
            disk,
            flaws,
            archive,
            credentials,
            uploads,
            relay,
            proxies,
            plain,
            people,
            visitors,
            breaks: vec![],
            sessions,
            launched: BTreeSet::new(),
            launches: 0,
            closed: BTreeSet::new(),
            erased: BTreeSet::new(),
            damaged: None,
            sent: vec![],
            trace: vec![],
            wrong: vec![],
            probes: vec![],
            clock_jumps,
            healing: false,
        }
    }

    /// After a loss of power, or a start that failed, the relay is started again.
    async fn relight(&mut self) {
        if !self.relay.is_up() {
            self.relay.start().await;
        } else if self.disk.files().is_some_and(FileDisk::is_dark) {
            self.note("the power was lost");
            self.relay.crash();
            self.relay.start().await;
        }
    }

    /// Whoever is not connected tries again, most of the time.
    fn reconnect(&mut self) {
        for person in 0..self.people.len() {
            let connected = self.people[person].look(|seen| seen.connected);
            let may_dial = !connected && !self.people[person].is_revoked;
            if may_dial && (self.healing || !self.rng.once_in(4)) {
                self.dial_person(person);
            }
        }
        for visitor in 0..self.visitors.len() {
            let connected = self.visitors[visitor].lock().is_connected;
            let may_dial = !connected && !self.visitors[visitor].is_revoked;
            if may_dial && (self.healing || !self.rng.once_in(4)) {
                self.dial_visitor(visitor);
            }
        }
        for machine in 0..self.proxies.len() {
            if self.proxies[machine].is_dead() {
                self.note(&format!("proxy {machine} had died and starts again"));
                self.effects.count(Effect::ProxyDied);
                self.proxies[machine].restart();
            }
            if self.proxies[machine].wants_connection() && (self.healing || !self.rng.once_in(4)) {
                self.dial_proxy(machine);
            }
        }
        for machine in 0..self.plain.len() {
            if self.plain[machine].wants_connection() && (self.healing || !self.rng.once_in(4)) {
                self.dial_plain(machine);
            }
        }
    }

    fn dial_person(&mut self, person: usize) {
        let Some((near, far)) = self.connect(20) else { return };
        let (slowness, principal) = (self.slowness(), self.people[person].principal.clone());
        self.relay.accept_client(far, slowness, principal);
        self.people[person].dial(near);
    }

    /// These dialects know no repeats: nothing comes twice on their connections.
    fn dial_visitor(&mut self, visitor: usize) {
        let Some((near, far)) = self.connect(0) else { return };
        // This one says goodbye in words: how long they take is not tried here.
        let speaks_last = self.visitors[visitor].dialect == Dialect::Webchannel;
        let slowness = if speaks_last { Duration::ZERO } else { self.slowness() };
        let (node, testimony) = (&self.visitors[visitor], Testimony::default());
        let (principal, query, heard) = (node.principal.clone(), node.query(), testimony.clone());
        self.relay.accept_visitor(far, slowness, node.dialect, &principal, &query, heard);
        node.lock().is_connected = true;
        node.does(visitor_node::Deed::Dial(near, testimony));
    }

    fn dial_proxy(&mut self, machine: usize) {
        let Some((near, far)) = self.connect(20) else { return };
        self.relay.accept_proxy(far, self.proxies[machine].machine());
        self.proxies[machine].dial(near);
    }

    fn dial_plain(&mut self, machine: usize) {
        let Some((near, far)) = self.connect(0) else { return };
        self.relay.accept_proxy(far, self.plain[machine].name());
        self.plain[machine].dial(near);
    }

    /// How long everything that goes out at once takes, on one client connection in so many.
    fn slowness(&mut self) -> Duration {
        let is_slow = !self.healing && self.rng.once_in(SLOW_ONE_IN);
        Duration::from_millis(if is_slow { self.rng.below(SLOWNESS_MS_MAX) } else { 0 })
    }

    /// A new connection, if there is a relay. One frame in `twice_in` comes twice; 0: none.
    fn connect(&mut self, twice_in: u64) -> Option<(net::End, net::End)> {
        if !self.relay.is_up() {
            return None;
        }
        let twice_in = if self.healing { 0 } else { twice_in };
        let weather = Weather { delay_ms_max: self.rng.below(80), twice_in };
        let (near, far, broken) = net::connect(weather, &mut self.rng, &self.effects);
        self.breaks.retain(Break::is_live);
        self.breaks.push(broken);
        Some((near, far))
    }

    /// People look at the sessions that came from launches.
    fn notice_launches(&mut self) {
        let there: Vec<_> = self.proxies.iter().flat_map(ProxyNode::sessions).collect();
        for session in there {
            let session = session.to_string();
            if !self.sessions.contains(&session) && self.launched.insert(session.clone()) {
                self.note(&format!("{session} was launched"));
                for person in &self.people {
                    person.does(client_node::Deed::Follow(session.clone()));
                }
            }
        }
    }

    fn note(&mut self, what: &str) {
        let at_ms = self.clock.now().0 % 100_000_000;
        self.trace.push(format!("{at_ms:>9} {what}"));
    }
}
