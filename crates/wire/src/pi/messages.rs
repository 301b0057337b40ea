//! Messages in pi's shapes: from people, from the agent, and from its tools.
//!
//! A message is encoded once and used in several frames, which are assembled from its bytes.
//!
//! Not here: streamed text (`stream`), the history (`history`).

use std::collections::BTreeMap;

use bytes::Bytes;
use domain::content::{Attachment, Message, Part, ToolDetail, ToolStatus, Usage};
use domain::session::runs::Outcome;
use domain::{AttachmentId, Content, MessageId, Timestamp, ToolCallId};
use serde::Serialize;
use serde_json::{Value, json};

/// What a reader without the key sees.
const SEALED: &str = "[sealed]";
/// The API that every agent here is spoken to with, as far as a client can tell.
const API: &str = "farhelm";
/// Between a frame's beginning and the message that it ends with.
const MESSAGE: &str = ",\"message\":";

/// Any frame as bytes.
pub(super) fn encode(frame: &impl Serialize) -> Bytes {
    // Cannot fail: a vector takes everything and no value refuses to be written.
    serde_json::to_vec(frame).unwrap_or_default().into()
}

/// Pieces of JSON as one.
pub(super) fn joined(pieces: &[&[u8]]) -> Bytes {
    pieces.concat().into()
}

/// A frame about a message that is encoded already.
pub(super) fn framed(kind: &str, message: &[u8]) -> Bytes {
    joined(&[b"{\"type\":\"", kind.as_bytes(), b"\"", MESSAGE.as_bytes(), message, b"}"])
}

/// The message of such a frame, sharing its bytes.
pub(super) fn inside(frame: &Bytes, kind: &str) -> Bytes {
    let begin = "{\"type\":\"\"".len() + kind.len() + MESSAGE.len();
    frame.slice(begin.min(frame.len())..frame.len().saturating_sub(1).max(begin.min(frame.len())))
}

/// The provider and the name of a model, as far as the agent's word for it has both.
pub(super) fn model_of(word: &str) -> (&str, &str) {
    word.split_once('/').unwrap_or(("farhelm", word))
}

/// A person's words. Pictures whose bytes are not at hand come without data.
pub(super) fn user(message: &Message, pictures: &BTreeMap<AttachmentId, String>) -> Value {
    let picture = |file: &Attachment| {
        let data = pictures.get(&file.id).map_or("", String::as_str);
        let kind = file.media_type.as_deref().unwrap_or("image/png");
        json!({ "type": "image", "mimeType": kind, "data": data })
    };
    let blocks: Vec<Value> = match message.parts.open() {
        None => vec![text(SEALED)],
        Some(parts) => parts
            .iter()
            .filter_map(|part| match part {
                Part::Text(words) | Part::Thinking(words) => Some(text(words)),
                Part::Image(file) => Some(picture(file)),
                Part::File(file) => Some(text(&format!("[file: {}]", file.name))),
                Part::ToolCall(_) => None,
            })
            .collect(),
    };
    let content = match blocks.as_slice() {
        [only] if only["type"] == "text" => only["text"].clone(),
        _ => json!(blocks),
    };
    json!({ "role": "user", "content": content, "timestamp": message.created_at.0 })
}

/// The agent's words; `call` knows its tool calls.
pub(super) fn assistant(
    model: &str,
    message: &Message,
    call: impl Fn(&ToolCallId) -> Value,
) -> Value {
    let content: Vec<Value> = match message.parts.open() {
        None => vec![text(SEALED)],
        Some(parts) => parts
            .iter()
            .map(|part| match part {
                Part::Text(words) => text(words),
                Part::Thinking(words) => thinking(words),
                Part::Image(file) => text(&format!("[image: {}]", file.name)),
                Part::File(file) => text(&format!("[file: {}]", file.name)),
                Part::ToolCall(id) => call(id),
            })
            .collect(),
    };
    let stop = if has_call(message) { "toolUse" } else { "stop" };
    said(model, &content, stop, None, message.created_at, Some(&message.id))
}

