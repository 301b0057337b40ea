//! A relay of one thread and no disk: real sessions, real connections.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use domain::content::{
    Author, Failure, Message, Part, ToolCall, ToolDetail, ToolKind, ToolStatus, ToolUpdate, Usage,
};
use domain::fleet::LaunchWish;
use domain::passing::{Delta, Drafts, Passing, Voice};
use domain::session::prompts::{Choice, Effect, Prompt};
use domain::session::runs::Outcome;
use domain::session::status::{Health, Meta, Via};
use domain::session::{Change, Command, Order, Policy, Recorded, Report, Session, Wish, Word};
use domain::{Content, Principal, Refusal, Role, Sequence, SessionId, Timestamp};
use serde_json::{Value, json};
use wire::blob::Connection;
use wire::port::{Denied, Limits, Listing, PageOf, Throttle};
use wire::visitor::{Act, Answer, Encoded, Figures, Followed, Visitor as _};

pub(crate) const START: Timestamp = Timestamp(1_769_423_400_000);
/// The document's sessions.
pub(crate) const SESSION: &str = "550e8400-e29b-41d4-a906-446655440000";
pub(crate) const MADE: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
pub(crate) const CONNECT: &str =
    r#"{"type":"req","id":"connect-1","method":"connect","params":{"version":"1"}}"#;

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

pub(crate) struct Client {
    pub(crate) machine: Connection,
    pub(crate) gauge: Gauge,
    pub(crate) heard: Vec<Value>,
    pub(crate) bytes: Vec<Bytes>,
    pub(crate) closed: Option<u16>,
    following: Option<SessionId>,
}

#[derive(Default)]
pub(crate) struct Room {
    pub(crate) session: Session,
    pub(crate) ledger: Vec<Recorded>,
    pub(crate) drafts: Drafts,
}

pub(crate) struct Relay {
    pub(crate) now: Timestamp,
    pub(crate) clients: BTreeMap<String, Client>,
    pub(crate) rooms: BTreeMap<SessionId, Room>,
    /// The session that the machine speaks of.
    pub(crate) here: SessionId,
    /// Answers of the shell that do not come until asked for.
    pub(crate) is_slow: bool,
    pub(crate) has_machine: bool,
    pub(crate) launched: Vec<LaunchWish>,
    late: Vec<(String, u64, Answer)>,
    count: u64,
}

impl Relay {
    /// A session on a machine, and nobody watching.
    pub(crate) fn new() -> Self {
        let mut relay = Self {
            now: START,
            clients: BTreeMap::new(),
            rooms: BTreeMap::new(),
            here: SESSION.into(),
            is_slow: false,
            has_machine: true,
            launched: vec![],
            late: vec![],
            count: 0,
        };
        relay.make(SESSION);
        relay.wish(Wish::Rename("AI architecture discussion".to_owned()));
        relay
    }

    /// With one client that is connected and in the session.
    pub(crate) fn watched() -> Self {
        let mut relay = Self::new();
        relay.join("a");
        relay
    }

    /// A client that is connected and in the session, all of which it has heard.
    pub(crate) fn join(&mut self, name: &str) {
        self.connect(name);
        self.ask(name, "join", "sessions.switch", &json!({ "sessionId": SESSION }));
        self.heard(name);
    }

    /// A client goes to a session, and has heard everything of it.
    pub(crate) fn asked_to_switch(&mut self, name: &str, session: &str) {
        self.ask(name, "switch", "sessions.switch", &json!({ "sessionId": session }));
        self.heard(name);
    }

    pub(crate) fn connect(&mut self, name: &str) {
        self.open(name, "");
        self.text(name, CONNECT);
        assert_eq!(self.heard(name)[0]["ok"], true);
    }

    /// A session on its machine.
    pub(crate) fn make(&mut self, id: &str) {
        self.rooms.insert(id.into(), Room::default());
        self.here = id.into();
        let via = Via { connection: "proxy_1".into(), link: Some("link".into()) };
        let mut meta = Meta::of_agent("codex".into());
        meta.machine = Some("laptop".into());
        meta.workspace_path = Some("/home/me".to_owned());
        let (meta, health) = (Box::new(meta), Health::Healthy);
        self.say(&Command::Relay(Change::Up { via, meta, health, activity: None })).unwrap();
    }

