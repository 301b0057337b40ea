//! What is around a connection: two sessions, their machine, and time.

use std::collections::BTreeMap;

use domain::content::{
    Author, Failure, Message, Part, ToolCall, ToolDetail, ToolKind, ToolStatus, ToolUpdate,
};
use domain::passing::{Delta, Passing, Voice};
use domain::session::prompts::{Choice, Effect, Prompt};
use domain::session::runs::Outcome;
use domain::session::status::{DownReason, Health, Meta, Via};
use domain::session::transcript::Notice;
use domain::session::{Change, Command, Order, Policy, Recorded, Report, Word};
use domain::{Content, Principal, Refusal, Role, Sequence, SessionId, Timestamp};
use serde_json::Value;
use wire::port::{Denied, Listing, PageOf, Throttle};
use wire::visitor::Followed;

use crate::fuzz::chance::Chance;
use crate::visitors::stage::Room;

/// The sessions of the fixtures.
const SESSIONS: [&str; 2] = ["sess_1", "550e8400-e29b-41d4-a906-446655440000"];
/// A page has room for so much, whatever is asked for.
const PAGE_EVENTS_MAX: usize = 16;
/// Names that were heard, and are said again.
const WORDS_MAX: usize = 128;
/// Frames that one case may bring; more means that something runs away.
const HEARD_MAX: usize = 200_000;

/// A connection under test.
pub(crate) trait Peer {
    fn start(&mut self, world: &mut World);
    fn says(&mut self, world: &mut World, text: &str);
    fn hears(&mut self, world: &mut World, session: &SessionId, recorded: &Recorded);
    fn passes(&mut self, world: &mut World, session: &SessionId, passing: &Passing);
    fn lags(&mut self, world: &mut World);
    fn ticks(&mut self, world: &mut World);
    /// The shell answers what was asked: everything, or something.
    fn answer(&mut self, world: &mut World, chance: &mut Chance, all: bool);
    fn is_closed(&self) -> bool;
}

/// Everything may be said.
pub(crate) struct Open;

impl Throttle for Open {
    fn frame(&mut self, _: Timestamp) -> bool {
        true
    }
    fn send(&mut self, _: Timestamp) -> bool {
        true
    }
}

pub(crate) struct World {
    pub(crate) now: Timestamp,
    pub(crate) rooms: BTreeMap<SessionId, Room>,
    pub(crate) heard: Vec<String>,
    pub(crate) words: Vec<String>,
    count: u64,
}

impl World {
    pub(crate) fn new() -> Self {
        let mut world = Self {
            now: Timestamp(1_773_915_330_000),
            rooms: BTreeMap::new(),
            heard: vec![],
            words: vec![],
            count: 0,
        };
        for id in SESSIONS {
            let id = SessionId::from(id);
            world.rooms.insert(id.clone(), Room::default());
            world.up(&id);
        }
        world
    }

    /// A person who may do everything.
    pub(crate) fn person() -> Principal {
        Principal { credential: "a".into(), role: Role::Owner, client: None, name: "a".to_owned() }
    }

    /// A frame was sent: it must be JSON. Its words are remembered.
    pub(crate) fn sent(&mut self, frame: &[u8]) {
        let value: Value = serde_json::from_slice(frame).unwrap();
        words(&value, &mut self.words);
        let too_many = self.words.len().saturating_sub(WORDS_MAX);
        self.words.drain(..too_many);
        self.heard.push(String::from_utf8(frame.to_vec()).unwrap());
        assert!(self.heard.len() < HEARD_MAX, "there is no end to it");
    }

    pub(crate) fn say(
        &mut self,
        session: &SessionId,
        command: &Command,
    ) -> Result<Vec<Recorded>, Refusal> {
        let now = self.now;
        let room = self.rooms.get_mut(session).ok_or(Refusal::SessionUnknown)?;
        let performed = room.session.perform(command, &mut room.cursor, Policy::default(), now);
        room.ledger.extend(performed.overdue);
        let recorded = performed.outcome?;
        room.ledger.extend(recorded.iter().cloned());
        Ok(recorded)
    }

    pub(crate) fn followed(&self, session: &SessionId) -> Option<Box<Followed>> {
        Some(self.rooms.get(session)?.followed(session.clone()))
    }

    pub(crate) fn listings(&self) -> Vec<Listing> {
        self.rooms.iter().map(|(id, room)| room.listing(id)).collect()
    }

    pub(crate) fn drafts(&self, session: &SessionId) -> Vec<Delta> {
        self.rooms.get(session).map(|room| room.drafts.replay()).unwrap_or_default()
    }

    pub(crate) fn page(
        &self,
        session: &SessionId,
        after: Sequence,
        upto: Option<Sequence>,
        limit: usize,
    ) -> Result<PageOf, Denied> {
        let room = self.rooms.get(session).ok_or(Denied::Refused(Refusal::SessionUnknown))?;
        Ok(room.page(after, upto, limit.min(PAGE_EVENTS_MAX)))
    }

