//! The books: the ledger as asynchronous tasks use it.
//!
//! One writer commits everything that is waiting (group commit); readers run beside it. In
//! production both are threads, because a commit waits for the disk. In a simulation they are
//! tasks.
//!
//! The queues are unbounded by type but bounded in use: an owner has at most
//! `APPENDS_IN_FLIGHT_MAX` appends waiting, a connection a few reads.
//!
//! Not here: what is in an append (`owner`), how it gets to disk (`store`).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use domain::session::delivery::Told;
use domain::{MessageId, Sequence, SessionId, session};
use store::{Append, AppendRefused, Fault, Lease, Ledger, Page, Reader, Retention, StreamRow};
use tokio::sync::{mpsc, oneshot};

use crate::metrics::Metrics;
use crate::ports::Clock;
use crate::tasks::Tasks;

/// Appends that share one commit.
const GROUP_MAX: usize = 1_024;
/// Threads that read.
const READERS: usize = 2;
/// The bytes of one page of history.
pub const PAGE_BYTES_MAX: usize = 1 << 20;

/// What became of an append.
pub type Appended = Result<(), Lost>;

/// Why an append was not recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lost {
    /// Only this stream's append.
    Refused(AppendRefused),
    /// The whole group.
    Fault(Fault),
}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(refused) => refused.fmt(f),
            Self::Fault(fault) => fault.fmt(f),
        }
    }
}

/// Who is told about an append: its owner, by ticket.
pub(crate) type AppendReply = (mpsc::UnboundedSender<(u64, Appended)>, u64);

pub(crate) enum Write {
    Append(Append, AppendReply),
    Acquire(SessionId, oneshot::Sender<Result<Lease, Fault>>),
    Erase(SessionId, oneshot::Sender<Result<(), Fault>>),
    Maintain,
    Stop(oneshot::Sender<()>),
}

pub(crate) enum Read {
    Events { ask: EventsAsked, reply: oneshot::Sender<Result<EventPage, Fault>> },
    Raw { ask: EventsAsked, reply: oneshot::Sender<Result<Page, Fault>> },
    SendState(SessionId, MessageId, oneshot::Sender<Result<Option<Told>, Fault>>),
    Streams(oneshot::Sender<Result<Vec<StreamRow>, Fault>>),
}

/// Which events.
#[derive(Debug, Clone)]
pub struct EventsAsked {
    /// Of which stream.
    pub stream: SessionId,
    /// After this one.
    pub after: Sequence,
    /// Up to this one.
    pub upto: Option<Sequence>,
    /// At most so many.
    pub limit: usize,
}

/// A stretch of a session's history.
#[derive(Debug, Clone)]
pub struct EventPage {
    /// In order, without gap.
    pub events: Vec<session::Recorded>,
    /// The last recorded event.
    pub head: Sequence,
    /// The oldest event that retention left.
    pub first_kept: Sequence,
    /// Whether more of what was asked follows.
    pub has_more: bool,
}

/// The handle.
#[derive(Clone)]
pub struct Books {
    writes: mpsc::UnboundedSender<Write>,
    reads: mpsc::UnboundedSender<Read>,
    owner: Arc<str>,
}

impl Books {
    /// Opens the books on threads of their own. `owner` names this process in the leases.
    pub fn on_threads(
        ledger: Box<dyn Ledger>,
        owner: &str,
        retention: Retention,
        clock: Arc<dyn Clock>,
        metrics: Arc<Metrics>,
    ) -> Result<Self, Fault> {
        let (writes, write_queue) = mpsc::unbounded_channel();
        let (reads, read_queue) = mpsc::unbounded_channel();
        let read_queue = Arc::new(Mutex::new(read_queue));
        for number in 0..READERS {
            let mut reader = ledger.reader()?;
            let queue = read_queue.clone();
            thread(&format!("ledger-read-{number}"), move || {
                while let Some(job) = next_read(&queue) {
                    serve_read(reader.as_mut(), job);
                }
            })?;
        }
        let owner: Arc<str> = owner.into();
        let mut scribe =
            Writer { ledger, owner: owner.clone(), retention, clock, metrics, stopped: false };
        thread("ledger-write", move || {
            let mut queue = write_queue;
            while !scribe.stopped
                && let Some(first) = queue.blocking_recv()
            {
                scribe.serve(first, &mut queue);
            }
        })?;
        Ok(Self { writes, reads, owner })
    }

