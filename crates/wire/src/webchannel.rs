//! The webchannel dialect (`docs/spec/webchannel.md`): a chat page that is paired by a code and
//! seals its messages with its own key.
//!
//! **Invariant**: a client receives nothing of a session before it has authenticated. Frames are
//! handled in order, each after whatever the one before it had to wait for.
//!
//! Not here: pairing codes, tokens and spent nonces (`server`).

mod approvals;
mod envelope;
mod join;
mod pairing;
pub mod seal;
mod sends;
mod shown;
mod stream;
mod who;

use std::collections::{BTreeMap, VecDeque};

use domain::passing::Passing;
use domain::session::prompts::Prompt;
use domain::session::{Recorded, Wish};
use domain::{ConnectionId, MessageId, Principal, PromptId, SessionId, Timestamp};

use self::envelope::{Broken, DEFAULT_SESSION, Frame, Said, Writer};
use self::join::NO_SESSION;
use self::pairing::Pairing;
use self::seal::Chance;
use self::stream::Streaming;
use self::who::Speaker;
use crate::port::{Limits, Throttle};
use crate::visitor::{Act, Answer, Encoded, Followed, Visitor};

/// What the ids of credentials begin with that were made by pairing here.
pub const CREDENTIAL_PREFIX: &str = "web";
/// How long such a credential is good.
pub const TOKEN_LIFETIME_MS: u64 = 30 * 24 * 60 * 60 * 1_000;
/// The nonces of a key that are remembered, newest last.
pub const NONCES_REMEMBERED_MAX: usize = 4_096;

/// What a client puts into its address that has no key and needs none.
const PLAIN: &str = "plain";
/// Frames that wait for the one before them. More are refused.
const WAITING_MAX: usize = 64;
/// Sends and decisions that wait for the relay. More are refused.
const IN_FLIGHT_MAX: usize = 64;
/// Frames of a client that did not show who it is. More close the socket.
const STRANGE_FRAMES_MAX: usize = 32;
/// How long a client may take to pair.
const PAIRING_WITHIN_MS: u64 = 600_000;

/// Close codes of this dialect.
mod close {
    pub(super) const NOT_JSON: u16 = 1007;
    pub(super) const TOO_MUCH: u16 = 1008;
    pub(super) const NOBODY: u16 = 4001;
    pub(super) const REVOKED: u16 = 4003;
}

/// Whether this is a client that was paired here: it says its token in every message.
pub fn is_paired(principal: &Principal) -> bool {
    let id = principal.credential.as_str();
    id.strip_prefix(CREDENTIAL_PREFIX).is_some_and(|rest| rest.starts_with('_'))
}

/// One client's connection.
#[derive(Debug)]
pub struct Connection {
    /// Names what this connection makes.
    own_name: ConnectionId,
    /// Who opened the socket with a credential of another kind.
    opener: Option<Principal>,
    /// The token in the socket's address, if a client that was paired here opened it.
    shown: Option<String>,
    known: Option<Known>,
    limits: Limits,
    chance: Chance,
    opened_at: Timestamp,
    writer: Writer,
    /// Whether the client said which session it means.
    is_named: bool,
    /// Whether its address did: then it means that one and no other.
    is_addressed: bool,
    /// Whether it is known how to speak to this client. Until then it gets nothing that would be
    /// sealed for a client with a key.
    may_speak: bool,
    session: Option<SessionId>,
    prompts: BTreeMap<PromptId, Prompt>,
    streaming: Streaming,
    tickets: BTreeMap<u64, Asked>,
    count: u64,
    /// The answer that the next frame waits for.
    busy: Option<u64>,
    waiting: VecDeque<Frame>,
    strange_frames: usize,
    /// Sends that are not delivered yet, with the ids that their sender gave them.
    own_sends: VecDeque<OwnSend>,
}

/// A send of this connection.
#[derive(Debug)]
struct OwnSend {
    id: MessageId,
    request: Option<String>,
}

/// Somebody who showed a token.
#[derive(Debug)]
struct Known {
    token: String,
    principal: Principal,
    key: Option<seal::Key>,
    expires_at: Option<Timestamp>,
}

/// What was asked of the shell.
#[derive(Debug)]
enum Asked {
    Pair(Box<Pairing>),
    /// Who shows the token of the frame that is next, or of the address.
    Recognise(String),
    List,
    /// The session that the client named.
    FollowNamed,
    Follow,
    Spend {
        nonce: [u8; seal::NONCE_BYTES],
        request: Option<String>,
        text: String,
    },
    Send(MessageId),
    Answer(String),
}

