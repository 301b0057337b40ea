//! Recorded events as frames that are the same for every client of the session.
//!
//! **Invariant**: these frames depend only on the event and on what all views share. Frames that
//! differ between connections (the sender's own echo, tokens, the end of a run) are built
//! elsewhere.
//!
//! Not here: streamed text (`tokens`).

use bytes::Bytes;
use domain::content::{
    Attachment, Author, Failure, Message, Part, ToolCall, ToolDetail, ToolStatus, ToolUpdate,
};
use domain::session::delivery::{SESSION_NOT_CONNECTED, Send};
use domain::session::queue::Reach;
use domain::session::runs::Outcome;
use domain::session::{Event, Recorded, delivery, prompts as asked, runs, status, transcript};
use domain::{Content, MessageId, Sequence, Timestamp};
use serde_json::{Value, json};

use super::frames::event;
use super::view::{Run, View};
use super::{names, prompts};
use crate::time::Time;

/// What a reader without the key sees. Nothing that the relay says stands in square brackets:
/// Agent Blob's command line takes those for markup and shows nothing of them.
pub(super) const SEALED: &str = "(sealed)";
/// The failure of a send that was taken out of the queue.
const DISCARDED: &str = "discarded";
/// What people are told of what a person stopped, or took out of the line.
const CANCELLED: &str = "Request cancelled by user";
/// The failure of a send whose fate nobody knows: trying it again may say it twice.
const UNKNOWN_FATE: &str = delivery::DELIVERY_UNKNOWN;

/// Whose words a message event brings.
#[derive(Debug, Clone, Copy)]
pub(super) enum Role {
    User { from_self: bool },
    Assistant,
    System,
}

/// The frames of an event that every client hears alike.
pub(super) fn shared(view: &View, recorded: &Recorded) -> Vec<Bytes> {
    let at = (recorded.sequence, recorded.at);
    match &recorded.event {
        Event::Delivery(delivery::Event::Accepted(send)) => accepted(view, recorded, send, false),
        Event::Delivery(delivery::Event::Failed { id, failure }) => {
            let mut frames = vec![failed(id, failure, recorded.sequence)];
            frames.extend(line(view, recorded));
            frames
        }
        Event::Delivery(_) | Event::Queue(_) => line(view, recorded),
        Event::Prompt(event) => of_prompt(view, event, at),
        Event::Run(runs::Event::Started { run, cause }) => {
            let name = cause.as_ref().map_or(run.as_str(), MessageId::as_str);
            vec![status_event(Some(name), "thinking", Some(recorded.sequence))]
        }
        Event::Status(event) => of_status(view, event, at).into_iter().collect(),
        Event::Transcript(event) => of_transcript(view, event, at),
        Event::Run(runs::Event::Ended { .. }) | Event::Control(_) | Event::Config(_) => vec![],
    }
}

/// A send that was accepted: its place in the line if it waits, and its words.
pub(super) fn accepted(
    view: &View,
    recorded: &Recorded,
    send: &Send,
    from_self: bool,
) -> Vec<Bytes> {
    let mut frames = vec![];
    if view.line.waits(send) {
        frames.push(queued(&send.id, view.line.len() + 1, Some(recorded.sequence)));
    }
    let mut content = send.text.open().map_or(SEALED, String::as_str).to_owned();
    for file in &send.attachments {
        let is_image = file.media_type.as_ref().is_some_and(|it| it.starts_with("image/"));
        append(&mut content, &named(if is_image { "image" } else { "file" }, file));
    }
    let role = Role::User { from_self };
    frames.push(message(role, &content, send.id.as_str(), (recorded.sequence, recorded.at)));
    frames
}

/// The end of a run, for each send that it took up.
pub(super) fn ended(
    run: &Run,
    outcome: &Outcome,
    total_tokens: u64,
    sequence: Sequence,
) -> Vec<Bytes> {
    let sends: Vec<&str> = match run.sends.as_slice() {
        [] => vec![run.name()],
        sends => sends.iter().map(MessageId::as_str).collect(),
    };
    let mut frames = vec![];
    for name in sends {
        match outcome {
            Outcome::Completed => {
                frames.push(status_event(Some(name), "done", Some(sequence)));
                let payload = json!({
                    "runId": name, "messageId": run.last_message, "totalTokens": total_tokens,
                });
                frames.push(event("final", &payload, Some(sequence)));
            }
            Outcome::Interrupted => {
                let words = if run.is_stopping { CANCELLED } else { "The run was interrupted" };
                frames.push(cancelled(name, words, sequence));
            }
            Outcome::Cut(cut) => frames.push(cancelled(name, &cut.why, sequence)),
            Outcome::Failed(words) => {
                frames.push(error(Some(name), words, true, "AGENT_ERROR", Some(sequence)));
            }
        }
    }
    frames
}