    /// Opens the books as tasks of the current runtime, for a simulation: `turn` is awaited
    /// before each group and before each read, so that a simulated disk takes its time.
    pub fn as_tasks<F>(
        ledger: Box<dyn Ledger>,
        owner: &str,
        retention: Retention,
        clock: Arc<dyn Clock>,
        metrics: Arc<Metrics>,
        tasks: &Tasks,
        turn: impl Fn() -> F + Clone + Send + 'static,
    ) -> Result<Self, Fault>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (writes, mut write_queue) = mpsc::unbounded_channel();
        let (reads, mut read_queue) = mpsc::unbounded_channel();
        let mut reader = ledger.reader()?;
        let owner: Arc<str> = owner.into();
        let mut scribe =
            Writer { ledger, owner: owner.clone(), retention, clock, metrics, stopped: false };
        let turn_of_reads = turn.clone();
        tasks.spawn("ledger-write", async move {
            while !scribe.stopped
                && let Some(first) = write_queue.recv().await
            {
                turn().await;
                scribe.serve(first, &mut write_queue);
            }
        });
        tasks.spawn("ledger-read", async move {
            while let Some(job) = read_queue.recv().await {
                turn_of_reads().await;
                serve_read(reader.as_mut(), job);
            }
        });
        Ok(Self { writes, reads, owner })
    }

    /// Hands an append to the writer. Its owner hears the result by ticket.
    pub(crate) fn append(&self, append: Append, reply: AppendReply) {
        if let Err(mpsc::error::SendError(Write::Append(_, (owner, ticket)))) =
            self.writes.send(Write::Append(append, reply))
        {
            // The writer is gone: the process is going down.
            let _ = owner.send((ticket, Err(Lost::Fault(closed()))));
        }
    }

    /// Takes over a stream.
    pub(crate) async fn acquire(&self, stream: &SessionId) -> Result<Lease, Fault> {
        let (reply, answer) = oneshot::channel();
        let _ = self.writes.send(Write::Acquire(stream.clone(), reply));
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Forgets a stream.
    pub(crate) async fn erase(&self, stream: &SessionId) -> Result<(), Fault> {
        let (reply, answer) = oneshot::channel();
        let _ = self.writes.send(Write::Erase(stream.clone(), reply));
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// A stretch of a session's history.
    pub async fn events(&self, ask: EventsAsked) -> Result<EventPage, Fault> {
        self.begin_events(ask).await.unwrap_or_else(|_| Err(closed()))
    }

    /// The same, begun at once and awaited later or not at all.
    pub(crate) fn begin_events(
        &self,
        ask: EventsAsked,
    ) -> oneshot::Receiver<Result<EventPage, Fault>> {
        let (reply, answer) = oneshot::channel();
        let _ = self.reads.send(Read::Events { ask, reply });
        answer
    }

    /// A stretch of any stream, undecoded.
    pub async fn raw(&self, ask: EventsAsked) -> Result<Page, Fault> {
        let (reply, answer) = oneshot::channel();
        let _ = self.reads.send(Read::Raw { ask, reply });
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// How an old send stands.
    pub(crate) async fn send_state(
        &self,
        stream: &SessionId,
        id: &MessageId,
    ) -> Result<Option<Told>, Fault> {
        let (reply, answer) = oneshot::channel();
        let _ = self.reads.send(Read::SendState(stream.clone(), id.clone(), reply));
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Every stream, as lists show it.
    pub async fn streams(&self) -> Result<Vec<StreamRow>, Fault> {
        let (reply, answer) = oneshot::channel();
        let _ = self.reads.send(Read::Streams(reply));
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Lets the writer do what can wait.
    pub fn maintain(&self) {
        let _ = self.writes.send(Write::Maintain);
    }

    /// Commits what waits and ends the writer.
    pub async fn stop(&self) {
        let (reply, answer) = oneshot::channel();
        let _ = self.writes.send(Write::Stop(reply));
        let _ = answer.await;
    }

    /// Who holds the leases.
    pub fn owner(&self) -> &str {
        &self.owner
    }
}

struct Writer {
    ledger: Box<dyn Ledger>,
    owner: Arc<str>,
    retention: Retention,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
    stopped: bool,
}

impl Writer {
    /// Serves everything that waits, appends together.
    fn serve(&mut self, first: Write, queue: &mut mpsc::UnboundedReceiver<Write>) {
        let (mut appends, mut replies) = (vec![], vec![]);
        let mut next = Some(first);
        while let Some(job) = next {
            match job {
                Write::Append(append, reply) => {
                    appends.push(append);
                    replies.push(reply);
                }
                Write::Acquire(stream, reply) => {
                    self.commit(&mut appends, &mut replies);
                    let lease = self.acquire(&stream);
                    let _ = reply.send(lease);
                }
                Write::Erase(stream, reply) => {
                    self.commit(&mut appends, &mut replies);
                    let _ = reply.send(self.erase(&stream));
                }
                Write::Maintain => {
                    self.commit(&mut appends, &mut replies);
                    self.maintain(queue);
                }
                Write::Stop(reply) => {
                    self.commit(&mut appends, &mut replies);
                    self.stopped = true;
                    let _ = reply.send(());
                    return;
                }
            }
            next = if appends.len() < GROUP_MAX { queue.try_recv().ok() } else { None };
        }
        self.commit(&mut appends, &mut replies);
    }

    fn acquire(&mut self, stream: &SessionId) -> Result<Lease, Fault> {
        match self.ledger.acquire(stream, &self.owner) {
            Err(Fault::Io { .. } | Fault::NeedsReopen) => {
                self.ledger.reopen()?;
                self.ledger.acquire(stream, &self.owner)
            }
            answer => answer,
        }
    }

    /// Erasing twice is erasing once. After a failure nobody knows whether it happened, and what
    /// is left of a session that was half erased would begin again from nothing.
    fn erase(&mut self, stream: &SessionId) -> Result<(), Fault> {
        match self.ledger.erase(stream) {
            Err(Fault::Io { .. } | Fault::NeedsReopen) => {
                self.ledger.reopen()?;
                self.ledger.erase(stream)
            }
            answer => answer,
        }
    }

    fn commit(&mut self, appends: &mut Vec<Append>, replies: &mut Vec<AppendReply>) {
        if appends.is_empty() {
            return;
        }
        let events: usize = appends.iter().map(|append| append.entries.len()).sum();
        let begun = Instant::now();
        let outcome = self.ledger.commit(appends);
        self.metrics.committed(begun.elapsed(), appends.len(), events);
        appends.clear();
        let results: Vec<Appended> = match outcome {
            Ok(results) => {
                results.into_iter().map(|result| result.map_err(Lost::Refused)).collect()
            }
            Err(fault) => {
                tracing::error!(%fault, "a commit failed");
                self.metrics.commit_failed();
                self.reopen_after(&fault);
                replies.iter().map(|_| Err(Lost::Fault(fault.clone()))).collect()
            }
        };
        for ((owner, ticket), result) in replies.drain(..).zip(results) {
            let _ = owner.send((ticket, result));
        }
    }

    /// A piece at a time, while nobody waits.
    fn maintain(&mut self, queue: &mpsc::UnboundedReceiver<Write>) {
        loop {
            match self.ledger.maintain(self.clock.now(), &self.retention) {
                Ok(true) if queue.is_empty() => {}
                Ok(_) => return,
                Err(fault) => {
                    tracing::warn!(%fault, "ledger maintenance failed; it will be retried");
                    self.reopen_after(&fault);
                    return;
                }
            }
        }
    }

    /// Whatever failed: the next commit is to find a ledger that works.
    fn reopen_after(&mut self, fault: &Fault) {
        if matches!(fault, Fault::Io { .. } | Fault::NeedsReopen)
            && let Err(again) = self.ledger.reopen()
        {
            tracing::error!(fault = %again, "could not reopen the database");
        }
    }
}

fn next_read(queue: &Mutex<mpsc::UnboundedReceiver<Read>>) -> Option<Read> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv()
}

fn serve_read(reader: &mut dyn Reader, job: Read) {
    match job {
        Read::Events { ask, reply } => {
            if !reply.is_closed() {
                let _ = reply.send(read_events(reader, &ask));
            }
        }
        Read::Raw { ask, reply } => {
            let EventsAsked { stream, after, upto, limit } = ask;
            let _ = reply.send(reader.events(&stream, after, upto, limit, PAGE_BYTES_MAX));
        }
        Read::SendState(stream, id, reply) => {
            let state = reader.send_state(&stream, &id);
            let told = state
                .and_then(|bytes| bytes.map(|bytes| store::codec::decode_told(&bytes)).transpose());
            let _ = reply.send(told);
        }
        Read::Streams(reply) => {
            let _ = reply.send(reader.streams());
        }
    }
}

fn read_events(reader: &mut dyn Reader, ask: &EventsAsked) -> Result<EventPage, Fault> {
    let EventsAsked { stream, after, upto, limit } = ask;
    let (events, page) = reader.recorded(stream, *after, *upto, *limit, PAGE_BYTES_MAX)?;
    let Page { head, first_kept, has_more, entries: _ } = page;
    Ok(EventPage { events, head, first_kept, has_more })
}

fn thread(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), Fault> {
    let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(body);
    spawned.map(drop).map_err(|error| Fault::Io { detail: error.to_string() })
}

fn closed() -> Fault {
    Fault::Io { detail: "the relay is shutting down".to_owned() }
}

#[cfg(test)]
mod tests;
