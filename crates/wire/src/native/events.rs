//! Recorded events as frames, in two forms, each encoded once for all recipients.
//!
//! The plain form has exactly the fields of the document; the full form has everything. A
//! connection's [`super::features::Features`] decide which form and which events it receives.
//!
//! Not here: answers to one peer (`client_connection`).

mod cache;
mod hot;
mod queue;

use bytes::Bytes;
use domain::content::Failure;
use domain::session::{Event, Recorded, delivery, prompts, runs, status, transcript};
use domain::{Sequence, SessionId};
use serde::Serialize;

pub use cache::Cache;
pub use hot::encode_delta;

use super::frames::{
    MessageFailed, PermissionPromptExpired, PermissionPromptResolved, SessionArchived,
    SessionClosed, SessionDown, SessionRenamed, SessionStatus, SessionUp, StatusWord,
};
use super::shapes::{
    AgentConfig, ContextUsage, Envelope, Notice, Plan, Prompt, RunEnded, RunStarted, Session,
    ToolCall, ToolUpdate, encode,
};

/// How much a frame says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// What the document names.
    Plain,
    /// Everything.
    Full,
}

/// The id of an event: derived from its place, so that it is the same whenever it is told.
pub fn event_id(session: &SessionId, sequence: Sequence) -> String {
    format!("evt_{session}_{sequence}")
}

/// The frame that tells this event; `None` where this form has no word for it.
pub fn encode_event(session: &SessionId, recorded: &Recorded, form: Form) -> Option<Bytes> {
    match &recorded.event {
        Event::Delivery(event) => of_delivery(session, recorded, event, form),
        Event::Queue(_) => full(form).and_then(|()| queue::primary(session, recorded)),
        Event::Prompt(event) => of_prompt(session, recorded, event, form),
        Event::Run(event) => full(form).map(|()| of_run(session, recorded, event)),
        // Told to the asker alone.
        Event::Control(_) => None,
        Event::Config(config) => {
            let body = match form {
                Form::Plain => AgentConfig::plain(config),
                Form::Full => AgentConfig::full(config),
            };
            Some(write(session, recorded, "agent_config", &body))
        }
        Event::Status(event) => of_status(session, recorded, event, form),
        Event::Transcript(event) => of_transcript(session, recorded, event, form),
    }
}

/// The same at the end of what is there. Says whether there was a word for it.
pub fn encode_event_into(
    buffer: &mut Vec<u8>,
    session: &SessionId,
    recorded: &Recorded,
    form: Form,
) -> bool {
    if let Event::Transcript(transcript::Event::Message(message)) = &recorded.event {
        return hot::message_into(buffer, session, recorded, message, form);
    }
    let frame = encode_event(session, recorded, form);
    buffer.extend_from_slice(frame.as_deref().unwrap_or_default());
    frame.is_some()
}

/// The full form with outputs whole, however long: for a copy that is to keep.
pub fn encode_whole(session: &SessionId, recorded: &Recorded) -> Option<Bytes> {
    if let Event::Transcript(transcript::Event::ToolCall(call)) = &recorded.event {
        return Some(write(session, recorded, "tool_call", &ToolCall::from(call)));
    }
    if let Event::Transcript(transcript::Event::ToolUpdate(update)) = &recorded.event {
        return Some(write(session, recorded, "tool_update", &ToolUpdate::from(update)));
    }
    encode_event(session, recorded, Form::Full)
}

fn full(form: Form) -> Option<()> {
    (form == Form::Full).then_some(())
}

fn envelope(session: &SessionId, recorded: &Recorded, kind: &'static str) -> Envelope {
    Envelope {
        event_id: Some(event_id(session, recorded.sequence)),
        sequence: Some(recorded.sequence),
        session_id: Some(session.clone()),
        server_ts: Some(recorded.at.into()),
        ..Envelope::new(kind)
    }
}

fn write<T: Serialize>(
    session: &SessionId,
    recorded: &Recorded,
    kind: &'static str,
    body: &T,
) -> Bytes {
    encode(&envelope(session, recorded, kind), body)
}

fn of_delivery(
    session: &SessionId,
    recorded: &Recorded,
    event: &delivery::Event,
    form: Form,
) -> Option<Bytes> {
    match event {
        delivery::Event::Accepted(send) => Some(hot::accepted(session, recorded, send, form)),
        delivery::Event::HandedOver { .. } => {
            full(form).and_then(|()| queue::primary(session, recorded))
        }
        delivery::Event::Delivered { id, run } => {
            Some(hot::delivered(session, recorded, id, run.as_ref(), form))
        }
        delivery::Event::Failed { id, failure } => {
            let body = MessageFailed {
                message_id: id.clone(),
                client_message_id: id.clone(),
                status: StatusWord::Failed,
                failed_at: recorded.at.into(),
                error: failure.into(),
            };
            Some(write(session, recorded, "message_failed", &body))
        }
    }
}

