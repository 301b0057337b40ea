//! The conversation, read backwards from the end of the ledger.
//!
//! **Invariant**: `hasMore` is correct, and an id that was shown finds what came before it.
//!
//! Not here: which request asks for it (`sessions`, `switch`).

use std::collections::VecDeque;

use domain::content::{Author, Message};
use domain::session::{Event, Recorded, delivery, transcript};
use domain::{MessageId, Sequence, SessionId, Timestamp};
use serde::Serialize;

use super::events::content;
use crate::port::PageOf;
use crate::time::Time;
use crate::visitor::Act;

/// Events that are looked through at once.
const WINDOW_EVENTS: u64 = 200;
/// Messages of one answer, and the bytes of their words; more are asked for by `before`.
pub(super) const MESSAGES_MAX: usize = 200;
const BYTES_MAX: usize = 4 << 20;
/// How far back a session's last message is looked for.
const LAST_WINDOWS_MAX: u64 = 4;

/// A message as this dialect's history has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Row {
    pub(super) id: MessageId,
    pub(super) role: &'static str,
    pub(super) content: String,
    pub(super) timestamp: Time,
}

impl Row {
    fn of(message: &Message, at: Timestamp) -> Option<Self> {
        let role = match message.author {
            Author::User => "user",
            Author::Assistant => "assistant",
            Author::System => "system",
        };
        let content = content(&message.parts);
        let is_shown = message.parent.is_none() && !content.is_empty();
        is_shown.then(|| Self { id: message.id.clone(), role, content, timestamp: Time(at) })
    }
}

/// A look back that is under way.
#[derive(Debug)]
pub(super) struct LookBack {
    session: SessionId,
    before: Option<MessageId>,
    limit: usize,
    /// How many windows it looks through at most.
    windows_left: u64,
    /// Whether somebody wants to know if there are more.
    asks_for_more: bool,
    /// Up to which event the window that is being read goes.
    upto: Sequence,
    /// The window as far as it was read.
    window: Vec<Recorded>,
    rows: VecDeque<Row>,
    bytes: usize,
    has_more: bool,
}

/// How far a look back is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Looked {
    /// There is more to read.
    On,
    /// It is over.
    Over,
    /// It is over, and the message before which it should have begun is not there.
    NoSuchMessage,
}

impl LookBack {
    /// The last `limit` messages up to this event, before this message.
    pub(super) fn new(
        session: SessionId,
        head: Sequence,
        before: Option<MessageId>,
        limit: usize,
    ) -> Self {
        Self {
            session,
            before,
            limit: limit.min(MESSAGES_MAX),
            windows_left: u64::MAX,
            asks_for_more: true,
            upto: head,
            window: vec![],
            rows: VecDeque::new(),
            bytes: 0,
            has_more: false,
        }
    }

    /// The last message, if it is not too far back.
    pub(super) fn last(session: SessionId, head: Sequence) -> Self {
        let all = Self::new(session, head, None, 1);
        Self { windows_left: LAST_WINDOWS_MAX, asks_for_more: false, ..all }
    }

    /// Where it begins, once that is known.
    pub(super) fn begin_at(&mut self, head: Sequence) {
        self.upto = head;
    }

    /// Whose past.
    pub(super) fn session(&self) -> &SessionId {
        &self.session
    }

    /// What to read next.
    pub(super) fn read(&self, ticket: u64) -> Act {
        let start = Sequence(self.upto.0.saturating_sub(WINDOW_EVENTS));
        let after = self.window.last().map_or(start, |last| last.sequence);
        let limit = usize::try_from(WINDOW_EVENTS).unwrap_or(usize::MAX);
        Act::Read { session: self.session.clone(), after, upto: Some(self.upto), limit, ticket }
    }

    /// Takes what was read. `seen` is shown each window, newest first.
    pub(super) fn take(&mut self, page: PageOf, mut seen: impl FnMut(&[Recorded])) -> Looked {
        let is_cut = page.has_more && !page.events.is_empty();
        let reaches = page.events.last().map(|last| last.sequence);
        self.window.extend(page.events);
        if is_cut && reaches < Some(self.upto) {
            return Looked::On;
        }
        let window = std::mem::take(&mut self.window);
        seen(&window);
        for recorded in window.iter().rev() {
            if self.is_enough(recorded) {
                return Looked::Over;
            }
        }
        self.upto = Sequence(self.upto.0.saturating_sub(WINDOW_EVENTS));
        self.windows_left = self.windows_left.saturating_sub(1);
        let is_start = self.upto.0 == 0 || self.upto < page.first_kept;
        match (&self.before, is_start || self.windows_left == 0) {
            (_, false) => Looked::On,
            (None, true) => Looked::Over,
            (Some(_), true) => Looked::NoSuchMessage,
        }
    }

    /// The messages, oldest first, and whether there are more before them.
    pub(super) fn into_rows(self) -> (Vec<Row>, bool) {
        (self.rows.into(), self.has_more)
    }

    fn is_enough(&mut self, recorded: &Recorded) -> bool {
        if let Event::Delivery(delivery::Event::Accepted(send)) = &recorded.event
            && self.before.as_ref() == Some(&send.id)
        {
            // It was shown, and the agent does not have it: it waits, or it failed.
            self.before = None;
        }
        let Event::Transcript(transcript::Event::Message(message)) = &recorded.event else {
            return false;
        };
        if let Some(before) = &self.before {
            if *before == message.id {
                self.before = None;
            }
            return false;
        }
        let Some(row) = Row::of(message, recorded.at) else { return false };
        let is_full = !self.rows.is_empty() && self.bytes + row.content.len() > BYTES_MAX;
        if self.rows.len() >= self.limit || is_full {
            self.has_more = true;
            return true;
        }
        self.bytes += row.content.len();
        self.rows.push_front(row);
        !self.asks_for_more && self.rows.len() >= self.limit
    }
}
