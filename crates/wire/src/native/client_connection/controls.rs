//! Control commands and their answers, which only the client that asked receives.

use domain::content::Failure;
use domain::session::Wish;
use domain::session::controls::{Control, Kind, Outcome};
use domain::{ClientKey, Principal, Refusal, RequestId, SessionId, Timestamp};

use super::commands::session;
use super::{
    Asked, ClientConnection, Feature, Listing, Output, REQUESTS_MAX, Waiting, error, too_fast,
};
use crate::native::events::Form;
use crate::native::frames::{AgentControlResult, PermissionResponse, RelayFrame, command_word};
use crate::native::shapes::{AgentConfig, Envelope};

impl ClientConnection {
    pub(super) fn control(
        &mut self,
        envelope: &Envelope,
        control: Control,
        now: Timestamp,
    ) -> Result<Vec<Output>, String> {
        let (session, kind) = (session(envelope)?, control.kind());
        let Some(request) = self.wait(&session, envelope.request_id.as_ref(), kind) else {
            return Ok(vec![too_fast(envelope.request_id.clone(), None, now)]);
        };
        let wish = Wish::Control { request: request.clone(), control };
        let asked = Asked::Control { session: session.clone(), request, kind };
        Ok(vec![Output::Session { session, wish, asked }])
    }

    pub(super) fn answer(
        &mut self,
        envelope: &Envelope,
        answer: PermissionResponse,
        now: Timestamp,
    ) -> Result<Vec<Output>, String> {
        let session = session(envelope)?;
        let (prompt, choice) = (answer.prompt_id.clone(), answer.choice_id.clone());
        let choice = choice.ok_or("permission_response needs choice_id")?;
        let detail = if self.has(Feature::PromptDetail) { answer.detail() } else { None };
        let Some(request) = self.wait(&session, envelope.request_id.as_ref(), Kind::Answer) else {
            return Ok(vec![too_fast(envelope.request_id.clone(), None, now)]);
        };
        let wish = Wish::Answer { request: Some(request.clone()), prompt, choice, detail };
        let asked = Asked::Control { session: session.clone(), request, kind: Kind::Answer };
        Ok(vec![Output::Session { session, wish, asked }])
    }

    /// What the relay knows of a session's configuration; see [`Output::Card`].
    pub fn on_card(
        &mut self,
        request: Option<RequestId>,
        listing: &Listing,
        now: Timestamp,
    ) -> Vec<Output> {
        let Some(config) = &listing.card.config else { return vec![] };
        let config = match self.features.form() {
            Form::Plain => AgentConfig::plain(config),
            Form::Full => AgentConfig::full(config),
        };
        let envelope = Envelope {
            request_id: request,
            session_id: Some(listing.id.clone()),
            server_ts: Some(now.into()),
            ..Envelope::new("")
        };
        vec![Output::Send(RelayFrame::AgentConfig(Box::new(config)).encode(envelope))]
    }

    /// A recorded answer. It is told if this connection asked.
    pub(super) fn settle(
        &mut self,
        session: &SessionId,
        request: &RequestId,
        by: &ClientKey,
        failure: Option<&Failure>,
        at: Timestamp,
    ) -> Option<Output> {
        if self.principal.as_ref().map(Principal::key).as_ref() != Some(by) {
            return None;
        }
        let waiting = self.requests.remove(&(session.clone(), request.clone()))?;
        Self::result(session, request, waiting, failure, at)
    }

    /// A control command led to nothing.
    pub(super) fn on_control_refused(
        &mut self,
        session: &SessionId,
        request: &RequestId,
        refusal: &Refusal,
        failure: &Failure,
        now: Timestamp,
    ) -> Vec<Output> {
        if *refusal == Refusal::RequestRepeated(None) {
            // Its answer is still to come, and will be told.
            return vec![];
        }
        let Some(waiting) = self.requests.remove(&(session.clone(), request.clone())) else {
            return vec![];
        };
        let told = match refusal {
            Refusal::RequestRepeated(Some(Outcome { failure, at, .. })) => {
                Self::result(session, request, waiting, failure.as_ref(), *at)
            }
            Refusal::Unauthorized
            | Refusal::OwnerOnly
            | Refusal::RequestInUse(_)
            | Refusal::TooManyRequests { .. } => {
                Some(Self::control_error(session, request, waiting, failure, now))
            }
            Refusal::RequestRepeated(None)
            | Refusal::SessionUnknown
            | Refusal::SessionClosed
            | Refusal::NoProxyConnected
            | Refusal::PromptNotOpen(_)
            | Refusal::NoSuchChoice { .. }
            | Refusal::AnswersMissing(_)
            | Refusal::TooManyPrompts { .. }
            | Refusal::QueueFull { .. }
            | Refusal::AgentAtWork
            | Refusal::NotQueued(_)
            | Refusal::SendRepeated(_)
            | Refusal::LaunchRepeated(_)
            | Refusal::NotSupported
            | Refusal::NotThisProxy
            | Refusal::OtherMachine => Self::result(session, request, waiting, Some(failure), now),
        };
        told.into_iter().collect()
    }

    /// A control command could not be recorded, or the shell refused it.
    pub(super) fn on_control_failed(
        &mut self,
        session: &SessionId,
        request: &RequestId,
        failure: &Failure,
        now: Timestamp,
    ) -> Vec<Output> {
        let waiting = self.requests.remove(&(session.clone(), request.clone()));
        let told = waiting.and_then(|w| Self::result(session, request, w, Some(failure), now));
        told.into_iter().collect()
    }

    /// The answer to a control command; of a close, only its failure is told this way.
    fn result(
        session: &SessionId,
        request: &RequestId,
        waiting: Waiting,
        failure: Option<&Failure>,
        at: Timestamp,
    ) -> Option<Output> {
        if waiting.kind == Kind::Close {
            return failure.map(|f| Self::control_error(session, request, waiting, f, at));
        }
        let envelope = Envelope {
            request_id: waiting.named.then(|| request.clone()),
            session_id: Some(session.clone()),
            server_ts: Some(at.into()),
            ..Envelope::new("")
        };
        let body = AgentControlResult::new(command_word(waiting.kind), failure);
        Some(Output::Send(RelayFrame::AgentControlResult(body).encode(envelope)))
    }

    fn control_error(
        session: &SessionId,
        request: &RequestId,
        waiting: Waiting,
        failure: &Failure,
        now: Timestamp,
    ) -> Output {
        let request = waiting.named.then(|| request.clone());
        let (code, words) = (failure.code.as_str(), failure.message.as_str());
        error(code, words, request, None, Some(session.clone()), now)
    }

    /// Remembers that an answer is awaited. A request without an id gets one of its own, which
    /// its client never sees. `None` at the bound.
    fn wait(
        &mut self,
        session: &SessionId,
        request: Option<&RequestId>,
        kind: Kind,
    ) -> Option<RequestId> {
        let named = request.is_some();
        let count = self.count();
        let unnamed = format!("{}:{count}", self.connection);
        let request = request.cloned().unwrap_or_else(|| unnamed.into());
        let key = (session.clone(), request.clone());
        if self.requests.len() >= REQUESTS_MAX && !self.requests.contains_key(&key) {
            return None;
        }
        self.requests.insert(key, Waiting { kind, named });
        Some(request)
    }
}
