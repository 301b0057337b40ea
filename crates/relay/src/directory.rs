//! The directory: every session's card and head, for lists and greetings.
//!
//! It is a projection of committed events, never a source of decisions. Its writer sets the card
//! before the head, and a reader takes the head before the card. A client that reads a head and
//! then follows the hub therefore misses nothing.
//!
//! Not here: the cards' content (`domain`), the lists on disk (`store`).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use domain::session::Card;
use domain::{Sequence, SessionId};
use wire::native::Listing;

/// Every session's card and head.
#[derive(Debug, Default)]
pub struct Directory(RwLock<BTreeMap<SessionId, Entry>>);

#[derive(Debug)]
struct Entry {
    head: AtomicU64,
    card: Arc<Card>,
}

impl Directory {
    /// A session's card changed, or it is new.
    pub(crate) fn show(&self, session: &SessionId, card: Card) {
        let card = Arc::new(card);
        let mut entries = self.write();
        match entries.get_mut(session) {
            Some(entry) => entry.card = card,
            None => {
                entries.insert(session.clone(), Entry { head: AtomicU64::new(0), card });
            }
        }
    }

    /// A session's ledger grew.
    pub(crate) fn advance(&self, session: &SessionId, head: Sequence) {
        if let Some(entry) = self.read().get(session) {
            entry.head.store(head.0, Ordering::Release);
        }
    }

    /// A session was erased.
    pub(crate) fn remove(&self, session: &SessionId) {
        self.write().remove(session);
    }

    /// Whether there is such a session.
    pub fn knows(&self, session: &SessionId) -> bool {
        self.read().contains_key(session)
    }

    /// One session.
    pub fn get(&self, session: &SessionId) -> Option<Listing> {
        self.read().get(session).map(|entry| listing(session, entry))
    }

    /// The head of one session.
    pub fn head(&self, session: &SessionId) -> Option<Sequence> {
        self.read().get(session).map(|entry| Sequence(entry.head.load(Ordering::Acquire)))
    }

    /// All sessions, by id.
    pub fn all(&self) -> Vec<Listing> {
        self.read().iter().map(|(session, entry)| listing(session, entry)).collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<SessionId, Entry>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<SessionId, Entry>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn listing(session: &SessionId, entry: &Entry) -> Listing {
    let head = Sequence(entry.head.load(Ordering::Acquire));
    Listing { id: session.clone(), head, card: entry.card.clone() }
}
