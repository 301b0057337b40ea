//! What a client is told when its request had no effect.

use domain::content::Failure;
use domain::session::delivery::{State, Told};
use domain::{AgentType, MessageId, Refusal, RequestId, SessionId, Timestamp};

use super::launches::launch_failed;
use super::{Asked, ClientConnection, Denied, Output, error};
use crate::native::events::event_id;
use crate::native::frames::{
    MessageAccepted, MessageDelivered, MessageFailed, RelayFrame, SessionLaunchFailed, StatusWord,
};
use crate::native::refusals;
use crate::native::shapes::Envelope;

/// States of one session that wait to be told again while its ledger is read.
const REPEATED_WAITING_MAX: usize = 64;

impl ClientConnection {
    /// Nothing came of what was asked.
    pub fn on_denied(&mut self, asked: Asked, denied: Denied, now: Timestamp) -> Vec<Output> {
        let failure = failure_of(&denied);
        let refusal = match denied {
            Denied::Refused(refusal) => Some(refusal),
            Denied::Failed(_) | Denied::Code(..) => None,
        };
        match asked {
            Asked::Send { session, id } => {
                if let Some(Refusal::SendRepeated(told)) = refusal {
                    return self.send_repeated(&session, *told);
                }
                vec![Self::send_denied(session, id, &failure, now)]
            }
            Asked::Control { session, request, .. } => match refusal {
                Some(refusal) => {
                    self.on_control_refused(&session, &request, &refusal, &failure, now)
                }
                None => self.on_control_failed(&session, &request, &failure, now),
            },
            Asked::Launch { request, agent } => {
                self.launch_denied(&request, agent, refusal, &failure, now)
            }
            Asked::Other { session, request, send } => {
                let (code, words) = (failure.code.as_str(), failure.message.as_str());
                vec![error(code, words, request, send, Some(session), now)]
            }
        }
    }

    /// A state told again must not overtake the events before it: one that this connection has
    /// not heard yet is told by its own event, in its place. Nothing was heard of a session that
    /// came up after the welcome and whose events this connection missed: they are about to come.
    fn send_repeated(&mut self, session: &SessionId, told: Told) -> Vec<Output> {
        let feed = self.feeds.get_mut(session);
        let Some(feed) = feed.filter(|feed| feed.tail.cursor() >= told.sequence) else {
            return vec![];
        };
        if !feed.is_reading() {
            return vec![told_again(session, &told)];
        }
        // What is read may begin after this event, and replace all that the client had. Beyond the
        // bound nothing is told, and the client asks once more.
        if feed.repeated.len() < REPEATED_WAITING_MAX {
            feed.repeated.push(told);
        }
        vec![]
    }

    /// The states that waited for a read to end.
    pub(super) fn tell_repeated(&mut self, session: &SessionId) -> Vec<Output> {
        let Some(feed) = self.feeds.get_mut(session) else { return vec![] };
        let repeated = std::mem::take(&mut feed.repeated);
        repeated.iter().map(|told| told_again(session, told)).collect()
    }

    fn send_denied(session: SessionId, id: MessageId, failure: &Failure, now: Timestamp) -> Output {
        let code = failure.code.as_str();
        // After a failed commit nobody knows yet whether it was recorded: told as failed, the
        // send would be lost; told as an error, its client asks again.
        if matches!(code, "unauthorized" | "rate_limited" | "internal") {
            return error(code, &failure.message, None, Some(id), Some(session), now);
        }
        refused(&session, &id, failure, now)
    }

    pub(super) fn too_large(&self, session: &SessionId, id: &MessageId, now: Timestamp) -> Output {
        let words = format!("A message can have at most {} bytes", self.limits.max_content_bytes);
        refused(session, id, &Failure::new("message_too_large", words), now)
    }

    fn launch_denied(
        &mut self,
        request: &RequestId,
        agent: AgentType,
        refusal: Option<Refusal>,
        failure: &Failure,
        now: Timestamp,
    ) -> Vec<Output> {
        if let Some(Refusal::LaunchRepeated(launch)) = refusal {
            return self.tell_again(&launch, now);
        }
        let (error_code, reason) = (failure.code.to_string(), failure.message.clone());
        // After a failed commit nobody knows yet whether the launch was recorded: told as failed,
        // it could run all the same. If it was recorded, its events follow.
        let is_open = error_code == "internal";
        if !is_open {
            self.launches.remove(request);
        }
        if is_open || matches!(error_code.as_str(), "rate_limited" | "invalid_message") {
            let request = Some(request.clone());
            return vec![error(&error_code, &reason, request, None, None, now)];
        }
        let body = SessionLaunchFailed { agent_type: Some(agent), reason, error_code };
        vec![launch_failed(request, body, now)]
    }
}

pub(super) fn failure_of(denied: &Denied) -> Failure {
    match denied {
        Denied::Refused(refusal) => {
            Failure::new(refusals::code(refusal).unwrap_or("internal"), refusal.to_string())
        }
        Denied::Failed(words) => Failure::new("internal", words.clone()),
        Denied::Code(code, words) => Failure::new(code.as_str(), words.clone()),
    }
}

/// A send that was never recorded: its failure is no event.
pub(super) fn refused(
    session: &SessionId,
    id: &MessageId,
    failure: &Failure,
    now: Timestamp,
) -> Output {
    let envelope = Envelope {
        session_id: Some(session.clone()),
        server_ts: Some(now.into()),
        ..Envelope::new("")
    };
    Output::Send(RelayFrame::MessageFailed(failed(id, failure, now)).encode(envelope))
}

/// A state told again keeps its event's name and time.
pub(super) fn told_again(session: &SessionId, told: &Told) -> Output {
    let envelope = Envelope {
        event_id: Some(event_id(session, told.sequence)),
        sequence: Some(told.sequence),
        session_id: Some(session.clone()),
        server_ts: Some(told.at.into()),
        ..Envelope::new("")
    };
    let (message_id, client_message_id) = (told.id.clone(), told.id.clone());
    let frame = match &told.state {
        State::Accepted => RelayFrame::MessageAccepted(MessageAccepted {
            message_id,
            client_message_id,
            status: StatusWord::Accepted,
            accepted_at: told.at.into(),
            content: None,
            attachments: vec![],
            mode: None,
            sent_by: None,
            sealed: None,
        }),
        State::Delivered => RelayFrame::MessageDelivered(MessageDelivered {
            message_id,
            client_message_id,
            status: StatusWord::Delivered,
            delivered_at: told.at.into(),
            run_id: None,
        }),
        State::Failed(failure) => RelayFrame::MessageFailed(failed(&told.id, failure, told.at)),
    };
    Output::Send(frame.encode(envelope))
}

fn failed(id: &MessageId, failure: &Failure, at: Timestamp) -> MessageFailed {
    MessageFailed {
        message_id: id.clone(),
        client_message_id: id.clone(),
        status: StatusWord::Failed,
        failed_at: at.into(),
        error: failure.into(),
    }
}
