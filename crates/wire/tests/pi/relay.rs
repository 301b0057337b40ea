//! A relay of one thread and no disk: real sessions, real connections.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use domain::content::{
    Attachment, Author, Failure, Message, Part, ToolCall, ToolDetail, ToolKind, ToolStatus,
    ToolUpdate, Usage,
};
use domain::passing::{Delta, Drafts, Passing, Voice};
use domain::session::config::{AgentConfig, SlashCommand};
use domain::session::prompts::{Choice, Detail, Effect, Prompt};
use domain::session::runs::Outcome;
use domain::session::status::{Health, Meta, Via};
use domain::session::{
    Change, Command, Event, Order, Policy, Recorded, Report, Session, Word, runs,
};
use domain::{Content, Principal, Refusal, Role, Sequence, SessionId, Timestamp};
use serde_json::{Value, json};
use wire::pi::Connection;
use wire::port::{Denied, Limits, Listing, PageOf, Throttle};
use wire::visitor::{Act, Answer, Encoded, Followed, Visitor as _};

pub(crate) const START: Timestamp = Timestamp(1_773_915_330_000);
pub(crate) const SESSION: &str = "sess_1";
pub(crate) const PATH: &str = "farhelm/sess_1.jsonl";

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
    machine: Connection,
    pub(crate) gauge: Gauge,
    pub(crate) heard: Vec<Value>,
    pub(crate) bytes: Vec<Bytes>,
    pub(crate) closed: Option<u16>,
    following: Option<SessionId>,
    /// Events that it is not shown yet, if it is slow.
    pub(crate) missed: Option<Vec<Recorded>>,
}

/// One session and its ledger.
#[derive(Default)]
pub(crate) struct Place {
    pub(crate) session: Session,
    pub(crate) ledger: Vec<Recorded>,
    pub(crate) drafts: Drafts,
}

pub(crate) struct Relay {
    pub(crate) now: Timestamp,
    pub(crate) clients: BTreeMap<String, Client>,
    pub(crate) places: BTreeMap<SessionId, Place>,
    /// Answers of the shell that do not come until asked for.
    pub(crate) is_slow: bool,
    pub(crate) stored: Vec<Bytes>,
    /// What comes of a launch: nothing yet, if `None`.
    pub(crate) launches: Option<Result<SessionId, Failure>>,
    pub(crate) launched: Vec<domain::fleet::LaunchWish>,
    pub(crate) wishes: usize,
    late: Vec<(String, u64, Answer)>,
    count: u64,
}

impl Relay {
    /// A session on a machine, and nobody watching.
    pub(crate) fn new() -> Self {
        let mut relay = Self {
            now: START,
            clients: BTreeMap::new(),
            places: BTreeMap::new(),
            is_slow: false,
            stored: vec![],
            launches: Some(Err(Failure::new("no_proxy_connected", "No machine is connected"))),
            launched: vec![],
            wishes: 0,
            late: vec![],
            count: 0,
        };
        relay.add(SESSION, "/home/me/project");
        relay
    }

    /// With one client that follows the session.
    pub(crate) fn watched() -> Self {
        let mut relay = Self::new();
        relay.open("a", &format!("session={SESSION}"));
        relay
    }

    /// One more session.
    pub(crate) fn add(&mut self, id: &str, folder: &str) {
        self.places.insert(id.into(), Place::default());
        let via = Via { connection: "proxy_1".into(), link: Some("link".into()) };
        let mut meta = Meta::of_agent("codex".into());
        meta.workspace_path = Some(folder.to_owned());
        let meta = Box::new(meta);
        let up = Change::Up { via, meta, health: Health::Healthy, activity: None };
        self.say(&id.into(), &Command::Relay(up)).unwrap();
    }

