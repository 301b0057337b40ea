//! The stage with connections of this dialect, and clients with keys.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::content::{Failure, Usage};
use domain::session::Report;
use domain::session::prompts::{Detail, Effect};
use domain::session::status::Meta;
use domain::{ConnectionId, Principal, Role, SessionId, Timestamp};
use serde_json::{Value, json};
use wire::port::{Limits, Listing};
use wire::visitor::{Act, Answer, Recognised, Visitor};
use wire::webchannel::seal::{self, Key, Secret};
use wire::webchannel::{Connection, TOKEN_LIFETIME_MS};

use crate::visitors::stage::{Shell, Stage, machine};

pub(crate) const START: Timestamp = Timestamp(1_773_915_330_000);
pub(crate) const SESSION: &str = "sess_1";
pub(crate) const CODE: &str = "428913";
const WRONG_TRIES_MAX: u32 = 5;

pub(crate) type Relay = Stage<Webchannel>;

/// What a client keeps: its half of the key, the key, and its token, once it has them.
#[derive(Default)]
pub(crate) struct Keys {
    pub(crate) secret: Option<[u8; 32]>,
    pub(crate) key: Option<Key>,
    pub(crate) token: String,
    count: u8,
}

impl Keys {
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

pub(crate) struct Webchannel {
    /// Whether there is any session at all.
    pub(crate) is_empty: bool,
    /// A session that was erased.
    pub(crate) erased: Option<SessionId>,
    pub(crate) codes: Vec<(String, Role)>,
    pub(crate) lists: usize,
    wrong_tries: u32,
    tokens: BTreeMap<String, Kept>,
    spent: BTreeSet<(String, [u8; 12])>,
}

impl Shell for Webchannel {
    const START: Timestamp = START;
    const SESSION: &'static str = SESSION;
    type Own = Keys;

    /// One whose address shows a token is whose the token is.
    fn connect(
        stage: &Relay,
        connection: ConnectionId,
        _: &str,
        query: &str,
    ) -> (Box<dyn Visitor>, Keys) {
        let shown = query.split('&').find_map(|pair| pair.strip_prefix("token="));
        let principal = shown.map(|token| stage.shell.tokens[token].principal.clone());
        let limits = Limits { max_content_bytes: 70_000, ..Limits::default() };
        let seed = [u8::try_from(stage.count).unwrap(); 32];
        let machine = Connection::new(connection, principal, query, limits, seed, stage.now);
        let token = shown.unwrap_or_default().to_owned();
        (Box::new(machine), Keys { token, ..Keys::default() })
    }

    fn carry_out(stage: &mut Relay, _: &str, act: Act) -> Option<(u64, Answer)> {
        Some(match act {
            Act::List { ticket } => {
                stage.shell.lists += 1;
                (ticket, Answer::Listed(stage.look_around()))
            }
            Act::Pair { code, name, key, ticket } => {
                (ticket, Answer::Paired(stage.redeem(&code, name, key)))
            }
            Act::Recognise { token, ticket } => {
                let good = |kept: &&Kept| kept.expires_at.is_none_or(|at| stage.now < at);
                let known = stage.shell.tokens.get(&token).filter(good).map(|kept| {
                    let (principal, key) = (kept.principal.clone(), kept.key);
                    Box::new(Recognised { principal, key, expires_at: kept.expires_at })
                });
                (ticket, Answer::Recognised(known))
            }
            Act::Spend { credential, nonce, ticket } => {
                let is_new = stage.shell.spent.insert((credential.to_string(), nonce));
                (ticket, Answer::Spent(is_new))
            }
            other @ (Act::Send(_)
            | Act::Close { .. }
            | Act::Follow { .. }
            | Act::Wish { .. }
            | Act::Glance { .. }
            | Act::Figures { .. }
            | Act::Launch { .. }
            | Act::Read { .. }
            | Act::Store { .. }
            | Act::Load { .. }
            | Act::Identify { .. }) => panic!("this dialect never asks for {other:?}"),
        })
    }

    fn usage() -> Option<Usage> {
        None
    }

    fn has(&self, session: &SessionId) -> bool {
        !self.is_empty && self.erased.as_ref() != Some(session)
    }

    fn hear(keys: &mut Keys, frame: &Value) {
        if frame["type"] != "pairing_result" {
            return;
        }
        let payload = &frame["payload"];
        payload["access_token"].as_str().unwrap().clone_into(&mut keys.token);
        let public = payload["e2e"]["agent_pub"].as_str();
        if let (Some(secret), Some(public)) = (keys.secret, public) {
            let public = seal::decode_exactly(public).unwrap();
            keys.key = Key::agree(&Secret::from(secret), &public);
        }
    }

    /// `"$token"` is the client's token, `"$public"` its public key, and an `e2e` of
    /// `{"seal": …}` is sealed.
    fn said(keys: &mut Keys, name: &str, frame: &str) -> String {
        let mut frame = frame.replace("$token", &keys.token);
        if frame.contains("$public") {
            let secret = [name.as_bytes()[0]; 32];
            keys.secret = Some(secret);
            frame = frame.replace("$public", &seal::encode(&Secret::from(secret).public()));
        }
        let mut frame: Value = serde_json::from_str(&frame).unwrap();
        if let Some(matter) = frame.pointer_mut("/payload/e2e/seal").map(Value::take) {
            frame["payload"]["e2e"] = keys.seal(&matter);
        }
        frame.to_string()
    }

