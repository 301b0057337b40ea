//! The session of a connection.
//!
//! **Invariant**: a connection shows one session, named by its address or its first envelope and
//! by no later one.

use domain::SessionId;
use domain::session::prompts::Settled;

use super::envelope::{DEFAULT_SESSION, Writer};
use super::stream::Streaming;
use super::{Asked, Connection, approvals};
use crate::port::Listing;
use crate::visitor::{Act, Followed};

/// What a client hears while there is no session at all.
pub(super) const NO_SESSION: &str =
    "No sessions yet; start one with farhelm launch or in another client";

impl Connection {
    /// The first envelope says which session is meant, unless the address did.
    pub(super) fn name_session(&mut self, name: &str) {
        if self.is_named {
            return;
        }
        self.is_named = true;
        if self.writer.label() != name {
            self.writer = Writer::new(name);
            self.session = None;
        }
    }

    pub(super) fn find_session(&mut self) -> Vec<Act> {
        let label = self.writer.label();
        let named = SessionId::parse(label).filter(|_| label != DEFAULT_SESSION);
        let ticket = match &named {
            Some(_) => self.ticket(Asked::FollowNamed),
            None => self.ticket(Asked::List),
        };
        self.busy = Some(ticket);
        vec![named.map_or(Act::List { ticket }, |session| Act::Follow { session, ticket })]
    }

    pub(super) fn on_listed(&mut self, listed: &[Listing]) -> Vec<Act> {
        let Some(session) = most_recent(listed) else { return self.no_session(NO_SESSION) };
        vec![self.follow(session)]
    }

    pub(super) fn follow(&mut self, session: SessionId) -> Act {
        let ticket = self.ticket(Asked::Follow);
        self.busy = Some(ticket);
        Act::Follow { session, ticket }
    }

    pub(super) fn on_followed(&mut self, followed: &Followed) -> Vec<Act> {
        self.session = Some(followed.session.clone());
        self.streaming = Streaming::default();
        let open = followed.glance.card.prompts.iter().cloned();
        let known = std::mem::take(&mut self.prompts);
        self.prompts = open.map(|prompt| (prompt.id.clone(), prompt)).collect();
        // Questions that ended while nobody looked, or are of the session before.
        let gone = known.keys().filter(|id| !self.prompts.contains_key(*id));
        let over = |id| approvals::settled(&self.writer, id, None, None, &Settled::Withdrawn);
        let mut acts: Vec<Act> = gone.map(|id| Act::Send(over(id))).collect();
        acts.extend(self.greet(followed, &known));
        acts
    }

    /// There is none to be with. Nothing is said to the one before.
    pub(super) fn no_session(&mut self, words: &str) -> Vec<Act> {
        self.session = None;
        let Some(frame) = self.waiting.pop_front() else { return vec![] };
        let request = frame.request.as_deref();
        vec![Act::Send(self.writer.error(request, "session_unknown", words))]
    }
}

/// The session in which something happened last, of those that people still see.
fn most_recent(listed: &[Listing]) -> Option<SessionId> {
    let rank = |listing: &&Listing| {
        let status = &listing.card.status;
        (!status.is_closed(), !status.archived, status.last_seen_at, listing.head)
    };
    listed.iter().max_by_key(rank).map(|listing| listing.id.clone())
}
