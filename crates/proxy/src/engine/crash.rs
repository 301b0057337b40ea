//! Runs that a crash of the proxy cut off.
//!
//! Invariant: wherever it crashes, a send that is told as delivered has a run, and the relay is
//! told of that run's end. A run whose send may not have arrived stays open until the agent's own
//! record was asked, because the same run goes on where the send is given to the agent after all.
//!
//! Not here: asking that record (`outputs`, the drivers).

use agents::run_id;
use domain::session::Report;
use domain::session::runs::Outcome;
use domain::session::transcript::Notice;
use domain::{RunId, SessionId, Timestamp};

use super::Engine;
use crate::journal::{Attempt, Record, Step};

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
        let Some(run) = self.book.runs.get(session).cloned() else { return };
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
        if self.book.runs.get(session) != Some(&run) {
            self.persist(Record::Running(session.clone(), Some(run.clone())));
        }
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
    pub(super) fn note_run_begun(&mut self, session: &SessionId, report: &Report) {
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
        if self.book.runs.get(session) != Some(run) {
            self.persist(Record::Running(session.clone(), Some(run.clone())));
        }
    }

    /// Written down after the relay was told.
    pub(super) fn note_run_ended(&mut self, session: &SessionId, run: &RunId) {
        if self.book.runs.get(session) == Some(run) {
            self.persist(Record::Running(session.clone(), None));
        }
    }

    fn tell_interrupted(&mut self, session: &SessionId, run: RunId, now: Timestamp) {
        let is_told = matches!(self.crashed.get(session), Some(Cut::Ended(told)) if *told == run);
        if let Some(live) = self.live.get_mut(session) {
            live.run = None;
        }
        if !is_told {
            let text = self.why_interrupted(session).to_owned();
            let notice = Notice { kind: "interrupted".to_owned(), text };
            self.report(session, &Report::Notice(notice), None, None, now);
        }
        let (ended, outcome) = (run.clone(), Outcome::Interrupted);
        let report = Report::RunEnded { run: ended, outcome, usage: None };
        self.report(session, &report, None, None, now);
        self.note_run_ended(session, &run);
        self.crashed.insert(session.clone(), Cut::Ended(run));
    }

    fn why_interrupted(&self, session: &SessionId) -> &'static str {
        let is_panel =
            self.book.sessions.get(session).is_some_and(|opened| opened.signature.is_some());
        if is_panel {
            "Farhelm stopped on this machine while the agent was working. The agent may have \
             continued in its panel"
        } else {
            "Farhelm stopped on this machine while the agent was working, and the agent stopped \
             with it. Send a message to continue"
        }
    }
}