/// A message of the agent in which it only calls a tool.
pub(super) fn calls(model: &str, call: Value, at: Timestamp) -> Value {
    let id = MessageId::from(format!("call:{}", call["id"].as_str().unwrap_or_default()));
    said(model, &[call], "toolUse", None, at, Some(&id))
}

/// The last message of a run that was stopped or failed. `None` for one that was completed.
pub(super) fn ending(
    model: &str,
    outcome: &Outcome,
    content: &[Value],
    at: Timestamp,
) -> Option<Value> {
    let (reason, words) = reason(outcome)?;
    Some(said(model, content, reason, Some(words), at, None))
}

/// A message that was whole when its run was stopped or failed is the run's last one: it ends as
/// the run does. Gives pi's word for that.
pub(super) fn end_with(message: &mut Value, outcome: &Outcome) -> &'static str {
    let Some((reason, words)) = reason(outcome) else { return "stop" };
    message["stopReason"] = json!(reason);
    message["errorMessage"] = json!(words);
    reason
}

fn reason(outcome: &Outcome) -> Option<(&'static str, &str)> {
    match outcome {
        Outcome::Completed => None,
        Outcome::Interrupted => Some(("aborted", "The run was interrupted")),
        Outcome::Cut(cut) => Some(("aborted", cut.why.as_str())),
        Outcome::Failed(words) => Some(("error", words.as_str())),
    }
}

/// A message of the agent that has just begun.
pub(super) fn begun(model: &str, id: &MessageId, content: &[Value], at: Timestamp) -> Value {
    said(model, content, "stop", None, at, Some(id))
}

/// A message of the agent that ends with what it said so far.
pub(super) fn broken_off(model: &str, id: &MessageId, content: &[Value], at: Timestamp) -> Value {
    let has_call = content.iter().any(|part| part["type"] == "toolCall");
    said(model, content, if has_call { "toolUse" } else { "stop" }, None, at, Some(id))
}

fn said(
    model: &str,
    content: &[Value],
    stop_reason: &str,
    error: Option<&str>,
    at: Timestamp,
    id: Option<&MessageId>,
) -> Value {
    let (provider, model) = model_of(model);
    let mut message = json!({
        "role": "assistant", "content": content, "api": API, "provider": provider, "model": model,
        "usage": usage(&Usage::default()), "stopReason": stop_reason, "timestamp": at.0,
    });
    if let Some(error) = error {
        message["errorMessage"] = json!(error);
    }
    if let Some(id) = id {
        message["responseId"] = json!(id);
    }
    message
}

/// What agents tell. They tell it of a whole run, at its end.
fn usage(usage: &Usage) -> Value {
    let count = |tokens: Option<u64>| tokens.unwrap_or(0);
    let (input, output) = (count(usage.input_tokens), count(usage.output_tokens));
    let cached = count(usage.cached_tokens);
    json!({
        "input": input.saturating_sub(cached), "output": output, "cacheRead": cached,
        "cacheWrite": 0, "totalTokens": input.saturating_add(output),
        "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": cost(usage) },
    })
}

/// In dollars.
pub(super) fn cost(usage: &Usage) -> Value {
    #[expect(clippy::cast_precision_loss, reason = "nothing costs a trillionth of that")]
    match usage.cost_micro_usd {
        None | Some(0) => json!(0),
        Some(micro_usd) => json!(micro_usd as f64 / 1_000_000.0),
    }
}

/// A message of the agent that was encoded before its run's usage was known, with that usage.
pub(super) fn with_usage(message: &Bytes, known: &Usage) -> Bytes {
    let unknown = format!("\"usage\":{}", usage(&Usage::default()));
    // The last place: what stands in quotes cannot look so, and a tool's input comes before it.
    let place = message.windows(unknown.len()).rposition(|it| it == unknown.as_bytes());
    let Some(place) = place else { return message.clone() };
    let told = format!("\"usage\":{}", usage(known));
    joined(&[&message[..place], told.as_bytes(), &message[place + unknown.len()..]])
}

/// A tool call within a message.
pub(super) fn tool_call(id: &ToolCallId, name: &str, arguments: &Value) -> Value {
    json!({ "type": "toolCall", "id": id, "name": name, "arguments": arguments })
}

