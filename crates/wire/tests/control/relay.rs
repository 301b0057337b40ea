//! A relay of one thread and no disk: a real session, real connections.

use std::collections::BTreeMap;

use bytes::Bytes;
use domain::content::{Attachment, Author, Message, Part, Usage};
use domain::passing::{Delta, Drafts, Passing, Voice};
use domain::session::prompts::{Choice, Detail, Effect, Prompt};
use domain::session::runs::Outcome;
use domain::session::status::{Health, Meta, Via};
use domain::session::{Change, Command, Order, Policy, Recorded, Report, Session, Word};
use domain::{Content, Principal, Refusal, Role, Sequence, SessionId, Timestamp};
use serde_json::Value;
use wire::control::Connection;
use wire::port::{Denied, Limits, PageOf, Throttle};
use wire::visitor::{Act, Answer, Encoded, Followed, Visitor as _};

pub(crate) const START: Timestamp = Timestamp(1_773_915_330_000);
pub(crate) const SESSION: &str = "sess_1";
pub(crate) const INPUT: &str = r#"{"command":"ls"}"#;

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
    is_following: bool,
}

pub(crate) struct Relay {
    pub(crate) now: Timestamp,
    pub(crate) clients: BTreeMap<String, Client>,
    pub(crate) session: Session,
    pub(crate) ledger: Vec<Recorded>,
    pub(crate) drafts: Drafts,
    /// Answers of the shell that do not come until asked for.
    pub(crate) is_slow: bool,
    pub(crate) kept_from: usize,
    pub(crate) stored: Vec<Bytes>,
    late: Vec<(String, u64, Answer)>,
    count: u64,
}

impl Relay {
    /// A session on a machine, and nobody watching.
    pub(crate) fn new() -> Self {
        let mut relay = Self {
            now: START,
            clients: BTreeMap::new(),
            session: Session::default(),
            ledger: vec![],
            drafts: Drafts::default(),
            is_slow: false,
            kept_from: 0,
            stored: vec![],
            late: vec![],
            count: 0,
        };
        let via = Via { connection: "proxy_1".into(), link: Some("link".into()) };
        let mut meta = Meta::of_agent("codex".into());
        meta.workspace_path = Some("/home/me/project".to_owned());
        let meta = Box::new(meta);
        let up = Change::Up { via, meta, health: Health::Healthy, activity: None };
        relay.say(&Command::Relay(up)).unwrap();
        relay
    }

