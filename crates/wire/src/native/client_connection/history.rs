//! Reading the ledger for a client: resuming, answering `history_request`, catching up.
//!
//! There is one read at a time per session. While a read is in progress, live events of that
//! session are not sent, because the read will include them. Whatever a client asks for, the live
//! events therefore start where the answer ends.

use domain::content::{self, Failure};
use domain::session::{Event, Recorded, controls, transcript};
use domain::{Content, FailureCode, RequestId, Sequence, SessionId, Tail, Timestamp};
use serde::Serialize;

use super::answers::{refused, told_again};
use super::{ClientConnection, Denied, Feature, Output, PageOf, Purpose, ReadJob, error};
use crate::native::events::{Form, encode_event_into};
use crate::native::frames::{HistorySnapshot, RelayFrame};
use crate::native::refusals;
use crate::native::shapes::{Envelope, Message, Time, VERSION};

/// What a read is denied with where the ledger is damaged.
const DAMAGED: &str = "session_damaged";
/// Events in one page.
pub const PAGE_EVENTS_MAX: usize = 500;
/// Bytes of one page, roughly: the event that goes beyond is its last, and another page follows.
pub const PAGE_BYTES_MAX: usize = 1 << 20;
/// Of an event and of what stands around a page, usually: room that is reserved at once.
const EVENT_BYTES: usize = 512;
const HEAD_BYTES: usize = 512;

/// History that waits to be read.
#[derive(Debug)]
pub(super) struct Ask {
    purpose: Purpose,
    after: Sequence,
}

/// What the frames of one page have in common.
#[derive(Clone, Copy)]
struct Page<'a> {
    job: &'a ReadJob,
    request: Option<&'a RequestId>,
    last: Sequence,
    has_more: bool,
    now: Timestamp,
}

impl ClientConnection {
    /// A client asks for history.
    pub(super) fn ask(
        &mut self,
        session: &SessionId,
        purpose: Purpose,
        after: Sequence,
        now: Timestamp,
    ) -> Vec<Output> {
        let asks_max = self.limits.history_requests_waiting;
        let feed = self.feeds.entry(session.clone()).or_default();
        if !feed.is_reading() {
            return vec![self.begin(session, purpose, after)];
        }
        if feed.asks.len() >= asks_max {
            let words = "Too many history requests are waiting for this session";
            let request = request_of(&purpose).cloned();
            return vec![error("rate_limited", words, request, None, Some(session.clone()), now)];
        }
        feed.asks.push_back(Ask { purpose, after });
        vec![]
    }

    /// Begins to read after an event; nothing of that session is told until it is there.
    pub(super) fn begin(
        &mut self,
        session: &SessionId,
        purpose: Purpose,
        after: Sequence,
    ) -> Output {
        let ticket = self.count();
        let feed = self.feeds.entry(session.clone()).or_default();
        if request_of(&purpose).is_some() && feed.was_at.is_none() && !feed.tail.is_behind() {
            feed.was_at = Some(feed.tail.cursor());
        }
        feed.reading = Some(ticket);
        feed.known_before = feed.known;
        feed.tail = Tail::new(after);
        feed.tail.on_lag(feed.known);
        let (session, upto) = (session.clone(), None);
        Output::Read(ReadJob { session, after, upto, limit: PAGE_EVENTS_MAX, purpose, ticket })
    }

