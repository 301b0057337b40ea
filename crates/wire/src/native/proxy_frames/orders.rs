//! What the relay sends to a proxy: orders, launches, and everything else.

use bytes::Bytes;
use domain::content::Failure;
use domain::fleet::{Earlier, Launch};
use domain::session::Order;
use domain::session::controls::{Control, Kind};
use domain::session::delivery::{Mode, Send};
use domain::{
    AgentType, ChoiceId, Content, MessageId, ModelId, PromptId, RequestId, RunId, Sequence,
    SessionId, Timestamp,
};
use serde::{Deserialize, Serialize};

use super::super::shapes::{
    AnswerDetail, Attachment, Envelope, ErrorBody, Malformed, ResumableList, Sealed, Time, encode,
    id, read_body, words,
};
use super::greeting::{Ack, from_relay, read_link_ack};

words! {
    /// What a send does while the agent runs.
    ModeWord for Mode {
        Steer = "steer",
        FollowUp = "follow_up",
    }
}

/// Everything that a proxy may hear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromRelay {
    /// The greeting.
    Ack(Ack),
    /// Something was wrong.
    Error(Failure),
    /// A sign of life.
    HeartbeatAck,
    /// Everything up to here is on the relay's disk.
    LinkAck(u64),
    /// Something to do in a session.
    Order(SessionId, Box<Order>),
    /// A session to start.
    Launch(LaunchOrder),
    /// The agents' own conversations are asked for.
    Resumable(RequestId, ResumableList),
    /// A type that this end does not know.
    Other(String),
}

/// A session to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchOrder {
    /// The client's id for it.
    pub request: RequestId,
    /// Which agent.
    pub agent: AgentType,
    /// In which folder.
    pub workspace_path: Option<String>,
    /// A hint for the new session's name.
    pub window_title: Option<String>,
    /// With which model.
    pub model: Option<ModelId>,
    /// In which permission mode.
    pub permission_mode: Option<String>,
    /// Whether it gets a working tree of its own.
    pub has_worktree: bool,
    /// The agent's earlier conversation to go on with.
    pub earlier: Option<Earlier>,
    /// For the agent's program, besides its driver's own.
    pub arguments: Vec<String>,
    /// How long the relay waits for the answer, from now on; `None` from a relay that does not say.
    pub timeout_ms: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct SendMessage {
    #[serde(deserialize_with = "id::required")]
    client_message_id: MessageId,
    #[serde(default)]
    content: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<Attachment>,
    created_at: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sealed: Option<Sealed>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<ModeWord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attempt: Option<Sequence>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sent_by: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct PermissionResponse {
    #[serde(deserialize_with = "id::required")]
    prompt_id: PromptId,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    choice_id: Option<ChoiceId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    auto_applied: Option<bool>,
    // Written flat; read by itself, because JSON that is kept as text cannot be read flat.
    #[serde(flatten, skip_deserializing)]
    detail: AnswerDetail,
}

#[derive(Serialize, Deserialize)]
struct Interrupt {
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    run_id: Option<RunId>,
}

#[derive(Serialize, Deserialize)]
struct SetModel {
    #[serde(deserialize_with = "id::required")]
    model_id: ModelId,
}

#[derive(Serialize, Deserialize)]
struct SetMode {
    mode: String,
}

#[derive(Serialize, Deserialize)]
struct SetEffort {
    effort: String,
}

#[derive(Serialize, Deserialize)]
struct Nothing {}

#[derive(Serialize, Deserialize)]
struct LaunchSession {
    #[serde(deserialize_with = "id::required")]
    agent_type: AgentType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    workspace_path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    window_title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    model_id: Option<ModelId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    permission_mode: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    worktree: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    conversation_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fork: Option<bool>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    arguments: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
}

/// The type of the frame that carries a control command.
pub fn command_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Interrupt => "agent_interrupt",
        Kind::SetModel => "agent_set_model",
        Kind::SetMode => "agent_set_permission_mode",
        Kind::SetEffort => "agent_set_effort",
        Kind::ReadConfig => "agent_config_request",
        Kind::Close => "close_session",
        Kind::Answer => "permission_response",
    }
}

/// Writes an order. `is_plain` leaves out what only our own proxies understand.
pub fn encode_order(session: &SessionId, order: &Order, is_plain: bool, now: Timestamp) -> Bytes {
    let about = |kind, request: Option<&RequestId>| Envelope {
        session_id: Some(session.clone()),
        request_id: request.cloned(),
        ..from_relay(kind, now)
    };
    match order {
        Order::Deliver { send, attempt } => {
            let body = send_message(send, (!is_plain).then_some(*attempt));
            encode(&about("send_message", None), &body)
        }
        Order::Answer { request, prompt, choice, by_person, detail } => {
            let body = PermissionResponse {
                prompt_id: prompt.clone(),
                choice_id: choice.clone(),
                auto_applied: (!by_person).then_some(true),
                detail: detail.as_ref().map(Into::into).unwrap_or_default(),
            };
            encode(&about("permission_response", Some(request)), &body)
        }
        Order::Control { request, control } => {
            let envelope = about(command_name(control.kind()), Some(request));
            match control {
                Control::Interrupt { run } => {
                    let run_id = run.clone().filter(|_| !is_plain);
                    encode(&envelope, &Interrupt { run_id })
                }
                Control::SetModel(model) => {
                    encode(&envelope, &SetModel { model_id: model.clone() })
                }
                Control::SetMode(mode) => encode(&envelope, &SetMode { mode: mode.clone() }),
                Control::SetEffort(effort) => {
                    encode(&envelope, &SetEffort { effort: effort.clone() })
                }
                Control::ReadConfig | Control::Close => encode(&envelope, &Nothing {}),
                // Prompts owe their answers as `Order::Answer`; this says nothing to anybody.
                Control::Answer(_) => encode(&from_relay("heartbeat_ack", now), &Nothing {}),
            }
        }
    }
}

