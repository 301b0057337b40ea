//! A client's requests, turned into work for its shell.

use domain::fleet::LaunchWish;
use domain::session::Wish;
use domain::session::controls::Control;
use domain::{AgentType, Content, MessageId, RequestId, Sequence, SessionId, Timestamp};

use super::launches::launch_failed;
use super::{
    ATTACHMENTS_MAX, Asked, ClientConnection, Feature, LAUNCHES_TOLD_MAX, Output, Purpose,
    Question, error, send_of, too_fast,
};
use crate::native::frames::{ClientFrame, QueueEdit, SendMessage, SessionLaunchFailed};
use crate::native::shapes::Envelope;

/// Bytes of a session's title, of a mode and of an effort.
pub const NAME_BYTES_MAX: usize = 512;

/// A frame that is valid JSON of a known type and still breaks a rule, in words.
pub(super) type Broken = String;

impl ClientConnection {
    /// A frame of a client that said hello.
    pub(super) fn dispatch(
        &mut self,
        envelope: &Envelope,
        frame: ClientFrame,
        now: Timestamp,
    ) -> Vec<Output> {
        if self.principal.is_none() {
            return vec![Self::unauthorized(envelope, &frame, now)];
        }
        let send = send_of(&frame).cloned();
        self.command(envelope, frame, now).unwrap_or_else(|words| {
            let (request, session) = (envelope.request_id.clone(), envelope.session_id.clone());
            vec![error("invalid_message", &words, request, send, session, now)]
        })
    }

    fn command(
        &mut self,
        envelope: &Envelope,
        frame: ClientFrame,
        now: Timestamp,
    ) -> Result<Vec<Output>, Broken> {
        if let Some(feature) = feature_of(&frame).filter(|feature| !self.has(*feature)) {
            let (kind, feature) = (frame.kind(), feature.name());
            return Err(format!("{kind} needs the feature {feature} in connection_hello"));
        }
        match frame {
            ClientFrame::ConnectionHello(_) => Err("connection_hello was already sent".to_owned()),
            // Answered before it gets here.
            ClientFrame::Heartbeat(_) => Ok(vec![self.beat(envelope, now)]),
            ClientFrame::SendMessage(send) => self.send(session(envelope)?, send, now),
            ClientFrame::HistoryRequest(asked) => {
                let (session, request) = (session(envelope)?, envelope.request_id.clone());
                self.look_at_from_elsewhere(&session);
                Ok(match asked.after_sequence {
                    Some(after) => self.ask(&session, Purpose::Delta(request), after, now),
                    None => self.ask(&session, Purpose::Snapshot(request), Sequence(0), now),
                })
            }
            ClientFrame::LaunchSession(launch) => {
                let request = request(envelope)?;
                launch.check_arguments()?;
                Ok(self.launch(launch.into_model(request), now))
            }
            ClientFrame::ResumeSession(resume) => {
                let request = request(envelope)?;
                Ok(self.launch(resume.into_model(request), now))
            }
            ClientFrame::CatalogRequest(_) => Ok(ask(envelope, Question::Catalog)),
            ClientFrame::ResumableList(asked) => Ok(ask(envelope, Question::Resumable(asked))),
            ClientFrame::ToolOutputRequest(asked) => {
                let session = session(envelope)?;
                Ok(ask(envelope, Question::ToolOutput { session, asked }))
            }
            ClientFrame::CloseSession(_) => {
                request(envelope)?;
                self.control(envelope, Control::Close, now)
            }
            ClientFrame::PermissionResponse(answer) => self.answer(envelope, answer, now),
            ClientFrame::AgentInterrupt(_) => {
                request(envelope)?;
                self.control(envelope, Control::Interrupt { run: None }, now)
            }
            ClientFrame::AgentConfigRequest(_) => {
                let (session, request) = (session(envelope)?, envelope.request_id.clone());
                let mut outputs = vec![Output::Card { session, request }];
                outputs.extend(self.control(envelope, Control::ReadConfig, now)?);
                Ok(outputs)
            }
            ClientFrame::AgentSetModel(set) => {
                self.control(envelope, Control::SetModel(set.model_id), now)
            }
            ClientFrame::AgentSetPermissionMode(set) => {
                let mode = name("mode", set.mode)?;
                self.control(envelope, Control::SetMode(mode), now)
            }
            ClientFrame::AgentSetEffort(set) => {
                let effort = name("effort", set.effort)?;
                self.control(envelope, Control::SetEffort(effort), now)
            }
            ClientFrame::SessionRename(rename) => {
                let title = name("title", rename.title)?;
                other(envelope, None, Wish::Rename(title))
            }
            ClientFrame::Watch(watch) => self.watch(&watch, now),
            ClientFrame::QueueEdit(edit) => {
                let mut outputs = self.look_at(&session(envelope)?, now);
                outputs.extend(self.edit(envelope, edit, now)?);
                Ok(outputs)
            }
            ClientFrame::QueueDiscard(discard) => {
                let id = discard.client_message_id;
                self.queue(envelope, Some(id.clone()), Wish::DiscardQueued { id }, now)
            }
            ClientFrame::QueueMove(shift) => {
                let (id, to) = (shift.client_message_id, shift.position as usize);
                self.queue(envelope, Some(id.clone()), Wish::MoveQueued { id, to }, now)
            }
            ClientFrame::QueueResume(_) => self.queue(envelope, None, Wish::ResumeQueue, now),
        }
    }

