//! Which sessions a client watches, and what it receives of the others (feature `watch`).
//!
//! **Invariant**: of a session that it watches, a client receives every event after the last event
//! up to which it had received all of them.
//!
//! Not here: a client's position in a session (`feeds`), reading what it missed (`history`).

use std::collections::BTreeSet;

use domain::session::{Card, Event};
use domain::{Sequence, SessionId, Timestamp};

use super::commands::Broken;
use super::{ClientConnection, Feature, Output, Purpose, SESSIONS_NAMED_MAX};
use crate::native::frames::{Others, Watch};

/// What a client looks at. Until it says so: everything.
#[derive(Debug, Default)]
pub(super) struct Watching {
    /// `None`: the passing events of all sessions.
    named: Option<BTreeSet<SessionId>>,
    others: Others,
}

impl Watching {
    fn is_named(&self, session: &SessionId) -> bool {
        self.named.as_ref().is_none_or(|named| named.contains(session))
    }

    /// One more. At the bound the client has to say anew what it looks at.
    fn name(&mut self, session: &SessionId) {
        let named = self.named.get_or_insert_default();
        if named.len() < SESSIONS_NAMED_MAX {
            named.insert(session.clone());
        }
    }

    /// Whether every recorded event of this session is told.
    pub(super) fn hears_all(&self, session: &SessionId) -> bool {
        match self.others {
            Others::All => true,
            Others::Cards => self.is_named(session),
        }
    }
}

impl ClientConnection {
    pub(super) fn watch(&mut self, watch: &Watch, now: Timestamp) -> Result<Vec<Output>, Broken> {
        if watch.sessions.len() > SESSIONS_NAMED_MAX {
            return Err(format!("watch takes at most {SESSIONS_NAMED_MAX} sessions"));
        }
        let parse = |raw: &String| SessionId::parse(raw).ok_or("watch names an invalid session id");
        let named: BTreeSet<_> = watch.sessions.iter().map(parse).collect::<Result<_, _>>()?;
        let others = watch.others.unwrap_or_default();
        let before = std::mem::replace(&mut self.watching, Watching { named: Some(named), others });
        let mut outputs = vec![];
        for session in self.feeds.keys().cloned().collect::<Vec<_>>() {
            let misses = self.catch_up_on(&session, now);
            let is_fresh = !before.is_named(&session) && self.hears_passing(&session);
            if misses.is_empty() && is_fresh {
                outputs.push(Output::Drafts(session));
            } else {
                outputs.extend(misses);
            }
        }
        Ok(outputs)
    }

    /// Whoever does something in a session looks at it.
    pub(super) fn look_at(&mut self, session: &SessionId, now: Timestamp) -> Vec<Output> {
        if self.watching.hears_all(session) {
            return vec![];
        }
        self.watching.name(session);
        self.catch_up_on(session, now)
    }

    /// The same, where the client itself says from where it wants to be told everything.
    pub(super) fn look_at_from_elsewhere(&mut self, session: &SessionId) {
        if let Some(feed) = self.feeds.get_mut(session) {
            feed.told_all_to = None;
        }
        if !self.watching.hears_all(session) {
            self.watching.name(session);
        }
    }

    /// What a client that looks at this session now was not told of it; for one that does not,
    /// from where that will be.
    fn catch_up_on(&mut self, session: &SessionId, now: Timestamp) -> Vec<Output> {
        let hears_all = self.watching.hears_all(session);
        let Some(feed) = self.feeds.get_mut(session) else { return vec![] };
        if !hears_all {
            feed.told_all_to.get_or_insert(feed.tail.cursor());
            return vec![];
        }
        let Some(after) = feed.told_all_to.take() else { return vec![] };
        if feed.tail.cursor() == after && !feed.is_reading() {
            return vec![];
        }
        feed.wants_drafts = true;
        self.ask(session, Purpose::Delta(None), after, now)
    }

    /// Whether this client is told this event when it comes.
    pub(super) fn hears(&mut self, session: &SessionId, event: &Event, at: Sequence) -> bool {
        if self.watching.hears_all(session) {
            return true;
        }
        // A session that came up since the client said what it looks at.
        if let Some(feed) = self.feeds.get_mut(session) {
            feed.told_all_to.get_or_insert(Sequence(at.0.saturating_sub(1)));
        }
        Card::shows(event)
    }

    /// Whether this client wants the passing events of that session.
    pub(super) fn hears_passing(&self, session: &SessionId) -> bool {
        self.watching.is_named(session) && self.has(Feature::Deltas) && self.principal.is_some()
    }
}
