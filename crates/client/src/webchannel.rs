//! One webchannel client across its connections: pairing, its key, and when to reconnect.
//!
//! **Invariant**: a client with a key sends nothing unsealed except decisions; input that cannot
//! be read does no harm. Only a client that was connected and still has its token reconnects.
//!
//! Not here: the relay's end of the dialect (`wire`), sockets, keeping [`Auth`] over restarts.

mod heard;

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};
use wire::webchannel::seal::{self, Chance, Key, Secret};

pub use self::heard::Happening;

/// The first wait before a socket is opened again; it doubles up to the longest.
pub const RECONNECT_FIRST_MS: u64 = 1_000;
/// The longest wait.
pub const RECONNECT_LONGEST_MS: u64 = 30_000;
/// How long a token is taken to be good where the relay does not say.
pub const TOKEN_LIFETIME_DEFAULT_S: u64 = 86_400;
/// Tool calls that are remembered without a result; of more, the oldest are forgotten.
pub const TOOLS_OPEN_MAX: usize = 256;
/// Questions that may wait; of more, the newest are not asked. The relay holds fewer.
pub const APPROVALS_OPEN_MAX: usize = 64;
/// What a client calls itself inside what it seals.
const SENDER: &str = "ui-1";
/// Sessions are called this by clients that have one.
const DEFAULT_SESSION: &str = "default";

/// What outlives the program, if whoever runs it keeps it.
#[derive(Clone, PartialEq, Eq)]
pub struct Auth {
    /// Shown with every message.
    pub access_token: String,
    /// What this client and the relay seal with; without one everything is said openly.
    pub key: Option<[u8; 32]>,
    /// For how many seconds from the pairing the token is good.
    pub expires_in_s: u64,
}

impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Auth").field("expires_in_s", &self.expires_in_s).finish_non_exhaustive()
    }
}

/// Where a client stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// No socket.
    Disconnected,
    /// A socket is being opened.
    Connecting,
    /// Open, and without a token.
    Pairing,
    /// Open, with a token.
    Paired,
    /// Something was said.
    Chatting,
}

/// One client across its connections.
#[derive(Debug)]
pub struct Machine {
    session: String,
    auth: Option<Auth>,
    /// Whether the socket is opened with another credential, so that no token is needed.
    is_let_in: bool,
    should_reconnect: bool,
    state: State,
    /// Sockets that were opened again in vain since the last one that opened.
    attempts: u32,
    key: Option<Key>,
    /// Our half of a key, until the relay tells its own.
    secret: Option<Secret>,
    chance: Chance,
    count: u64,
    /// Calls without a result, oldest first: by request id, with their names.
    tools: VecDeque<(String, String)>,
    approvals: BTreeMap<String, String>,
    /// The agent's words so far, of the message in the making.
    streaming: Option<String>,
}

impl Machine {
    /// A client of this session that was paired before, or is to be. `seed` is what nobody else
    /// has drawn.
    pub fn new(session: &str, auth: Option<Auth>, seed: [u8; 32]) -> Self {
        let session = if session.is_empty() { DEFAULT_SESSION } else { session };
        let key = auth.as_ref().and_then(|auth| auth.key).map(Key::from);
        Self {
            session: session.to_owned(),
            auth,
            is_let_in: false,
            should_reconnect: true,
            state: State::Disconnected,
            attempts: 0,
            key,
            secret: None,
            chance: Chance::new(seed),
            count: 0,
            tools: VecDeque::new(),
            approvals: BTreeMap::new(),
            streaming: None,
        }
    }

    /// A client whose sockets are opened with another credential of the relay.
    pub fn let_in(session: &str, seed: [u8; 32]) -> Self {
        Self { is_let_in: true, ..Self::new(session, None, seed) }
    }

    /// Where it stands.
    pub fn state(&self) -> State {
        self.state
    }

    /// What to keep for the next time, if it is paired.
    pub fn auth(&self) -> Option<&Auth> {
        self.auth.as_ref()
    }

    /// The path to dial, with the token if there is one: so it is known from the first moment.
    pub fn address(&self) -> String {
        let token = self.auth.as_ref().map(|auth| format!("&token={}", auth.access_token));
        format!("/ws/webchannel?session_id={}{}", self.session, token.unwrap_or_default())
    }

