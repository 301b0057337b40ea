//! Runs that a crash of the proxy cut off, and what clients saw of them.
//!
//! Invariant: wherever the proxy crashes, a send that was reported as delivered has a run, and the
//! relay learns of that run's end. If the send may not have arrived, its run stays open until the
//! agent's own record was checked, because the same run continues if the send is delivered after
//! all. Text that clients saw is kept: it is reported as a message, as far as it came.
//!
//! Not here: checking that record (`outputs`, the drivers).

use agents::run_id;
use domain::content::{Author, Message, Part};
use domain::passing::{Delta, Voice};
use domain::session::Report;
use domain::session::runs::{Cut as RunCut, Outcome};
use domain::{Content, MessageId, RunId, SessionId, Timestamp};

use super::Engine;
use crate::journal::{Attempt, Going, Record, Step};

/// While a run goes on, it is written down at most so often that the proxy is alive: a run that
/// is cut off lasted until then.
const SEEN_EVERY_MS: u64 = 1_000;

/// What a crash left of a session's run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cut {
    /// Its send is being looked up.
    Suspended(RunId),
    /// It is told as over. Sends that steered it belong to it.
    Ended(RunId),
}

impl Engine {
    /// The session begins again: the run that went on before does not.
    pub(super) fn tell_run_cut_off(&mut self, session: &SessionId, now: Timestamp) {
        self.tell_unfinished_messages(session, now);
        let Some(Going { run, .. }) = self.book.runs.get(session).cloned() else { return };
        let is_unsure = self.book.inbox.open().any(|(attempt, step, _)| {
            attempt.session == *session
                && step == Step::Attempting
                && run_id(&attempt.id, attempt.number) == run
        });
        if is_unsure {
            // The relay hears that it goes on.
            if let Some(live) = self.live.get_mut(session) {
                live.run = Some(run.clone());
            }
            self.crashed.insert(session.clone(), Cut::Suspended(run));
        } else {
            self.tell_interrupted(session, run, now);
        }
    }

    /// The agent has a send that it was being given when the proxy crashed. What it made of it
    /// was cut off.
    pub(super) fn found_after_crash(&mut self, attempt: &Attempt, now: Timestamp) {
        let session = &attempt.session;
        let run = match self.crashed.get(session) {
            Some(Cut::Suspended(run) | Cut::Ended(run)) => run.clone(),
            None => run_id(&attempt.id, attempt.number),
        };
        self.note_run(session, &run, now);
        self.settle(attempt, None, Some(run.clone()), now);
        self.tell_interrupted(session, run, now);
    }

    /// A send whose run waited for it did not arrive, or nobody knows: the run is over.
    pub(super) fn end_suspended(&mut self, session: &SessionId, now: Timestamp) {
        if let Some(Cut::Suspended(run)) = self.crashed.get(session).cloned() {
            self.tell_interrupted(session, run, now);
        }
    }

    /// Written down before the relay is told.
    pub(super) fn note_run_begun(&mut self, session: &SessionId, report: &Report, now: Timestamp) {
        let run = match report {
            Report::RunStarted { run, .. } | Report::SendDelivered { run: Some(run), .. } => run,
            Report::SendDelivered { run: None, .. }
            | Report::SendFailed { .. }
            | Report::RunEnded { .. }
            | Report::Status { .. }
            | Report::Message { .. }
            | Report::ToolCall(_)
            | Report::ToolUpdate(_)
            | Report::Plan(_)
            | Report::Notice(_)
            | Report::Context(_)
            | Report::Asked(_)
            | Report::PromptGone(_)
            | Report::ControlResult { .. }
            | Report::Config(_)
            | Report::Resumed { .. }
            | Report::Closed { .. } => return,
        };
        self.crashed.remove(session);
        self.note_run(session, run, now);
    }

    /// Written down after the relay was told.
    pub(super) fn note_run_ended(&mut self, session: &SessionId, run: &RunId) {
        if self.book.runs.get(session).is_some_and(|going| going.run == *run) {
            self.persist(Record::Running(session.clone(), None));
        }
    }

