//! A relay of one thread and no disk: a real session, real connections, and clients with keys.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use domain::content::{
    Author, Failure, Message, Part, ToolCall, ToolDetail, ToolKind, ToolStatus, ToolUpdate,
};
use domain::passing::{Delta, Drafts, Passing, Voice};
use domain::session::prompts::{Choice, Detail, Effect, Prompt};
use domain::session::runs::Outcome;
use domain::session::status::{Health, Meta, Via};
use domain::session::{Change, Command, Order, Policy, Recorded, Report, Session, Word};
use domain::{Content, Principal, Refusal, Role, SessionId, Timestamp};
use serde_json::{Value, json};
use wire::port::{Denied, Limits, Listing, Throttle};
use wire::visitor::{Act, Answer, Encoded, Followed, Recognised, Visitor as _};
use wire::webchannel::seal::{self, Key, Secret};
use wire::webchannel::{Connection, TOKEN_LIFETIME_MS};

pub(crate) const START: Timestamp = Timestamp(1_773_915_330_000);
pub(crate) const SESSION: &str = "sess_1";
pub(crate) const CODE: &str = "428913";
const WRONG_TRIES_MAX: u32 = 5;

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
    pub(crate) closed: Option<u16>,
    /// The client's half of its key, the key, and its token, once it has them.
    pub(crate) secret: Option<[u8; 32]>,
    pub(crate) key: Option<Key>,
    pub(crate) token: String,
    count: u8,
    is_following: bool,
}

impl Client {
    /// What a client that has a key says instead of this.
    pub(crate) fn seal(&mut self, matter: &Value) -> Value {
        self.count += 1;
        self.seal_under([self.count; 12], matter)
    }

    pub(crate) fn seal_under(&self, nonce: [u8; 12], matter: &Value) -> Value {
        let mut buffer = matter.to_string().into_bytes();
        self.key.as_ref().unwrap().seal_in_place(nonce, &mut buffer);
        json!({ "nonce": seal::encode(&nonce), "ciphertext": seal::encode(&buffer) })
    }

    /// What was sealed for this client; `None` when it was not for it.
    pub(crate) fn opened(&self, payload: &Value) -> Option<Value> {
        let e2e = &payload["e2e"];
        let nonce = seal::decode_exactly(e2e["nonce"].as_str()?)?;
        let ciphertext = seal::decode(e2e["ciphertext"].as_str()?)?;
        serde_json::from_slice(&self.key.as_ref()?.open(nonce, &ciphertext)?).ok()
    }
}

/// What the server keeps of a client.
struct Kept {
    principal: Principal,
    key: Option<[u8; 32]>,
    expires_at: Option<Timestamp>,
}

pub(crate) struct Relay {
    pub(crate) now: Timestamp,
    pub(crate) clients: BTreeMap<String, Client>,
    pub(crate) session: Session,
    pub(crate) drafts: Drafts,
    /// Answers of the shell that do not come until asked for.
    pub(crate) is_slow: bool,
    /// Whether there is any session at all.
    pub(crate) is_empty: bool,
    pub(crate) codes: Vec<(String, Role)>,
    pub(crate) lists: usize,
    wrong_tries: u32,
    tokens: BTreeMap<String, Kept>,
    spent: BTreeSet<(String, [u8; 12])>,
    late: Vec<(String, u64, Answer)>,
    count: u64,
}

impl Relay {
    /// A session on a machine, a code that is valid, and nobody watching.
    pub(crate) fn new() -> Self {
        let mut relay = Self {
            now: START,
            clients: BTreeMap::new(),
            session: Session::default(),
            drafts: Drafts::default(),
            is_slow: false,
            is_empty: false,
            codes: vec![(CODE.to_owned(), Role::Operator)],
            lists: 0,
            wrong_tries: 0,
            tokens: BTreeMap::new(),
            spent: BTreeSet::new(),
            late: vec![],
            count: 0,
        };
        let via = Via { connection: "proxy_1".into(), link: Some("link".into()) };
        let meta = Box::new(Meta::of_agent("codex".into()));
        let up = Change::Up { via, meta, health: Health::Healthy, activity: None };
        relay.say(&Command::Relay(up)).unwrap();
        let of_owner = Principal {
            credential: "tok_1".into(),
            role: Role::Owner,
            client: None,
            name: "o's laptop".to_owned(),
        };
        let kept = Kept { principal: of_owner, key: None, expires_at: None };
        relay.tokens.insert("fh_owner".to_owned(), kept);
        relay
    }

