//! A relay of one thread and no disk: real sessions, real connections of one dialect, and a shell
//! that answers at once, or when it is told to.
//!
//! Not here: what is a dialect's own, which its `relay.rs` adds.

pub(crate) mod machine;
mod room;
pub(crate) mod script;

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use bytes::Bytes;
use domain::content::{Attachment, Usage};
use domain::fleet::LaunchWish;
use domain::session::status::{Health, Meta, Via};
use domain::session::{Change, Command, Event, Performed, Policy, Recorded, runs};
use domain::{ConnectionId, Principal, Refusal, Role, Sequence, SessionId, Timestamp};
use serde_json::Value;
use wire::port::{Denied, Listing, PageOf, Throttle};
use wire::visitor::{Act, Answer, Encoded, Followed, Visitor};

pub(crate) use self::room::Room;

/// What differs from dialect to dialect.
pub(crate) trait Shell: Sized {
    /// When everything begins.
    const START: Timestamp;
    /// The session that is there from the start.
    const SESSION: &'static str;
    /// What a client has besides its connection.
    type Own: Default;

    /// A connection of this dialect, and what its client has.
    fn connect(
        stage: &Stage<Self>,
        connection: ConnectionId,
        name: &str,
        query: &str,
    ) -> (Box<dyn Visitor>, Self::Own);

    /// Carries out what not every dialect asks for; `None` where the answer comes later. Whatever
    /// this dialect never asks for must panic.
    fn carry_out(stage: &mut Stage<Self>, name: &str, act: Act) -> Option<(u64, Answer)>;

    /// What a run takes.
    fn usage() -> Option<Usage> {
        Some(Usage {
            input_tokens: Some(900),
            output_tokens: Some(80),
            cached_tokens: Some(700),
            cost_micro_usd: Some(12_500),
        })
    }

    /// Whether a session can be followed.
    fn has(&self, _session: &SessionId) -> bool {
        true
    }

    /// A client heard something.
    fn hear(_own: &mut Self::Own, _frame: &Value) {}

    /// What a client says where a transcript has this.
    fn said(_own: &mut Self::Own, _name: &str, frame: &str) -> String {
        frame.to_owned()
    }

    /// What a client makes of what it heard, for a transcript.
    fn seen(_own: &Self::Own, heard: Value) -> Value {
        heard
    }
}

/// Counts what it lets through.
#[derive(Default)]
pub(crate) struct Gauge {
    pub(crate) frames_left: Option<u32>,
    pub(crate) sends_left: Option<u32>,
}

impl Throttle for Gauge {
    fn frame(&mut self, _: Timestamp) -> bool {
        take(&mut self.frames_left)
    }
    fn send(&mut self, _: Timestamp) -> bool {
        take(&mut self.sends_left)
    }
}

fn take(left: &mut Option<u32>) -> bool {
    let Some(left) = left else { return true };
    let lets = *left > 0;
    *left = left.saturating_sub(1);
    lets
}

/// A client and its connection.
pub(crate) struct Client<O> {
    pub(crate) machine: Box<dyn Visitor>,
    pub(crate) gauge: Gauge,
    pub(crate) heard: Vec<Value>,
    pub(crate) bytes: Vec<Bytes>,
    pub(crate) closed: Option<u16>,
    pub(crate) own: O,
    following: Option<SessionId>,
    /// Events that it is not shown yet, if it is slow.
    missed: Option<Vec<Recorded>>,
}

impl<O> Deref for Client<O> {
    type Target = O;
    fn deref(&self) -> &O {
        &self.own
    }
}

impl<O> DerefMut for Client<O> {
    fn deref_mut(&mut self) -> &mut O {
        &mut self.own
    }
}

/// The relay.
pub(crate) struct Stage<S: Shell> {
    pub(crate) shell: S,
    pub(crate) now: Timestamp,
    pub(crate) clients: BTreeMap<String, Client<S::Own>>,
    pub(crate) rooms: BTreeMap<SessionId, Room>,
    /// The session that the machine speaks of.
    pub(crate) here: SessionId,
    /// Answers of the shell that do not come until asked for.
    pub(crate) is_slow: bool,
    pub(crate) stored: Vec<Bytes>,
    pub(crate) launched: Vec<LaunchWish>,
    pub(crate) wishes: usize,
    pub(crate) late: Vec<(String, u64, Answer)>,
    pub(crate) count: u64,
}

/// Who: `v…` a viewer, `n…` nobody, others operators.
pub(crate) fn person(name: &str) -> Option<Principal> {
    let letter = &name[..1];
    let role = if letter == "v" { Role::Viewer } else { Role::Operator };
    (letter != "n").then(|| Principal {
        credential: letter.into(),
        role,
        client: None,
        name: format!("{letter}'s phone"),
    })
}

