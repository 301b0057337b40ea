//! The simulated world: a relay, proxies and people, and everything that goes wrong between them.
//!
//! One thread, virtual time, chance from the seed. After the troubles everything is made whole
//! again and given time; then [`crate::check`] looks at what is left.

mod steps;

use std::collections::BTreeSet;
use std::time::Duration;

use domain::SessionId;
use relay::ports::Clock as _;
use relay::{Bounds, Policies};
use serde_json::json;
use store::Retention;
use tokio::time::Instant;
use wire::native::Form;

use crate::archive::Archive;
use crate::check::{self, History};
use crate::client_node::{self, ClientNode};
use crate::clock::SimClock;
use crate::credentials::Credentials;
use crate::disk::{FileDisk, SimDisk};
use crate::net::{self, Break, Weather};
use crate::plain_proxy::PlainProxy;
use crate::proxy_node::ProxyNode;
use crate::relay_node::{RelayNode, Settings};
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
    /// What went wrong on purpose: crashes, broken connections, failing disks and the like.
    pub faults: u64,
    /// How long it took in the simulated world.
    pub simulated: Duration,
}

/// Virtual time that a healed world gets to come to rest.
const REST_MS_MAX: u64 = 600_000;
/// Virtual time that it gets at least: longer than any deadline.
const REST_MS_MIN: u64 = 120_000;
/// A world is at rest when its ledgers stay the same for so many looks.
const LOOKS_AT_REST: u32 = 4;
/// Between two of them.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The rings that watchers read from, in bursts: the small one makes them lag.
const RINGS: [usize; 2] = [4, 64];
/// What the ledger may hold in worlds in which it forgets, in bytes.
const RETENTION_BYTES: u64 = 20_000;
/// What was on its way when a credential was revoked has arrived after this.
const REVOKED_AFTER: Duration = Duration::from_millis(200);

struct World {
    rng: Rng,
    clock: SimClock,
    policies: Policies,
    disk: SimDisk,
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
    faults: u64,
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
    let disk = match SimDisk::of(seed, &mut rng) {
        Ok(disk) => disk,
        Err(error) => {
            return Outcome { wrong: vec![format!("no disk: {error}")], ..Outcome::default() };
        }
    };
    let mut world = World::begin(rng, disk, options).await;
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
    async fn begin(rng: Rng, disk: SimDisk, options: Options) -> Self {
        let mut world = Self::made(rng, disk, options.sabotage);
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

    fn made(mut rng: Rng, disk: SimDisk, sabotage: Sabotage) -> Self {
        let clock = SimClock::new();
        let policies = Policies::default();
        let settings = settings(&mut rng, policies, sabotage);
        let archive = Archive::default();
        let credentials = Credentials::new(sabotage == Sabotage::IgnoresRevocations);
        let uploads = SimUploads::default();
        let relay = RelayNode::new(
            settings,
            disk.clone(),
            archive.clone(),
            credentials.clone(),
            uploads.clone(),
            clock.clone(),
        );
        let lies = sabotage == Sabotage::DeliversTwice;
        let proxies: Vec<_> = (0..=rng.below(2))
            .map(|n| {
                let name = format!("machine-{n}");
                ProxyNode::new(&name, lies, uploads.clone(), clock.clone(), rng.fork())
            })
            .collect();
        let plain: Vec<_> =
            (0..u64::from(rng.once_in(3))).map(|n| PlainProxy::new(n, clock.clone())).collect();
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
            clock,
            policies,
            disk,
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
            faults: 0,
            clock_jumps,
            healing: false,
        }
    }

