//! A relay of one thread and no disk: real sessions, a real fleet, real connections.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::fleet::{self, AgentOffer, Fleet, Offer};
use domain::session::status::{Health, Meta, Via};
use domain::session::{
    Change, Command, Performed, Policy, Recorded, ReplayCursor, Report, Session, Word,
};
use domain::{ConnectionId, Principal, Refusal, Role, Sequence, SessionId, Timestamp};
use serde_json::{Value, json};
use wire::native::frames::{ResumableSessions, ToolOutput};
use wire::native::shapes::{Conversation, Conversations};
use wire::native::{
    Answer, Cache, ClientConnection, Denied, Limits, Listing, Output, PageOf, Question, Throttle,
    Welcome, known,
};

pub(crate) const START: Timestamp = Timestamp(1_773_915_330_000);

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
    match left {
        None => true,
        Some(0) => false,
        Some(left) => {
            *left -= 1;
            true
        }
    }
}

pub(crate) struct Client {
    pub(crate) machine: ClientConnection,
    pub(crate) gauge: Gauge,
    pub(crate) heard: Vec<Value>,
    /// Which event it was shown under each place of each session.
    shown: BTreeMap<(String, u64), Value>,
    pub(crate) closed: Option<u16>,
    joined: bool,
}

#[derive(Default)]
struct Stream {
    session: Session,
    cursor: ReplayCursor,
    ledger: Vec<Recorded>,
    kept_from: u64,
}

pub(crate) struct Relay {
    pub(crate) now: Timestamp,
    pub(crate) clients: BTreeMap<String, Client>,
    pub(crate) limits: Limits,
    /// Pages are not read until asked for.
    pub(crate) slow_reads: bool,
    pub(crate) broken_store: bool,
    /// What is read is damaged.
    pub(crate) is_damaged: bool,
    reads: Vec<(String, wire::native::ReadJob)>,
    sessions: BTreeMap<SessionId, Stream>,
    fleet: Fleet,
    machine_connection: ConnectionId,
}

impl Client {
    /// A sequence names one event of its session, live, in a page and when it is told again.
    fn note(&mut self, frame: &Value) {
        if let Some(events) = frame["events"].as_array() {
            assert!(events.len() <= 500, "a page of {} events", events.len());
            let places: Vec<_> = events.iter().filter_map(|it| it["sequence"].as_u64()).collect();
            assert!(places.is_sorted_by(|a, b| a < b), "{places:?}");
            return events.iter().for_each(|event| self.note(event));
        }
        let Some(sequence) = frame["sequence"].as_u64() else { return };
        let session = frame["session_id"].as_str();
        let session = session.or_else(|| frame["session"]["session_id"].as_str()).unwrap();
        let event = json!([frame["event_id"], frame["type"]]);
        let shown =
            self.shown.entry((session.to_owned(), sequence)).or_insert_with(|| event.clone());
        assert_eq!(*shown, event, "two events have the sequence {sequence}");
    }
}

impl Relay {
    pub(crate) fn new() -> Self {
        Self {
            now: START,
            clients: BTreeMap::new(),
            limits: Limits { max_content_bytes: 1_000, ..Limits::default() },
            slow_reads: false,
            broken_store: false,
            is_damaged: false,
            reads: vec![],
            sessions: BTreeMap::new(),
            fleet: Fleet::default(),
            machine_connection: "proxy_1".into(),
        }
    }

    /// Opens a connection. The name says who: `v…` a viewer, `n…` nobody, others operators. The
    /// first letter is the credential.
    pub(crate) fn open(&mut self, name: &str) {
        let letter = &name[..1];
        let role = if letter == "v" { Role::Viewer } else { Role::Operator };
        let principal = (letter != "n").then(|| Principal {
            credential: letter.into(),
            role,
            client: None,
            name: format!("{letter}'s phone"),
        });
        let connection = format!("conn_{name}").into();
        let machine = ClientConnection::new(connection, principal, self.limits, self.now);
        let (gauge, heard, closed) = (Gauge::default(), vec![], None);
        let shown = BTreeMap::new();
        let client = Client { machine, gauge, heard, shown, closed, joined: false };
        self.clients.insert(name.to_owned(), client);
    }

    pub(crate) fn text(&mut self, name: &str, text: &str) {
        if !self.clients.contains_key(name) {
            self.open(name);
        }
        let now = self.now;
        let client = self.clients.get_mut(name).unwrap();
        let outputs = client.machine.on_text(text, &mut client.gauge, now);
        self.carry_out(name, outputs);
    }

