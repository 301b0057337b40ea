//! What a proxy reports about one session.
//!
//! `encode_report` and `read_report` are each one exhaustive match, so a new report must be
//! handled at both ends.

use bytes::Bytes;
use domain::content::{Author, Failure};
use domain::passing::Delta;
use domain::session::Report;
use domain::{MessageId, PromptId, RunId, Sequence, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

use super::super::shapes::{
    Activity, AgentConfig, CloseReasonWord, ContextUsage, Envelope, ErrorBody, HealthWord,
    Malformed, Message, MessageDelta, Notice, Plan, Prompt, RunEnded, RunStarted, Time, ToolCall,
    ToolUpdate, echo_digest, encode, failure_of, id, message_digest, read_body,
};
use super::Numbered;

#[derive(Serialize, Deserialize)]
struct ProxyStatus {
    status: HealthWord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    activity: Option<Activity>,
    /// Extension: why, in words for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Serialize)]
struct ProxyMessage<'a> {
    message: Message<'a>,
}

#[derive(Deserialize)]
struct ProxyMessageRead {
    message: Message<'static>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SendWord {
    Delivered,
    Failed,
}

#[derive(Serialize, Deserialize)]
struct SendResult {
    #[serde(deserialize_with = "id::required")]
    client_message_id: MessageId,
    result: SendWord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delivered_at: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed_at: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<ErrorBody>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error_code: Option<String>,
    /// Extension: which hand-over it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attempt: Option<Sequence>,
    /// Extension: the run that it started.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    run_id: Option<RunId>,
}

#[derive(Serialize, Deserialize)]
struct PromptGone {
    #[serde(deserialize_with = "id::required")]
    prompt_id: PromptId,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ControlWord {
    Ok,
    Failed,
}

#[derive(Serialize, Deserialize)]
struct ControlResult {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    result: ControlWord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<ErrorBody>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error_code: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Resumed {
    #[serde(default)]
    open_prompts: Vec<PromptId>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    active_run: Option<RunId>,
}

#[derive(Serialize, Deserialize)]
struct Closed {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<CloseReasonWord>,
}

/// Writes a report. `command` is the type of the command that a control result answers.
pub fn encode_report(
    session: &SessionId,
    report: &Report,
    command: Option<&str>,
    number: Option<u64>,
    now: Timestamp,
) -> Bytes {
    let about = |kind| Envelope { session_id: Some(session.clone()), ..Envelope::new(kind) };
    match report {
        Report::Status { health, activity, reason } => {
            let activity = activity.as_ref().map(Into::into);
            let body = ProxyStatus { status: (*health).into(), activity, reason: reason.clone() };
            write(&about("proxy_status"), &body, number)
        }
        Report::Message { message, has_own_id, .. } => {
            let mut message = Message::full(message);
            message.message_id = message.message_id.filter(|_| *has_own_id);
            write(&about("proxy_message"), &ProxyMessage { message }, number)
        }
        Report::ToolCall(call) => write(&about("tool_call"), &ToolCall::from(call), number),
        Report::ToolUpdate(update) => {
            write(&about("tool_update"), &ToolUpdate::from(update), number)
        }
        Report::Plan(plan) => write(&about("plan"), &Plan::from(plan), number),
        Report::Notice(notice) => write(&about("notice"), &Notice::from(notice), number),
        Report::Context(context) => {
            write(&about("context_usage"), &ContextUsage::from(*context), number)
        }
        Report::RunStarted { run, cause } => {
            let body = RunStarted { run_id: run.clone(), cause: cause.clone() };
            write(&about("run_started"), &body, number)
        }
        Report::RunEnded { run, outcome, usage } => {
            write(&about("run_ended"), &RunEnded::of(run, outcome, usage.as_ref()), number)
        }
        Report::SendDelivered { id, attempt, run } => {
            let body = SendResult {
                delivered_at: Some(now.into()),
                run_id: run.clone(),
                ..send_result(id, SendWord::Delivered, *attempt)
            };
            write(&about("proxy_send_result"), &body, number)
        }
        Report::SendFailed { id, attempt, failure } => {
            let body = SendResult {
                failed_at: Some(now.into()),
                error: Some(failure.into()),
                ..send_result(id, SendWord::Failed, *attempt)
            };
            write(&about("proxy_send_result"), &body, number)
        }
        Report::Asked(prompt) => write(&about("permission_prompt"), &Prompt::full(prompt), number),
        Report::PromptGone(prompt) => {
            let body = PromptGone { prompt_id: prompt.clone() };
            write(&about("permission_prompt_expired"), &body, number)
        }
        Report::ControlResult { request, failure } => {
            let envelope =
                Envelope { request_id: Some(request.clone()), ..about("agent_control_result") };
            let result = if failure.is_none() { ControlWord::Ok } else { ControlWord::Failed };
            let body = ControlResult {
                command: command.map(str::to_owned),
                result,
                error: failure.as_ref().map(Into::into),
                error_code: None,
            };
            write(&envelope, &body, number)
        }
        Report::Config(config) => write(&about("agent_config"), &AgentConfig::full(config), number),
        Report::Resumed { prompts, run } => {
            let body = Resumed { open_prompts: prompts.clone(), active_run: run.clone() };
            write(&about("proxy_resumed"), &body, number)
        }
        Report::Closed { reason, request } => {
            let envelope = Envelope { request_id: request.clone(), ..about("session_closed") };
            write(&envelope, &Closed { reason: Some((*reason).into()) }, number)
        }
    }
}

/// Reads a report; `None` for a frame of another kind. `unnamed` is the id of a message that has
/// none of its own.
pub fn read_report(
    envelope: &Envelope,
    text: &str,
    unnamed: impl FnOnce() -> MessageId,
    now: Timestamp,
) -> Result<Option<(SessionId, Report)>, Malformed> {
    let report = match envelope.kind.as_ref() {
        "proxy_status" => {
            let body: ProxyStatus = read_body(text)?;
            let activity = body.activity.map(|activity| activity.into_model(now));
            Report::Status { health: body.status.into(), activity, reason: body.reason }
        }
        "proxy_message" => message(read_body::<ProxyMessageRead>(text)?.message, unnamed, now),
        "tool_call" => Report::ToolCall(read_body::<ToolCall>(text)?.into()),
        "tool_update" => Report::ToolUpdate(read_body::<ToolUpdate>(text)?.into()),
        "plan" => Report::Plan(read_body::<Plan>(text)?.into()),
        "notice" => Report::Notice(read_body::<Notice>(text)?.into()),
        "context_usage" => Report::Context(read_body::<ContextUsage>(text)?.into()),
        "run_started" => {
            let body: RunStarted = read_body(text)?;
            Report::RunStarted { run: body.run_id, cause: body.cause }
        }
        "run_ended" => {
            let (run, outcome, usage) = read_body::<RunEnded>(text)?.into_model();
            Report::RunEnded { run, outcome, usage }
        }
        "proxy_send_result" => send_result_read(read_body(text)?),
        "permission_prompt" => {
            let prompt = read_body::<Prompt>(text)?.into_model(now);
            Report::Asked(prompt.map_err(|words| Malformed::rule(text, &words))?)
        }
        "permission_prompt_expired" => Report::PromptGone(read_body::<PromptGone>(text)?.prompt_id),
        "agent_control_result" => {
            let request = envelope.request(text)?;
            let body: ControlResult = read_body(text)?;
            let failure = match body.result {
                ControlWord::Ok => None,
                ControlWord::Failed => Some(unexplained(body.error, body.error_code)),
            };
            Report::ControlResult { request, failure }
        }
        "agent_config" => Report::Config(read_body::<AgentConfig>(text)?.into_model(now)),
        "proxy_resumed" => {
            let body: Resumed = read_body(text)?;
            Report::Resumed { prompts: body.open_prompts, run: body.active_run }
        }
        "session_closed" => {
            let reason = read_body::<Closed>(text)?.reason.unwrap_or(CloseReasonWord::TargetClosed);
            Report::Closed { reason: reason.into(), request: envelope.request_id.clone() }
        }
        _ => return Ok(None),
    };
    Ok(Some((envelope.session(text)?, report)))
}

/// Writes words of a message in the making. They have no number.
pub fn encode_delta(session: &SessionId, delta: &Delta) -> Bytes {
    let envelope = Envelope { session_id: Some(session.clone()), ..Envelope::new("message_delta") };
    encode(&envelope, &MessageDelta::of(delta, None))
}

/// Reads words of a message in the making.
pub fn read_delta(envelope: &Envelope, text: &str) -> Result<(SessionId, Delta), Malformed> {
    let body: MessageDelta<'static> = read_body(text)?;
    Ok((envelope.session(text)?, body.into_model()))
}

fn write<T: Serialize>(envelope: &Envelope, body: &T, number: Option<u64>) -> Bytes {
    encode(envelope, &Numbered { body, link_number: number })
}

/// A message without an id is known by its digest; one that a person wrote may be the agent
/// program's echo of a send.
fn message(read: Message<'static>, unnamed: impl FnOnce() -> MessageId, now: Timestamp) -> Report {
    let (id, open) = (read.message_id.clone(), read.sealed.is_none());
    let digest = || message_digest(read.role, &read.content, read.created_at);
    let digest = (id.is_none() && open).then(digest);
    let echo =
        (open && Author::from(read.role) == Author::User).then(|| echo_digest(&read.content));
    let has_own_id = id.is_some();
    let mut message = read.into_model(id.unwrap_or_else(unnamed), now);
    message.digest = digest;
    Report::Message { message, has_own_id, echo }
}

fn send_result(id: &MessageId, result: SendWord, attempt: Option<Sequence>) -> SendResult {
    SendResult {
        client_message_id: id.clone(),
        result,
        delivered_at: None,
        failed_at: None,
        error: None,
        error_code: None,
        attempt,
        run_id: None,
    }
}

fn send_result_read(body: SendResult) -> Report {
    let (id, attempt) = (body.client_message_id, body.attempt);
    match body.result {
        SendWord::Delivered => Report::SendDelivered { id, attempt, run: body.run_id },
        SendWord::Failed => {
            let failure = failure_of(body.error, body.error_code, None, "send_injection_failed");
            Report::SendFailed { id, attempt, failure }
        }
    }
}

fn unexplained(error: Option<ErrorBody>, error_code: Option<String>) -> Failure {
    failure_of(error, error_code, None, "internal")
}