    /// After a loss of power the relay is started again.
    async fn relight(&mut self) {
        if self.disk.files().is_some_and(FileDisk::is_dark) {
            self.note("the power was lost in the middle of a commit");
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
        let principal = self.people[person].principal.clone();
        self.relay.accept_client(far, principal);
        self.people[person].dial(near);
    }

    /// These dialects know no repeats: nothing comes twice on their connections.
    fn dial_visitor(&mut self, visitor: usize) {
        let Some((near, far)) = self.connect(0) else { return };
        let (node, testimony) = (&self.visitors[visitor], Testimony::default());
        let (principal, query) = (node.principal.clone(), node.query());
        self.relay.accept_visitor(far, node.dialect, &principal, &query, testimony.clone());
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

    /// A new connection, if there is a relay. One frame in `twice_in` comes twice; 0: none.
    fn connect(&mut self, twice_in: u64) -> Option<(net::End, net::End)> {
        if !self.relay.is_up() {
            return None;
        }
        let twice_in = if self.healing { 0 } else { twice_in };
        let weather = Weather { delay_ms_max: self.rng.below(80), twice_in };
        let (near, far, broken) = net::connect(weather, &mut self.rng);
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

    /// No more troubles: everything comes back and comes to rest.
    async fn heal(&mut self) {
        self.note("the troubles end");
        self.healing = true;
        self.disk.heal();
        let begun = Instant::now();
        let (mut heads, mut looks) = (vec![], 0);
        loop {
            self.relight().await;
            if !self.relay.is_up() {
                self.relay.start().await;
            }
            for proxy in &mut self.proxies {
                proxy.away_until = None;
            }
            self.settle();
            self.reconnect();
            self.notice_launches();
            tokio::time::sleep(LOOK_EVERY).await;
            let now = self.relay.heads();
            looks = if now == heads { looks + 1 } else { 0 };
            heads = now;
            let elapsed = begun.elapsed();
            let is_quiet = looks >= LOOKS_AT_REST && self.everybody_was_answered();
            if elapsed > Duration::from_millis(REST_MS_MIN) && is_quiet {
                return;
            }
            if elapsed > Duration::from_millis(REST_MS_MAX) {
                self.note("the world did not come to rest");
                return;
            }
        }
    }

    /// People answer what is open, and let go what an interrupt held.
    fn settle(&mut self) {
        for person in &self.people {
            person.does(client_node::Deed::Answer);
        }
        for session in self.sessions.iter().chain(&self.launched) {
            let resume = json!({
                "type": "queue_resume",
                "protocol_version": 1,
                "session_id": session,
            });
            self.people[0].does(client_node::Deed::Control(resume));
        }
        for visitor in &self.visitors {
            let mut state = visitor.lock();
            let is_lost = state.lives.last().is_none_or(|it| it.testimony.lock().views.is_empty());
            if state.is_connected && is_lost {
                // It came before its session did, and its dialect does not look again.
                state.is_connected = false;
                drop(state);
                visitor.does(visitor_node::Deed::HangUp);
            }
        }
    }

    fn everybody_was_answered(&self) -> bool {
        let people = self.people.iter().filter(|person| !person.is_revoked);
        people.map(|person| person.look(|seen| seen.unconfirmed)).all(|open| open == 0)
    }

    async fn judge(mut self, tells_ledgers: bool) -> Outcome {
        self.relay.crash();
        let mut outcome = Outcome { faults: self.faults, ..Outcome::default() };
        outcome.sends = self.sent.len() as u64;
        match self.histories().await {
            Err(fault) => outcome.wrong.push(format!("the ledger cannot be read: {fault}")),
            Ok(read) => {
                let (mut histories, mut unread) = (vec![], vec![]);
                for history in read {
                    match history {
                        Ok(history) => histories.push(history),
                        Err(wrong) => unread.extend(wrong),
                    }
                }
                outcome.wrong.extend(unread);
                outcome.wrong.extend(histories.iter().flat_map(|history| self.check(history)));
                outcome.wrong.extend(self.check_people());
                outcome.events = histories.iter().map(|history| history.events.len()).sum();
                if tells_ledgers || !outcome.wrong.is_empty() {
                    let lines = |it: &History| {
                        let session = it.session.clone();
                        let line = move |event| format!("{session}: {event:?}");
                        it.events.iter().map(line).collect::<Vec<_>>()
                    };
                    outcome.ledger = histories.iter().flat_map(lines).collect();
                    outcome.shown = self.shown();
                }
            }
        }
        outcome.trace = self.trace;
        outcome
    }

    /// Every session's history, or what is wrong about its not being there.
    async fn histories(&self) -> Result<Vec<Result<History, Option<String>>>, store::Fault> {
        let ledger = loop {
            match self.disk.open() {
                Err(store::Fault::Locked { .. }) => tokio::task::yield_now().await,
                opened => break opened?,
            }
        };
        let mut reader = ledger.reader()?;
        let mut histories = vec![];
        for id in self.sessions.iter().chain(&self.launched) {
            let session = SessionId::from(id.as_str());
            let read = check::read(reader.as_mut(), &self.archive, &session);
            let is_damaged = self.damaged.as_ref() == Some(&session);
            histories.push(match read {
                Ok(history) if is_damaged && !self.is_as_before(&history) => {
                    Err(Some(format!("{session}: a flipped bit was not noticed")))
                }
                Ok(history) => Ok(history),
                Err(store::Fault::Corrupt { stream, .. })
                    if is_damaged && stream.as_ref() == Some(&session) =>
                {
                    Err(None)
                }
                Err(fault) => Err(Some(format!("{session} cannot be read: {fault}"))),
            });
        }
        Ok(histories)
    }

    /// Whether a history is what it was before a bit of it was flipped, as far as that went.
    fn is_as_before(&self, history: &History) -> bool {
        let before = self.archive.before(&history.session, u64::MAX);
        history.events.iter().zip(&before).all(|(now, before)| now == before)
    }

    fn check(&self, history: &History) -> Vec<String> {
        let session = &history.session;
        if self.erased.contains(session.as_str()) && !history.is_erased {
            let first = history.events.first();
            return vec![format!("{session}: was erased and is there, with {first:?}")];
        }
        let mut wrong = check::check_ledger(history);
        wrong.extend(check::check_agent(history, &self.received(&history.session)));
        if !self.clock_jumps {
            let grace_ms = self.policies.session.send_grace_ms;
            wrong.extend(check::check_deadlines(history, grace_ms));
        }
        let due = [Form::Full, Form::Plain].map(|form| check::due(history, form));
        for person in &self.people {
            let name = person.principal.name.as_str();
            let to_the_end = !person.is_revoked && !history.is_erased;
            let (due, check) = (&due[usize::from(!person.is_full)], check::check_client);
            wrong.extend(person.look(|seen| check(name, history, due, seen, to_the_end)));
        }
        for visitor in &self.visitors {
            let (name, dialect) = (visitor.principal.name.as_str(), visitor.dialect);
            let to_the_end = !visitor.is_revoked;
            let lives = &visitor.lock().lives;
            wrong.extend(check::check_visitor(name, dialect, history, lives, to_the_end));
        }
        wrong
    }

    /// What each visitor heard, for whoever looks for what went wrong.
    fn shown(&self) -> Vec<String> {
        let mut shown = vec![];
        for visitor in &self.visitors {
            let name = &visitor.principal.name;
            for (number, life) in visitor.lock().lives.iter().enumerate() {
                shown.push(format!("{name}, connection {number}, after {:?}", life.after));
                let frames = life.frames.iter().map(|frame| String::from_utf8_lossy(frame));
                shown.extend(frames.map(|frame| format!("    {frame}")));
            }
        }
        shown
    }

    fn received(&self, session: &SessionId) -> Vec<(domain::MessageId, String)> {
        let plain = self.plain.iter().find(|plain| plain.session() == session);
        if let Some(plain) = plain {
            return plain.received();
        }
        let lines = self.proxies.iter().flat_map(|proxy| proxy.received(session));
        lines.map(|line| (line.id, line.text)).collect()
    }

    fn check_people(&self) -> Vec<String> {
        let mut wrong = vec![];
        for person in &self.people {
            let name = &person.principal.name;
            let (open, too_much) = person.look(|seen| (seen.unconfirmed, seen.heard_too_much));
            // To a session that refuses, nothing can be said.
            if open > 0 && !person.is_revoked && self.damaged.is_none() {
                wrong.push(format!("{name}: {open} sends were never answered"));
            }
            if too_much > 0 {
                wrong.push(format!("{name}: heard {too_much} frames after its revocation"));
            }
        }
        for visitor in &self.visitors {
            let (name, too_much) = (&visitor.principal.name, visitor.lock().heard_too_much);
            if too_much > 0 {
                wrong.push(format!("{name}: heard {too_much} frames after its revocation"));
            }
        }
        let launched = self.launched.len() as u64;
        if launched > self.launches {
            wrong.push(format!("{} launches led to {launched} sessions", self.launches));
        }
        wrong
    }

    fn note(&mut self, what: &str) {
        let at_ms = self.clock.now().0 % 100_000_000;
        self.trace.push(format!("{at_ms:>9} {what}"));
    }
}