    /// Time passes, everywhere.
    pub(crate) fn pass(&mut self, ms: u64) {
        self.now = self.now.plus_ms(ms);
        for name in self.clients.keys().cloned().collect::<Vec<_>>() {
            let outputs = self.clients.get_mut(&name).unwrap().machine.on_tick(self.now);
            self.carry_out(&name, outputs);
        }
        for id in self.sessions.keys().cloned().collect::<Vec<_>>() {
            self.say(&id, &Command::Relay(Change::Tick)).unwrap();
        }
        self.fleet(&fleet::Command::Tick).unwrap();
    }

    pub(crate) fn machine_up(&mut self) {
        let via = Via { connection: self.machine_connection.clone(), link: Some("link".into()) };
        let offer = Offer::default();
        self.fleet(&fleet::Command::Connected { via, machine: "attic".into(), offer }).unwrap();
    }

    /// The machine knows this agent, and this folder.
    pub(crate) fn offers(&mut self, agent: &str, version: &str, folder: &str) {
        let offer = Offer {
            agents: Some(vec!["demo".into(), agent.into()]),
            workspaces: vec![folder.to_owned()],
            details: vec![AgentOffer {
                agent: agent.into(),
                display_name: None,
                is_installed: true,
                version: Some(version.to_owned()),
                is_logged_in: Some(true),
                install: None,
            }],
            limits: Some(fleet::Limits { agents_max: Some(16), ..fleet::Limits::default() }),
        };
        let connection = self.machine_connection.clone();
        self.fleet(&fleet::Command::Offered { connection, offer }).unwrap();
    }

    pub(crate) fn session_up(&mut self, id: &str, agent: &str) {
        let via = Via { connection: self.machine_connection.clone(), link: Some("link".into()) };
        let meta = Meta { machine: Some("attic".into()), ..Meta::of_agent(agent.into()) };
        let meta = Box::new(Meta { workspace_path: Some("/used".to_owned()), ..meta });
        let up = Change::Up { via, meta, health: Health::Healthy, activity: None };
        self.sessions.entry(id.into()).or_default();
        self.say(&id.into(), &Command::Relay(up)).unwrap();
    }

    pub(crate) fn change(&mut self, id: &str, change: Change) {
        self.say(&id.into(), &Command::Relay(change)).unwrap();
    }

    pub(crate) fn report(&mut self, id: &str, report: Report) {
        let connection = self.machine_connection.clone();
        let word = Word { connection, position: None, report };
        self.say(&id.into(), &Command::Proxy(word)).unwrap();
    }

    pub(crate) fn launched(&mut self, request: &str, session: &str) {
        let (connection, request) = (self.machine_connection.clone(), request.into());
        let session = session.into();
        self.fleet(&fleet::Command::Launched { connection, request, session }).unwrap();
    }

    pub(crate) fn launch_failed(&mut self, request: &str, code: &str) {
        let (connection, request) = (self.machine_connection.clone(), request.into());
        let failure = domain::content::Failure::new(code, "in words");
        self.fleet(&fleet::Command::LaunchFailed { connection, request, failure }).unwrap();
    }

    pub(crate) fn forget_before(&mut self, id: &str, sequence: u64) {
        let stream = self.sessions.get_mut(&id.into()).unwrap();
        stream.ledger.retain(|recorded| recorded.sequence.0 >= sequence);
        stream.kept_from = sequence;
    }

    /// The session is gone from the ledger; it may begin again from its first event.
    pub(crate) fn erase(&mut self, id: &str) {
        self.sessions.insert(id.into(), Stream::default());
        for client in self.clients.values_mut() {
            client.shown.retain(|(session, _), _| session != id);
        }
    }

    pub(crate) fn lag(&mut self, name: &str) {
        let outputs = self.clients.get_mut(name).unwrap().machine.on_lag(self.now);
        self.carry_out(name, outputs);
    }

    /// Reads the page that was asked for first.
    pub(crate) fn read_one(&mut self) {
        let (name, job) = self.reads.remove(0);
        let page = self.page(&job).unwrap();
        let outputs = self.clients.get_mut(&name).unwrap().machine.on_page(job, page, self.now);
        self.carry_out(&name, outputs);
    }

    pub(crate) fn read_now(&mut self) {
        self.slow_reads = false;
        for (name, job) in std::mem::take(&mut self.reads) {
            self.carry_out(&name, vec![Output::Read(job)]);
        }
    }