    /// Something happens in a session.
    pub(crate) fn goes_on(&mut self, chance: &mut Chance, peer: &mut dyn Peer) {
        let session = SessionId::from(chance.of(&SESSIONS));
        self.count += 1;
        let id = format!("m{}", chance.below(6));
        let run = format!("run_{}", chance.below(4));
        let text = chance.of(&["", "hello", "é💥\u{0}", "{\"a\":1}", "a\nb"]).to_owned();
        let report = match chance.below(14) {
            0 => Report::RunStarted { run: run.into(), cause: None },
            1 | 2 => {
                let ends = [Outcome::Completed, Outcome::Interrupted, Outcome::Failed(text)];
                let outcome = ends[chance.place(3)].clone();
                Report::RunEnded { run: run.into(), outcome, usage: None }
            }
            3 => self.message(&session, chance, &id, text),
            4 | 5 => return self.streams(&session, chance, &id, &text, peer),
            6 => Report::ToolCall(tool_call(&id, &text)),
            7 => {
                let ways = [ToolStatus::Running, ToolStatus::Completed, ToolStatus::Failed];
                let detail = ToolDetail { output: Some(text), ..ToolDetail::default() };
                let (status, detail) = (ways[chance.place(3)], Content::Open(detail));
                Report::ToolUpdate(ToolUpdate { id: id.into(), status, detail })
            }
            8 => Report::Asked(prompt(chance.of(&["101", "p1", "p2"]), &text, self.now)),
            9 => Report::PromptGone(chance.of(&["101", "p1", "p2"]).into()),
            10 => Report::Notice(Notice { kind: "rate_limit".to_owned(), text }),
            11 => {
                let reason = DownReason::ProxyDisconnected;
                let down = Command::Relay(Change::Down { connection: None, reason });
                return self.tell(&session, &down, peer);
            }
            12 => return self.comes_up(&session, peer),
            _ => return self.obeys(&session, chance, peer),
        };
        self.reports(&session, report, peer);
    }

    fn message(
        &mut self,
        session: &SessionId,
        chance: &mut Chance,
        id: &str,
        text: String,
    ) -> Report {
        let id = format!("{id}_{}", self.count);
        if let Some(room) = self.rooms.get_mut(session) {
            room.drafts.clear();
        }
        let authors = [Author::Assistant, Author::User, Author::System];
        let thought = Part::Thinking("hm".to_owned());
        let parts = vec![thought, Part::Text(text), Part::ToolCall("t".into())];
        let message = Message {
            id: id.into(),
            author: authors[chance.place(3)],
            parts: Content::Open(parts),
            created_at: self.now,
            run: None,
            parent: chance.one_in(4).then(|| "t".into()),
            digest: None,
        };
        Report::Message { message, has_own_id: true, echo: None }
    }

    fn streams(
        &mut self,
        session: &SessionId,
        chance: &mut Chance,
        id: &str,
        text: &str,
        peer: &mut dyn Peer,
    ) {
        let voice = if chance.one_in(4) { Voice::Thinking } else { Voice::Text };
        let words = Content::Open(text.to_owned());
        let (message, part) = (id.into(), u32::try_from(chance.below(2)).unwrap_or(0));
        let delta = Delta { message, part, voice, offset: chance.below(6), words };
        let Some(room) = self.rooms.get_mut(session) else { return };
        if room.drafts.take(&delta) {
            let passing = Passing { after: room.session.head(), delta };
            peer.passes(self, session, &passing);
        }
    }

    fn obeys(&mut self, session: &SessionId, chance: &mut Chance, peer: &mut dyn Peer) {
        let owed = self.rooms[session].session.owed();
        for order in owed {
            let failure = chance.one_in(4).then(|| Failure::new("send_rejected", "no"));
            let run = chance.one_in(2).then(|| format!("run_{}", chance.below(4)).into());
            let report = match (order, failure) {
                (Order::Deliver { send, attempt }, None) => {
                    Report::SendDelivered { id: send.id, attempt: Some(attempt), run }
                }
                (Order::Deliver { send, attempt }, Some(failure)) => {
                    Report::SendFailed { id: send.id, attempt: Some(attempt), failure }
                }
                (Order::Answer { request, .. } | Order::Control { request, .. }, failure) => {
                    Report::ControlResult { request, failure }
                }
            };
            self.reports(session, report, peer);
        }
    }

    fn reports(&mut self, session: &SessionId, report: Report, peer: &mut dyn Peer) {
        let (connection, position) = ("proxy_1".into(), None);
        self.tell(session, &Command::Proxy(Word { connection, position, report }), peer);
    }

    fn tell(&mut self, session: &SessionId, command: &Command, peer: &mut dyn Peer) {
        for recorded in self.say(session, command).unwrap_or_default() {
            peer.hears(self, session, &recorded);
        }
    }

    fn comes_up(&mut self, session: &SessionId, peer: &mut dyn Peer) {
        for recorded in self.up(session) {
            peer.hears(self, session, &recorded);
        }
    }

    fn up(&mut self, session: &SessionId) -> Vec<Recorded> {
        let via = Via { connection: "proxy_1".into(), link: Some("link".into()) };
        let (meta, health) = (Box::new(Meta::of_agent("demo".into())), Health::Healthy);
        let up = Change::Up { via, meta, health, activity: None };
        self.say(session, &Command::Relay(up)).unwrap_or_default()
    }
}

fn tool_call(id: &str, input: &str) -> ToolCall {
    let detail = ToolDetail { input: Some(input.to_owned()), ..ToolDetail::default() };
    ToolCall {
        id: id.into(),
        tool: "Bash".to_owned(),
        kind: ToolKind::Execute,
        status: ToolStatus::Running,
        detail: Content::Open(detail),
        run: None,
        parent: None,
    }
}

fn prompt(id: &str, text: &str, now: Timestamp) -> Prompt {
    let choice = |id: &str, effect| Choice {
        id: id.into(),
        label: id.to_owned(),
        is_default: id == "no",
        effect,
        wants_answers: false,
    };
    Prompt {
        id: id.into(),
        text: Content::Open(text.to_owned()),
        choices: vec![choice("yes", Some(Effect::AllowOnce)), choice("no", None)],
        expiry: None,
        detected_at: now,
        run: None,
        detail: None,
    }
}

fn words(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(word) if word.len() < 100 => found.push(word.clone()),
        Value::Array(items) => items.iter().take(8).for_each(|item| words(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| words(field, found)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
