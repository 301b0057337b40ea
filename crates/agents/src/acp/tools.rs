//! Tool calls as the agent tells them, piece by piece, put together.
//!
//! Invariant: what did not change is not told again; agents repeat themselves a lot.
//!
//! Not here: which of them are open (`scribe`).

use std::collections::BTreeMap;

use domain::content::{Diff, Location, ToolCall, ToolDetail, ToolKind, ToolStatus, ToolUpdate};
use domain::{Content, ToolCallId};
use serde_json::Value;

use super::frames::{Tool, ToolContent};
use super::quirks::Quirks;

/// Tool calls that are known at once; the oldest by name makes room.
const KNOWN_MAX: usize = 1_024;
/// Bytes of output of one call that are gathered from pieces. What is more is left out.
const GATHERED_BYTES_MAX: usize = 8 << 20;
/// Characters of a title.
const TITLE_CHARACTERS_MAX: usize = 300;

/// Tool calls by their ids.
#[derive(Debug, Default)]
pub(super) struct Tools(BTreeMap<ToolCallId, ToolCall>);

/// What is news about a tool call.
#[derive(Debug)]
pub(super) enum News {
    /// It begins.
    Begun(ToolCall),
    /// It printed more and nothing else: all that it printed so far.
    Printed(ToolCallId, String),
    /// It changed.
    Changed(ToolUpdate),
}

impl Tools {
    /// Takes in what the agent tells.
    pub(super) fn hear(&mut self, frame: &Tool, quirks: &Quirks) -> Option<News> {
        if frame.id.is_empty() {
            return None;
        }
        let id = ToolCallId::from(frame.id.as_str());
        let Some(known) = self.0.get_mut(&id) else {
            if self.0.len() >= KNOWN_MAX {
                self.0.pop_first();
            }
            let mut call = ToolCall {
                id: id.clone(),
                tool: name(frame, quirks),
                kind: kind(frame.kind.as_deref()),
                status: ToolStatus::Pending,
                detail: Content::Open(ToolDetail::default()),
                run: None,
                parent: frame.meta.claude_code.parent_tool_use_id.clone().map(Into::into),
            };
            merge(&mut call, frame);
            self.0.insert(id, call.clone());
            return Some(News::Begun(call));
        };
        let before = known.status;
        let change = merge(known, frame)?;
        let only_output = ToolDetail { output: change.output.clone(), ..ToolDetail::default() };
        let is_at_work = known.status == ToolStatus::Running && before == known.status;
        if is_at_work && change == only_output {
            return change.output.map(|output| News::Printed(id, output));
        }
        let status = known.status;
        Some(News::Changed(ToolUpdate { id, status, detail: Content::Open(change) }))
    }

    /// What the agent calls the tool of a call.
    pub(super) fn name(&self, id: &str) -> Option<&str> {
        self.0.get(&ToolCallId::from(id)).map(|call| call.tool.as_str())
    }

    /// A person said no.
    pub(super) fn deny(&mut self, id: &ToolCallId) {
        if let Some(known) = self.0.get_mut(id) {
            known.status = ToolStatus::Cancelled;
        }
    }

    /// Whether anything is at work, so that silence means nothing.
    pub(super) fn any_at_work(&self) -> bool {
        self.0.values().any(|call| is_open(call.status))
    }