    /// Everything that a session recorded.
    pub(crate) fn ledger(&self, id: &str) -> &[Recorded] {
        &self.sessions[&SessionId::from(id)].ledger
    }

    pub(crate) fn say(&mut self, id: &SessionId, command: &Command) -> Result<(), Refusal> {
        let stream = self.sessions.get_mut(id).ok_or(Refusal::SessionUnknown)?;
        let Performed { mut overdue, outcome } =
            stream.session.perform(command, &mut stream.cursor, Policy::default(), self.now);
        let refused = outcome.map(|recorded| overdue.extend(recorded));
        stream.ledger.extend(overdue.iter().cloned());
        self.publish(id, &overdue, |_| true);
        refused
    }

    /// Records without telling those whom `hears` leaves out: their queue overflowed.
    pub(crate) fn publish(
        &mut self,
        id: &SessionId,
        recorded: &[Recorded],
        hears: impl Fn(&str) -> bool,
    ) {
        for fact in recorded {
            let cache = Cache::default();
            for name in self.clients.keys().cloned().collect::<Vec<_>>() {
                let client = self.clients.get_mut(&name).unwrap();
                if client.joined && hears(&name) {
                    let outputs = client.machine.on_event(id, fact, &cache);
                    self.carry_out(&name, outputs);
                }
            }
        }
    }

    /// Records an event that this client's queue loses.
    pub(crate) fn report_unheard(&mut self, id: &str, report: Report, deaf: &str) {
        let connection = self.machine_connection.clone();
        let command = Command::Proxy(Word { connection, position: None, report });
        let stream = self.sessions.get_mut(&id.into()).unwrap();
        let performed =
            stream.session.perform(&command, &mut stream.cursor, Policy::default(), self.now);
        let recorded = performed.outcome.unwrap();
        stream.ledger.extend(recorded.iter().cloned());
        self.publish(&id.into(), &recorded, |name| name != deaf);
    }

    /// Another relay's sessions are this one's; the queues of its clients lost all of it.
    pub(crate) fn take_over_unheard(&mut self, other: Self) {
        self.sessions.extend(other.sessions);
    }

    fn fleet(&mut self, command: &fleet::Command) -> Result<(), Refusal> {
        let recorded = self.fleet.perform(command, fleet::Policy::default(), self.now)?;
        for fact in recorded {
            for name in self.clients.keys().cloned().collect::<Vec<_>>() {
                let outputs =
                    self.clients.get_mut(&name).unwrap().machine.on_fleet(&fact, self.now);
                self.carry_out(&name, outputs);
            }
        }
        Ok(())
    }

    fn listings(&self) -> Vec<Listing> {
        let listing = |(id, stream): (&SessionId, &Stream)| Listing {
            id: id.clone(),
            head: stream.session.head(),
            card: Arc::new(stream.session.card()),
        };
        self.sessions.iter().map(listing).collect()
    }

    pub(crate) fn carry_out(&mut self, name: &str, outputs: Vec<Output>) {
        for output in outputs {
            let now = self.now;
            let more = match output {
                Output::Send(bytes) => {
                    let frame = serde_json::from_slice(&bytes).expect("a frame is JSON");
                    check(&frame);
                    let client = self.clients.get_mut(name).unwrap();
                    client.note(&frame);
                    client.heard.push(frame);
                    vec![]
                }
                Output::Close { code, .. } => {
                    self.clients.get_mut(name).unwrap().closed = Some(code);
                    vec![]
                }
                Output::Join => {
                    let client = self.clients.get_mut(name).unwrap();
                    client.joined = true;
                    let key = client.machine.principal().unwrap().key();
                    let launches = self.fleet.launches().of(&key).cloned().collect();
                    let welcome = Welcome { sessions: self.listings(), launches };
                    self.clients.get_mut(name).unwrap().machine.on_welcome(&welcome, now)
                }
                Output::Session { session, wish, asked } => {
                    let principal = self.clients[name].machine.principal().unwrap().clone();
                    match self.say(&session, &Command::Person(principal, wish)) {
                        Ok(()) => vec![],
                        Err(refusal) => {
                            let denied = Denied::Refused(refusal);
                            self.clients
                                .get_mut(name)
                                .unwrap()
                                .machine
                                .on_denied(asked, denied, now)
                        }
                    }
                }
                Output::Launch { wish, asked } => {
                    let principal = self.clients[name].machine.principal().unwrap().clone();
                    match self.fleet(&fleet::Command::Launch(principal, Box::new(wish))) {
                        Ok(()) => vec![],
                        Err(refusal) => {
                            let denied = Denied::Refused(refusal);
                            self.clients
                                .get_mut(name)
                                .unwrap()
                                .machine
                                .on_denied(asked, denied, now)
                        }
                    }
                }
                Output::Read(job) if self.slow_reads => {
                    self.reads.push((name.to_owned(), job));
                    vec![]
                }
                Output::Read(job) => {
                    let page = self.page(&job);
                    let machine = &mut self.clients.get_mut(name).unwrap().machine;
                    match page {
                        Ok(page) => machine.on_page(job, page, now),
                        Err(denied) => machine.on_read_failed(job, denied, now),
                    }
                }
                Output::Ask { question, request } => {
                    let answer = self.answer(name, &question);
                    self.clients[name].machine.on_answer(&question, request, answer, now)
                }
                Output::Drafts(_) => vec![],
                Output::Card { session, request } => {
                    let listing = self.listings().into_iter().find(|listing| listing.id == session);
                    let machine = &mut self.clients.get_mut(name).unwrap().machine;
                    listing.map_or(vec![], |listing| machine.on_card(request, &listing, now))
                }
            };
            self.carry_out(name, more);
        }
    }

