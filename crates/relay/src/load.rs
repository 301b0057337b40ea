//! Loads a state from the ledger: the newest stored state and the events after it.
//!
//! **Invariant**: a loaded state is what all events up to the head lead to. A stored state that
//! cannot be read, or has an older shape, is replaced by a replay of the events. If some of those
//! events are missing, an older state is still used, without what its shape lacks. Without one,
//! loading fails instead of continuing from a part.
//!
//! Not here: what the events mean (`domain`), their bytes (`store`).

use std::future::Future;

use domain::fleet::{self, Fleet};
use domain::session::{self, Session};
use domain::{Sequence, SessionId};
use store::codec::Stored;
use store::{Epoch, Fault};

use crate::books::{Books, EventsAsked};

/// Events that are read at once.
const PAGE_EVENTS: usize = 4_096;

/// A state that events lead to.
pub(crate) trait Replayed: Default + Send {
    /// What it is made of.
    type Event: Send;
    /// From its stored form.
    fn decode(body: &[u8]) -> Result<Stored<Self>, Fault>;
    /// The events that are asked for, and the oldest one that is kept.
    fn read(
        books: &Books,
        ask: EventsAsked,
    ) -> impl Future<Output = Result<(Vec<Self::Event>, Sequence), Fault>> + Send;
    /// The last event in it.
    fn head(&self) -> Sequence;
    /// One more.
    fn apply(&mut self, event: &Self::Event);
}

/// A state, and the right to go on from it.
pub(crate) struct Loaded<S> {
    pub state: S,
    pub epoch: Epoch,
    /// The last event in the stored state, or zero; `None` where the stored one is of no use and
    /// a new one should be stored.
    pub stored_at: Option<Sequence>,
}

/// Takes over a stream and brings its state back.
pub(crate) async fn load<S: Replayed>(
    books: &Books,
    stream: &SessionId,
) -> Result<Loaded<S>, Fault> {
    let lease = books.acquire(stream).await?;
    let unreadable = |why: &str| {
        tracing::warn!(%stream, why, "cannot use a stored state; replaying its events");
    };
    let (mut start, mut older, mut stored_at) = (S::default(), None, None);
    match lease.snapshot.as_ref().map(|it| (it.sequence, S::decode(&it.body))) {
        Some((sequence, Ok(stored))) if stored.state.head() == sequence => {
            if stored.is_older {
                tracing::debug!(%stream, "state of an earlier release; replaying its events");
                older = Some(stored.state);
            } else {
                (start, stored_at) = (stored.state, Some(sequence));
            }
        }
        Some((_, Ok(_))) => unreadable("it belongs to another event"),
        Some((_, Err(fault))) => unreadable(&fault.to_string()),
        None if lease.is_snapshot_damaged => unreadable("its checksum is wrong"),
        None => stored_at = Some(Sequence(0)),
    }
    let state = match (catch_up(books, stream, start, lease.head).await, older) {
        (Err(Fault::Corrupt { detail, .. }), Some(older)) => {
            tracing::warn!(%stream, detail, "replay failed; using the stored state");
            catch_up(books, stream, older, lease.head).await?
        }
        (replayed, _) => replayed?,
    };
    Ok(Loaded { state, epoch: lease.epoch, stored_at })
}

/// Applies the events that a state lacks.
async fn catch_up<S: Replayed>(
    books: &Books,
    stream: &SessionId,
    mut state: S,
    head: Sequence,
) -> Result<S, Fault> {
    while state.head() < head {
        let (after, upto) = (state.head(), Some(head));
        let ask = EventsAsked { stream: stream.clone(), after, upto, limit: PAGE_EVENTS };
        let (events, first_kept) = S::read(books, ask).await?;
        if events.is_empty() || first_kept > after.next() {
            let detail = format!("the events after {after} are missing");
            return Err(Fault::Corrupt { stream: Some(stream.clone()), detail });
        }
        for event in &events {
            state.apply(event);
        }
    }
    Ok(state)
}

impl Replayed for Session {
    type Event = session::Recorded;

    fn decode(body: &[u8]) -> Result<Stored<Self>, Fault> {
        store::codec::decode_session(body)
    }

    async fn read(books: &Books, ask: EventsAsked) -> Result<(Vec<Self::Event>, Sequence), Fault> {
        let page = books.events(ask).await?;
        Ok((page.events, page.first_kept))
    }

    fn head(&self) -> Sequence {
        Session::head(self)
    }

    fn apply(&mut self, event: &Self::Event) {
        Session::apply(self, event);
    }
}

impl Replayed for Fleet {
    type Event = fleet::Recorded;

    fn decode(body: &[u8]) -> Result<Stored<Self>, Fault> {
        store::codec::decode_fleet(body)
    }

    async fn read(books: &Books, ask: EventsAsked) -> Result<(Vec<Self::Event>, Sequence), Fault> {
        let page = books.raw(ask).await?;
        let events = page.entries.iter().map(|it| store::codec::decode_fleet_event(&it.body));
        Ok((events.collect::<Result<_, _>>()?, page.first_kept))
    }

    fn head(&self) -> Sequence {
        Fleet::head(self)
    }

    fn apply(&mut self, event: &Self::Event) {
        Fleet::apply(self, event);
    }
}
