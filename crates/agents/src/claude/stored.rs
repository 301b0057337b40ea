//! Claude Code's own record of a conversation: a line of JSON for each thing that happened.
//!
//! A record that was resumed or copied repeats lines; each counts once, by its uuid. Words of the
//! program itself (commands, reminders) and of subagents are left out.
//!
//! Not here: where the files lie (`delivery`, `proxy`).

use std::collections::{BTreeMap, BTreeSet};

use domain::content::{Author, Message, Part, ToolCall, ToolStatus};
use domain::{Content, MessageId, Timestamp};
use serde_json::Value;

use super::frames::returned;
use super::tools;
use crate::{Summary, moment};

/// Messages and tool calls of a record that are told; of longer ones the last.
pub const ENTRIES_MAX: usize = 5_000;
/// Characters of a title.
const TITLE_CHARACTERS_MAX: usize = 120;

/// One thing of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// Somebody said something.
    Message(Message),
    /// The agent used a tool, with what came of it.
    Tool(ToolCall),
}

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
    let title = named("custom-title", "customTitle")
        .or_else(|| named("ai-title", "aiTitle"))
        .or_else(|| named("summary", "summary"))
        .or_else(|| spoken.clone())?;
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
pub fn entries(text: &str) -> Vec<Entry> {
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

/// What a person said in a record.
fn person(record: &Value) -> Option<String> {
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
                "image" => Some("[image]".to_owned()),
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
    (!words.trim().is_empty() && !is_of_program).then_some(words)
}

#[derive(Default)]
struct Gathered {
    entries: Vec<Entry>,
    /// Where each message of the agent and each tool call is.
    places: BTreeMap<String, usize>,
}

impl Gathered {
    fn hear(&mut self, record: &Value) {
        let at = record["timestamp"].as_str().and_then(moment).unwrap_or_default();
        match record["type"].as_str() {
            Some("assistant") => self.assistant(&record["message"], at),
            Some("user" | "attachment") => {
                self.results(record);
                self.person(record, at);
            }
            _ => {}
        }
    }

    fn person(&mut self, record: &Value, at: Timestamp) {
        let Some(words) = person(record) else { return };
        let own = record["attachment"]["source_uuid"].as_str().or(record["uuid"].as_str());
        let Some(id) = own else { return };
        let is_summary = record["isCompactSummary"] == true;
        let author = if is_summary { Author::System } else { Author::User };
        let message = message(id, author, vec![Part::Text(words)], at);
        self.entries.push(Entry::Message(message));
    }

    fn assistant(&mut self, said: &Value, at: Timestamp) {
        let Some(id) = said["id"].as_str() else { return };
        let place = *self.places.entry(id.to_owned()).or_insert_with(|| {
            self.entries.push(Entry::Message(message(id, Author::Assistant, vec![], at)));
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
                    self.entries.push(Entry::Tool(call));
                    Part::ToolCall(tool.into())
                }
                _ => continue,
            };
            if let Some(Entry::Message(message)) = self.entries.get_mut(place)
                && let Content::Open(parts) = &mut message.parts
            {
                parts.push(part);
            }
        }
    }

    fn results(&mut self, record: &Value) {
        let blocks = record["message"]["content"].as_array();
        for block in blocks.map(Vec::as_slice).unwrap_or_default() {
            let place = block["tool_use_id"].as_str().and_then(|id| self.places.get(id));
            let Some(Entry::Tool(call)) = place.and_then(|place| self.entries.get_mut(*place))
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