    /// With one client that is paired, with a key, and follows the session.
    pub(crate) fn paired() -> Self {
        let mut relay = Self::new();
        relay.pair("a", Role::Operator);
        relay
    }

    /// Opens a connection with a key of its own and pairs it.
    pub(crate) fn pair(&mut self, name: &str, role: Role) {
        self.codes = vec![(CODE.to_owned(), role)];
        self.open(name, "");
        let secret = [name.as_bytes()[0]; 32];
        let public = seal::encode(&Secret::from(secret).public());
        self.client(name).secret = Some(secret);
        self.json(
            name,
            &json!({ "v": 1, "type": "pairing_request", "session_id": "default",
                "payload": { "pairing_code": CODE, "client_pub": public } }),
        );
        assert_eq!(self.heard(name)[0]["type"], "pairing_result");
    }

    /// Opens a connection. One whose address shows a token is whose the token is.
    pub(crate) fn open(&mut self, name: &str, query: &str) {
        let shown = query.split('&').find_map(|pair| pair.strip_prefix("token="));
        let principal = shown.map(|token| self.tokens[token].principal.clone());
        self.count += 1;
        let connection = format!("conn_{name}_{}", self.count).into();
        let limits = Limits { max_content_bytes: 70_000, ..Limits::default() };
        let seed = [u8::try_from(self.count).unwrap(); 32];
        let machine = Connection::new(connection, principal, query, limits, seed, self.now);
        let client = Client {
            machine,
            gauge: Gauge::default(),
            heard: vec![],
            closed: None,
            secret: None,
            key: None,
            token: shown.unwrap_or_default().to_owned(),
            count: 0,
            is_following: false,
        };
        self.clients.insert(name.to_owned(), client);
        let now = self.now;
        let acts = self.client(name).machine.on_open(now);
        self.carry_out(name, acts);
    }