    /// A page was read.
    pub fn on_page(&mut self, job: ReadJob, page: PageOf, now: Timestamp) -> Vec<Output> {
        let PageOf { mut events, head, first_kept, has_more } = page;
        let Some(feed) = self.feeds.get_mut(&job.session) else { return vec![] };
        if feed.reading != Some(job.ticket) {
            return vec![];
        }
        feed.known = feed.known.max(head);
        let is_lost = first_kept > job.after.next();
        let snapshot = matches!(job.purpose, Purpose::Snapshot(_));
        if !snapshot && (job.after > head || is_lost) {
            return self.start_over(&job, first_kept, now);
        }
        if !has_more && head < feed.known && feed.known == feed.known_before {
            // What was known before and is not there will not come: the session was erased and
            // made again. To read on would be to read for ever. What was heard of while this
            // page was read is another matter: it may be there now.
            feed.known = head;
            feed.tail = Tail::new(feed.tail.cursor());
        }
        feed.tail.on_lag(feed.known);
        events.retain(|recorded| feed.tail.on_read(recorded.sequence));
        if events.is_empty() && !has_more {
            // Nothing is there up to the head, whatever its number says.
            feed.tail = Tail::new(head.max(feed.tail.cursor()));
            feed.tail.on_lag(feed.known);
        }
        let (last, has_more) = (feed.tail.cursor(), feed.tail.is_behind());
        if job.purpose != Purpose::CatchUp && feed.told_all_to == Some(job.after) {
            // The client looked away meanwhile, and is told this all the same.
            feed.told_all_to = Some(last);
        }
        let mut outputs = self.tell(&job, &events, last, has_more, now);
        outputs.extend(self.go_on(job, last, has_more));
        outputs
    }

    /// A page could not be read.
    pub fn on_read_failed(&mut self, job: ReadJob, denied: Denied, now: Timestamp) -> Vec<Output> {
        let Some(feed) = self.feeds.get_mut(&job.session) else { return vec![] };
        if feed.reading != Some(job.ticket) {
            return vec![];
        }
        feed.reading = None;
        let was_at = feed.was_at.take().filter(|was_at| *was_at > feed.tail.cursor());
        if let Some(was_at) = was_at {
            // What the client was told before stays told. If it had to be read again, damage there
            // would keep every later event from the client.
            feed.tail = Tail::new(was_at);
            feed.tail.on_lag(feed.known);
        }
        let is_damaged = matches!(&denied, Denied::Code(code, _) if code.as_str() == DAMAGED);
        if is_damaged && was_at.is_none() {
            // It will never be read. The client learns that a part is missing, and goes on from
            // what is known: otherwise it would wait for ever, also for the fate of what it sent.
            feed.tail = Tail::new(feed.known.max(feed.tail.cursor()));
        }
        let is_behind = feed.tail.is_behind();
        let repeated = std::mem::take(&mut feed.repeated);
        let asks = std::mem::take(&mut feed.asks);
        let (code, words) = match denied {
            Denied::Refused(refusal) => {
                (refusals::code(&refusal).unwrap_or("internal").into(), refusal.to_string())
            }
            Denied::Failed(words) => (FailureCode::from("history_not_available"), words),
            Denied::Code(_, words) if is_damaged => ("history_not_available".into(), words),
            Denied::Code(code, words) => (code, words),
        };
        let code = code.as_str();
        if code == "session_unknown" {
            self.feeds.remove(&job.session);
        }
        let requests = std::iter::once(job.purpose).chain(asks.into_iter().map(|ask| ask.purpose));
        let told = requests.map(|purpose| {
            let (request, session) = (request_of(&purpose).cloned(), Some(job.session.clone()));
            error(code, &words, request, None, session, now)
        });
        // The state itself could overtake events that the client lacks. After an error it asks again.
        let repeated = repeated.into_iter().map(|told| {
            let session = job.session.clone();
            if code == "session_unknown" {
                return refused(&session, &told.id, &Failure::new(code, words.as_str()), now);
            }
            if is_damaged {
                return told_again(&session, &told);
            }
            error(code, &words, None, Some(told.id), Some(session), now)
        });
        let mut outputs: Vec<Output> = told.chain(repeated).collect();
        if let Some(was_at) = was_at.filter(|_| is_behind && code != "session_unknown") {
            outputs.push(self.begin(&job.session, Purpose::CatchUp, was_at));
        }
        outputs
    }

    /// The cursor is not in the ledger: the client gets everything instead.
    fn start_over(&mut self, job: &ReadJob, first_kept: Sequence, now: Timestamp) -> Vec<Output> {
        let request = request_of(&job.purpose).cloned();
        let words = format!("Sequence {} is not in this session's history", job.after);
        let session = Some(job.session.clone());
        let code = "resume_cursor_invalid";
        let told = error(code, &words, request.clone(), None, session, now);
        let after = Sequence(first_kept.0.saturating_sub(1));
        vec![told, self.begin(&job.session, Purpose::Snapshot(request), after)]
    }