/// Writes a launch.
pub fn encode_launch(launch: &Launch, now: Timestamp) -> Bytes {
    let kind = if launch.earlier.is_some() { "resume_session" } else { "launch_session" };
    let envelope = Envelope { request_id: Some(launch.request.clone()), ..from_relay(kind, now) };
    let body = LaunchSession {
        agent_type: launch.agent.clone(),
        workspace_path: launch.workspace_path.clone(),
        window_title: launch.window_title.clone(),
        model_id: launch.model.clone(),
        permission_mode: launch.permission_mode.clone(),
        worktree: launch.has_worktree.then_some(true),
        conversation_id: launch.earlier.as_ref().map(|earlier| earlier.id.clone()),
        fork: launch.earlier.as_ref().and_then(|earlier| earlier.fork.then_some(true)),
        arguments: launch.arguments.clone(),
        // As a duration, because clocks differ. A plain proxy is told what the document names.
        timeout_ms: launch.via.link.is_some().then(|| launch.timeout_at.ms_since(now)),
    };
    encode(&envelope, &body)
}

/// Reads anything that the relay says to a proxy.
pub fn read_from_relay(text: &str) -> Result<FromRelay, Malformed> {
    let envelope = Envelope::read(text)?;
    let order = match envelope.kind.as_ref() {
        "connection_ack" => return Ok(FromRelay::Ack(Ack::read(&envelope, text)?)),
        "connection_error" => {
            return Ok(FromRelay::Error(read_body::<ErrorBody>(text)?.into()));
        }
        "heartbeat_ack" => return Ok(FromRelay::HeartbeatAck),
        "link_ack" => return Ok(FromRelay::LinkAck(read_link_ack(text)?)),
        "launch_session" | "resume_session" => {
            return read_launch(&envelope, text).map(FromRelay::Launch);
        }
        "resumable_list" => {
            return Ok(FromRelay::Resumable(envelope.request(text)?, read_body(text)?));
        }
        "send_message" => {
            let body: SendMessage = read_body(text)?;
            Order::Deliver { attempt: body.attempt.unwrap_or_default(), send: body.into_model() }
        }
        "permission_response" => {
            let body: PermissionResponse = read_body(text)?;
            Order::Answer {
                request: envelope.request(text)?,
                prompt: body.prompt_id,
                choice: body.choice_id,
                by_person: body.auto_applied != Some(true),
                detail: read_body::<AnswerDetail>(text)?.into_model(),
            }
        }
        "agent_interrupt" => {
            let run = read_body::<Interrupt>(text)?.run_id;
            control(&envelope, text, Control::Interrupt { run })?
        }
        "agent_set_model" => {
            let model = read_body::<SetModel>(text)?.model_id;
            control(&envelope, text, Control::SetModel(model))?
        }
        "agent_set_permission_mode" => {
            let mode = read_body::<SetMode>(text)?.mode;
            control(&envelope, text, Control::SetMode(mode))?
        }
        "agent_set_effort" => {
            let effort = read_body::<SetEffort>(text)?.effort;
            control(&envelope, text, Control::SetEffort(effort))?
        }
        "agent_config_request" => control(&envelope, text, Control::ReadConfig)?,
        "close_session" => control(&envelope, text, Control::Close)?,
        other => return Ok(FromRelay::Other(other.to_owned())),
    };
    Ok(FromRelay::Order(envelope.session(text)?, Box::new(order)))
}

fn control(envelope: &Envelope, text: &str, control: Control) -> Result<Order, Malformed> {
    Ok(Order::Control { request: envelope.request(text)?, control })
}

fn read_launch(envelope: &Envelope, text: &str) -> Result<LaunchOrder, Malformed> {
    let body: LaunchSession = read_body(text)?;
    Ok(LaunchOrder {
        request: envelope.request(text)?,
        agent: body.agent_type,
        workspace_path: body.workspace_path,
        window_title: body.window_title,
        model: body.model_id,
        permission_mode: body.permission_mode,
        has_worktree: body.worktree == Some(true),
        earlier: body.conversation_id.map(|id| Earlier { id, fork: body.fork == Some(true) }),
        arguments: body.arguments,
        timeout_ms: body.timeout_ms,
    })
}

/// `attempt` is for our own proxies, and with it everything that the document does not name.
fn send_message(send: &Send, attempt: Option<Sequence>) -> SendMessage {
    let (content, sealed) = match &send.text {
        Content::Open(text) => (text.clone(), None),
        Content::Sealed(sealed) => (String::new(), Some(sealed.into())),
    };
    SendMessage {
        client_message_id: send.id.clone(),
        content,
        attachments: send.attachments.iter().map(Into::into).collect(),
        created_at: send.created_at.into(),
        sealed,
        mode: send.mode.filter(|_| attempt.is_some()).map(Into::into),
        attempt,
        sent_by: attempt.map(|_| send.by.clone()),
    }
}

impl SendMessage {
    fn into_model(self) -> Send {
        let text = match self.sealed {
            Some(sealed) => Content::Sealed(sealed.into()),
            None => Content::Open(self.content),
        };
        Send {
            id: self.client_message_id,
            text,
            attachments: self.attachments.into_iter().map(Into::into).collect(),
            mode: self.mode.map(Into::into),
            by: self.sent_by.unwrap_or_default(),
            created_at: self.created_at.into(),
            digest: None,
        }
    }
}