    /// Opens a connection. The name says who: `v…` a viewer, `n…` nobody, others operators.
    pub(crate) fn open(&mut self, name: &str, query: &str) {
        let letter = &name[..1];
        let principal = (letter != "n").then(|| person(letter));
        self.count += 1;
        let connection = format!("conn_{name}_{}", self.count).into();
        let limits = Limits { max_content_bytes: 1_000, ..Limits::default() };
        let machine = Connection::new(connection, principal, query, limits, self.now);
        let client = Client {
            machine,
            gauge: Gauge::default(),
            heard: vec![],
            bytes: vec![],
            closed: None,
            following: None,
        };
        self.clients.insert(name.to_owned(), client);
        let acts = self.client(name).machine.on_open(START);
        self.carry_out(name, acts);
    }

    pub(crate) fn client(&mut self, name: &str) -> &mut Client {
        self.clients.get_mut(name).unwrap()
    }

    pub(crate) fn room(&mut self) -> &mut Room {
        self.rooms.get_mut(&self.here).unwrap()
    }

    pub(crate) fn text(&mut self, name: &str, text: &str) {
        let now = self.now;
        let client = self.client(name);
        let acts = client.machine.on_text(text, &mut client.gauge, now);
        self.carry_out(name, acts);
    }

    /// Asks, without looking at the answer.
    pub(crate) fn ask(&mut self, name: &str, id: &str, method: &str, params: &Value) {
        let frame = json!({ "type": "req", "id": id, "method": method, "params": params });
        self.text(name, &frame.to_string());
    }

    /// Asks, and takes the answer, which is the only thing that is heard.
    pub(crate) fn asked(&mut self, name: &str, method: &str, params: &Value) -> Value {
        self.ask(name, "q", method, params);
        let mut heard = self.heard(name);
        assert_eq!(heard.len(), 1, "{heard:#?}");
        assert_eq!(heard[0]["id"], "q");
        heard.remove(0)
    }

    /// Says something to the agent, and takes its run's name.
    pub(crate) fn sends(&mut self, name: &str, id: &str, text: &str) -> String {
        self.ask(name, id, "agent", &json!({ "message": text }));
        let heard = &self.client(name).heard;
        let answer = heard.iter().find(|frame| frame["id"] == id).unwrap();
        answer["payload"]["runId"].as_str().unwrap().to_owned()
    }

    /// What a client heard since it was last asked.
    pub(crate) fn heard(&mut self, name: &str) -> Vec<Value> {
        std::mem::take(&mut self.client(name).heard)
    }

    /// The answers of the shell that were held back.
    pub(crate) fn catch_up(&mut self) {
        self.is_slow = false;
        for (name, ticket, answer) in std::mem::take(&mut self.late) {
            self.answer(&name, ticket, answer);
        }
    }

    /// The first answer of the shell that was held back, and no more.
    pub(crate) fn step(&mut self) {
        let (name, ticket, answer) = self.late.remove(0);
        self.is_slow = false;
        let now = self.now;
        let acts = self.client(&name).machine.on_answer(ticket, answer, now);
        self.is_slow = true;
        self.carry_out(&name, acts);
    }

    pub(crate) fn report(&mut self, report: Report) {
        let (connection, position) = ("proxy_1".into(), None);
        self.say(&Command::Proxy(Word { connection, position, report })).unwrap();
    }

    /// Somebody in another dialect.
    pub(crate) fn wish(&mut self, wish: Wish) {
        self.say(&Command::Person(person("o"), wish)).unwrap();
    }

    /// The machine does everything that it is owed; deliveries begin this run.
    pub(crate) fn obey(&mut self, run: Option<&str>) {
        for order in self.room().session.owed() {
            let report = match order {
                Order::Deliver { send, attempt } => Report::SendDelivered {
                    id: send.id,
                    attempt: Some(attempt),
                    run: run.map(Into::into),
                },
                Order::Answer { request, .. } | Order::Control { request, .. } => {
                    Report::ControlResult { request, failure: None }
                }
            };
            self.report(report);
        }
    }

    /// The machine cannot do any of it.
    pub(crate) fn refuse(&mut self, code: &str) {
        for order in self.room().session.owed() {
            let failure = Failure::new(code, "it could not");
            let report = match order {
                Order::Deliver { send, attempt } => {
                    Report::SendFailed { id: send.id, attempt: Some(attempt), failure }
                }
                Order::Answer { request, .. } | Order::Control { request, .. } => {
                    Report::ControlResult { request, failure: Some(failure) }
                }
            };
            self.report(report);
        }
    }