    fn tell(
        &mut self,
        job: &ReadJob,
        events: &[Recorded],
        last: Sequence,
        has_more: bool,
        now: Timestamp,
    ) -> Vec<Output> {
        let mut outputs = vec![];
        match &job.purpose {
            Purpose::CatchUp => {
                for recorded in events {
                    self.show(&job.session, recorded, None, &mut outputs);
                }
            }
            Purpose::Delta(request) => {
                let page = Page { job, request: request.as_ref(), last, has_more, now };
                self.deltas(&page, job.after, events, &mut outputs);
                outputs.extend(self.settled_in(&job.session, events));
            }
            Purpose::Snapshot(request) => {
                let page = Page { job, request: request.as_ref(), last, has_more, now };
                let (first, rest) = events.split_at(first_page(events));
                if rest.is_empty() {
                    outputs.push(self.snapshot_of(&page, first));
                } else {
                    let end = first.last().map_or(job.after, |recorded| recorded.sequence);
                    let page_of_first = Page { last: end, has_more: true, ..page };
                    outputs.push(self.snapshot_of(&page_of_first, first));
                    self.deltas(&page, end, rest, &mut outputs);
                }
                outputs.extend(self.settled_in(&job.session, events));
            }
        }
        outputs
    }

    fn go_on(&mut self, job: ReadJob, last: Sequence, has_more: bool) -> Vec<Output> {
        let session = &job.session;
        if has_more {
            let purpose = match job.purpose {
                Purpose::CatchUp => Purpose::CatchUp,
                Purpose::Delta(request) | Purpose::Snapshot(request) => Purpose::Delta(request),
            };
            return vec![self.begin(session, purpose, last)];
        }
        let Some(feed) = self.feeds.get_mut(session) else { return vec![] };
        feed.reading = None;
        feed.was_at = None;
        if let Some(Ask { purpose, after }) = feed.asks.pop_front() {
            return vec![self.begin(session, purpose, after)];
        }
        let wants_drafts = std::mem::take(&mut feed.wants_drafts);
        let mut outputs = self.tell_repeated(session);
        if wants_drafts && self.hears_passing(session) {
            outputs.push(Output::Drafts(session.clone()));
        }
        outputs
    }

    /// One `history_delta`, or as many as the bytes need.
    fn deltas(
        &self,
        page: &Page<'_>,
        after: Sequence,
        events: &[Recorded],
        outputs: &mut Vec<Output>,
    ) {
        let (mut from, mut rest) = (after, events);
        loop {
            let mut frame = Self::begin_delta(page, from, rest.len());
            let taken = self.pack(&page.job.session, rest, &mut frame);
            let (told, later) = rest.split_at(taken);
            let end = told.last().filter(|_| !later.is_empty());
            let last = end.map_or(page.last, |recorded| recorded.sequence);
            let has_more = page.has_more || !later.is_empty();
            self.end_delta(&mut frame, last, has_more);
            outputs.push(Output::Send(frame.into()));
            if later.is_empty() {
                return;
            }
            (from, rest) = (last, later);
        }
    }

    /// Adds events as the entries of a JSON list, each with a comma behind it, up to the bound,
    /// and says how many of them.
    fn pack(&self, session: &SessionId, events: &[Recorded], list: &mut Vec<u8>) -> usize {
        let begin = list.len();
        for (index, recorded) in events.iter().enumerate() {
            if list.len() - begin > PAGE_BYTES_MAX {
                return index;
            }
            let Some(form) = self.features.form_of(&recorded.event) else { continue };
            if encode_event_into(list, session, recorded, form) {
                list.push(b',');
            }
        }
        events.len()
    }