/// Something that somebody said.
pub(super) fn message(
    role: Role,
    content: &str,
    id: &str,
    (sequence, at): (Sequence, Timestamp),
) -> Bytes {
    event("message", &said(role, content, id, at), Some(sequence))
}

/// The payload of a message event.
pub(super) fn said(role: Role, content: &str, id: &str, at: Timestamp) -> Value {
    let (word, from_self) = match role {
        Role::User { from_self } => ("user", from_self),
        Role::Assistant => ("assistant", false),
        Role::System => ("system", false),
    };
    json!({
        "role": word, "content": content, "messageId": id, "timestamp": Time(at),
        "fromSelf": from_self,
    })
}

/// A place in the line.
pub(super) fn queued(send: &MessageId, position: usize, sequence: Option<Sequence>) -> Bytes {
    let payload = json!({
        "requestId": names::request(send), "position": position,
        "message": format!("Message queued (position {position})"), "runId": send,
    });
    event("queued", &payload, sequence)
}

/// What the agent is doing.
pub(super) fn status_event(run: Option<&str>, word: &str, sequence: Option<Sequence>) -> Bytes {
    event("status", &json!({ "runId": run, "status": word }), sequence)
}

/// Something went wrong.
pub(super) fn error(
    run: Option<&str>,
    words: &str,
    is_retryable: bool,
    code: &str,
    sequence: Option<Sequence>,
) -> Bytes {
    let payload = json!({
        "runId": run, "message": words, "retryable": is_retryable, "errorCode": code,
    });
    event("error", &payload, sequence)
}

/// The words of a message: its text, and its files by their names.
pub(super) fn content(parts: &Content<Vec<Part>>) -> String {
    let Some(parts) = parts.open() else { return SEALED.to_owned() };
    let mut content = String::new();
    for part in parts {
        match part {
            Part::Text(text) => append(&mut content, text),
            Part::Image(image) => append(&mut content, &named("image", image)),
            Part::File(file) => append(&mut content, &named("file", file)),
            Part::Thinking(_) | Part::ToolCall(_) => {}
        }
    }
    content
}

fn append(content: &mut String, more: &str) {
    if !content.is_empty() {
        content.push('\n');
    }
    content.push_str(more);
}

fn named(kind: &str, file: &Attachment) -> String {
    format!("({kind}: {})", file.name)
}

/// Everybody whose place in the line changed.
fn line(view: &View, recorded: &Recorded) -> Vec<Bytes> {
    let Some(after) = view.line_after(&recorded.event) else { return vec![] };
    let before: Vec<_> = view.line.waiting().collect();
    let moved = after.waiting().enumerate().filter(|(place, id)| before.get(*place) != Some(id));
    moved.map(|(place, id)| queued(id, place + 1, Some(recorded.sequence))).collect()
}

fn failed(send: &MessageId, failure: &Failure, sequence: Sequence) -> Bytes {
    let (name, words) = (send.as_str(), failure.message.as_str());
    match failure.code.as_str() {
        DISCARDED => cancelled(name, CANCELLED, sequence),
        SESSION_NOT_CONNECTED => error(Some(name), words, true, "NOT_CONNECTED", Some(sequence)),
        code => {
            let words = format!("{words} ({code})");
            let may_retry = code != UNKNOWN_FATE;
            error(Some(name), &words, may_retry, "DELIVERY_FAILED", Some(sequence))
        }
    }
}

fn cancelled(run: &str, words: &str, sequence: Sequence) -> Bytes {
    event("cancelled", &json!({ "runId": run, "message": words }), Some(sequence))
}

fn of_prompt(view: &View, event: &asked::Event, at: (Sequence, Timestamp)) -> Vec<Bytes> {
    match event {
        asked::Event::Asked(prompt) => {
            let waits = status_event(view.run_name(), "executing_tool", Some(at.0));
            vec![waits, prompts::asked(prompt, None, at.1, Some(at.0))]
        }
        asked::Event::Reopened { prompt, failure } => {
            vec![prompts::asked(prompt, Some(failure), at.1, Some(at.0))]
        }
        asked::Event::Settled { prompt, choice, settled, .. } => {
            let open = view.prompts.iter().find(|it| it.id == *prompt);
            vec![prompts::settled(prompt, open, choice.as_ref(), settled, at)]
        }
        asked::Event::Confirmed(_) => vec![],
    }
}