/// What a tool gave.
pub(super) fn tool_result(
    id: &ToolCallId,
    name: &str,
    result: &Value,
    is_error: bool,
    at: Timestamp,
) -> Value {
    json!({
        "role": "toolResult", "toolCallId": id, "toolName": name, "content": result["content"],
        "details": result["details"], "isError": is_error, "timestamp": at.0,
    })
}

/// The result of a tool, or what there is of it.
pub(super) fn result(status: ToolStatus, detail: &ToolDetail, known: Option<&str>) -> Value {
    let silent =
        if status == ToolStatus::Cancelled { "The call was cancelled or denied" } else { "" };
    let output = detail.output.as_deref().or(known).unwrap_or(silent);
    let mut details = json!({});
    if !detail.diffs.is_empty() {
        details["diffs"] = json!(detail.diffs);
    }
    json!({ "content": [text(output)], "details": details })
}

/// The input of a tool, as an object.
pub(super) fn arguments(detail: &Content<ToolDetail>) -> Value {
    let Some(detail) = detail.open() else { return json!({}) };
    let Some(input) = &detail.input else {
        return detail.title.as_ref().map_or(json!({}), |title| json!({ "title": title }));
    };
    match serde_json::from_str::<Value>(input) {
        Ok(value @ Value::Object(_)) => value,
        Ok(other) => json!({ "input": other }),
        Err(_) => json!({ "input": input }),
    }
}

/// Whether a call is over, and then whether it went wrong.
pub(super) fn is_over(status: ToolStatus) -> Option<bool> {
    match status {
        ToolStatus::Pending | ToolStatus::Running => None,
        ToolStatus::Completed => Some(false),
        ToolStatus::Failed | ToolStatus::Cancelled => Some(true),
    }
}

/// A piece of text.
pub(super) fn text(words: &str) -> Value {
    json!({ "type": "text", "text": words })
}

/// A piece of reasoning.
pub(super) fn thinking(words: &str) -> Value {
    json!({ "type": "thinking", "thinking": words })
}

/// Whether it calls a tool.
pub(super) fn has_call(message: &Message) -> bool {
    let mut parts = message.parts.open().into_iter().flatten();
    parts.any(|part| matches!(part, Part::ToolCall(_)))
}

/// Whether there is anything in it.
pub(super) fn says_anything(message: &Message) -> bool {
    message.parts.open().is_none_or(|parts| !parts.is_empty())
}

/// Something to know.
pub(super) fn notify(id: &str, words: &str, kind: &str) -> Value {
    json!({
        "type": "extension_ui_request", "id": id, "method": "notify", "message": words,
        "notifyType": kind,
    })
}

/// Something went wrong.
pub(super) fn trouble(event: &str, words: &str) -> Value {
    json!({
        "type": "extension_error", "extensionPath": "farhelm", "event": event, "error": words,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_messages_usage_is_filled_in_and_nothing_that_looks_like_it() {
        let fake = json!({ "usage": usage(&Usage::default()), "x": "\"usage\":{}" });
        let call = tool_call(&"t".into(), "Bash", &fake);
        let before = calls("p/m", call.clone(), Timestamp(7));
        let known = Usage { output_tokens: Some(5), ..Usage::default() };
        let after: Value = serde_json::from_slice(&with_usage(&encode(&before), &known)).unwrap();
        assert_eq!(after["usage"]["output"], 5);
        assert_eq!(after["content"], json!([call]));
        let nothing = Bytes::from_static(b"{}");
        assert_eq!(with_usage(&nothing, &known), nothing);
    }

    #[test]
    fn a_message_is_found_again_in_its_frame() {
        let message = encode(&json!({ "role": "user" }));
        let frame = framed("message_end", &message);
        let read: Value = serde_json::from_slice(&frame).unwrap();
        assert_eq!(read, json!({ "type": "message_end", "message": { "role": "user" } }));
        assert_eq!(inside(&frame, "message_end"), message);
        assert_eq!(inside(&Bytes::new(), "message_end"), Bytes::new());
    }
}