    /// A socket is being opened.
    pub fn on_dial(&mut self) {
        self.state = State::Connecting;
    }

    /// It is open.
    pub fn on_opened(&mut self) {
        self.attempts = 0;
        self.streaming = None;
        // Open questions are asked again, and nobody says what became of the others.
        self.approvals.clear();
        let is_in = self.auth.is_some() || self.is_let_in;
        self.state = if is_in { State::Paired } else { State::Pairing };
    }

    /// It closed by itself. When to open it again, if at all.
    pub fn on_closed(&mut self) -> Option<u64> {
        let was_in = matches!(self.state, State::Paired | State::Chatting);
        let is_trying = self.state == State::Connecting && self.attempts > 0;
        self.state = State::Disconnected;
        let has_token = self.auth.is_some() || self.is_let_in;
        if !(was_in || is_trying) || !has_token || !self.should_reconnect {
            return None;
        }
        let doubled = RECONNECT_FIRST_MS.checked_shl(self.attempts).unwrap_or(u64::MAX);
        let delay_ms = doubled.min(RECONNECT_LONGEST_MS);
        self.attempts = self.attempts.saturating_add(1).min(16);
        // Half of it for sure, and of the other half as much as chance has it.
        let [one, other, ..] = self.chance.nonce();
        let share = u64::from(u16::from_le_bytes([one, other]));
        Some(delay_ms / 2 + delay_ms / 2 * share / u64::from(u16::MAX))
    }

    /// The person closes it, and it stays closed.
    pub fn close(&mut self) {
        self.should_reconnect = false;
        self.state = State::Disconnected;
    }

    /// Asks to be let in with the six digits that the relay showed.
    pub fn pair(&mut self, code: &str) -> Value {
        let secret = self.chance.secret();
        let public = seal::encode(&secret.public());
        self.secret = Some(secret);
        let payload = json!({ "pairing_code": code, "client_pub": public });
        self.envelope("pairing_request", None, payload)
    }

    /// Words for the agent: sealed with a key, else openly.
    pub fn say(&mut self, text: &str) -> Value {
        let mut payload = match &self.key {
            None => json!({ "content": text, "sender_id": SENDER }),
            Some(key) => {
                let matter = json!({ "content": text, "sender_id": SENDER });
                let (nonce, mut buffer) = (self.chance.nonce(), matter.to_string().into_bytes());
                key.seal_in_place(nonce, &mut buffer);
                json!({ "e2e": {
                    "nonce": seal::encode(&nonce), "ciphertext": seal::encode(&buffer),
                } })
            }
        };
        self.sign(&mut payload);
        self.count += 1;
        if self.state == State::Paired {
            self.state = State::Chatting;
        }
        let request = format!("m-{}", self.count);
        self.envelope("user_message", Some(&request), payload)
    }

    /// Decides a question. It no longer waits afterwards; `None` when it does not.
    pub fn decide_on(&mut self, request: &str, approved: bool) -> Option<Value> {
        self.approvals.remove(request)?;
        let mut payload = json!({ "approved": approved });
        self.sign(&mut payload);
        Some(self.envelope("approval_response", Some(request), payload))
    }

    /// The questions that wait, with what they are about.
    pub fn approvals(&self) -> impl Iterator<Item = (&str, &str)> {
        self.approvals.iter().map(|(id, action)| (id.as_str(), action.as_str()))
    }

    /// The agent's words so far, of the message in the making.
    pub fn streaming(&self) -> Option<&str> {
        self.streaming.as_deref()
    }

    fn sign(&self, payload: &mut Value) {
        if let Some(auth) = &self.auth {
            payload["access_token"] = json!(auth.access_token);
        }
    }

    fn envelope(&self, kind: &str, request: Option<&str>, payload: Value) -> Value {
        let mut envelope = json!({ "v": 1, "type": kind, "session_id": self.session });
        envelope["payload"] = payload;
        if let Some(request) = request {
            envelope["request_id"] = json!(request);
        }
        envelope
    }
}

#[cfg(test)]
mod tests;