impl<S: Shell> Stage<S> {
    /// A session on a machine, as it describes it, and nobody watching.
    pub(crate) fn begin(shell: S, meta: Meta) -> Self {
        let mut stage = Self {
            shell,
            now: S::START,
            clients: BTreeMap::new(),
            rooms: BTreeMap::new(),
            here: S::SESSION.into(),
            is_slow: false,
            stored: vec![],
            launched: vec![],
            wishes: 0,
            late: vec![],
            count: 0,
        };
        stage.make_room(S::SESSION, meta);
        stage
    }

    /// One more session. The machine goes on speaking of the other.
    pub(crate) fn make_room(&mut self, id: &str, meta: Meta) {
        self.rooms.insert(id.into(), Room::default());
        let via = Via { connection: "proxy_1".into(), link: Some("link".into()) };
        let (meta, health) = (Box::new(meta), Health::Healthy);
        let up = Change::Up { via, meta, health, activity: None };
        self.say_to(&id.into(), &Command::Relay(up)).unwrap();
    }

    pub(crate) fn open(&mut self, name: &str, query: &str) {
        self.count += 1;
        let connection = format!("conn_{name}_{}", self.count).into();
        let (machine, own) = S::connect(self, connection, name, query);
        let client = Client {
            machine,
            gauge: Gauge::default(),
            heard: vec![],
            bytes: vec![],
            closed: None,
            own,
            following: None,
            missed: None,
        };
        self.clients.insert(name.to_owned(), client);
        let now = self.now;
        let acts = self.client(name).machine.on_open(now);
        self.carry_out(name, acts);
    }

    pub(crate) fn client(&mut self, name: &str) -> &mut Client<S::Own> {
        self.clients.get_mut(name).unwrap()
    }

    /// The session that the machine speaks of.
    pub(crate) fn room(&self) -> &Room {
        &self.rooms[&self.here]
    }

    pub(crate) fn room_mut(&mut self) -> &mut Room {
        self.rooms.get_mut(&self.here).unwrap()
    }

    pub(crate) fn text(&mut self, name: &str, text: &str) {
        let now = self.now;
        let client = self.client(name);
        let acts = client.machine.on_text(text, &mut client.gauge, now);
        self.carry_out(name, acts);
    }

    pub(crate) fn json(&mut self, name: &str, frame: &Value) {
        self.text(name, &frame.to_string());
    }

    /// What a client heard since it was last asked.
    pub(crate) fn heard(&mut self, name: &str) -> Vec<Value> {
        std::mem::take(&mut self.client(name).heard)
    }

    /// The answers of the shell that were held back.
    pub(crate) fn catch_up(&mut self) {
        self.is_slow = false;
        while !self.late.is_empty() {
            let (name, ticket, answer) = self.late.remove(0);
            self.answer(&name, ticket, answer);
        }
    }

    /// The first answer of the shell that was held back, and no more.
    pub(crate) fn step(&mut self) {
        let (name, ticket, answer) = self.late.remove(0);
        self.is_slow = true;
        self.give(&name, ticket, answer);
    }

    /// A client is woken.
    pub(crate) fn tick(&mut self, name: &str) {
        let now = self.now;
        let acts = self.client(name).machine.on_tick(now);
        self.carry_out(name, acts);
    }

    /// Time passes for a client, which is woken if it wanted to be.
    pub(crate) fn waits(&mut self, name: &str, after_ms: u64) {
        self.now = self.now.plus_ms(after_ms);
        let now = self.now;
        if self.client(name).machine.deadline().is_some_and(|at| at <= now) {
            self.tick(name);
        }
    }

    /// A client that was too slow has seen the events it missed; this is how things stand.
    pub(crate) fn lags(&mut self, name: &str) {
        let followed = self.followed(&self.here).unwrap();
        let now = self.now;
        let acts = self.client(name).machine.on_caught_up(*followed, now);
        self.carry_out(name, acts);
    }

    /// From here on a client is not shown what happens.
    pub(crate) fn falls_behind(&mut self, name: &str) {
        self.client(name).missed = Some(vec![]);
    }

    /// A client that fell behind is shown everything.
    pub(crate) fn comes_after(&mut self, name: &str) {
        for event in self.client(name).missed.take().unwrap() {
            self.show(name, &event, &Encoded::default());
        }
    }

    pub(crate) fn say(&mut self, command: &Command) -> Result<Vec<Recorded>, Refusal> {
        let here = self.here.clone();
        self.say_to(&here, command)
    }