    /// The same client on a new connection.
    pub(crate) fn reopen(&mut self, name: &str, query: &str) {
        let old = self.clients.remove(name).unwrap();
        self.open(name, query);
        let client = self.client(name);
        (client.secret, client.key) = (old.secret, old.key);
        (client.token, client.count) = (old.token, old.count);
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

    /// An envelope with the client's token.
    pub(crate) fn envelope(&mut self, name: &str, kind: &str, request: &str, payload: Value) {
        let mut frame =
            json!({ "v": 1, "type": kind, "session_id": "default", "request_id": request });
        frame["payload"] = payload;
        frame["payload"]["access_token"] = json!(self.client(name).token);
        self.json(name, &frame);
    }

    /// Says something, sealed where there is a key.
    pub(crate) fn user(&mut self, name: &str, request: &str, text: &str) {
        let matter = json!({ "content": text, "sender_id": "ui-1" });
        let client = self.client(name);
        let payload = match client.key {
            Some(_) => json!({ "e2e": client.seal(&matter) }),
            None => json!({ "content": text }),
        };
        self.envelope(name, "user_message", request, payload);
    }

    /// What a client heard since it was last asked.
    pub(crate) fn heard(&mut self, name: &str) -> Vec<Value> {
        std::mem::take(&mut self.client(name).heard)
    }

    /// The codes of the errors that it heard, and nothing else.
    pub(crate) fn errors(&mut self, name: &str) -> Vec<String> {
        let code = |frame: &Value| {
            assert_eq!(frame["type"], "error", "{frame}");
            assert!(frame["payload"]["message"].as_str().is_some_and(|it| !it.is_empty()));
            frame["payload"]["code"].as_str().unwrap().to_owned()
        };
        self.heard(name).iter().map(code).collect()
    }

    pub(crate) fn revoke(&mut self, name: &str) {
        let token = self.client(name).token.clone();
        self.tokens.remove(&token);
        let acts = self.client(name).machine.on_revoked();
        self.carry_out(name, acts);
    }

    pub(crate) fn forget_tokens(&mut self) {
        self.tokens.clear();
    }

    pub(crate) fn tick(&mut self, name: &str) {
        let now = self.now;
        let acts = self.client(name).machine.on_tick(now);
        self.carry_out(name, acts);
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

    /// The machine does everything that it is owed.
    pub(crate) fn obey(&mut self) {
        for order in self.session.owed() {
            let report = match order {
                Order::Deliver { send, attempt } => {
                    Report::SendDelivered { id: send.id, attempt: Some(attempt), run: None }
                }
                Order::Answer { request, .. } | Order::Control { request, .. } => {
                    Report::ControlResult { request, failure: None }
                }
            };
            self.report(report);
        }
    }

    pub(crate) fn asks(&mut self, id: &str) {
        let effects = [Some(Effect::AllowOnce), Some(Effect::Reject), Some(Effect::AllowAlways)];
        self.asks_with(id, effects);
    }

    /// A question with the buttons yes, no and always, of which the agent says so much.
    pub(crate) fn asks_with(&mut self, id: &str, effects: [Option<Effect>; 3]) {
        let choice = |(id, effect): (&str, Option<Effect>)| Choice {
            id: id.into(),
            label: id.to_uppercase(),
            is_default: id == "no",
            effect,
        };
        let detail = Detail {
            tool: Some("Bash".to_owned()),
            tool_call: Some("t1".into()),
            input: Some(r#"{"command":"ls"}"#.to_owned()),
            ..Detail::default()
        };
        self.report(Report::Asked(Prompt {
            id: id.into(),
            text: Content::Open("Run this command? ls".to_owned()),
            choices: ["yes", "no", "always"].into_iter().zip(effects).map(choice).collect(),
            expiry: None,
            detected_at: START,
            run: None,
            detail: Some(Content::Open(detail)),
        }));
    }

    pub(crate) fn says(&mut self, id: &str, author: Author, parts: Content<Vec<Part>>) {
        self.drafts.finish(&id.into());
        let (run, parent, digest) = (None, None, None);
        let created_at = START;
        let message = Message { id: id.into(), author, parts, created_at, run, parent, digest };
        self.report(Report::Message { message, has_own_id: true, echo: None });
    }

    /// The agent says something, whole.
    pub(crate) fn agent(&mut self, id: &str, text: &str) {
        let parts = Content::Open(vec![Part::Text(text.to_owned())]);
        self.says(id, Author::Assistant, parts);
    }

    pub(crate) fn calls(&mut self, id: &str, input: Option<&str>) {
        let detail = ToolDetail { input: input.map(str::to_owned), ..ToolDetail::default() };
        self.report(Report::ToolCall(ToolCall {
            id: id.into(),
            tool: "Bash".to_owned(),
            kind: ToolKind::Execute,
            status: ToolStatus::Running,
            detail: Content::Open(detail),
            run: None,
            parent: None,
        }));
    }

    pub(crate) fn called(&mut self, id: &str, status: ToolStatus, output: Option<&str>) {
        let detail = ToolDetail { output: output.map(str::to_owned), ..ToolDetail::default() };
        let detail = Content::Open(detail);
        self.report(Report::ToolUpdate(ToolUpdate { id: id.into(), status, detail }));
    }

    pub(crate) fn starts(&mut self, run: &str) {
        self.report(Report::RunStarted { run: run.into(), cause: None });
    }

    pub(crate) fn ends(&mut self, run: &str, outcome: Outcome) {
        self.report(Report::RunEnded { run: run.into(), outcome, usage: None });
    }

    pub(crate) fn streams(&mut self, message: &str, at: u64, words: &str) {
        let (part, voice) = (0, Voice::Text);
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

    /// A client was too slow: it is shown how things stand.
    pub(crate) fn lag(&mut self, name: &str) {
        let followed = *self.followed(SESSION.into());
        let now = self.now;
        let acts = self.client(name).machine.on_caught_up(followed, now);
        self.carry_out(name, acts);
    }

    pub(crate) fn say(&mut self, command: &Command) -> Result<Vec<Recorded>, Refusal> {
        let recorded = self.session.perform(command, Policy::default(), self.now)?;
        for event in &recorded {
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
        let client = self.client(name);
        let was_stranger = client.machine.principal().is_none();
        let mut acts = client.machine.on_answer(ticket, answer, now);
        if was_stranger && client.machine.principal().is_some() {
            acts.extend(client.machine.on_known(&mut client.gauge, now));
        }
        self.carry_out(name, acts);
    }

    fn carry_out(&mut self, name: &str, acts: Vec<Act>) {
        for act in acts {
            match act {
                Act::Send(frame) => self.hear(name, &frame),
                Act::Close { code, .. } => self.client(name).closed = Some(code),
                Act::List { ticket } => {
                    self.lists += 1;
                    let listed = Answer::Listed(self.listings());
                    self.answer(name, ticket, listed);
                }
                Act::Follow { session, ticket } => {
                    let is_there = session.as_str() == SESSION && !self.is_empty;
                    let followed = is_there.then(|| self.followed(session));
                    self.client(name).is_following = followed.is_some();
                    self.answer(name, ticket, Answer::Followed(followed));
                }
                Act::Wish { session, wish, ticket } => {
                    assert_eq!(session.as_str(), SESSION);
                    let principal = self.client(name).machine.principal().cloned().unwrap();
                    let done = self.say(&Command::Person(principal, *wish));
                    self.answer(name, ticket, Answer::Done(done.map_err(Denied::Refused)));
                }
                Act::Pair { code, name: called, key, ticket } => {
                    let paired = self.redeem(&code, called, key);
                    self.answer(name, ticket, Answer::Paired(paired));
                }
                Act::Recognise { token, ticket } => {
                    let good = |kept: &&Kept| kept.expires_at.is_none_or(|at| self.now < at);
                    let known = self.tokens.get(&token).filter(good).map(|kept| {
                        let (principal, key) = (kept.principal.clone(), kept.key);
                        Box::new(Recognised { principal, key, expires_at: kept.expires_at })
                    });
                    self.answer(name, ticket, Answer::Recognised(known));
                }
                Act::Spend { credential, nonce, ticket } => {
                    let is_new = self.spent.insert((credential.to_string(), nonce));
                    self.answer(name, ticket, Answer::Spent(is_new));
                }
                other @ (Act::Launch { .. }
                | Act::Glance { .. }
                | Act::Figures { .. }
                | Act::Read { .. }
                | Act::Store { .. }
                | Act::Load { .. }
                | Act::Identify { .. }) => panic!("this dialect never asks for {other:?}"),
            }
        }
    }

    fn hear(&mut self, name: &str, frame: &Bytes) {
        let frame: Value = serde_json::from_slice(frame).unwrap();
        let client = self.client(name);
        if frame["type"] == "pairing_result" {
            let payload = &frame["payload"];
            client.token = payload["access_token"].as_str().unwrap().to_owned();
            if let (Some(secret), Some(public)) =
                (client.secret, payload["e2e"]["agent_pub"].as_str())
            {
                let public = seal::decode_exactly(public).unwrap();
                client.key = Key::agree(&Secret::from(secret), &public);
            }
        }
        client.heard.push(frame);
    }

    fn redeem(
        &mut self,
        code: &str,
        name: String,
        key: Option<[u8; 32]>,
    ) -> Result<(Principal, String), Failure> {
        if self.wrong_tries >= WRONG_TRIES_MAX {
            return Err(Failure::new("rate_limited", "Too many wrong codes were tried"));
        }
        let Some(at) = self.codes.iter().position(|(known, _)| known == code) else {
            self.wrong_tries += 1;
            return Err(Failure::new("pairing_code_invalid", "The code is wrong"));
        };
        let (_, role) = self.codes.remove(at);
        let token = format!("fh_{}", self.tokens.len());
        let credential = format!("web_{}", self.tokens.len()).into();
        let principal = Principal { credential, role, client: None, name };
        let expires_at = Some(self.now.plus_ms(TOKEN_LIFETIME_MS));
        let kept = Kept { principal: principal.clone(), key, expires_at };
        self.tokens.insert(token.clone(), kept);
        Ok((principal, token))
    }

    fn listings(&self) -> Vec<Listing> {
        if self.is_empty {
            return vec![];
        }
        let mut older = self.session.card();
        older.status.last_seen_at = Timestamp(1);
        let mut archived = self.session.card();
        archived.status.archived = true;
        archived.status.last_seen_at = Timestamp(u64::MAX);
        let listing = |id: &str, card| {
            let head = self.session.head();
            Listing { id: SessionId::from(id), head, card: Arc::new(card) }
        };
        vec![
            listing("sess_old", older),
            listing(SESSION, self.session.card()),
            listing("sess_put_away", archived),
        ]
    }

    fn followed(&self, session: SessionId) -> Box<Followed> {
        let (head, glance) = (self.session.head(), self.session.glance());
        Box::new(Followed { session, head, glance, drafts: self.drafts.replay() })
    }
}

/// The types of frames, in order.
pub(crate) fn kinds(frames: &[Value]) -> Vec<&str> {
    frames.iter().map(|frame| frame["type"].as_str().unwrap()).collect()
}
