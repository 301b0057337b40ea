//! Both ends of the native dialect that the relay has: a client's connection and a machine's.

use domain::passing::Passing;
use domain::session::{Command, Recorded, Word};
use domain::{FailureCode, Principal, Role, SessionId};
use wire::native::{
    Asked, Cache, ClientConnection, Denied, Limits, Output, ProxyConnection, ProxyLimits,
    ProxyOutput, Welcome,
};

use crate::fuzz::chance::Chance;
use crate::fuzz::world::{Open, Peer, World, recorded};

/// What a connection asks for in turn, at most, for one thing that it was told.
const ROUNDS_MAX: usize = 1_000;

pub(crate) struct NativeClient {
    machine: ClientConnection,
    waiting: Vec<Output>,
    denied: Vec<(Asked, Denied)>,
    is_closed: bool,
}

impl NativeClient {
    pub(crate) fn open(world: &mut World) -> Box<dyn Peer> {
        let (person, limits) = (Some(World::person()), Limits::default());
        let machine = ClientConnection::new("conn_1".into(), person, limits, world.now);
        Box::new(Self { machine, waiting: vec![], denied: vec![], is_closed: false })
    }

    fn carry_out(&mut self, world: &mut World, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Send(frame) => world.sent(&frame),
                Output::Close { .. } => self.is_closed = true,
                Output::Session { session, wish, asked } => {
                    let performed = world.say(&session, &Command::Person(World::person(), wish));
                    for event in recorded(&performed) {
                        self.hears(world, &session, event);
                    }
                    if let Err(refusal) = performed.outcome {
                        self.denied.push((asked, Denied::Refused(refusal)));
                    }
                }
                Output::Launch { asked, .. } => {
                    let code = FailureCode::from("no_proxy_connected");
                    self.denied.push((asked, Denied::Code(code, "none".to_owned())));
                }
                later @ (Output::Ask { .. }
                | Output::Join
                | Output::Read(_)
                | Output::Drafts(_)
                | Output::Card { .. }) => self.waiting.push(later),
            }
        }
    }

    fn give(&mut self, world: &mut World, asked: Output) -> Vec<Output> {
        let now = world.now;
        match asked {
            Output::Join => {
                let welcome = Welcome { sessions: world.listings(), launches: vec![] };
                self.machine.on_welcome(&welcome, now)
            }
            Output::Read(job) => match world.page(&job.session, job.after, job.upto, job.limit) {
                Ok(page) => self.machine.on_page(job, page, now),
                Err(denied) => self.machine.on_read_failed(job, denied, now),
            },
            Output::Drafts(session) => {
                let Some(room) = world.rooms.get(&session) else { return vec![] };
                let head = room.session.head();
                self.machine.on_drafts(&session, head, world.drafts(&session))
            }
            Output::Card { session, request } => {
                let listing = world.listings().into_iter().find(|it| it.id == session);
                listing.map(|it| self.machine.on_card(request, &it, now)).unwrap_or_default()
            }
            Output::Ask { question, request } => {
                let denied = Denied::Failed("nobody knows".to_owned());
                self.machine.on_answer(&question, request, Err(denied), now)
            }
            Output::Send(_)
            | Output::Close { .. }
            | Output::Session { .. }
            | Output::Launch { .. } => vec![],
        }
    }
}

impl Peer for NativeClient {
    fn start(&mut self, _world: &mut World) {}

    fn says(&mut self, world: &mut World, text: &str) {
        let outputs = self.machine.on_text(text, &mut Open, world.now);
        self.carry_out(world, outputs);
    }

    fn hears(&mut self, world: &mut World, session: &SessionId, recorded: &Recorded) {
        if !self.is_closed {
            let outputs = self.machine.on_event(session, recorded, &Cache::default());
            self.carry_out(world, outputs);
        }
    }

    fn passes(&mut self, world: &mut World, session: &SessionId, passing: &Passing) {
        if !self.is_closed {
            let outputs = self.machine.on_passing(session, passing, &Cache::default());
            self.carry_out(world, outputs);
        }
    }