    /// `history_delta` up to its list of events, which are put in as bytes: each is a frame already.
    fn begin_delta(page: &Page<'_>, from_sequence: Sequence, events: usize) -> Vec<u8> {
        #[derive(Serialize)]
        struct Head<'a> {
            #[serde(rename = "type")]
            kind: &'static str,
            protocol_version: u64,
            #[serde(skip_serializing_if = "Option::is_none")]
            request_id: Option<&'a RequestId>,
            session_id: &'a SessionId,
            server_ts: Time,
            from_sequence: Sequence,
        }
        let head = Head {
            kind: "history_delta",
            protocol_version: VERSION,
            request_id: page.request,
            session_id: &page.job.session,
            server_ts: page.now.into(),
            from_sequence,
        };
        let room_bytes = (events * EVENT_BYTES).min(PAGE_BYTES_MAX);
        let mut frame = Vec::with_capacity(HEAD_BYTES + room_bytes);
        let _ = serde_json::to_writer(&mut frame, &head);
        // The list goes in before the closing brace.
        frame.pop();
        frame.extend_from_slice(b",\"events\":[");
        frame
    }

    /// What comes after the events: what is known only when they are packed.
    fn end_delta(&self, frame: &mut Vec<u8>, last_sequence: Sequence, has_more: bool) {
        #[derive(Serialize)]
        struct Rest {
            last_sequence: Sequence,
            #[serde(skip_serializing_if = "Option::is_none")]
            has_more: Option<bool>,
        }
        frame.pop_if(|last| *last == b',');
        frame.extend_from_slice(b"],");
        let has_more = self.has(Feature::Paging).then_some(has_more);
        let rest = serde_json::to_vec(&Rest { last_sequence, has_more }).unwrap_or_default();
        frame.extend_from_slice(rest.strip_prefix(b"{").unwrap_or_default());
    }

    fn snapshot_of(&self, page: &Page<'_>, events: &[Recorded]) -> Output {
        let messages = events.iter().filter_map(|recorded| match &recorded.event {
            Event::Transcript(transcript::Event::Message(message)) => {
                let message = match self.features.form() {
                    Form::Plain => Message::plain(message),
                    Form::Full => Message::full(message),
                };
                Some(message.into_owned())
            }
            Event::Transcript(
                transcript::Event::ToolCall(_)
                | transcript::Event::ToolUpdate(_)
                | transcript::Event::Plan(_)
                | transcript::Event::Notice(_)
                | transcript::Event::Context(_)
                | transcript::Event::Echoed(_),
            )
            | Event::Delivery(_)
            | Event::Queue(_)
            | Event::Prompt(_)
            | Event::Run(_)
            | Event::Control(_)
            | Event::Config(_)
            | Event::Status(_) => None,
        });
        let has_more = self.has(Feature::Paging).then_some(page.has_more);
        let last_sequence = page.last;
        let body = HistorySnapshot { last_sequence, messages: messages.collect(), has_more };
        let envelope = Envelope {
            request_id: page.request.cloned(),
            session_id: Some(page.job.session.clone()),
            server_ts: Some(page.now.into()),
            ..Envelope::new("")
        };
        Output::Send(RelayFrame::HistorySnapshot(body).encode(envelope))
    }

    /// Answers to this client that lie in what was read; live, they were held back.
    fn settled_in(&mut self, session: &SessionId, events: &[Recorded]) -> Vec<Output> {
        let mut outputs = vec![];
        for recorded in events {
            if matches!(&recorded.event, Event::Control(controls::Event::Settled { .. })) {
                self.show(session, recorded, None, &mut outputs);
            }
        }
        outputs
    }
}

/// How many of these events fit into a snapshot.
fn first_page(events: &[Recorded]) -> usize {
    let mut bytes = 0;
    let too_many = events.iter().position(|recorded| {
        let is_full = bytes > PAGE_BYTES_MAX;
        if let Event::Transcript(transcript::Event::Message(message)) = &recorded.event {
            bytes += message_bytes(message);
        }
        is_full
    });
    too_many.unwrap_or(events.len())
}

fn message_bytes(message: &content::Message) -> usize {
    match &message.parts {
        Content::Sealed(sealed) => sealed.body.len(),
        Content::Open(parts) => {
            let bytes = parts.iter().map(|part| match part {
                content::Part::Text(text) | content::Part::Thinking(text) => text.len(),
                content::Part::Image(_) | content::Part::File(_) | content::Part::ToolCall(_) => 0,
            });
            bytes.sum()
        }
    }
}

fn request_of(purpose: &Purpose) -> Option<&RequestId> {
    match purpose {
        Purpose::CatchUp => None,
        Purpose::Delta(request) | Purpose::Snapshot(request) => request.as_ref(),
    }
}