    /// That it worked is told by events that only who looks at the session hears.
    fn queue(
        &mut self,
        envelope: &Envelope,
        id: Option<MessageId>,
        wish: Wish,
        now: Timestamp,
    ) -> Result<Vec<Output>, Broken> {
        let mut outputs = self.look_at(&session(envelope)?, now);
        outputs.extend(other(envelope, id, wish)?);
        Ok(outputs)
    }

    fn send(
        &mut self,
        session: SessionId,
        mut send: SendMessage,
        now: Timestamp,
    ) -> Result<Vec<Output>, Broken> {
        if send.is_empty() {
            return Err("send_message needs content or attachments".to_owned());
        }
        if send.attachments.as_ref().is_some_and(|files| files.len() > ATTACHMENTS_MAX) {
            return Err(format!("send_message takes at most {ATTACHMENTS_MAX} attachments"));
        }
        let id = send.client_message_id.clone();
        if send.content_bytes() > self.limits.max_content_bytes {
            return Ok(vec![self.too_large(&session, &id, now)]);
        }
        if !self.has(Feature::Queue) {
            send.mode = None;
        }
        let by = self.principal.as_ref().map_or("", |principal| principal.name.as_str());
        let send = send.into_model(by);
        let asked = Asked::Send { session: session.clone(), id };
        let mut outputs = self.look_at(&session, now);
        let wish = Wish::Send { send, earlier: None };
        outputs.push(Output::Session { session, wish, asked });
        Ok(outputs)
    }

    fn launch(&mut self, wish: LaunchWish, now: Timestamp) -> Vec<Output> {
        let request = wish.request.clone();
        let known = self.launches.contains_key(&request);
        if !known && self.launches.len() >= LAUNCHES_TOLD_MAX {
            return vec![too_fast(Some(request), None, now)];
        }
        self.launches.entry(request.clone()).or_insert(None);
        let asked = Asked::Launch { request, agent: wish.agent.clone() };
        vec![Output::Launch { wish, asked }]
    }

    fn edit(
        &mut self,
        envelope: &Envelope,
        edit: QueueEdit,
        now: Timestamp,
    ) -> Result<Vec<Output>, Broken> {
        let id = edit.client_message_id;
        let text = match (edit.sealed, edit.content) {
            (Some(sealed), _) => Content::Sealed(sealed.into()),
            (None, Some(words)) if !words.is_empty() => Content::Open(words),
            (None, Some(_) | None) => return Err("queue_edit needs content".to_owned()),
        };
        let bytes = match &text {
            Content::Open(words) => words.len(),
            Content::Sealed(sealed) => sealed.body.len(),
        };
        if bytes > self.limits.max_content_bytes {
            let (code, words) = ("message_too_large", "The new text is too long");
            let (request, session) = (envelope.request_id.clone(), envelope.session_id.clone());
            return Ok(vec![error(code, words, request, Some(id), session, now)]);
        }
        other(envelope, Some(id.clone()), Wish::EditQueued { id, text })
    }

