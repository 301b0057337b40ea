//! Handles the agents' reports: recorded ones go through the outbox, transient ones only to clients
//! that are connected.

use agents::{Lookup, Output};
use domain::content::Failure;
use domain::session::Report;
use domain::session::delivery::DELIVERY_UNKNOWN;
use domain::session::status::CloseReason;
use domain::{MessageId, Sequence, SessionId, Timestamp};
use wire::native::proxy_frames;

use super::{Effect, Engine};
use crate::journal::{Attempt, Means, Record};

impl Engine {
    /// A session's agent tells something. Lines for its own record are on disk already.
    pub fn on_outputs(
        &mut self,
        session: &SessionId,
        outputs: Vec<Output>,
        now: Timestamp,
    ) -> Vec<Effect> {
        let outputs = self.hold_while_starting(session, outputs);
        for output in outputs {
            if !self.book.sessions.contains_key(session) {
                // The session ended in the middle: nothing is heard of it any more.
                break;
            }
            match output {
                Output::Remember(_)
                | Output::Ready
                | Output::Spawn(_)
                | Output::Write(_)
                | Output::End
                | Output::Read(_)
                | Output::File(_)
                | Output::Terminal(_)
                | Output::Keep(_)
                | Output::Panel(_) => {}
                Output::Unusable(failure) => self.came_to_nothing(session, failure, now),
                Output::LookedUp { id, attempt, found } => {
                    self.looked_up(&attempt_of(session, &id, attempt), found, now);
                }
                Output::Report(report) => self.told(session, &report, now),
                Output::Passing(delta, parent) => {
                    if let Some(live) = self.live.get_mut(session) {
                        live.drafts.take(&delta, parent.as_ref());
                    }
                    self.send_if_up(proxy_frames::encode_delta(session, &delta));
                    let drafts = self.book.drafts.get(session);
                    let known = drafts.and_then(|drafts| drafts.parent(&delta.message));
                    let parent = parent.filter(|parent| known != Some(parent));
                    self.persist(Record::Piece(session.clone(), delta, parent));
                }
            }
        }
        self.take()
    }

    /// What a crash hid, as far as the agent's own record says.
    fn looked_up(&mut self, attempt: &Attempt, found: Lookup, now: Timestamp) {
        if !self.book.inbox.is_open(attempt) {
            return;
        }
        match found {
            Lookup::Found => self.found_after_crash(attempt, now),
            Lookup::Absent if self.has_files(attempt) => self.inject(attempt),
            // Given to the agent when its files are here again.
            Lookup::Absent => {}
            Lookup::Unknown => {
                let words = "Farhelm stopped on this machine while delivering the message. The \
                             agent may have received it";
                let failure = Failure::new(DELIVERY_UNKNOWN, words);
                self.settle(attempt, Some(failure), None, now);
                self.end_suspended(&attempt.session, now);
            }
        }
    }

    pub(super) fn told(&mut self, session: &SessionId, report: &Report, now: Timestamp) {
        if let Some(live) = self.live.get_mut(session) {
            live.hear(report);
        }
        self.note_run_begun(session, report, now);
        match report {
            Report::SendDelivered { id, attempt, run } => {
                let attempt = attempt_of(session, id, attempt.unwrap_or_default());
                self.settle(&attempt, None, run.clone(), now);
                if run.is_none() {
                    self.end_suspended(session, now);
                }
            }
            Report::SendFailed { id, attempt, failure } => {
                let attempt = attempt_of(session, id, attempt.unwrap_or_default());
                self.settle(&attempt, Some(failure.clone()), None, now);
                self.end_suspended(session, now);
            }
            Report::ControlResult { request, failure } => {
                let command = self.answered(session, request, failure.as_ref());
                self.report(session, report, command, None, now);
            }
            Report::Closed { reason, request } => {
                if let Some(request) = request {
                    self.answered(session, request, None);
                }
                self.pending.retain(|(of, _), _| of != session);
                self.fetches.retain(|attempt, _| attempt.session != *session);
                self.live.remove(session);
                self.crashed.remove(session);
                let worktree = self.book.sessions.get(session);
                let worktree = worktree.and_then(|opened| opened.worktree.clone());
                self.report(session, report, None, Some(Means::Closed(session.clone())), now);
                self.effects.push(Effect::Stop(session.clone(), worktree));
                // A demo session that crashed makes room for the next. One that a person closed
                // stays closed until the next start.
                if *reason != CloseReason::UserRequested && self.stand_in() {
                    self.send_snapshot(false);
                }
            }
            Report::Message { message, .. } => {
                self.report(session, report, None, None, now);
                if self.book.drafts.contains_key(session) {
                    self.persist(Record::Whole(session.clone(), message.id.clone()));
                }
            }
            Report::Status { .. }
            | Report::ToolCall(_)
            | Report::ToolUpdate(_)
            | Report::Plan(_)
            | Report::Notice(_)
            | Report::Context(_)
            | Report::RunStarted { .. }
            | Report::Asked(_)
            | Report::PromptGone(_)
            | Report::Config(_)
            | Report::Resumed { .. } => self.report(session, report, None, None, now),
            Report::RunEnded { run, .. } => {
                self.report(session, report, None, None, now);
                self.note_run_ended(session, run);
            }
        }
    }
}

fn attempt_of(session: &SessionId, id: &MessageId, number: Sequence) -> Attempt {
    Attempt { session: session.clone(), number, id: id.clone() }
}
