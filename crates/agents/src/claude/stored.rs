//! Claude Code's own record of a conversation: one line of JSON per event.
//!
//! A record that was resumed or copied repeats lines; each counts once, by its uuid. Text of the
//! program itself (commands, reminders) and of subagents is left out.
//!
//! Not here: where the files are (`delivery`, `proxy`).

use std::collections::{BTreeMap, BTreeSet};

use domain::content::{Author, Message, Part, ToolCall, ToolStatus};
use domain::{Content, MessageId, Timestamp};
use serde_json::Value;

use super::frames::{pictures, returned};
use super::tools;
use crate::{Drawing, Piece, Summary, moment};

/// Messages and tool calls of a record that are told; of longer ones the last.
pub const ENTRIES_MAX: usize = 5_000;
/// Characters of a title.
const TITLE_CHARACTERS_MAX: usize = 120;

/// What a list shows of a conversation, from the beginning of its record. `None` where nobody
/// said anything.
pub fn summary(file_name: &str, text: &str) -> Option<Summary> {
    let id = file_name.strip_suffix(".jsonl").unwrap_or(file_name);
    let records: Vec<Value> = records(text).collect();
    let named = |kind: &str, field: &str| {
        let named = records.iter().rev().find(|record| record["type"] == kind)?;
        named[field].as_str().map(str::to_owned)
    };
    let spoken = records.iter().filter(|record| !is_aside(record)).find_map(person);
    let spoken = spoken.map(Said::title);
    let title = named("custom-title", "customTitle")
        .or_else(|| named("ai-title", "aiTitle"))
        .or_else(|| named("summary", "summary"))
        .or(spoken)?;
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    let workspace = records.iter().find_map(|record| record["cwd"].as_str());
    Some(Summary {
        id: id.to_owned(),
        title: Some(title.chars().take(TITLE_CHARACTERS_MAX).collect()),
        workspace: workspace.map(str::to_owned),
        updated_at: None,
    })
}

/// The conversation, in order.
pub fn entries(text: &str) -> Vec<Piece> {
    let mut gathered = Gathered::default();
    for record in records(text).filter(|record| !is_aside(record)) {
        gathered.hear(&record);
    }
    let mut entries = gathered.entries;
    let skipped = entries.len().saturating_sub(ENTRIES_MAX);
    entries.split_off(skipped)
}

/// Every line once.
fn records(text: &str) -> impl Iterator<Item = Value> + '_ {
    let mut seen = BTreeSet::new();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(move |record| match record["uuid"].as_str() {
        Some(uuid) => seen.insert(uuid.to_owned()),
        None => true,
    })
}

/// Not part of the conversation that people see.
fn is_aside(record: &Value) -> bool {
    record["isSidechain"] == true
        || record["isMeta"] == true
        || record["isApiErrorMessage"] == true
        || record["isVisibleInTranscriptOnly"] == true
        || is_filler(&record["message"])
}

/// What the program puts between two messages of a person.
fn is_filler(message: &Value) -> bool {
    message["model"] == "<synthetic>" && message["content"][0]["text"] == "No response requested."
}

/// What a person said and showed.
struct Said {
    words: String,
    pictures: Vec<Drawing>,
}

impl Said {
    fn title(self) -> String {
        if self.words.trim().is_empty() { "[image]".to_owned() } else { self.words }
    }
}

/// What a person said in a record.
fn person(record: &Value) -> Option<Said> {
    let content = match record["type"].as_str()? {
        "user" => &record["message"]["content"],
        // Said while the agent was at work.
        "attachment" if record["attachment"]["type"] == "queued_command" => {
            &record["attachment"]["prompt"]
        }
        _ => return None,
    };
    let words = match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let pieces = blocks.iter().filter_map(|block| match block["type"].as_str()? {
                "text" => block["text"].as_str().map(str::to_owned),
                // Its bytes are elsewhere.
                "image" if block["source"]["data"].is_null() => {
                    let place = block["source"]["url"].as_str();
                    Some(place.map_or("[image]".to_owned(), |url| format!("[image: {url}]")))
                }
                _ => None,
            });
            pieces.collect::<Vec<_>>().join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
    };
    let is_of_program =
        ["<command-", "<local-command-", "<task-notification", "[Request interrupted"]
            .iter()
            .any(|start| words.trim_start().starts_with(start));
    let said = Said { words, pictures: drawings("picture", content) };
    let is_empty = said.words.trim().is_empty() && said.pictures.is_empty();
    (!is_empty && !is_of_program).then_some(said)
}