    /// A call as far as it is known; one that did not end was cut off.
    pub(super) fn whole(&self, id: &ToolCallId) -> Option<ToolCall> {
        let mut call = self.0.get(id)?.clone();
        if is_open(call.status) {
            call.status = ToolStatus::Cancelled;
        }
        Some(call)
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Puts what is new into the call, and tells what it was; `None` where nothing was.
fn merge(call: &mut ToolCall, frame: &Tool) -> Option<ToolDetail> {
    let Content::Open(detail) = &mut call.detail else { return None };
    let status = frame.status.as_deref().and_then(status).unwrap_or(call.status);
    if !is_open(call.status) {
        return None;
    }
    let has_new_status = status != call.status;
    call.status = status;
    let mut change = ToolDetail {
        title: frame.title.as_deref().and_then(one_line),
        input: frame.raw_input.as_ref().and_then(input),
        output: output(frame, detail.output.as_deref()),
        diffs: diffs(&frame.content),
        locations: locations(frame),
    };
    keep_new(&mut change.title, &mut detail.title);
    keep_new(&mut change.input, &mut detail.input);
    keep_new(&mut change.output, &mut detail.output);
    keep_new_list(&mut change.diffs, &mut detail.diffs);
    keep_new_list(&mut change.locations, &mut detail.locations);
    (has_new_status || change != ToolDetail::default()).then_some(change)
}

fn keep_new<T: Clone + PartialEq>(new: &mut Option<T>, known: &mut Option<T>) {
    if new == known {
        *new = None;
    } else if new.is_some() {
        known.clone_from(new);
    }
}

fn keep_new_list<T: Clone + PartialEq>(new: &mut Vec<T>, known: &mut Vec<T>) {
    if new == known {
        new.clear();
    } else if !new.is_empty() {
        known.clone_from(new);
    }
}

fn is_open(status: ToolStatus) -> bool {
    match status {
        ToolStatus::Pending | ToolStatus::Running => true,
        ToolStatus::Completed | ToolStatus::Failed | ToolStatus::Cancelled => false,
    }
}

fn status(word: &str) -> Option<ToolStatus> {
    match word {
        "pending" => Some(ToolStatus::Pending),
        "in_progress" => Some(ToolStatus::Running),
        "completed" => Some(ToolStatus::Completed),
        "failed" => Some(ToolStatus::Failed),
        "cancelled" => Some(ToolStatus::Cancelled),
        _ => None,
    }
}

pub(super) fn kind(word: Option<&str>) -> ToolKind {
    match word.unwrap_or("") {
        "read" => ToolKind::Read,
        "edit" | "delete" | "move" => ToolKind::Edit,
        "execute" => ToolKind::Execute,
        "search" => ToolKind::Search,
        "fetch" => ToolKind::Fetch,
        _ => ToolKind::Other,
    }
}

/// The agent's name of the tool, from wherever it says it.
pub(super) fn name(frame: &Tool, quirks: &Quirks) -> String {
    let own = frame.name.as_deref().or(frame.meta.claude_code.tool_name.as_deref());
    let of_id = || {
        let end = quirks.tool_name_ends_at?;
        frame.id.split_once(end).map(|(name, _)| name)
    };
    // Some give the tool's name as the first title.
    let of_title = || {
        let title = frame.title.as_deref()?;
        (!title.is_empty() && !title.contains([' ', '/', '.'])).then_some(title)
    };
    let name = own.or_else(of_id).or_else(of_title).or(frame.kind.as_deref());
    name.unwrap_or("tool").to_owned()
}

pub(super) fn one_line(title: &str) -> Option<String> {
    let line = title.lines().find(|line| !line.trim().is_empty())?.trim();
    Some(line.chars().take(TITLE_CHARACTERS_MAX).collect())
}

pub(super) fn input(raw: &Value) -> Option<String> {
    let is_empty = raw.as_object().is_some_and(serde_json::Map::is_empty);
    (!raw.is_null() && !is_empty).then(|| raw.to_string())
}

/// What it printed so far, whole. Before it is at work, its content only describes it.
fn output(frame: &Tool, gathered: Option<&str>) -> Option<String> {
    if let Some(piece) = &frame.meta.terminal_output_delta.data {
        let gathered = gathered.unwrap_or("");
        let has_room = gathered.len() + piece.len() <= GATHERED_BYTES_MAX;
        return Some(if has_room { format!("{gathered}{piece}") } else { gathered.to_owned() });
    }
    let (is_at_work, is_over) = match frame.status.as_deref().and_then(status) {
        Some(ToolStatus::Running) => (true, false),
        Some(ToolStatus::Completed | ToolStatus::Failed | ToolStatus::Cancelled) => (true, true),
        Some(ToolStatus::Pending) | None => (false, false),
    };
    let raw = frame.raw_output.as_ref().filter(|_| is_over);
    let plain = raw.and_then(|raw| {
        let field = |name: &str| raw.get(name).and_then(Value::as_str);
        raw.as_str().or_else(|| field("output")).or_else(|| field("error"))
    });
    let plain = plain.filter(|text| !text.is_empty()).map(str::to_owned);
    let content = || {
        let words = words(&frame.content).filter(|_| is_at_work);
        words.filter(|text| !text.is_empty())
    };
    let written = || raw.filter(|raw| !raw.is_null() && !raw.is_string()).map(Value::to_string);
    plain.or_else(content).or_else(|| gathered.is_none().then(written).flatten())
}

/// What a person can read of a call's content.
pub(super) fn words(content: &[ToolContent]) -> Option<String> {
    let texts = content.iter().filter(|content| content.kind == "content");
    let texts: Vec<_> = texts.filter_map(|content| content.content.words()).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

pub(super) fn diffs(content: &[ToolContent]) -> Vec<Diff> {
    let diffs = content.iter().filter(|content| content.kind == "diff");
    let diff = |content: &ToolContent| Diff {
        path: content.path.clone(),
        old_text: content.old_text.clone().filter(|text| !text.is_empty()),
        new_text: content.new_text.clone(),
    };
    diffs.map(diff).collect()
}

fn locations(frame: &Tool) -> Vec<Location> {
    let place = |place: &super::frames::Place| Location {
        path: place.path.clone(),
        line: place.line.filter(|line| *line > 0),
    };
    frame.locations.iter().map(place).collect()
}
