//! The state that the records add up to.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use domain::{LinkId, RequestId, SessionId, Timestamp};
use link::{Numbered, Sender};

use super::{Going, Inbox, Means, Opened, Record, Step, Unfinished};

/// Launches that are remembered for a relay that asks for one again.
const LAUNCHES_REMEMBERED_MAX: usize = 256;

/// A frame on its way to the relay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// As it is sent.
    pub frame: Bytes,
    /// What is true with it.
    pub means: Option<Means>,
}

/// State derived from the journal alone: replaying it rebuilds this.
#[derive(Debug, Default)]
pub struct Book {
    /// Whose numbering; `None` in a new journal.
    pub link: Option<LinkId>,
    /// Frames that the relay may not have.
    pub outbox: Sender<Outgoing>,
    /// Bytes of those frames.
    pub outbox_bytes: usize,
    /// Sends that the agents may not have.
    pub inbox: Inbox,
    /// Sessions that are open.
    pub sessions: BTreeMap<SessionId, Opened>,
    /// Sessions that are over, until the relay knows.
    pub closing: BTreeMap<SessionId, Opened>,
    /// The runs that go on.
    pub runs: BTreeMap<SessionId, Going>,
    /// When the proxy was alive last, while a run went on.
    pub seen_at: Timestamp,
    /// The messages in the making, as they were shown.
    pub drafts: BTreeMap<SessionId, Unfinished>,
    launches: VecDeque<(RequestId, SessionId)>,
}

impl Book {
    /// Rebuilds the book. Frames are numbered as they were, also where numbers were left out.
    pub fn replay(records: Vec<Record>) -> Self {
        let mut book = Self::default();
        for record in records {
            book.apply(record);
        }
        book
    }

    /// Takes in one record. Cannot fail: what is recorded has happened.
    pub fn apply(&mut self, record: Record) {
        match record {
            Record::Link(link) => self.link = Some(link),
            Record::Frame { number, frame, means } => self.apply_frame(number, frame, means),
            Record::Acked(through) => self.apply_acked(through),
            Record::Received { session, attempt, send } => {
                let id = send.id.clone();
                self.inbox.receive(super::Attempt { session, number: attempt, id }, send);
            }
            Record::Attempting(attempt) => self.inbox.attempt(&attempt),
            Record::Settled(attempt, settled) => self.inbox.settle(&attempt, settled),
            Record::Opened(session, opened) => {
                if let Some(request) = &opened.launch {
                    self.remember_launch(request.clone(), session.clone());
                }
                self.sessions.insert(session, opened);
            }
            Record::Launched(request, session) => self.remember_launch(request, session),
            Record::Closing(session, opened) => {
                self.closing.insert(session, opened);
            }
            Record::Running(session, Some(going)) => {
                self.runs.insert(session, going);
            }
            Record::Running(session, None) => {
                self.runs.remove(&session);
                self.change_drafts(&session, Unfinished::end_run);
            }
            Record::Seen(at) => self.seen_at = at,
            Record::Piece(session, delta, parent) => {
                self.drafts.entry(session).or_default().take(&delta, parent.as_ref());
            }
            Record::Whole(session, message) => {
                self.change_drafts(&session, |drafts| drafts.finish(&message));
            }
        }
    }

    /// The session that a launch brought, if it is remembered.
    pub fn launched(&self, request: &RequestId) -> Option<&SessionId> {
        self.launches.iter().find(|(known, _)| known == request).map(|(_, session)| session)
    }

    /// As few records as say the same.
    pub fn records(&self) -> Vec<Record> {
        let mut records: Vec<_> = self.link.clone().map(Record::Link).into_iter().collect();
        let launched = |(request, session): &(RequestId, SessionId)| {
            Record::Launched(request.clone(), session.clone())
        };
        records.extend(self.launches.iter().map(launched));
        for (attempt, settled) in self.inbox.all_settled() {
            records.push(Record::Settled(attempt.clone(), settled.clone()));
        }
        // Before the sessions: a frame that closes one must not close what came after it.
        records.push(Record::Acked(self.outbox.acked()));
        for Numbered { number, frame: Outgoing { frame, means } } in self.outbox.unacked() {
            let (frame, means) = (frame.clone(), means.clone());
            records.push(Record::Frame { number: *number, frame, means });
        }
        let opened = |(session, opened): (&SessionId, &Opened)| {
            Record::Opened(session.clone(), opened.clone())
        };
        records.extend(self.sessions.iter().map(opened));
        let closing = |(session, opened): (&SessionId, &Opened)| {
            Record::Closing(session.clone(), opened.clone())
        };
        records.extend(self.closing.iter().map(closing));
        let running = |(session, going): (&SessionId, &Going)| {
            Record::Running(session.clone(), Some(going.clone()))
        };
        records.extend(self.runs.iter().map(running));
        if !self.runs.is_empty() {
            records.push(Record::Seen(self.seen_at));
        }
        for (session, drafts) in &self.drafts {
            let pieces = drafts.pieces().into_iter();
            let piece = |(delta, parent)| Record::Piece(session.clone(), delta, parent);
            records.extend(pieces.map(piece));
        }
        for (attempt, step, send) in self.inbox.open() {
            let (session, number) = (attempt.session.clone(), attempt.number);
            records.push(Record::Received { session, attempt: number, send: send.clone() });
            if step == Step::Attempting {
                records.push(Record::Attempting(attempt.clone()));
            }
        }
        records
    }

    fn change_drafts(&mut self, session: &SessionId, change: impl FnOnce(&mut Unfinished)) {
        if let Some(drafts) = self.drafts.get_mut(session) {
            change(drafts);
            if drafts.is_empty() {
                self.drafts.remove(session);
            }
        }
    }

    fn apply_frame(&mut self, number: u64, frame: Bytes, means: Option<Means>) {
        match &means {
            Some(Means::Settled(attempt, settled)) => self.inbox.settle(attempt, settled.clone()),
            Some(Means::Closed(session)) => {
                self.inbox.forget(session);
                self.runs.remove(session);
                self.drafts.remove(session);
                if let Some(opened) = self.sessions.remove(session) {
                    self.closing.insert(session.clone(), opened);
                }
            }
            None => {}
        }
        self.outbox.resume(number.saturating_sub(1));
        self.outbox_bytes += frame.len();
        self.outbox.push(Outgoing { frame, means });
    }

    fn apply_acked(&mut self, through: u64) {
        // A journal that was shortened begins with how far everything was.
        self.outbox.resume(through);
        let acked = self.outbox.unacked().take_while(|waiting| waiting.number <= through);
        for waiting in acked {
            self.outbox_bytes -= waiting.frame.frame.len();
            if let Some(Means::Closed(session)) = &waiting.frame.means {
                self.closing.remove(session);
            }
        }
        self.outbox.ack(through);
    }

    fn remember_launch(&mut self, request: RequestId, session: SessionId) {
        if self.launches.iter().any(|(known, _)| *known == request) {
            return;
        }
        self.launches.push_back((request, session));
        if self.launches.len() > LAUNCHES_REMEMBERED_MAX {
            self.launches.pop_front();
        }
    }
}