fn drawings(what: &str, content: &Value) -> Vec<Drawing> {
    let drawing = |(media_type, base64): (&str, &str)| Drawing {
        what: what.to_owned(),
        media_type: media_type.to_owned(),
        base64: base64.to_owned(),
    };
    pictures(content).map(drawing).collect()
}

#[derive(Default)]
struct Gathered {
    entries: Vec<Piece>,
    /// Where each message of the agent and each tool call is.
    places: BTreeMap<String, usize>,
}

impl Gathered {
    fn hear(&mut self, record: &Value) {
        let at = record["timestamp"].as_str().and_then(moment).unwrap_or_default();
        match record["type"].as_str() {
            Some("assistant") => self.assistant(&record["message"], at),
            Some("user" | "attachment") => {
                self.results(record, at);
                self.person(record, at);
            }
            _ => {}
        }
    }

    fn person(&mut self, record: &Value, at: Timestamp) {
        let Some(Said { words, pictures }) = person(record) else { return };
        let own = record["attachment"]["source_uuid"].as_str().or(record["uuid"].as_str());
        let Some(id) = own else { return };
        let is_summary = record["isCompactSummary"] == true;
        let author = if is_summary { Author::System } else { Author::User };
        let parts = if words.trim().is_empty() { vec![] } else { vec![Part::Text(words)] };
        self.entries.push(Piece::Message(message(id, author, parts, at), pictures));
    }

    fn assistant(&mut self, said: &Value, at: Timestamp) {
        let Some(id) = said["id"].as_str() else { return };
        let place = *self.places.entry(id.to_owned()).or_insert_with(|| {
            let said = message(id, Author::Assistant, vec![], at);
            self.entries.push(Piece::Message(said, vec![]));
            self.entries.len() - 1
        });
        let blocks = said["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        for block in blocks {
            let words = |field: &str| block[field].as_str().unwrap_or_default().to_owned();
            let part = match block["type"].as_str() {
                Some("text") => Part::Text(words("text")),
                Some("thinking") if block["thinking"] == "" => continue,
                Some("thinking") => Part::Thinking(words("thinking")),
                Some("tool_use") => {
                    let (tool, name) = (words("id"), words("name"));
                    let call = tools::call(&tool, &name, &block["input"], None);
                    let call = ToolCall { status: ToolStatus::Cancelled, ..call };
                    self.places.insert(tool.clone(), self.entries.len());
                    self.entries.push(Piece::Tool(call));
                    Part::ToolCall(tool.into())
                }
                _ => continue,
            };
            if let Some(Piece::Message(message, _)) = self.entries.get_mut(place)
                && let Content::Open(parts) = &mut message.parts
            {
                parts.push(part);
            }
        }
    }

    fn results(&mut self, record: &Value, at: Timestamp) {
        let blocks = record["message"]["content"].as_array();
        for block in blocks.map(Vec::as_slice).unwrap_or_default() {
            let place = block["tool_use_id"].as_str().and_then(|id| self.places.get(id));
            let Some(Piece::Tool(call)) = place.and_then(|place| self.entries.get_mut(*place))
            else {
                continue;
            };
            let is_error = block["is_error"] == true;
            call.status = if is_error { ToolStatus::Failed } else { ToolStatus::Completed };
            if let Content::Open(detail) = &mut call.detail {
                let output = returned(&block["content"]);
                detail.output = Some(output).filter(|output| !output.is_empty());
                let diffs = tools::outcome(&record["toolUseResult"]);
                if !diffs.is_empty() {
                    detail.diffs = diffs;
                }
            }
            let drawings = drawings(&call.tool, &block["content"]);
            if !drawings.is_empty() {
                let id = format!("{}-pictures", call.id);
                let message = message(&id, Author::Assistant, vec![], at);
                self.entries.push(Piece::Message(message, drawings));
            }
        }
    }
}

fn message(id: &str, author: Author, parts: Vec<Part>, created_at: Timestamp) -> Message {
    Message {
        id: MessageId::from(id),
        author,
        parts: Content::Open(parts),
        created_at,
        run: None,
        parent: None,
        digest: None,
    }
}

#[cfg(test)]
mod tests;
