//! How a connection joins a session, and what it is shown first.
//!
//! **Invariant**: a client receives the events of one session at a time. Commands that it sends
//! during a join wait and are handled in order.
//!
//! Not here: which sessions exist (`sessions`).

use std::collections::VecDeque;

use bytes::Bytes;
use domain::passing::Delta;
use domain::{SessionId, Timestamp};
use serde_json::json;

use super::events::{Turn, plain};
use super::frames::Frame;
use super::messages::{encode, trouble};
use super::stream::{self, How, Streaming, Told};
use super::view::{Tools, View};
use super::{Asked, Connection, Stage, dialogs, sessions};
use crate::port::{Denied, Listing, PageOf};
use crate::visitor::{Act, Followed};

/// The close code of a connection without a credential.
const FORBIDDEN: u16 = 4003;
/// The close code of a client that says too much before it was let in.
const TOO_MUCH: u16 = 1008;
/// Events before the join that are looked through for tools at work.
const LOOK_BACK_EVENTS: u64 = 256;
/// Commands that wait for the join, and their bytes; more close the socket. A single one may be
/// larger: it may carry pictures.
const EARLY_MAX: usize = 64;
const EARLY_BYTES_MAX: usize = 8 << 20;
const NO_CREDENTIAL: &str = "This connection has no credential";

/// What the address asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// By its id or its path.
    pub(super) session: Option<String>,
    /// Whether every update carries the whole message so far.
    pub(super) is_full: bool,
}

impl Wanted {
    /// Reads what stands behind the question mark. What is unknown is ignored.
    pub(super) fn read(query: &str) -> Self {
        let mut wanted = Self::default();
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            match name {
                "session" if !value.is_empty() => {
                    wanted.session = Some(value.replace("%2F", "/").replace("%2f", "/"));
                }
                "partial" => wanted.is_full = value == "full",
                _ => {}
            }
        }
        wanted
    }
}

/// Why a connection goes to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// It just opened.
    Open,
    /// Its client asked for that one.
    Switch,
    /// Its client asked for a new one.
    New,
}

/// The way to a session.
#[derive(Debug)]
pub(super) struct Joining {
    why: Why,
    /// Where to; `None` until that is known.
    target: Option<SessionId>,
    tools: Tools,
}

/// Frames that came before the session was reached, in their order.
#[derive(Debug, Default)]
pub(super) struct Early {
    frames: VecDeque<Frame>,
    bytes: usize,
}

impl Connection {
    pub(super) fn open(&mut self) -> Vec<Act> {
        if self.principal.is_none() {
            self.stage = Stage::Refused(NO_CREDENTIAL, FORBIDDEN);
            return vec![Act::Close { code: FORBIDDEN, reason: NO_CREDENTIAL }];
        }
        self.set_out(Why::Open);
        vec![Act::List { ticket: self.ticket(Asked::Where) }]
    }

    fn set_out(&mut self, why: Why) {
        self.stage = Stage::Joining(Joining { why, target: None, tools: Tools::default() });
    }

    /// Whether frames wait until a session is reached.
    pub(super) fn is_on_the_way(&self) -> bool {
        self.is_switching || matches!(self.stage, Stage::Joining(_))
    }

    /// A frame came before the session was reached.
    pub(super) fn hold(&mut self, frame: Frame, bytes: usize) -> Vec<Act> {
        let early = &mut self.early;
        let is_too_much = early.bytes + bytes > EARLY_BYTES_MAX && !early.frames.is_empty();
        if early.frames.len() >= EARLY_MAX || is_too_much {
            let reason = "too many commands before the session was joined";
            return vec![Act::Close { code: TOO_MUCH, reason }];
        }
        early.bytes += bytes;
        early.frames.push_back(frame);
        vec![]
    }

    /// The sessions are known: goes to the one that the address names, else to the latest.
    pub(super) fn on_where(&mut self, mut listings: Vec<Listing>, now: Timestamp) -> Vec<Act> {
        let found = if let Some(named) = self.wanted.session.as_deref() {
            sessions::named(&listings, named).cloned()
        } else {
            sessions::latest_first(&mut listings);
            listings.retain(|listing| !listing.card.status.archived);
            // Nothing can be said to a session that is closed.
            let open = listings.iter().position(|listing| !listing.card.status.is_closed());
            listings.into_iter().nth(open.unwrap_or(0))
        };
        let Some(found) = found else {
            let words = match &self.wanted.session {
                Some(_) => "Session file not found",
                None => "No sessions yet",
            };
            let mut acts = vec![Act::Send(encode(&trouble("session", words)))];
            acts.extend(self.stay_alone(now));
            return acts;
        };
        vec![self.approach(&found)]
    }

    /// Goes to a session that is there.
    pub(super) fn go(&mut self, listing: &Listing, why: Why) -> Vec<Act> {
        let mut acts: Vec<_> = self.release_late().collect();
        self.leave();
        self.set_out(why);
        acts.push(self.approach(listing));
        acts
    }

    /// Goes to a session that has just come into being.
    pub(super) fn go_new(&mut self, session: SessionId) -> Vec<Act> {
        let mut acts: Vec<_> = self.release_late().collect();
        self.leave();
        self.set_out(Why::New);
        acts.push(self.follow(session));
        acts
    }