impl Connection {
    /// A socket opened. `query` is what its address said behind the question mark, `seed` what
    /// nobody else has drawn.
    pub fn new(
        connection: ConnectionId,
        principal: Option<Principal>,
        query: &str,
        limits: Limits,
        seed: [u8; seal::KEY_BYTES],
        now: Timestamp,
    ) -> Self {
        let value = |wanted: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(name, value)| *name == wanted && !value.is_empty()).map(|(_, it)| it)
        };
        let named = value("session_id");
        let paired = principal.as_ref().is_some_and(is_paired);
        Self {
            own_name: connection,
            opener: principal.filter(|who| !is_paired(who)),
            shown: value("token").filter(|_| paired).map(str::to_owned),
            known: None,
            limits,
            chance: Chance::new(seed),
            opened_at: now,
            writer: Writer::new(named.unwrap_or(DEFAULT_SESSION)),
            is_named: named.is_some(),
            is_addressed: named.is_some_and(|named| named != DEFAULT_SESSION),
            may_speak: paired || value(PLAIN).is_some_and(|it| it == "1"),
            session: None,
            prompts: BTreeMap::new(),
            streaming: Streaming::default(),
            tickets: BTreeMap::new(),
            count: 0,
            busy: None,
            waiting: VecDeque::new(),
            strange_frames: 0,
            own_sends: VecDeque::new(),
        }
    }

    fn who(&self) -> Option<&Principal> {
        self.known.as_ref().map(|known| &known.principal).or(self.opener.as_ref())
    }

    /// Takes the frames that need not wait.
    fn advance(&mut self, now: Timestamp) -> Vec<Act> {
        let mut acts = vec![];
        while self.busy.is_none() {
            let Some(frame) = self.waiting.pop_front() else { break };
            if let Some(frame) = self.step(frame, now, &mut acts) {
                self.waiting.push_front(frame);
            }
        }
        acts
    }

    /// Takes a frame, or gives it back until what it waits for is there.
    fn step(&mut self, frame: Frame, now: Timestamp, acts: &mut Vec<Act>) -> Option<Frame> {
        if let Said::Pairing { code, public, name } = frame.said {
            let (request, session) = (frame.request, frame.session);
            acts.extend(self.on_pairing(request, session, code, public.as_ref(), name));
            return None;
        }
        match self.identify(&frame, now) {
            Speaker::Known => {}
            Speaker::Asked(act) => {
                acts.push(act);
                return Some(frame);
            }
            Speaker::Nobody(words) => {
                acts.push(self.unauthorized(frame.request.as_deref(), words));
                return None;
            }
        }
        self.name_session(&frame.session);
        // From here on it is known how to speak to this client.
        let was_heard = std::mem::replace(&mut self.may_speak, true);
        match &self.session {
            None => {
                acts.extend(self.find_session());
                return Some(frame);
            }
            Some(session) if !was_heard => {
                let session = session.clone();
                acts.push(self.follow(session));
                return Some(frame);
            }
            Some(_) => {}
        }
        acts.extend(match frame.said {
            Said::Pairing { .. } => vec![],
            Said::User { content, sealed } => self.on_user(frame.request, content, sealed, now),
            Said::Approval { approved, reason, is_sealed } => {
                self.on_approval(frame.request.as_deref(), approved, reason, is_sealed)
            }
        });
        None
    }

    fn wish(&self, wish: Wish, ticket: u64) -> Vec<Act> {
        let Some(session) = self.session.clone() else { return vec![] };
        vec![Act::Wish { session, wish: Box::new(wish), ticket }]
    }

    fn ticket(&mut self, asked: Asked) -> u64 {
        self.count += 1;
        self.tickets.insert(self.count, asked);
        self.count
    }

    fn is_full(&self) -> bool {
        self.tickets.len() >= IN_FLIGHT_MAX
    }

    fn too_much(&self, request: Option<&str>) -> Act {
        let words = "Too many messages at once; try again in a moment";
        Act::Send(self.writer.error(request, "rate_limited", words))
    }

    fn unauthorized(&self, request: Option<&str>, words: &str) -> Act {
        Act::Send(self.writer.error(request, "unauthorized", words))
    }
}

impl Visitor for Connection {
    fn principal(&self) -> Option<&Principal> {
        self.who()
    }

    fn on_open(&mut self, _now: Timestamp) -> Vec<Act> {
        let mut acts = vec![self.unblock()];
        match self.shown.take() {
            Some(token) => acts.push(self.recognise(token)),
            None if self.opener.is_some() => acts.extend(self.find_session()),
            None => {}
        }
        acts
    }

    fn on_text(&mut self, text: &str, throttle: &mut dyn Throttle, now: Timestamp) -> Vec<Act> {
        let is_stranger = self.who().is_none();
        if is_stranger {
            self.strange_frames += 1;
            if self.strange_frames > STRANGE_FRAMES_MAX {
                let reason = "too many frames without an access token";
                return vec![Act::Close { code: close::TOO_MUCH, reason }];
            }
        }
        let may_speak = is_stranger || throttle.frame(now);
        let frame = match envelope::read(text) {
            Ok(frame) => frame,
            Err(_) if !may_speak => return vec![],
            Err(Broken::NotJson) => {
                return vec![Act::Close { code: close::NOT_JSON, reason: "the frame is not JSON" }];
            }
            Err(Broken::Envelope { request, words }) => {
                let error = self.writer.error(request.as_deref(), "invalid_payload", &words);
                return vec![Act::Send(error)];
            }
        };
        let is_full = self.waiting.len() >= WAITING_MAX;
        let may_send = is_stranger || !frame.is_send() || throttle.send(now);
        if !may_speak || is_full || !may_send {
            return vec![self.too_much(frame.request.as_deref())];
        }
        self.waiting.push_back(frame);
        self.advance(now)
    }