    fn lags(&mut self, world: &mut World) {
        let outputs = self.machine.on_lag(world.now);
        self.carry_out(world, outputs);
    }

    fn ticks(&mut self, world: &mut World) {
        let outputs = self.machine.on_tick(world.now);
        self.carry_out(world, outputs);
    }

    fn answer(&mut self, world: &mut World, chance: &mut Chance, all: bool) {
        for _ in 0..ROUNDS_MAX {
            if self.is_closed {
                return;
            }
            if let Some((asked, denied)) = self.denied.pop() {
                let outputs = self.machine.on_denied(asked, denied, world.now);
                self.carry_out(world, outputs);
            }
            if self.waiting.is_empty() {
                if self.denied.is_empty() {
                    return;
                }
                continue;
            }
            let next = self.waiting.remove(chance.place(self.waiting.len()));
            let outputs = self.give(world, next);
            self.carry_out(world, outputs);
            if !all {
                return;
            }
        }
        panic!("it asks and asks");
    }

    fn is_closed(&self) -> bool {
        self.is_closed
    }
}

pub(crate) struct NativeProxy {
    machine: ProxyConnection,
    is_closed: bool,
}

impl NativeProxy {
    pub(crate) fn open(world: &mut World) -> Box<dyn Peer> {
        let person = Principal { role: Role::Proxy, ..World::person() };
        let limits = ProxyLimits {
            heartbeat_interval_ms: 10_000,
            heartbeat_timeout_ms: 30_000,
            hello_timeout_ms: 10_000,
        };
        let machine = ProxyConnection::new("proxy_1".into(), Some(person), limits, world.now);
        Box::new(Self { machine, is_closed: false })
    }

    fn carry_out(&mut self, world: &mut World, outputs: Vec<ProxyOutput>) {
        for output in outputs {
            match output {
                ProxyOutput::Send(frame) => world.sent(&frame),
                ProxyOutput::Close { .. } => self.is_closed = true,
                ProxyOutput::Connected { .. } => {
                    world.sent(&self.machine.on_connected(None, world.now));
                }
                // What a machine says goes into the session, whatever it is.
                ProxyOutput::Report { session, report, .. } => {
                    let (connection, position) = ("proxy_1".into(), None);
                    let said = Command::Proxy(Word { connection, position, report });
                    if world.say(&session, &said).outcome.is_ok() {
                        self.orders(world, &session);
                    }
                }
                ProxyOutput::Named { named } => {
                    for it in named {
                        world.named(it);
                    }
                }
                ProxyOutput::Passing { .. }
                | ProxyOutput::Launched { .. }
                | ProxyOutput::LaunchFailed { .. }
                | ProxyOutput::Offered { .. }
                | ProxyOutput::Conversations { .. }
                | ProxyOutput::Done { .. } => {
                    world.sent(&self.machine.on_ack(1, world.now));
                }
            }
        }
    }

    /// What the session owes its machine.
    fn orders(&mut self, world: &mut World, session: &SessionId) {
        let owed = world.rooms.get(session).map(|room| room.session.owed()).unwrap_or_default();
        for order in owed {
            world.sent(&self.machine.on_order(session, &order, world.now));
        }
    }
}

impl Peer for NativeProxy {
    fn start(&mut self, _world: &mut World) {}

    fn says(&mut self, world: &mut World, text: &str) {
        let outputs = self.machine.on_text(text, world.now);
        self.carry_out(world, outputs);
    }

    fn hears(&mut self, world: &mut World, session: &SessionId, _recorded: &Recorded) {
        self.orders(world, session);
    }

    fn passes(&mut self, _world: &mut World, _session: &SessionId, _passing: &Passing) {}

    fn lags(&mut self, _world: &mut World) {}

    fn ticks(&mut self, world: &mut World) {
        let outputs = self.machine.on_tick(world.now);
        self.carry_out(world, outputs);
    }

    fn answer(&mut self, _world: &mut World, _chance: &mut Chance, _all: bool) {}

    fn is_closed(&self) -> bool {
        self.is_closed
    }
}