    fn answer(&self, name: &str, question: &Question) -> Result<Answer, Denied> {
        match question {
            Question::Catalog => Ok(Answer::Catalog(known::catalog(&self.fleet, &self.listings()))),
            Question::Resumable(_)
                if !self.clients[name].machine.principal().unwrap().may_steer() =>
            {
                Err(Denied::Refused(Refusal::Unauthorized))
            }
            Question::Resumable(asked) => Ok(Answer::Resumable(ResumableSessions {
                machine_label: asked.machine_label.clone().unwrap_or_else(|| "attic".into()),
                page: Conversations {
                    conversations: vec![Conversation {
                        agent_type: "claude".into(),
                        conversation_id: "thread_1".to_owned(),
                        title: Some("Kites".to_owned()),
                        workspace_path: Some("/kite".to_owned()),
                        updated_at: START.into(),
                        session_id: None,
                    }],
                    next: None,
                },
            })),
            Question::ToolOutput { session, asked } => {
                let stream = self.sessions.get(session);
                let stream = stream.ok_or(Denied::Refused(Refusal::SessionUnknown))?;
                let told = stream.ledger.iter().rev();
                let mut told =
                    told.filter_map(|it| known::output_in(&it.event, &asked.tool_call_id));
                let whole = told.next().ok_or_else(|| {
                    Denied::Code("tool_output_unknown".into(), "Nothing is known of it".to_owned())
                })?;
                let call = asked.tool_call_id.clone();
                Ok(Answer::ToolOutput(ToolOutput::stretch(call, whole, asked.offset, asked.limit)))
            }
        }
    }

    fn page(&self, job: &wire::native::ReadJob) -> Result<PageOf, Denied> {
        if self.broken_store {
            return Err(Denied::Failed("the disk hums".to_owned()));
        }
        if self.is_damaged {
            return Err(Denied::Code("session_damaged".into(), "a row is damaged".to_owned()));
        }
        let stream = self.sessions.get(&job.session);
        let stream = stream.ok_or(Denied::Refused(Refusal::SessionUnknown))?;
        let rest: Vec<_> = stream.ledger.iter().filter(|r| r.sequence > job.after).collect();
        Ok(PageOf {
            has_more: rest.len() > job.limit,
            events: rest.into_iter().take(job.limit).cloned().collect(),
            head: stream.session.head(),
            first_kept: Sequence(stream.kept_from.max(1)),
        })
    }
}

/// What holds for every frame that a relay sends.
fn check(frame: &Value) {
    assert_eq!(frame["protocol_version"], 1, "{frame}");
    let passing = frame["type"] == "message_delta";
    assert_eq!(frame.get("server_ts").is_none(), passing, "{frame}");
    let event = frame.get("sequence").is_some();
    assert_eq!(frame.get("event_id").is_some(), event, "{frame}");
    let worded = |words: &Value| words.as_str().is_some_and(|words| !words.is_empty());
    if frame.get("code").is_some() {
        assert!(worded(&frame["code"]) && worded(&frame["message"]), "{frame}");
    }
    if frame.get("error").is_some() {
        assert!(worded(&frame["error"]["code"]) && worded(&frame["error"]["message"]), "{frame}");
    }
    if frame["type"] == "session_launch_failed" {
        assert!(worded(&frame["error_code"]) && worded(&frame["reason"]), "{frame}");
    }
}