    pub(crate) fn say_to(
        &mut self,
        session: &SessionId,
        command: &Command,
    ) -> Result<Vec<Recorded>, Refusal> {
        let now = self.now;
        let room = self.rooms.get_mut(session).unwrap();
        let Performed { overdue, outcome } =
            room.session.perform(command, &mut room.cursor, Policy::default(), now);
        for event in overdue.iter().chain(outcome.iter().flatten()) {
            let room = self.rooms.get_mut(session).unwrap();
            room.ledger.push(event.clone());
            if matches!(event.event, Event::Run(runs::Event::Ended { .. })) {
                room.drafts.clear();
            }
            let encoded = Encoded::default();
            for name in self.watchers(session) {
                match &mut self.client(&name).missed {
                    Some(missed) => missed.push(event.clone()),
                    None => self.show(&name, event, &encoded),
                }
            }
        }
        outcome
    }

    fn show(&mut self, name: &str, event: &Recorded, encoded: &Encoded) {
        let mut acts = vec![];
        self.client(name).machine.on_event(event, encoded, &mut acts);
        self.carry_out(name, acts);
    }

    /// Who follows a session.
    fn watchers(&self, session: &SessionId) -> Vec<String> {
        let is_there = |(_, client): &(&String, &Client<S::Own>)| {
            client.following.as_ref() == Some(session) && client.closed.is_none()
        };
        self.clients.iter().filter(is_there).map(|(name, _)| name.clone()).collect()
    }

    fn answer(&mut self, name: &str, ticket: u64, answer: Answer) {
        if self.is_slow {
            self.late.push((name.to_owned(), ticket, answer));
        } else {
            self.give(name, ticket, answer);
        }
    }

    fn give(&mut self, name: &str, ticket: u64, answer: Answer) {
        let now = self.now;
        let client = self.client(name);
        let was_stranger = client.machine.principal().is_none();
        let mut acts = client.machine.on_answer(ticket, answer, now);
        if was_stranger && client.machine.principal().is_some() {
            acts.extend(client.machine.on_known(&mut client.gauge, now));
        }
        self.carry_out(name, acts);
    }

    pub(crate) fn carry_out(&mut self, name: &str, acts: Vec<Act>) {
        for act in acts {
            match act {
                Act::Send(frame) => {
                    let value = serde_json::from_slice(&frame)
                        .unwrap_or_else(|error| panic!("{error}: {frame:?}"));
                    let client = self.client(name);
                    S::hear(&mut client.own, &value);
                    client.heard.push(value);
                    client.bytes.push(frame);
                }
                Act::Close { code, .. } => self.client(name).closed = Some(code),
                Act::Follow { session, ticket } => {
                    let followed = self.followed(&session);
                    self.client(name).following = followed.is_some().then_some(session);
                    self.answer(name, ticket, Answer::Followed(followed));
                }
                Act::Wish { session, wish, ticket } => {
                    self.wishes += 1;
                    let principal = self.client(name).machine.principal().cloned().unwrap();
                    let done = self.say_to(&session, &Command::Person(principal, *wish));
                    self.answer(name, ticket, Answer::Done(done.map_err(Denied::Refused)));
                }
                other @ (Act::List { .. }
                | Act::Glance { .. }
                | Act::Figures { .. }
                | Act::Launch { .. }
                | Act::Read { .. }
                | Act::Store { .. }
                | Act::Load { .. }
                | Act::Pair { .. }
                | Act::Recognise { .. }
                | Act::Spend { .. }
                | Act::Identify { .. }) => {
                    if let Some((ticket, answer)) = S::carry_out(self, name, other) {
                        self.answer(name, ticket, answer);
                    }
                }
            }
        }
    }

    pub(crate) fn followed(&self, session: &SessionId) -> Option<Box<Followed>> {
        let room = self.rooms.get(session).filter(|_| self.shell.has(session))?;
        Some(room.followed(session.clone()))
    }

    pub(crate) fn listings(&self) -> Vec<Listing> {
        self.rooms.iter().map(|(id, room)| room.listing(id)).collect()
    }

    pub(crate) fn page(
        &self,
        session: &SessionId,
        after: Sequence,
        upto: Option<Sequence>,
        limit: usize,
    ) -> Answer {
        let room = self.rooms.get(session).ok_or(Denied::Refused(Refusal::SessionUnknown));
        Answer::Page(room.map(|room| -> PageOf { room.page(after, upto, limit) }))
    }

    /// Keeps a file, as pictures are kept.
    pub(crate) fn store(&mut self, name: String, media_type: String, bytes: Bytes) -> Answer {
        self.stored.push(bytes);
        Answer::Stored(Ok(Attachment {
            id: format!("file_{}", self.stored.len()).into(),
            name,
            kind: "image".to_owned(),
            media_type: Some(media_type),
        }))
    }
}