    /// An `e2e` has what was sealed as `opened`.
    fn seen(keys: &Keys, mut heard: Value) -> Value {
        if let Some(opened) = keys.opened(&heard["payload"]) {
            heard["payload"]["e2e"]["opened"] = opened;
        }
        heard
    }
}

impl Relay {
    /// A session on a machine, a code that is valid, and nobody watching.
    pub(crate) fn new() -> Self {
        let of_owner = Principal {
            credential: "tok_1".into(),
            role: Role::Owner,
            client: None,
            name: "o's laptop".to_owned(),
        };
        let kept = Kept { principal: of_owner, key: None, expires_at: None };
        let shell = Webchannel {
            is_empty: false,
            erased: None,
            codes: vec![(CODE.to_owned(), Role::Operator)],
            lists: 0,
            wrong_tries: 0,
            tokens: [("fh_owner".to_owned(), kept)].into(),
            spent: BTreeSet::new(),
        };
        Self::begin(shell, Meta::of_agent("codex".into()))
    }

    /// With one client that is paired, with a key, and follows the session.
    pub(crate) fn paired() -> Self {
        let mut relay = Self::new();
        relay.pair("a", Role::Operator);
        relay
    }

    /// Opens a connection with a key of its own and pairs it.
    pub(crate) fn pair(&mut self, name: &str, role: Role) {
        self.shell.codes = vec![(CODE.to_owned(), role)];
        self.opened(name, "");
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

    /// The same client on a new connection.
    pub(crate) fn reopen(&mut self, name: &str, query: &str) {
        let old = self.clients.remove(name).unwrap();
        self.opened(name, query);
        self.client(name).own = old.own;
    }

    /// Opens a connection and passes over what every opening begins with.
    pub(crate) fn opened(&mut self, name: &str, query: &str) {
        self.open(name, query);
        let first = self.client(name).heard.remove(0);
        assert_eq!(first["payload"], json!({ "content": "" }), "{first}");
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
        self.shell.tokens.remove(&token);
        let acts = self.client(name).machine.on_revoked();
        self.carry_out(name, acts);
    }

    pub(crate) fn forget_tokens(&mut self) {
        self.shell.tokens.clear();
    }

    pub(crate) fn asks(&mut self, id: &str) {
        let effects = [Some(Effect::AllowOnce), Some(Effect::Reject), Some(Effect::AllowAlways)];
        self.asks_with(id, effects);
    }

    /// A question with the buttons yes, no and always, of which the agent says so much.
    pub(crate) fn asks_with(&mut self, id: &str, effects: [Option<Effect>; 3]) {
        let detail = Detail {
            tool: Some("Bash".to_owned()),
            tool_call: Some("t1".into()),
            input: Some(r#"{"command":"ls"}"#.to_owned()),
            ..Detail::default()
        };
        let choices: Vec<_> = ["yes", "no", "always"].into_iter().zip(effects).collect();
        self.report(Report::Asked(machine::prompt(id, &choices, "no", Some(detail), START)));
    }

    pub(crate) fn asks_about(
        &mut self,
        id: &str,
        choices: &[(&str, Option<Effect>)],
        detail: Detail,
    ) {
        self.report(Report::Asked(machine::prompt(id, choices, "no", Some(detail), START)));
    }

    pub(crate) fn calls(&mut self, id: &str, input: Option<&str>) {
        self.calls_tool(id, "Bash", input);
    }

    fn redeem(
        &mut self,
        code: &str,
        name: String,
        key: Option<[u8; 32]>,
    ) -> Result<(Principal, String), Failure> {
        let expires_at = Some(self.now.plus_ms(TOKEN_LIFETIME_MS));
        let shell = &mut self.shell;
        if shell.wrong_tries >= WRONG_TRIES_MAX {
            return Err(Failure::new("rate_limited", "Too many wrong codes"));
        }
        let Some(at) = shell.codes.iter().position(|(known, _)| known == code) else {
            shell.wrong_tries += 1;
            return Err(Failure::new("pairing_code_invalid", "The code is wrong"));
        };
        let (_, role) = shell.codes.remove(at);
        let token = format!("fh_{}", shell.tokens.len());
        let credential = format!("web_{}", shell.tokens.len()).into();
        let principal = Principal { credential, role, client: None, name };
        let kept = Kept { principal: principal.clone(), key, expires_at };
        shell.tokens.insert(token.clone(), kept);
        Ok((principal, token))
    }

    /// The session among others: an older one, and one that was put away.
    fn look_around(&self) -> Vec<Listing> {
        if self.shell.is_empty {
            return vec![];
        }
        let session = &self.room().session;
        let mut older = session.card();
        older.status.last_seen_at = Timestamp(1);
        let mut archived = session.card();
        archived.status.archived = true;
        archived.status.last_seen_at = Timestamp(u64::MAX);
        let listing = |id: &str, card| Listing {
            id: SessionId::from(id),
            head: session.head(),
            card: Arc::new(card),
        };
        vec![
            listing("sess_old", older),
            listing(SESSION, session.card()),
            listing("sess_put_away", archived),
        ]
    }
}

/// The types of frames, in order.
pub(crate) fn kinds(frames: &[Value]) -> Vec<&str> {
    frames.iter().map(|frame| frame["type"].as_str().unwrap()).collect()
}
