//! Tool calls, assembled from the agent's partial reports.
//!
//! Invariant: unchanged data is not reported again; agents repeat themselves a lot.
//!
//! Not here: which of them are open (`scribe`).

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

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

/// Terminals that one call shows. What is more is not followed.
const TERMINALS_MAX: usize = 8;
/// Pictures of all calls of a run that are told apart. What is more is left out.
const PICTURES_MAX: usize = 64;

/// Tool calls by their ids.
#[derive(Debug, Default)]
pub(super) struct Tools {
    calls: BTreeMap<ToolCallId, Known>,
    /// Pictures that were told, by their fingerprints: agents repeat what a call shows.
    pictures: BTreeSet<u64>,
}

/// What is known of a call.
#[derive(Debug)]
struct Known {
    call: ToolCall,
    /// The terminals that it shows.
    terminals: Vec<String>,
    /// Something was printed and not told yet.
    has_untold: bool,
}

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
        let Some(known) = self.calls.get_mut(&id) else {
            if self.calls.len() >= KNOWN_MAX {
                self.calls.pop_first();
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
            let mut known = Known { call: call.clone(), terminals: vec![], has_untold: false };
            known.show(frame);
            self.calls.insert(id, known);
            return Some(News::Begun(call));
        };
        known.show(frame);
        let before = known.call.status;
        let mut change = merge(&mut known.call, frame)?;
        let status = known.call.status;
        let only_output = ToolDetail { output: change.output.clone(), ..ToolDetail::default() };
        let is_at_work = status == ToolStatus::Running && before == status;
        if is_at_work && change == only_output {
            return change.output.map(|output| News::Printed(id, output));
        }
        if !is_open(status) && known.has_untold && change.output.is_none() {
            change.output = known.call.detail.open().and_then(|detail| detail.output.clone());
        }
        Some(News::Changed(ToolUpdate { id, status, detail: Content::Open(change) }))
    }

    /// A terminal printed more: the open calls that show it.
    pub(super) fn printed(&mut self, terminal: &str, whole: &str) -> Vec<ToolCallId> {
        let mut showing = vec![];
        for (id, known) in &mut self.calls {
            let shows = known.terminals.iter().any(|shown| shown == terminal);
            let Content::Open(detail) = &mut known.call.detail else { continue };
            if shows && is_open(known.call.status) {
                detail.output = Some(whole.to_owned());
                known.call.status = ToolStatus::Running;
                showing.push(id.clone());
            }
        }
        showing
    }

    /// Whether what a call printed was told, or put off.
    pub(super) fn told(&mut self, id: &ToolCallId, was_told: bool) {
        if let Some(known) = self.calls.get_mut(id) {
            known.has_untold = !was_told;
        }
    }

    /// The pictures of a call that were not told yet, with what they show.
    pub(super) fn new_pictures<'a>(
        &mut self,
        frame: &'a Tool,
    ) -> Vec<(String, (&'a str, &'a str))> {
        let id = ToolCallId::from(frame.id.as_str());
        let Some(known) = self.calls.get(&id) else { return vec![] };
        let what = known.call.tool.clone();
        let contents = frame.content.iter().filter(|content| content.kind == "content");
        let mut new = vec![];
        for picture in contents.filter_map(|content| content.content.picture()) {
            let mut hasher = DefaultHasher::new();
            (&frame.id, picture).hash(&mut hasher);
            if self.pictures.len() < PICTURES_MAX && self.pictures.insert(hasher.finish()) {
                new.push((what.clone(), picture));
            }
        }
        new
    }

    /// What the agent calls the tool of a call.
    pub(super) fn name(&self, id: &str) -> Option<&str> {
        self.calls.get(&ToolCallId::from(id)).map(|known| known.call.tool.as_str())
    }

    /// A person said no.
    pub(super) fn deny(&mut self, id: &ToolCallId) {
        if let Some(known) = self.calls.get_mut(id) {
            known.call.status = ToolStatus::Cancelled;
        }
    }

    /// Whether anything is at work, so that silence means nothing.
    pub(super) fn any_at_work(&self) -> bool {
        self.calls.values().any(|known| is_open(known.call.status))
    }

    /// A call as far as it is known; one that did not end was cut off.
    pub(super) fn whole(&self, id: &ToolCallId) -> Option<ToolCall> {
        let mut call = self.calls.get(id)?.call.clone();
        if is_open(call.status) {
            call.status = ToolStatus::Cancelled;
        }
        Some(call)
    }

    pub(super) fn clear(&mut self) {
        self.calls.clear();
        self.pictures.clear();
    }
}

impl Known {
    /// Takes in which terminals the call shows.
    fn show(&mut self, frame: &Tool) {
        for content in frame.content.iter().filter(|content| content.kind == "terminal") {
            let is_new = !self.terminals.contains(&content.terminal_id);
            if is_new && self.terminals.len() < TERMINALS_MAX {
                self.terminals.push(content.terminal_id.clone());
            }
        }
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
    let texts = content.iter().filter(|it| matches!(it.kind.as_str(), "content" | "terminal"));
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