fn of_prompt(
    session: &SessionId,
    recorded: &Recorded,
    event: &prompts::Event,
    form: Form,
) -> Option<Bytes> {
    match event {
        prompts::Event::Asked(prompt) => Some(asked(session, recorded, prompt, None, form)),
        prompts::Event::Settled { prompt, choice, settled, .. } => Some(match (settled, form) {
            (prompts::Settled::ByPerson { name }, Form::Full) => {
                let body = PermissionPromptResolved {
                    prompt_id: prompt.clone(),
                    choice_id: choice.clone(),
                    answered_by: name.clone(),
                };
                write(session, recorded, "permission_prompt_resolved", &body)
            }
            (
                prompts::Settled::ByPerson { .. }
                | prompts::Settled::ByExpiry
                | prompts::Settled::Withdrawn,
                Form::Plain | Form::Full,
            ) => {
                let (prompt_id, applied_choice) = (prompt.clone(), choice.clone());
                let body = PermissionPromptExpired { prompt_id, applied_choice };
                write(session, recorded, "permission_prompt_expired", &body)
            }
        }),
        prompts::Event::Confirmed(_) => None,
        prompts::Event::Reopened { prompt, failure } => {
            Some(asked(session, recorded, prompt, Some(failure), form))
        }
    }
}

/// A question, asked for the first time or again because an answer could not be applied.
fn asked(
    session: &SessionId,
    recorded: &Recorded,
    prompt: &prompts::Prompt,
    failure: Option<&Failure>,
    form: Form,
) -> Bytes {
    let body = match form {
        Form::Plain => Prompt::plain(prompt),
        Form::Full => Prompt::full(prompt),
    };
    let body = Prompt { error: failure.map(Into::into), ..body };
    write(session, recorded, "permission_prompt", &body)
}

fn of_run(session: &SessionId, recorded: &Recorded, event: &runs::Event) -> Bytes {
    match event {
        runs::Event::Started { run, cause } => {
            let body = RunStarted { run_id: run.clone(), cause: cause.clone() };
            write(session, recorded, "run_started", &body)
        }
        runs::Event::Ended { run, outcome, usage } => {
            let body = RunEnded::of(run, outcome, usage.as_ref());
            write(session, recorded, "run_ended", &body)
        }
    }
}

fn of_status(
    session: &SessionId,
    recorded: &Recorded,
    event: &status::Event,
    form: Form,
) -> Option<Bytes> {
    Some(match event {
        status::Event::Up { meta, health, activity, .. } => {
            let described = Session::of_meta(session, meta, *health, activity.as_ref());
            let last_seen_at = Some(recorded.at.into());
            let body = SessionUp { session: Session { last_seen_at, ..described } };
            // The session stands inside: the document has it nowhere else.
            let envelope = envelope(session, recorded, "session_up");
            encode(&Envelope { session_id: None, ..envelope }, &body)
        }
        status::Event::Down { reason, .. } => {
            let body = SessionDown { reason: (*reason).into() };
            write(session, recorded, "session_down", &body)
        }
        status::Event::Changed { health, activity, reason } => {
            let body = SessionStatus {
                status: (*health).into(),
                activity: activity.as_ref().map(Into::into),
                reason: reason.clone().filter(|_| form == Form::Full),
            };
            write(session, recorded, "session_status", &body)
        }
        status::Event::Closed { reason, request } => {
            let envelope = envelope(session, recorded, "session_closed");
            let body = SessionClosed { reason: Some((*reason).into()) };
            encode(&Envelope { request_id: request.clone(), ..envelope }, &body)
        }
        status::Event::Renamed(title) => {
            full(form)?;
            let body = SessionRenamed { title: title.clone() };
            write(session, recorded, "session_renamed", &body)
        }
        status::Event::Archived(archived) => {
            full(form)?;
            let body = SessionArchived { archived: *archived };
            write(session, recorded, "session_archived", &body)
        }
    })
}

fn of_transcript(
    session: &SessionId,
    recorded: &Recorded,
    event: &transcript::Event,
    form: Form,
) -> Option<Bytes> {
    match event {
        transcript::Event::Message(message) => hot::message(session, recorded, message, form),
        // It is in the transcript already.
        transcript::Event::Echoed(_) => None,
        transcript::Event::ToolCall(call) => {
            let body = || ToolCall::from(call).shortened();
            full(form).map(|()| write(session, recorded, "tool_call", &body()))
        }
        transcript::Event::ToolUpdate(update) => {
            let body = || ToolUpdate::from(update).shortened();
            full(form).map(|()| write(session, recorded, "tool_update", &body()))
        }
        transcript::Event::Plan(plan) => {
            full(form).map(|()| write(session, recorded, "plan", &Plan::from(plan)))
        }
        transcript::Event::Notice(notice) => {
            full(form).map(|()| write(session, recorded, "notice", &Notice::from(notice)))
        }
        transcript::Event::Context(context) => {
            let body = ContextUsage::from(*context);
            full(form).map(|()| write(session, recorded, "context_usage", &body))
        }
    }
}
