//! pi's output, one JSON object per line.
//!
//! Tolerant: unknown fields are ignored, and a message that is unknown or malformed is reported as
//! such. Of large messages only the needed part is read.
//!
//! Not here: what follows from it (`observation`, `life`, `delivery`).

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::Drawing;

/// One line of pi's.
#[derive(Debug)]
pub(super) enum Frame {
    Response(Response),
    RunBegan,
    RunEnded,
    Settled,
    MessageBegan(Said),
    MessageGrew(Growth),
    MessageEnded(Said),
    ToolBegan(Tool),
    ToolGrew(Tool),
    ToolEnded(Tool),
    Queue(Queue),
    Asked(Request),
    Retrying(Retry),
    RetryOver(Retry),
    Compacting(Compaction),
    Compacted(Compaction),
    EffortChanged(Effort),
    ExtensionFailed(ExtensionError),
    /// Known, and nothing to us.
    Nothing,
    Unknown(String),
}

/// Reads a line.
pub(super) fn read(line: &str) -> Frame {
    #[derive(Deserialize)]
    struct Kind<'a> {
        #[serde(borrow, rename = "type")]
        kind: Cow<'a, str>,
    }
    fn parsed<'a, T: Deserialize<'a>>(kind: &str, line: &'a str, of: fn(T) -> Frame) -> Frame {
        serde_json::from_str(line)
            .map_or_else(|error| Frame::Unknown(format!("{kind}: {error}")), of)
    }
    let Ok(Kind { kind }) = serde_json::from_str::<Kind<'_>>(line) else {
        return Frame::Unknown(line.chars().take(200).collect());
    };
    match &*kind {
        "message_update" => parsed(&kind, line, Frame::MessageGrew),
        "response" => parsed(&kind, line, Frame::Response),
        "agent_start" => Frame::RunBegan,
        "agent_end" => Frame::RunEnded,
        "agent_settled" => Frame::Settled,
        "message_start" => parsed(&kind, line, |Message { message }| Frame::MessageBegan(message)),
        "message_end" => parsed(&kind, line, |Message { message }| Frame::MessageEnded(message)),
        "tool_execution_start" => parsed(&kind, line, Frame::ToolBegan),
        "tool_execution_update" => parsed(&kind, line, Frame::ToolGrew),
        "tool_execution_end" => parsed(&kind, line, Frame::ToolEnded),
        "queue_update" => parsed(&kind, line, Frame::Queue),
        "extension_ui_request" => parsed(&kind, line, Frame::Asked),
        "auto_retry_start" => parsed(&kind, line, Frame::Retrying),
        "auto_retry_end" => parsed(&kind, line, Frame::RetryOver),
        "compaction_start" | "auto_compaction_start" => parsed(&kind, line, Frame::Compacting),
        "compaction_end" | "auto_compaction_end" => parsed(&kind, line, Frame::Compacted),
        "thinking_level_changed" => parsed(&kind, line, Frame::EffortChanged),
        "extension_error" => parsed(&kind, line, Frame::ExtensionFailed),
        "turn_start"
        | "turn_end"
        | "entry_appended"
        | "session_info_changed"
        | "session_changed"
        | "summarization_retry_scheduled"
        | "summarization_retry_attempt_start"
        | "summarization_retry_finished"
        | "bash_execution_update" => Frame::Nothing,
        _ => Frame::Unknown(kind.into_owned()),
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Response {
    /// Older versions leave it out where they do not know the command.
    #[serde(default)]
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) command: String,
    #[serde(default)]
    pub(super) success: bool,
    #[serde(default)]
    pub(super) data: Value,
    #[serde(default)]
    pub(super) error: Option<String>,
}

/// `get_state`, as far as it matters.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct State {
    pub(super) model: Option<Model>,
    pub(super) thinking_level: Option<String>,
    pub(super) is_streaming: bool,
    pub(super) is_compacting: bool,
    pub(super) session_file: Option<String>,
    pub(super) session_id: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Model {
    pub(super) id: String,
    pub(super) provider: String,
    pub(super) input: Vec<String>,
}

/// What pi does when a message begins with its name after a slash.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Command {
    pub(super) name: String,
    pub(super) description: Option<String>,
}

impl Model {
    /// Without any that it may use, pi names one that there is not.
    pub(super) fn is_known(&self) -> bool {
        self.provider != "unknown" && !self.id.is_empty()
    }

    /// With its provider: the same model may be had from several.
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.provider, self.id)
    }
}

#[derive(Debug, Deserialize)]
struct Message {
    message: Said,
}

/// A message of the conversation, live or in pi's file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Said {
    #[serde(default)]
    pub(super) role: String,
    #[serde(default)]
    pub(super) content: Words,
    #[serde(default)]
    pub(super) usage: Option<Tokens>,
    #[serde(default)]
    pub(super) stop_reason: Option<String>,
    #[serde(default)]
    pub(super) error_message: Option<String>,
    #[serde(default)]
    pub(super) timestamp: Option<u64>,
    #[serde(default)]
    pub(super) tool_call_id: Option<String>,
    #[serde(default)]
    pub(super) is_error: bool,
    /// Whether a message of an extension is to be shown.
    #[serde(default)]
    pub(super) display: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Words {
    Plain(String),
    Blocks(Vec<Block>),
    Other(IgnoredAny),
}