    /// Opens a connection. The name says who: `v…` a viewer, `n…` nobody, others operators.
    pub(crate) fn open(&mut self, name: &str, query: &str) {
        let letter = &name[..1];
        let role = if letter == "v" { Role::Viewer } else { Role::Operator };
        let principal = (letter != "n").then(|| Principal {
            credential: letter.into(),
            role,
            client: None,
            name: format!("{letter}'s phone"),
        });
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
            missed: None,
        };
        self.clients.insert(name.to_owned(), client);
        let acts = self.client(name).machine.on_open(START);
        self.carry_out(name, acts);
    }

    pub(crate) fn client(&mut self, name: &str) -> &mut Client {
        self.clients.get_mut(name).unwrap()
    }

    pub(crate) fn place(&mut self) -> &mut Place {
        self.places.get_mut(&SESSION.into()).unwrap()
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

    /// Says a command and gives its answer, which must come at once; other frames stay heard.
    pub(crate) fn ask(&mut self, name: &str, mut command: Value) -> Value {
        self.count += 1;
        let id = format!("ask_{}", self.count);
        command["id"] = json!(id);
        self.json(name, &command);
        let heard = &mut self.client(name).heard;
        let at = heard.iter().position(|frame| frame["id"] == *id);
        let at = at.unwrap_or_else(|| panic!("no answer to {command} in {heard:#?}"));
        let answer = heard.remove(at);
        assert_eq!((&answer["type"], &answer["command"]), (&json!("response"), &command["type"]));
        answer
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

    /// Time passes for a client.
    pub(crate) fn tick(&mut self, name: &str, after_ms: u64) {
        self.now = self.now.plus_ms(after_ms);
        let now = self.now;
        if self.client(name).machine.deadline().is_some_and(|at| at <= now) {
            let acts = self.client(name).machine.on_tick(now);
            self.carry_out(name, acts);
        }
    }

    pub(crate) fn report(&mut self, report: Report) {
        let (connection, position) = ("proxy_1".into(), None);
        let word = Command::Proxy(Word { connection, position, report });
        self.say(&SESSION.into(), &word).unwrap();
    }

    /// The machine does everything that it is owed; deliveries begin this run.
    pub(crate) fn obey(&mut self, run: Option<&str>) {
        for order in self.place().session.owed() {
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

    pub(crate) fn asks(&mut self, id: &str, choices: &[(&str, Option<Effect>)]) {
        let detail = Detail { tool: Some("Bash".to_owned()), ..Detail::default() };
        self.asks_about(id, choices, detail);
    }

    pub(crate) fn asks_about(
        &mut self,
        id: &str,
        choices: &[(&str, Option<Effect>)],
        detail: Detail,
    ) {
        let choice = |(id, effect): &(&str, Option<Effect>)| Choice {
            id: (*id).into(),
            label: id.to_uppercase(),
            is_default: *id == "later",
            effect: *effect,
        };
        self.report(Report::Asked(Prompt {
            id: id.into(),
            text: Content::Open("Run this command? ls".to_owned()),
            choices: choices.iter().map(choice).collect(),
            expiry: None,
            detected_at: START,
            run: None,
            detail: Some(Content::Open(detail)),
        }));
    }

    pub(crate) fn says(&mut self, id: &str, parts: Vec<Part>) {
        self.place().drafts.finish(&id.into());
        let message = Message {
            id: id.into(),
            author: Author::Assistant,
            parts: Content::Open(parts),
            created_at: START,
            run: None,
            parent: None,
            digest: None,
        };
        self.report(Report::Message { message, has_own_id: true, echo: None });
    }

    pub(crate) fn calls(&mut self, id: &str, input: &str) {
        let detail = ToolDetail { input: Some(input.to_owned()), ..ToolDetail::default() };
        self.report(Report::ToolCall(ToolCall {
            id: id.into(),
            tool: "Bash".to_owned(),
            kind: ToolKind::Execute,
            status: ToolStatus::Pending,
            detail: Content::Open(detail),
            run: None,
            parent: None,
        }));
    }

    pub(crate) fn tool(&mut self, id: &str, status: ToolStatus, output: Option<&str>) {
        let output = output.map(str::to_owned);
        let detail = Content::Open(ToolDetail { output, ..ToolDetail::default() });
        self.report(Report::ToolUpdate(ToolUpdate { id: id.into(), status, detail }));
    }

    pub(crate) fn starts(&mut self, run: &str) {
        self.report(Report::RunStarted { run: run.into(), cause: None });
    }

    pub(crate) fn ends(&mut self, run: &str, outcome: Outcome) {
        let usage = Some(Usage {
            input_tokens: Some(900),
            output_tokens: Some(80),
            cached_tokens: Some(700),
            cost_micro_usd: Some(12_500),
        });
        self.report(Report::RunEnded { run: run.into(), outcome, usage });
    }

    pub(crate) fn configures(&mut self, model: &str, effort: &str) {
        self.keeps(model, effort, None);
    }

    /// With the agent's own record of the session.
    pub(crate) fn keeps(&mut self, model: &str, effort: &str, file: Option<&str>) {
        self.report(Report::Config(AgentConfig {
            model: model.into(),
            permission_mode: None,
            file_access_scope: None,
            available_models: Some(vec!["fake/one".into(), "fake/two".into(), "three".into()]),
            available_modes: None,
            effort: Some(effort.to_owned()),
            available_efforts: Some(vec!["low".to_owned(), "high".to_owned()]),
            session_file: file.map(str::to_owned),
            commands: Some(vec![SlashCommand { name: "compact".to_owned(), description: None }]),
            capabilities: [("steer".to_owned(), true)].into(),
            read_at: START,
        }));
    }

    pub(crate) fn streams(&mut self, message: &str, part: u32, voice: Voice, at: u64, words: &str) {
        let words = Content::Open(words.to_owned());
        let delta = Delta { message: message.into(), part, voice, offset: at, words };
        self.place().drafts.take(&delta);
        let passing = Passing { after: self.place().session.head(), delta };
        let encoded = Encoded::default();
        for name in self.clients.keys().cloned().collect::<Vec<_>>() {
            let client = self.client(&name);
            if client.following.as_ref().is_some_and(|it| it.as_str() == SESSION) {
                let mut acts = vec![];
                client.machine.on_passing(&passing, &encoded, &mut acts);
                self.carry_out(&name, acts);
            }
        }
    }

    /// A client that was too slow has seen the events it missed; this is how things stand.
    pub(crate) fn caught_up(&mut self, name: &str) {
        let followed = self.followed(&SESSION.into()).unwrap();
        let now = self.now;
        let acts = self.client(name).machine.on_caught_up(*followed, now);
        self.carry_out(name, acts);
    }

    pub(crate) fn say(
        &mut self,
        session: &SessionId,
        command: &Command,
    ) -> Result<Vec<Recorded>, Refusal> {
        let now = self.now;
        let place = self.places.get_mut(session).unwrap();
        let recorded = place.session.perform(command, Policy::default(), now)?;
        for event in &recorded {
            let place = self.places.get_mut(session).unwrap();
            place.ledger.push(event.clone());
            if matches!(event.event, Event::Run(runs::Event::Ended { .. })) {
                place.drafts.clear();
            }
            let encoded = Encoded::default();
            for name in self.clients.keys().cloned().collect::<Vec<_>>() {
                let client = self.client(&name);
                if client.following.as_ref() == Some(session) && client.closed.is_none() {
                    if let Some(missed) = &mut client.missed {
                        missed.push(event.clone());
                        continue;
                    }
                    let mut acts = vec![];
                    client.machine.on_event(event, &encoded, &mut acts);
                    self.carry_out(&name, acts);
                }
            }
        }
        Ok(recorded)
    }

    /// From here on a client is not shown what happens.
    pub(crate) fn falls_behind(&mut self, name: &str) {
        self.client(name).missed = Some(vec![]);
    }

    /// A client that fell behind is shown everything.
    pub(crate) fn comes_after(&mut self, name: &str) {
        for event in self.client(name).missed.take().unwrap() {
            let mut acts = vec![];
            self.client(name).machine.on_event(&event, &Encoded::default(), &mut acts);
            self.carry_out(name, acts);
        }
    }

    pub(crate) fn answer(&mut self, name: &str, ticket: u64, answer: Answer) {
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
                    let value = serde_json::from_slice(&frame)
                        .unwrap_or_else(|error| panic!("{error}: {frame:?}"));
                    let client = self.client(name);
                    client.heard.push(value);
                    client.bytes.push(frame);
                }
                Act::Close { code, .. } => self.client(name).closed = Some(code),
                Act::List { ticket } => {
                    let listings = self.listings();
                    self.answer(name, ticket, Answer::Listed(listings));
                }
                Act::Follow { session, ticket } => {
                    let followed = self.followed(&session);
                    self.client(name).following = followed.as_ref().map(|_| session);
                    self.answer(name, ticket, Answer::Followed(followed));
                }
                Act::Wish { session, wish, ticket } => {
                    self.wishes += 1;
                    let principal = self.client(name).machine.principal().cloned().unwrap();
                    let done = self.say(&session, &Command::Person(principal, *wish));
                    self.answer(name, ticket, Answer::Done(done.map_err(Denied::Refused)));
                }
                Act::Launch { wish, ticket } => {
                    self.launched.push(*wish);
                    if let Some(launched) = self.launches.clone() {
                        self.answer(name, ticket, Answer::Launched(launched));
                    } else {
                        let outcome = Answer::Launched(Ok("sess_new".into()));
                        self.late.push((name.to_owned(), ticket, outcome));
                    }
                }
                Act::Read { session, after, upto, limit, ticket } => {
                    let page = self.page(&session, after, upto, limit);
                    self.answer(name, ticket, Answer::Page(page));
                }
                Act::Store { name: file, media_type, bytes, ticket } => {
                    self.stored.push(bytes);
                    let stored = Attachment {
                        id: format!("file_{}", self.stored.len()).into(),
                        name: file,
                        kind: "image".to_owned(),
                        media_type: Some(media_type),
                    };
                    self.answer(name, ticket, Answer::Stored(Ok(stored)));
                }
                Act::Load { attachment, ticket } => {
                    let number = attachment.id.as_str().strip_prefix("file_").unwrap();
                    let bytes = self.stored[number.parse::<usize>().unwrap() - 1].clone();
                    self.answer(name, ticket, Answer::Loaded(Ok(bytes)));
                }
                other @ (Act::Pair { .. }
                | Act::Identify { .. }
                | Act::Glance { .. }
                | Act::Figures { .. }
                | Act::Recognise { .. }
                | Act::Spend { .. }) => {
                    panic!("this dialect never asks for {other:?}")
                }
            }
        }
    }

    fn listings(&self) -> Vec<Listing> {
        let listing = |(id, place): (&SessionId, &Place)| Listing {
            id: id.clone(),
            head: place.session.head(),
            card: Arc::new(place.session.card()),
        };
        self.places.iter().map(listing).collect()
    }

    fn followed(&self, session: &SessionId) -> Option<Box<Followed>> {
        let place = self.places.get(session)?;
        let (head, glance) = (place.session.head(), place.session.glance());
        let (session, drafts) = (session.clone(), place.drafts.replay());
        Some(Box::new(Followed { session, head, glance, drafts }))
    }

    fn page(
        &self,
        session: &SessionId,
        after: Sequence,
        upto: Option<Sequence>,
        limit: usize,
    ) -> Result<PageOf, Denied> {
        let Some(place) = self.places.get(session) else {
            return Err(Denied::Refused(Refusal::SessionUnknown));
        };
        let fits = |it: &&Recorded| it.sequence > after && upto.is_none_or(|to| it.sequence <= to);
        let all: Vec<_> = place.ledger.iter().filter(fits).cloned().collect();
        let has_more = all.len() > limit;
        let events = all.into_iter().take(limit).collect();
        Ok(PageOf { events, head: place.session.head(), first_kept: Sequence(1), has_more })
    }
}

/// The types (and the kinds of updates, roles and methods) of frames, in order.
pub(crate) fn kinds(frames: &[Value]) -> Vec<String> {
    let word = |frame: &Value| {
        let update = frame["assistantMessageEvent"]["type"].as_str();
        if let Some(update) = update {
            return update.to_owned();
        }
        let kind = frame["type"].as_str().unwrap();
        let more = [&frame["message"]["role"], &frame["method"], &frame["command"]];
        let words = more.into_iter().filter_map(Value::as_str);
        std::iter::once(kind).chain(words).collect::<Vec<_>>().join("/")
    };
    frames.iter().map(word).collect()
}