    pub(crate) fn asks(&mut self, id: &str) {
        let choice = |id: &str, effect| Choice {
            id: id.into(),
            label: id.to_uppercase(),
            is_default: id == "no",
            effect: Some(effect),
        };
        self.report(Report::Asked(Prompt {
            id: id.into(),
            text: Content::Open("Run this command? ls".to_owned()),
            choices: vec![
                choice("always", Effect::AllowAlways),
                choice("yes", Effect::AllowOnce),
                choice("no", Effect::Reject),
            ],
            expiry: None,
            detected_at: START,
            run: None,
            detail: None,
        }));
    }

    pub(crate) fn says(&mut self, id: &str, text: &str) {
        self.message(id, Author::Assistant, vec![Part::Text(text.to_owned())]);
    }

    pub(crate) fn message(&mut self, id: &str, author: Author, parts: Vec<Part>) {
        self.room().drafts.finish(&id.into());
        let run = self.room().session.glance().run.map(|(run, _)| run);
        let message = Message {
            id: id.into(),
            author,
            parts: Content::Open(parts),
            created_at: START,
            run,
            parent: None,
            digest: None,
        };
        self.report(Report::Message { message, has_own_id: true, echo: None });
    }

    pub(crate) fn starts(&mut self, run: &str) {
        self.report(Report::RunStarted { run: run.into(), cause: None });
    }

    pub(crate) fn ends(&mut self, run: &str, outcome: Outcome) {
        let usage =
            Usage { input_tokens: Some(1_200), output_tokens: Some(34), ..Usage::default() };
        self.report(Report::RunEnded { run: run.into(), outcome, usage: Some(usage) });
    }

    pub(crate) fn calls(&mut self, id: &str, tool: &str, input: &str) {
        let detail = ToolDetail { input: Some(input.to_owned()), ..ToolDetail::default() };
        self.report(Report::ToolCall(ToolCall {
            id: id.into(),
            tool: tool.to_owned(),
            kind: ToolKind::Read,
            status: ToolStatus::Running,
            detail: Content::Open(detail),
            run: None,
            parent: None,
        }));
    }

    pub(crate) fn returns(&mut self, id: &str, status: ToolStatus, output: &str) {
        let detail = ToolDetail { output: Some(output.to_owned()), ..ToolDetail::default() };
        let detail = Content::Open(detail);
        self.report(Report::ToolUpdate(ToolUpdate { id: id.into(), status, detail }));
    }

    pub(crate) fn streams(&mut self, message: &str, offset: u64, words: &str) {
        self.passes(message, 0, Voice::Text, offset, words);
    }

    pub(crate) fn passes(&mut self, message: &str, part: u32, voice: Voice, at: u64, words: &str) {
        let words = Content::Open(words.to_owned());
        let delta = Delta { message: message.into(), part, voice, offset: at, words };
        self.room().drafts.take(&delta);
        let passing = Passing { after: self.room().session.head(), delta };
        let encoded = Encoded::default();
        for name in self.here_are() {
            let mut acts = vec![];
            self.client(&name).machine.on_passing(&passing, &encoded, &mut acts);
            self.carry_out(&name, acts);
        }
    }

    /// A client fell behind: what it missed is shown, then how things stand.
    pub(crate) fn lags(&mut self, name: &str) {
        let followed = self.followed(self.here.clone()).unwrap();
        let now = self.now;
        let acts = self.client(name).machine.on_caught_up(*followed, now);
        self.carry_out(name, acts);
    }

    pub(crate) fn say(&mut self, command: &Command) -> Result<Vec<Recorded>, Refusal> {
        let now = self.now;
        let room = self.room();
        let recorded = room.session.perform(command, Policy::default(), now)?;
        for event in &recorded {
            self.room().ledger.push(event.clone());
            let encoded = Encoded::default();
            for name in self.here_are() {
                let mut acts = vec![];
                self.client(&name).machine.on_event(event, &encoded, &mut acts);
                self.carry_out(&name, acts);
            }
        }
        Ok(recorded)
    }

    /// Who is in the session that the machine speaks of.
    fn here_are(&self) -> Vec<String> {
        let is_here = |(_, client): &(&String, &Client)| {
            client.following.as_ref() == Some(&self.here) && client.closed.is_none()
        };
        self.clients.iter().filter(is_here).map(|(name, _)| name.clone()).collect()
    }

    fn answer(&mut self, name: &str, ticket: u64, answer: Answer) {
        if self.is_slow {
            self.late.push((name.to_owned(), ticket, answer));
            return;
        }
        let now = self.now;
        let acts = self.client(name).machine.on_answer(ticket, answer, now);
        self.carry_out(name, acts);
    }