    /// Nobody said who this is.
    fn unauthorized(envelope: &Envelope, frame: &ClientFrame, now: Timestamp) -> Output {
        let words = "This connection has no credential";
        if let (Some(agent), Some(request)) = (launched(frame), &envelope.request_id) {
            let body = SessionLaunchFailed {
                agent_type: Some(agent.clone()),
                reason: words.to_owned(),
                error_code: "unauthorized".to_owned(),
            };
            return launch_failed(request, body, now);
        }
        let (request, session) = (envelope.request_id.clone(), envelope.session_id.clone());
        error("unauthorized", words, request, send_of(frame).cloned(), session, now)
    }
}

pub(super) fn session(envelope: &Envelope) -> Result<SessionId, Broken> {
    envelope.session_id.clone().ok_or_else(|| format!("{} needs session_id", envelope.kind))
}

pub(super) fn request(envelope: &Envelope) -> Result<RequestId, Broken> {
    envelope.request_id.clone().ok_or_else(|| format!("{} needs request_id", envelope.kind))
}

fn other(envelope: &Envelope, send: Option<MessageId>, wish: Wish) -> Result<Vec<Output>, Broken> {
    let (session, request) = (session(envelope)?, envelope.request_id.clone());
    let asked = Asked::Other { session: session.clone(), request, send };
    Ok(vec![Output::Session { session, wish, asked }])
}

fn ask(envelope: &Envelope, question: Question) -> Vec<Output> {
    vec![Output::Ask { question, request: envelope.request_id.clone() }]
}

/// The agent that a frame wants to start.
fn launched(frame: &ClientFrame) -> Option<&AgentType> {
    if let ClientFrame::LaunchSession(launch) = frame {
        return Some(&launch.agent_type);
    }
    let ClientFrame::ResumeSession(resume) = frame else { return None };
    Some(&resume.agent_type)
}

fn name(field: &str, value: String) -> Result<String, Broken> {
    if value.is_empty() || value.len() > NAME_BYTES_MAX {
        return Err(format!("{field} must have 1 to {NAME_BYTES_MAX} bytes"));
    }
    Ok(value)
}

/// The feature that a command belongs to.
fn feature_of(frame: &ClientFrame) -> Option<Feature> {
    match frame {
        ClientFrame::AgentSetPermissionMode(_) | ClientFrame::AgentSetEffort(_) => {
            Some(Feature::Modes)
        }
        ClientFrame::SessionRename(_) => Some(Feature::SessionRename),
        ClientFrame::Watch(_) => Some(Feature::Watch),
        ClientFrame::QueueEdit(_)
        | ClientFrame::QueueDiscard(_)
        | ClientFrame::QueueMove(_)
        | ClientFrame::QueueResume(_) => Some(Feature::Queue),
        ClientFrame::CatalogRequest(_) => Some(Feature::Catalog),
        ClientFrame::ResumeSession(_) | ClientFrame::ResumableList(_) => Some(Feature::Resume),
        ClientFrame::ToolOutputRequest(_) => Some(Feature::ToolOutput),
        ClientFrame::ConnectionHello(_)
        | ClientFrame::Heartbeat(_)
        | ClientFrame::SendMessage(_)
        | ClientFrame::HistoryRequest(_)
        | ClientFrame::LaunchSession(_)
        | ClientFrame::CloseSession(_)
        | ClientFrame::PermissionResponse(_)
        | ClientFrame::AgentInterrupt(_)
        | ClientFrame::AgentConfigRequest(_)
        | ClientFrame::AgentSetModel(_) => None,
    }
}
