//! Orders from the relay. Each is given to its agent once, however often the relay offers it.
//!
//! A send is identified by its attempt and is in the journal before the agent receives it. Any
//! other order is identified by its request. Its answer stays in the outbox until the relay has it;
//! after a crash, only the answers in the outbox are known.

use std::collections::VecDeque;

use agents::Order as AgentOrder;
use domain::content::Failure;
use domain::session::controls::{Control, Kind};
use domain::session::delivery::{SESSION_NOT_CONNECTED, Send};
use domain::session::{Order, Report};
use domain::{MessageId, PromptId, RequestId, SessionId, Timestamp};
use wire::native::proxy_frames::{self, command_name};
use wire::native::shapes::Envelope;

use super::{Effect, Engine, REQUESTS_REMEMBERED_MAX};
use crate::journal::{Attempt, Book, Means, Record};

/// A request that an agent is busy with.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) kind: Kind,
    pub(super) prompt: Option<PromptId>,
}

/// A request that is answered.
#[derive(Debug)]
pub(super) struct Answered {
    session: SessionId,
    request: RequestId,
    failure: Option<Failure>,
    command: Option<&'static str>,
}

impl Engine {
    pub(super) fn order(&mut self, session: &SessionId, order: Order, now: Timestamp) {
        match order {
            Order::Deliver { send, attempt } => {
                let (session, id) = (session.clone(), send.id.clone());
                self.deliver(&Attempt { session, number: attempt, id }, send, now);
            }
            Order::Answer { request, prompt, choice, detail, .. } => {
                let pending = Pending { kind: Kind::Answer, prompt: Some(prompt.clone()) };
                let order = AgentOrder::Answer { request: request.clone(), prompt, choice, detail };
                self.request(session, request, pending, order, now);
            }
            Order::Control { request, control } => {
                let pending = Pending { kind: control.kind(), prompt: None };
                let order = AgentOrder::Control { request: request.clone(), control };
                self.request(session, request, pending, order, now);
            }
        }
    }

    fn deliver(&mut self, attempt: &Attempt, send: Send, now: Timestamp) {
        if self.book.inbox.is_open(attempt) {
            return;
        }
        if let Some(settled) = self.book.inbox.settled(attempt).cloned() {
            if !self.waits_in_outbox(attempt) {
                self.settle(attempt, settled, None, now);
            }
            return;
        }
        let refusal = if !self.book.sessions.contains_key(&attempt.session) {
            Some(Failure::new(SESSION_NOT_CONNECTED, "This session is no longer on this machine"))
        } else if self.book.inbox.is_full() {
            Some(Failure::new(
                "send_rejected",
                "Too many messages are already queued for this machine. Try again in a moment",
            ))
        } else {
            None
        };
        if let Some(failure) = refusal {
            self.settle(attempt, Some(failure), None, now);
            return;
        }
        let (session, number) = (attempt.session.clone(), attempt.number);
        self.persist(Record::Received { session, attempt: number, send });
        self.advance(&attempt.session);
    }

    /// Gives a received send to its agent: on disk first, because from here on it may have it.
    pub(super) fn attempt(&mut self, attempt: &Attempt) {
        self.persist(Record::Attempting(attempt.clone()));
        self.inject(attempt);
    }

    pub(super) fn inject(&mut self, attempt: &Attempt) {
        let Some(send) = self.book.inbox.send(attempt).cloned() else { return };
        let files = self.take_files(attempt);
        let order = AgentOrder::Deliver { send, attempt: attempt.number, files };
        self.effects.push(Effect::Order(attempt.session.clone(), order));
    }

    /// An attempt is over, and the relay is told so until it knows.
    pub(super) fn settle(
        &mut self,
        attempt: &Attempt,
        failure: Option<Failure>,
        run: Option<domain::RunId>,
        now: Timestamp,
    ) {
        self.fetches.remove(attempt);
        let (id, number) = (attempt.id.clone(), Some(attempt.number));
        let report = match failure.clone() {
            None => Report::SendDelivered { id, attempt: number, run },
            Some(failure) => Report::SendFailed { id, attempt: number, failure },
        };
        let means = Means::Settled(attempt.clone(), failure);
        self.report(&attempt.session, &report, None, Some(means), now);
    }

    fn waits_in_outbox(&self, attempt: &Attempt) -> bool {
        self.book.outbox.unacked().any(|numbered| match &numbered.frame.means {
            Some(Means::Settled(settled, _)) => settled == attempt,
            Some(Means::Closed(_)) | None => false,
        })
    }

    fn request(
        &mut self,
        session: &SessionId,
        request: RequestId,
        pending: Pending,
        order: AgentOrder,
        now: Timestamp,
    ) {
        let key = (session.clone(), request);
        if self.pending.contains_key(&key) {
            return;
        }
        let known = self.answered.iter().find(|a| a.session == key.0 && a.request == key.1);
        if let Some(answered) = known {
            let (failure, command) = (answered.failure.clone(), answered.command);
            let report = Report::ControlResult { request: key.1, failure };
            self.report(session, &report, command, None, now);
            return;
        }
        if !self.book.sessions.contains_key(session) {
            let words = "This session is no longer on this machine";
            let failure = Some(Failure::new("session_unknown", words));
            let report = Report::ControlResult { request: key.1, failure };
            self.report(session, &report, Some(command_name(pending.kind)), None, now);
            return;
        }
        self.pending.insert(key, pending);
        self.effects.push(Effect::Order(session.clone(), order));
    }

    /// An agent answered a request. Returns the type of the frame that had asked.
    pub(super) fn answered(
        &mut self,
        session: &SessionId,
        request: &RequestId,
        failure: Option<&Failure>,
    ) -> Option<&'static str> {
        let pending = self.pending.remove(&(session.clone(), request.clone()));
        let command = pending.as_ref().map(|pending| command_name(pending.kind));
        let prompt = pending.and_then(|pending| pending.prompt);
        if let (Some(prompt), None, Some(live)) = (prompt, failure, self.live.get_mut(session)) {
            live.prompts.remove(&prompt);
        }
        let (session, request) = (session.clone(), request.clone());
        remember(
            &mut self.answered,
            Answered { session, request, failure: failure.cloned(), command },
        );
        command
    }
}

fn remember(known: &mut VecDeque<Answered>, answered: Answered) {
    known.push_back(answered);
    if known.len() > REQUESTS_REMEMBERED_MAX {
        known.pop_front();
    }
}

/// The requests that the outbox answers.
pub(super) fn answered_in(book: &Book) -> VecDeque<Answered> {
    let mut known = VecDeque::new();
    for numbered in book.outbox.unacked() {
        let Ok(text) = std::str::from_utf8(&numbered.frame.frame) else { continue };
        let Ok(envelope) = Envelope::read(text) else { continue };
        if envelope.kind != "agent_control_result" && envelope.kind != "session_closed" {
            continue;
        }
        let unnamed = || MessageId::from("");
        let read = proxy_frames::read_report(&envelope, text, unnamed, Timestamp(0));
        match read {
            Ok(Some((session, Report::ControlResult { request, failure }))) => {
                remember(&mut known, Answered { session, request, failure, command: None });
            }
            Ok(Some((session, Report::Closed { request: Some(request), .. }))) => {
                let command = Some(command_name(Control::Close.kind()));
                remember(&mut known, Answered { session, request, failure: None, command });
            }
            Ok(_) | Err(_) => {}
        }
    }
    known
}