    /// During a run, what tools are at work is looked up first.
    fn approach(&mut self, listing: &Listing) -> Act {
        let session = listing.id.clone();
        if let Stage::Joining(joining) = &mut self.stage {
            joining.target = Some(session.clone());
        }
        if listing.card.run.is_none() {
            return self.follow(session);
        }
        let after = domain::Sequence(listing.head.0.saturating_sub(LOOK_BACK_EVENTS));
        let ticket = self.ticket(Asked::LookBack(session.clone()));
        let limit = usize::try_from(LOOK_BACK_EVENTS * 2).unwrap_or(usize::MAX);
        Act::Read { session, after, upto: None, limit, ticket }
    }

    pub(super) fn on_look_back(
        &mut self,
        session: SessionId,
        page: Result<PageOf, Denied>,
    ) -> Vec<Act> {
        if !self.goes_to(&session) {
            return vec![];
        }
        let Stage::Joining(joining) = &mut self.stage else { return vec![] };
        for recorded in page.into_iter().flat_map(|page| page.events) {
            joining.tools.learn(&recorded.event);
        }
        vec![self.follow(session)]
    }

    fn follow(&mut self, session: SessionId) -> Act {
        if let Stage::Joining(joining) = &mut self.stage {
            joining.target = Some(session.clone());
        }
        let ticket = self.ticket(Asked::Follow(session.clone()));
        Act::Follow { session, ticket }
    }

    /// Whether this is where it goes; it may have been sent elsewhere since.
    fn goes_to(&self, session: &SessionId) -> bool {
        match &self.stage {
            Stage::Joining(joining) => joining.target.as_ref() == Some(session),
            Stage::Following | Stage::Alone | Stage::Refused(..) => false,
        }
    }

    pub(super) fn on_followed(
        &mut self,
        session: &SessionId,
        followed: Option<Box<Followed>>,
        now: Timestamp,
    ) -> Vec<Act> {
        if !self.goes_to(session) {
            return vec![];
        }
        let Stage::Joining(joining) = &mut self.stage else { return vec![] };
        let Some(followed) = followed else {
            let mut acts = vec![Act::Send(encode(&trouble("session", "Session file not found")))];
            acts.extend(self.stay_alone(now));
            return acts;
        };
        let (why, tools) = (joining.why, std::mem::take(&mut joining.tools));
        self.view = View::of(&followed, tools);
        let mut acts = vec![];
        if let Some(reason) = match why {
            Why::Open => None,
            Why::Switch => Some("switch"),
            Why::New => Some("new"),
        } {
            acts.push(Act::Send(self.changed(reason)));
        }
        acts.extend(self.greet(&followed.drafts).into_iter().map(Act::Send));
        self.stage = Stage::Following;
        acts.extend(self.take_early(now));
        acts
    }

    /// Takes what was said meanwhile.
    pub(super) fn take_early(&mut self, now: Timestamp) -> Vec<Act> {
        let mut acts = vec![];
        // One of them may ask to go on to another session: the rest is for that one.
        while !self.is_on_the_way() {
            let Some(frame) = self.early.frames.pop_front() else {
                self.early.bytes = 0;
                break;
            };
            acts.extend(self.take(frame, now));
        }
        acts
    }

    fn stay_alone(&mut self, now: Timestamp) -> Vec<Act> {
        self.view = View::new(SessionId::from(""));
        self.stage = Stage::Alone;
        self.take_early(now)
    }

    /// Nothing of the session before goes on.
    fn leave(&mut self) {
        self.streaming = Streaming::new(self.wanted.is_full);
        self.turn = Turn::default();
        self.maybe_last = None;
        self.held.clear();
        self.first = None;
        self.chosen_model = None;
        self.dialogs.clear();
        self.readings.leave();
    }

    fn changed(&self, reason: &str) -> Bytes {
        let mut frame = json!({
            "type": "session_changed", "reason": reason, "sessionId": self.view.session,
            "sessionFile": self.view.path(),
            "messageCount": self.view.messages, "leafId": null,
        });
        if let Some(name) = self.view.name() {
            frame["sessionName"] = json!(name);
        }
        encode(&frame)
    }

    /// How things stand: a run that goes on, words in the making, questions, what waits.
    fn greet(&mut self, drafts: &[Delta]) -> Vec<Bytes> {
        let mut told = vec![];
        if self.view.run.is_some() {
            told.push(plain("agent_start"));
        }
        told.extend(self.drafts(drafts, How::Joining));
        told.extend(self.view.prompts.values().map(|prompt| encode(&dialogs::request(prompt))));
        if self.view.queue.len() > 0 {
            told.push(self.view.queue.update());
        }
        told
    }

    /// Words in the making, on from where this client is.
    pub(super) fn drafts(&mut self, drafts: &[Delta], how: How) -> Vec<Bytes> {
        let mut told = vec![];
        for delta in drafts {
            if self.streaming.begins(delta) && how == How::Live {
                told.extend(self.begin_message());
            }
            match self.streaming.take(&self.view, delta, how) {
                Told::Own(frames) => told.extend(frames),
                Told::Shared(frames) => {
                    told.extend(frames);
                    let said = delta.words.open().map_or("", String::as_str);
                    told.push(stream::words(delta.voice, delta.part, said));
                }
            }
        }
        told
    }
}