    fn carry_out(&mut self, name: &str, acts: Vec<Act>) {
        for act in acts {
            match act {
                Act::Send(frame) => {
                    let value = serde_json::from_slice(&frame).unwrap();
                    let client = self.client(name);
                    client.heard.push(value);
                    client.bytes.push(frame);
                }
                Act::Close { code, .. } => self.client(name).closed = Some(code),
                Act::Follow { session, ticket } => {
                    let followed = self.followed(session.clone());
                    self.client(name).following = followed.is_some().then_some(session);
                    self.answer(name, ticket, Answer::Followed(followed));
                }
                Act::Glance { session, ticket } => {
                    let glanced = self.followed(session);
                    self.answer(name, ticket, Answer::Glanced(glanced));
                }
                Act::Figures { ticket } => {
                    let (clients, sessions) = (self.clients.len(), self.rooms.len());
                    let (clients, sessions) = (clients as u64, sessions as u64);
                    let figures = Figures { uptime_ms: 3_600_500, clients, sessions };
                    self.answer(name, ticket, Answer::Figures(figures));
                }
                Act::Wish { session, wish, ticket } => {
                    let here = std::mem::replace(&mut self.here, session);
                    let principal = self.client(name).machine.principal().cloned().unwrap();
                    let done = self.say(&Command::Person(principal, *wish));
                    self.here = here;
                    self.answer(name, ticket, Answer::Done(done.map_err(Denied::Refused)));
                }
                Act::Read { session, after, upto, limit, ticket } => {
                    let page = self.page(&session, after, upto, limit);
                    self.answer(name, ticket, Answer::Page(page));
                }
                Act::List { ticket } => {
                    let listed = self.rooms.iter().map(|(id, room)| Listing {
                        id: id.clone(),
                        head: room.session.head(),
                        card: Arc::new(room.session.card()),
                    });
                    let listed = Answer::Listed(listed.collect());
                    self.answer(name, ticket, listed);
                }
                Act::Launch { wish, ticket } => {
                    self.launched.push(*wish);
                    let launched = if self.has_machine {
                        let here = self.here.clone();
                        self.make(MADE);
                        self.here = here;
                        Ok(MADE.into())
                    } else {
                        Err(Failure::new("no_proxy_connected", "No machine is connected"))
                    };
                    self.answer(name, ticket, Answer::Launched(launched));
                }
                other @ (Act::Store { .. }
                | Act::Recognise { .. }
                | Act::Spend { .. }
                | Act::Load { .. }
                | Act::Pair { .. }
                | Act::Identify { .. }) => panic!("this dialect never asks for {other:?}"),
            }
        }
    }

    fn followed(&self, session: SessionId) -> Option<Box<Followed>> {
        let room = self.rooms.get(&session)?;
        let (head, glance) = (room.session.head(), room.session.glance());
        Some(Box::new(Followed { session, head, glance, drafts: room.drafts.replay() }))
    }

    fn page(
        &self,
        session: &SessionId,
        after: Sequence,
        upto: Option<Sequence>,
        limit: usize,
    ) -> Result<PageOf, Denied> {
        let room = self.rooms.get(session).ok_or(Denied::Refused(Refusal::SessionUnknown))?;
        let fits = |it: &&Recorded| it.sequence > after && upto.is_none_or(|to| it.sequence <= to);
        let all: Vec<_> = room.ledger.iter().filter(fits).cloned().collect();
        // A page has room for so much, whatever is asked for.
        let limit = limit.min(64);
        let has_more = all.len() > limit;
        let events = all.into_iter().take(limit).collect();
        Ok(PageOf { events, head: room.session.head(), first_kept: Sequence(1), has_more })
    }
}

fn person(letter: &str) -> Principal {
    let role = if letter == "v" { Role::Viewer } else { Role::Operator };
    let name = format!("{letter}'s phone");
    Principal { credential: letter.into(), role, client: None, name }
}

/// What frames are, in order: `res`, `res!` for an error, or the event's name with its status.
pub(crate) fn kinds(frames: &[Value]) -> Vec<String> {
    let word = |frame: &Value| match frame["event"].as_str() {
        None if frame["ok"] == true => "res".to_owned(),
        None => "res!".to_owned(),
        Some("status") => format!("status/{}", frame["payload"]["status"].as_str().unwrap()),
        Some("message") => format!("message/{}", frame["payload"]["role"].as_str().unwrap()),
        Some(name) => name.to_owned(),
    };
    frames.iter().map(word).collect()
}
