//! Reading ahead: while one page of a long history is encoded, the next one is read.
//!
//! **Invariant**: a page that was read ahead is used only if the ledger continues after it. The
//! last page is always read when it is needed, so that no event recorded meanwhile is missed.
//!
//! Not here: which pages a client needs (`wire`), reading itself (`books`).

use domain::{Sequence, SessionId};
use store::Fault;
use tokio::sync::oneshot;
use wire::native::{Denied, ReadJob};

use crate::Relay;
use crate::books::{EventPage, EventsAsked};

/// A page that is being read, or is there.
#[derive(Debug)]
pub(super) struct Ahead {
    session: SessionId,
    after: Sequence,
    limit: usize,
    page: oneshot::Receiver<Result<EventPage, Fault>>,
}

impl Ahead {
    /// Whether it is what this job asks for.
    fn fits(&self, job: &ReadJob) -> bool {
        let Self { session, after, limit, page: _ } = self;
        *session == job.session && *after == job.after && *limit == job.limit && job.upto.is_none()
    }
}

/// Reads a page, unless it is here already, and begins with the one after it.
pub(super) async fn read(
    relay: &Relay,
    job: &ReadJob,
    ahead: Option<Ahead>,
) -> (Result<EventPage, Denied>, Option<Ahead>) {
    let page = match ahead.filter(|ahead| ahead.fits(job)) {
        Some(ahead) => ahead.page.await.ok().and_then(Result::ok),
        None => None,
    };
    let page = match page.filter(|page| page.has_more) {
        Some(page) => Ok(page),
        None => relay.history(&job.session, job.after, job.upto, job.limit).await,
    };
    let next = page.as_ref().ok().and_then(|page| begin_next(relay, job, page));
    (page, next)
}

fn begin_next(relay: &Relay, job: &ReadJob, page: &EventPage) -> Option<Ahead> {
    // A page that its bytes cut short is not read ahead: a client that takes nothing would hold
    // on to it.
    let is_light = page.events.len() == job.limit;
    if !page.has_more || !is_light || job.upto.is_some() {
        return None;
    }
    let (session, after, limit) = (job.session.clone(), page.events.last()?.sequence, job.limit);
    let ask = EventsAsked { stream: session.clone(), after, upto: None, limit };
    Some(Ahead { session, after, limit, page: relay.books().begin_events(ask) })
}
