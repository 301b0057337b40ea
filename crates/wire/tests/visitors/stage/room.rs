//! One session and what the shell knows of it.

use std::sync::Arc;

use domain::passing::Drafts;
use domain::session::{Recorded, ReplayCursor, Session};
use domain::{Sequence, SessionId};
use wire::port::{Listing, PageOf};
use wire::visitor::Followed;

/// One session and its ledger.
#[derive(Default)]
pub(crate) struct Room {
    pub(crate) session: Session,
    pub(crate) cursor: ReplayCursor,
    pub(crate) ledger: Vec<Recorded>,
    pub(crate) drafts: Drafts,
    /// How many of its first events are no longer there.
    pub(crate) forgotten: usize,
}

impl Room {
    pub(crate) fn followed(&self, session: SessionId) -> Box<Followed> {
        let (head, glance) = (self.session.head(), self.session.glance());
        Box::new(Followed { session, head, glance, drafts: self.drafts.replay() })
    }

    pub(crate) fn listing(&self, id: &SessionId) -> Listing {
        let (head, card) = (self.session.head(), Arc::new(self.session.card()));
        Listing { id: id.clone(), head, card }
    }

    pub(crate) fn page(&self, after: Sequence, upto: Option<Sequence>, limit: usize) -> PageOf {
        let fits = |it: &&Recorded| it.sequence > after && upto.is_none_or(|to| it.sequence <= to);
        let kept = &self.ledger[self.forgotten..];
        let all: Vec<_> = kept.iter().filter(fits).cloned().collect();
        let has_more = all.len() > limit;
        let events = all.into_iter().take(limit).collect();
        let first_kept = Sequence(self.forgotten as u64 + 1);
        PageOf { events, head: self.session.head(), first_kept, has_more }
    }
}