fn of_status(view: &View, event: &status::Event, at: (Sequence, Timestamp)) -> Option<Bytes> {
    let words = match event {
        status::Event::Up { .. } if view.line.reach() == Reach::Away => {
            "The session's machine is connected"
        }
        status::Event::Down { .. } => "The session's machine is offline",
        status::Event::Closed { .. } => "The session is closed; its history is still readable",
        status::Event::Up { .. }
        | status::Event::Changed { .. }
        | status::Event::Renamed(_)
        | status::Event::Archived(_) => return None,
    };
    Some(message(Role::System, words, &note_id(at.0), at))
}

fn of_transcript(view: &View, event: &transcript::Event, at: (Sequence, Timestamp)) -> Vec<Bytes> {
    match event {
        transcript::Event::Message(message) => of_message(view, message, at).into_iter().collect(),
        transcript::Event::ToolCall(call) => tool_call(view, call, at.0),
        transcript::Event::ToolUpdate(update) => tool_update(view, update, at.0),
        transcript::Event::Notice(notice) => {
            vec![message(Role::System, &notice.text, &note_id(at.0), at)]
        }
        transcript::Event::Plan(_)
        | transcript::Event::Context(_)
        | transcript::Event::Echoed(_) => vec![],
    }
}

/// A message that is told whole. What the agent says in a run is told as tokens.
fn of_message(view: &View, said: &Message, at: (Sequence, Timestamp)) -> Option<Bytes> {
    let role = match said.author {
        Author::User => Role::User { from_self: false },
        Author::Assistant if view.run.is_some() => return None,
        Author::Assistant => Role::Assistant,
        Author::System => Role::System,
    };
    whole(role, said, at)
}

/// A message that came through this connection, which was elsewhere when it was accepted.
pub(super) fn own_message(said: &Message, at: (Sequence, Timestamp)) -> Option<Bytes> {
    whole(Role::User { from_self: true }, said, at)
}

fn whole(role: Role, said: &Message, at: (Sequence, Timestamp)) -> Option<Bytes> {
    let content = content(&said.parts);
    let is_shown = said.parent.is_none() && !content.is_empty();
    is_shown.then(|| message(role, &content, said.id.as_str(), at))
}

fn note_id(sequence: Sequence) -> String {
    format!("evt_{sequence}")
}

fn tool_call(view: &View, call: &ToolCall, sequence: Sequence) -> Vec<Bytes> {
    let unread = ToolDetail::default();
    let detail = call.detail.open().unwrap_or(&unread);
    let payload = json!({
        "runId": view.run_name(), "toolName": call.tool, "arguments": arguments(detail),
        "toolCallId": call.id,
    });
    let mut frames = vec![
        event("tool_call", &payload, Some(sequence)),
        status_event(view.run_name(), "executing_tool", Some(sequence)),
    ];
    let update =
        ToolUpdate { id: call.id.clone(), status: call.status, detail: call.detail.clone() };
    frames.extend(tool_end(view, &call.tool, &update, sequence));
    frames
}

fn tool_update(view: &View, update: &ToolUpdate, sequence: Sequence) -> Vec<Bytes> {
    tool_end(view, view.tool(&update.id).unwrap_or("unknown"), update, sequence)
}

/// The end of a tool call; nothing while it goes on.
fn tool_end(view: &View, tool: &str, update: &ToolUpdate, sequence: Sequence) -> Vec<Bytes> {
    let output = update.detail.open().and_then(|detail| detail.output.as_deref());
    let (result, failure) = match update.status {
        ToolStatus::Pending | ToolStatus::Running => return vec![],
        ToolStatus::Completed => {
            (json!({ "success": true, "content": output.unwrap_or_default() }), None)
        }
        ToolStatus::Failed => {
            let words = output.unwrap_or("Tool execution failed");
            (json!({ "success": false, "error": words }), Some("Tool execution failed"))
        }
        ToolStatus::Cancelled => {
            let words = output.unwrap_or("The call was cancelled or denied");
            (json!({ "success": false, "error": words }), None)
        }
    };
    let run = view.run_name();
    let payload = json!({
        "runId": run, "toolName": tool, "result": result, "toolCallId": update.id,
    });
    let mut frames = vec![event("tool_result", &payload, Some(sequence))];
    frames.extend(
        failure.map(|words| error(run, words, false, "TOOL_EXECUTION_FAILED", Some(sequence))),
    );
    frames
}

fn arguments(detail: &ToolDetail) -> Value {
    let Some(text) = &detail.input else {
        return detail.title.as_ref().map_or(json!({}), |title| json!({ "title": title }));
    };
    match serde_json::from_str::<Value>(text) {
        Ok(value @ Value::Object(_)) => value,
        Ok(other) => json!({ "input": other }),
        Err(_) => json!({ "input": text }),
    }
}