impl Default for Words {
    fn default() -> Self {
        Self::Blocks(vec![])
    }
}

impl Words {
    /// Its text alone.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Plain(text) => text.clone(),
            Self::Blocks(blocks) => {
                let texts = blocks.iter().filter_map(|block| block.text.as_deref());
                texts.collect::<Vec<_>>().join("\n")
            }
            Self::Other(_) => String::new(),
        }
    }

    pub(super) fn blocks(&self) -> &[Block] {
        match self {
            Self::Blocks(blocks) => blocks,
            Self::Plain(_) | Self::Other(_) => &[],
        }
    }

    /// The pictures among them.
    pub(super) fn drawings(&self, what: &str) -> Vec<Drawing> {
        self.blocks().iter().filter_map(|block| block.drawing(what)).collect()
    }
}

/// A piece of a message: text, thinking, an image or a tool call, by what it has.
#[derive(Debug, Deserialize)]
pub(super) struct Block {
    #[serde(default, rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) text: Option<String>,
    #[serde(default)]
    pub(super) thinking: Option<String>,
    #[serde(default)]
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) arguments: Value,
    /// Of a picture, in base64.
    #[serde(default)]
    data: Option<String>,
    #[serde(default, rename = "mimeType")]
    media_type: Option<String>,
}

impl Block {
    /// The picture that it is, if it is one.
    pub(super) fn drawing(&self, what: &str) -> Option<Drawing> {
        let base64 = self.data.clone().filter(|data| self.kind == "image" && !data.is_empty())?;
        let media_type = self.media_type.clone().unwrap_or_default();
        Some(Drawing { what: what.to_owned(), media_type, base64 })
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Tokens {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) cache_read: u64,
    pub(super) cache_write: u64,
    pub(super) cost: Cost,
}

/// In US dollars.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Cost {
    pub(super) total: f64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Growth {
    #[serde(rename = "assistantMessageEvent")]
    pub(super) event: Event,
}

/// What was added to a message.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Event {
    #[serde(default, rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) content_index: u32,
    #[serde(default)]
    pub(super) delta: Option<String>,
    #[serde(default)]
    pub(super) content: Option<String>,
    #[serde(default)]
    pub(super) tool_call: Option<Block>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tool {
    #[serde(rename = "toolCallId")]
    pub(super) call: String,
    #[serde(default, rename = "toolName")]
    pub(super) name: String,
    #[serde(default)]
    pub(super) args: Value,
    #[serde(default, alias = "partialResult")]
    pub(super) result: Option<ToolResult>,
    #[serde(default)]
    pub(super) is_error: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct ToolResult {
    #[serde(default)]
    pub(super) content: Words,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Queue {
    pub(super) steering: Vec<String>,
    pub(super) follow_up: Vec<String>,
}

/// Something that an extension wants of the person, or tells.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Request {
    pub(super) id: String,
    pub(super) method: String,
    pub(super) title: String,
    pub(super) message: Option<String>,
    pub(super) options: Vec<String>,
    pub(super) prefill: Option<String>,
    pub(super) placeholder: Option<String>,
    pub(super) timeout: Option<u64>,
    pub(super) status_key: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Retry {
    pub(super) attempt: u64,
    pub(super) max_attempts: u64,
    pub(super) delay_ms: u64,
    pub(super) error_message: String,
    pub(super) success: bool,
    pub(super) final_error: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Compaction {
    pub(super) reason: Option<String>,
    pub(super) result: Option<Compacted>,
    pub(super) aborted: bool,
    pub(super) error_message: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Compacted {
    pub(super) tokens_before: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Effort {
    pub(super) level: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ExtensionError {
    pub(super) extension_path: String,
    pub(super) error: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_is_not_known_is_told_as_such_and_fields_that_are_not_are_passed_over() {
        assert!(
            matches!(read(r#"{"type":"brand_new"}"#), Frame::Unknown(kind) if kind == "brand_new")
        );
        assert!(matches!(read("warning: not JSON"), Frame::Unknown(_)));
        assert!(matches!(read(r#"{"type":"agent_start","more":[1]}"#), Frame::RunBegan));
        let odd = r#"{"type":"message_end","message":{"role":"custom","content":{"odd":1}}}"#;
        assert!(matches!(read(odd), Frame::MessageEnded(Said { content: Words::Other(_), .. })));
    }

    #[test]
    fn a_delta_is_read_with_and_without_the_whole_message_beside_it() {
        let short = r#"{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":1,"delta":"hi"}}"#;
        let long = r#"{"type":"message_update","message":{"role":"assistant","content":[]},"assistantMessageEvent":{"type":"text_delta","contentIndex":1,"delta":"hi","partial":{"content":[]}}}"#;
        for line in [short, long] {
            let Frame::MessageGrew(Growth { event }) = read(line) else { panic!("{line}") };
            assert_eq!((event.kind.as_str(), event.content_index), ("text_delta", 1));
            assert_eq!(event.delta.as_deref(), Some("hi"));
        }
    }
}