    /// With one client that follows the session.
    pub(crate) fn watched() -> Self {
        let mut relay = Self::new();
        relay.open("a", &format!("session={SESSION}"));
        relay
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
            is_following: false,
        };
        self.clients.insert(name.to_owned(), client);
        let acts = self.client(name).machine.on_open(START);
        self.carry_out(name, acts);
    }

    pub(crate) fn client(&mut self, name: &str) -> &mut Client {
        self.clients.get_mut(name).unwrap()
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
        for (name, ticket, answer) in std::mem::take(&mut self.late) {
            self.answer(&name, ticket, answer);
        }
    }

    pub(crate) fn report(&mut self, report: Report) {
        let (connection, position) = ("proxy_1".into(), None);
        self.say(&Command::Proxy(Word { connection, position, report })).unwrap();
    }

    /// The machine does everything that it is owed; deliveries begin this run.
    pub(crate) fn obey(&mut self, run: Option<&str>) {
        for order in self.session.owed() {
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

    pub(crate) fn asks(&mut self, id: &str) {
        let choice = |id: &str, effect| Choice {
            id: id.into(),
            label: id.to_uppercase(),
            is_default: id == "no",
            effect: Some(effect),
        };
        let detail = Detail {
            tool: Some("Bash".to_owned()),
            tool_call: Some("t1".into()),
            input: Some(INPUT.to_owned()),
            ..Detail::default()
        };
        self.report(Report::Asked(Prompt {
            id: id.into(),
            text: Content::Open("Run this command? ls".to_owned()),
            choices: vec![
                choice("yes", Effect::AllowOnce),
                choice("no", Effect::Reject),
                choice("always", Effect::AllowAlways),
            ],
            expiry: None,
            detected_at: START,
            run: None,
            detail: Some(Content::Open(detail)),
        }));
    }

    pub(crate) fn says(&mut self, id: &str, parts: Vec<Part>) {
        self.drafts.finish(&id.into());
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

    pub(crate) fn streams(&mut self, message: &str, part: u32, voice: Voice, at: u64, words: &str) {
        let words = Content::Open(words.to_owned());
        let delta = Delta { message: message.into(), part, voice, offset: at, words };
        self.drafts.take(&delta);
        let passing = Passing { after: self.session.head(), delta };
        let encoded = Encoded::default();
        for name in self.clients.keys().cloned().collect::<Vec<_>>() {
            let client = self.client(&name);
            if client.is_following {
                let mut acts = vec![];
                client.machine.on_passing(&passing, &encoded, &mut acts);
                self.carry_out(&name, acts);
            }
        }
    }

    pub(crate) fn say(&mut self, command: &Command) -> Result<Vec<Recorded>, Refusal> {
        let recorded = self.session.perform(command, Policy::default(), self.now)?;
        for event in &recorded {
            self.ledger.push(event.clone());
            let encoded = Encoded::default();
            for name in self.clients.keys().cloned().collect::<Vec<_>>() {
                let client = self.client(&name);
                if client.is_following && client.closed.is_none() {
                    let mut acts = vec![];
                    client.machine.on_event(event, &encoded, &mut acts);
                    self.carry_out(&name, acts);
                }
            }
        }
        Ok(recorded)
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
                    let followed = (session.as_str() == SESSION).then(|| self.followed(session));
                    self.client(name).is_following = followed.is_some();
                    self.answer(name, ticket, Answer::Followed(followed));
                }
                Act::Wish { session, wish, ticket } => {
                    assert_eq!(session.as_str(), SESSION);
                    let principal = self.client(name).machine.principal().cloned().unwrap();
                    let done = self.say(&Command::Person(principal, *wish));
                    self.answer(name, ticket, Answer::Done(done.map_err(Denied::Refused)));
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
                other @ (Act::List { .. }
                | Act::Glance { .. }
                | Act::Figures { .. }
                | Act::Launch { .. }
                | Act::Load { .. }
                | Act::Pair { .. }
                | Act::Recognise { .. }
                | Act::Spend { .. }
                | Act::Identify { .. }) => panic!("this dialect never asks for {other:?}"),
            }
        }
    }

    fn followed(&self, session: SessionId) -> Box<Followed> {
        let (head, glance) = (self.session.head(), self.session.glance());
        Box::new(Followed { session, head, glance, drafts: self.drafts.replay() })
    }

    fn page(
        &self,
        session: &SessionId,
        after: Sequence,
        upto: Option<Sequence>,
        limit: usize,
    ) -> Result<PageOf, Denied> {
        if session.as_str() != SESSION {
            return Err(Denied::Refused(Refusal::SessionUnknown));
        }
        let kept = &self.ledger[self.kept_from..];
        let fits = |it: &&Recorded| it.sequence > after && upto.is_none_or(|to| it.sequence <= to);
        let all: Vec<_> = kept.iter().filter(fits).cloned().collect();
        let has_more = all.len() > limit;
        let events = all.into_iter().take(limit).collect();
        let first_kept = Sequence(self.kept_from as u64 + 1);
        Ok(PageOf { events, head: self.session.head(), first_kept, has_more })
    }
}

/// The types (and subtypes) of frames, in order.
pub(crate) fn kinds(frames: &[Value]) -> Vec<String> {
    let word = |frame: &Value| {
        let kind = frame["type"].as_str().unwrap();
        let more = ["subtype", "state"].map(|name| frame[name].as_str());
        let event = frame["event"]["type"].as_str();
        let words = [Some(kind), more[0], more[1], event].into_iter().flatten();
        words.collect::<Vec<_>>().join("/")
    };
    frames.iter().map(word).collect()
}