    fn on_answer(&mut self, ticket: u64, answer: Answer, now: Timestamp) -> Vec<Act> {
        let Some(asked) = self.tickets.remove(&ticket) else { return vec![] };
        let was_stranger = self.who().is_none();
        self.busy.take_if(|busy| *busy == ticket);
        let mut acts = match (asked, answer) {
            (Asked::Pair(pairing), Answer::Paired(paired)) => self.on_paired(*pairing, paired, now),
            (Asked::Recognise(token), Answer::Recognised(known)) => {
                self.on_recognised(token, known.map(|known| *known))
            }
            (Asked::List, Answer::Listed(listed)) => self.on_listed(&listed),
            (Asked::FollowNamed | Asked::Follow, Answer::Followed(Some(followed))) => {
                self.on_followed(&followed)
            }
            (Asked::FollowNamed, Answer::Followed(None)) if self.is_addressed => {
                // It was erased, perhaps. What is meant for it is not for another.
                self.no_session("This session no longer exists; open another one")
            }
            (Asked::FollowNamed, Answer::Followed(None)) => {
                // Pages call their only session what they like: the one in which something
                // happened last.
                let ticket = self.ticket(Asked::List);
                self.busy = Some(ticket);
                vec![Act::List { ticket }]
            }
            (Asked::Follow, Answer::Followed(None)) => self.no_session(NO_SESSION),
            (Asked::Spend { nonce, request, text }, Answer::Spent(is_new)) => {
                self.on_spent(is_new, &nonce, request, text, now)
            }
            (Asked::Send(id), Answer::Done(done)) => self.on_sent(&id, done),
            (Asked::Answer(id), Answer::Done(done)) => self.on_answered(&id, done),
            // The shell answers what was asked.
            (
                Asked::Pair(_)
                | Asked::Recognise(_)
                | Asked::List
                | Asked::FollowNamed
                | Asked::Follow
                | Asked::Spend { .. }
                | Asked::Send(_)
                | Asked::Answer(_),
                _,
            ) => vec![],
        };
        // What a stranger said is counted first, for whom it turned out to be.
        if !was_stranger || self.who().is_none() {
            acts.extend(self.advance(now));
        }
        acts
    }

    fn on_known(&mut self, throttle: &mut dyn Throttle, now: Timestamp) -> Vec<Act> {
        let mut acts = vec![];
        for frame in std::mem::take(&mut self.waiting) {
            if throttle.frame(now) && (!frame.is_send() || throttle.send(now)) {
                self.waiting.push_back(frame);
            } else {
                acts.push(self.too_much(frame.request.as_deref()));
            }
        }
        acts.extend(self.advance(now));
        acts
    }

    fn on_event(&mut self, recorded: &Recorded, encoded: &Encoded, acts: &mut Vec<Act>) {
        if self.session.is_some() {
            self.show(recorded, encoded, acts);
        }
    }

    fn on_passing(&mut self, passing: &Passing, encoded: &Encoded, acts: &mut Vec<Act>) {
        if self.session.is_some() && self.may_speak {
            self.chunk(&passing.delta, encoded, acts);
        }
    }

    fn on_caught_up(&mut self, followed: Followed, _now: Timestamp) -> Vec<Act> {
        if !self.may_speak {
            return vec![];
        }
        self.drafts(&followed.drafts)
    }

    fn on_revoked(&mut self) -> Vec<Act> {
        let words = "This client was revoked; pair it again with farhelm pair";
        let reason = "the token was revoked";
        vec![self.unauthorized(None, words), Act::Close { code: close::REVOKED, reason }]
    }

    fn on_tick(&mut self, now: Timestamp) -> Vec<Act> {
        if self.deadline().is_none_or(|at| now < at) {
            return vec![];
        }
        if self.who().is_none() {
            let reason = "nobody was paired in time";
            return vec![Act::Close { code: close::NOBODY, reason }];
        }
        let words = "access_token is invalid or expired";
        let reason = "the token is no longer good";
        vec![self.unauthorized(None, words), Act::Close { code: close::REVOKED, reason }]
    }

    fn deadline(&self) -> Option<Timestamp> {
        match (&self.known, &self.opener) {
            (Some(known), _) => known.expires_at,
            (None, Some(_)) => None,
            (None, None) => Some(self.opened_at.plus_ms(PAIRING_WITHIN_MS)),
        }
    }
}