    /// The proxy is alive.
    pub(super) fn note_time(&mut self, now: Timestamp) {
        let is_due = now.0.abs_diff(self.book.seen_at.0) >= SEEN_EVERY_MS;
        if is_due && !self.book.runs.is_empty() {
            self.persist(Record::Seen(now));
        }
    }

    fn note_run(&mut self, session: &SessionId, run: &RunId, now: Timestamp) {
        if self.book.runs.get(session).is_none_or(|going| going.run != *run) {
            let going = Going { run: run.clone(), since: now };
            self.persist(Record::Running(session.clone(), Some(going)));
        }
    }

    /// What people saw of messages that the crash cut off. A panel still has its own: it tells
    /// them whole, under the same ids.
    fn tell_unfinished_messages(&mut self, session: &SessionId, now: Timestamp) {
        if self.is_panel(session) {
            return;
        }
        let Some(drafts) = self.book.drafts.get(session) else { return };
        let run = self.book.runs.get(session).map(|going| going.run.clone());
        let told: Vec<_> = parts_of(drafts.replay())
            .into_iter()
            .map(|(id, parts)| (drafts.parent(&id).cloned(), id, parts))
            .collect();
        for (parent, id, parts) in told {
            let message = Message {
                id: id.clone(),
                author: Author::Assistant,
                parts: Content::Open(parts),
                created_at: now,
                run: run.clone(),
                parent,
                digest: None,
            };
            let report = Report::Message { message, has_own_id: true, echo: None };
            self.report(session, &report, None, None, now);
            self.persist(Record::Whole(session.clone(), id));
        }
    }

    fn tell_interrupted(&mut self, session: &SessionId, run: RunId, now: Timestamp) {
        if let Some(live) = self.live.get_mut(session) {
            live.run = None;
        }
        let going = self.book.runs.get(session).filter(|going| going.run == run);
        // One that was not known before the crash has no length that is known.
        let going = going.filter(|going| going.since <= self.book.seen_at);
        let lasted_ms = going.map(|going| self.book.seen_at.ms_since(going.since));
        let why = self.why_interrupted(session).to_owned();
        let (ended, outcome) = (run.clone(), Outcome::Cut(RunCut { why, lasted_ms }));
        let report = Report::RunEnded { run: ended, outcome, usage: None };
        self.report(session, &report, None, None, now);
        self.note_run_ended(session, &run);
        self.crashed.insert(session.clone(), Cut::Ended(run));
    }

    fn is_panel(&self, session: &SessionId) -> bool {
        self.book.sessions.get(session).is_some_and(|opened| opened.signature.is_some())
    }

    fn why_interrupted(&self, session: &SessionId) -> &'static str {
        if self.is_panel(session) {
            "Farhelm stopped on this machine while the agent was running. The agent may have \
             continued in its panel"
        } else {
            "Farhelm stopped on this machine while the agent was running, and the agent stopped \
             with it. Send a message to continue"
        }
    }
}

/// Messages as far as they came. Of sealed words it is not known how to join them: a message that
/// has any is left out.
fn parts_of(pieces: Vec<Delta>) -> Vec<(MessageId, Vec<Part>)> {
    let mut messages: Vec<(MessageId, Option<Vec<Part>>)> = vec![];
    // Pieces come in the order of messages and their parts; open ones are one piece for each part.
    for Delta { message, voice, words, .. } in pieces {
        if messages.last().is_none_or(|(last, _)| *last != message) {
            messages.push((message, Some(vec![])));
        }
        let Some((_, parts)) = messages.last_mut() else { continue };
        let part = match (words, voice) {
            (Content::Open(text), Voice::Text) => Some(Part::Text(text)),
            (Content::Open(text), Voice::Thinking) => Some(Part::Thinking(text)),
            (Content::Sealed(_), _) => None,
        };
        *parts = parts.take().zip(part).map(|(mut parts, part)| {
            parts.push(part);
            parts
        });
    }
    messages.into_iter().filter_map(|(id, parts)| Some((id, parts?))).collect()
}
