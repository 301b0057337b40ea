//! Tool calls and their updates (feature `tools`).

use domain::content::{self, ToolDetail};
use domain::{Content, RunId, ToolCallId};
use serde::{Deserialize, Serialize};

use super::{Json, Sealed, id, words};

/// Bytes of an output that clients are told. Of a longer one, half of them from either end.
pub const OUTPUT_SHOWN_BYTES_MAX: usize = 64 * 1024;

words! {
    /// What sort of thing a tool does.
    ToolKindWord for content::ToolKind {
        Read = "read",
        Edit = "edit",
        Execute = "execute",
        Search = "search",
        Fetch = "fetch",
        Other = "other",
    }
    /// How far a tool call is.
    ToolStatusWord for content::ToolStatus {
        Pending = "pending",
        Running = "running",
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
    }
}

/// One file before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct Diff {
    /// As the agent names it.
    pub path: String,
    /// Absent for a new file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_text: Option<String>,
    /// Absent for a deleted file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_text: Option<String>,
}

impl From<&content::Diff> for Diff {
    fn from(diff: &content::Diff) -> Self {
        let (old_text, new_text) = (diff.old_text.clone(), diff.new_text.clone());
        Self { path: diff.path.clone(), old_text, new_text }
    }
}

impl From<Diff> for content::Diff {
    fn from(diff: Diff) -> Self {
        Self { path: diff.path, old_text: diff.old_text, new_text: diff.new_text }
    }
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct Location {
    /// As the agent names it.
    pub path: String,
    /// From 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl From<&content::Location> for Location {
    fn from(place: &content::Location) -> Self {
        Self { path: place.path.clone(), line: place.line }
    }
}

impl From<Location> for content::Location {
    fn from(place: Location) -> Self {
        Self { path: place.path, line: place.line }
    }
}

/// The body of `tool_call`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct ToolCall {
    /// As the agent names the call.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub tool_call_id: ToolCallId,
    /// The agent's name of the tool.
    pub tool: String,
    /// What sort of thing it does.
    pub kind: ToolKindWord,
    /// How far it is.
    pub status: ToolStatusWord,
    /// One line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The tool's input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, type = "unknown"))]
    pub input: Option<Json>,
    /// What it printed or returned so far: whole, or to clients its head and tail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Whether something in the middle of the output was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_truncated: Option<bool>,
    /// Bytes of the whole output, where something was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
    /// File changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(as = "Option<Vec<Diff>>"))]
    pub diffs: Vec<Diff>,
    /// Files it touches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(as = "Option<Vec<Location>>"))]
    pub locations: Vec<Location>,
    /// Stands in place of title, input, output, diffs and locations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Sealed>,
    /// The run it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub run_id: Option<RunId>,
    /// The tool call whose subagent made this one.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub parent_tool_call_id: Option<ToolCallId>,
}

/// The body of `tool_update`: what is absent stays as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct ToolUpdate {
    /// Which call.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub tool_call_id: ToolCallId,
    /// How far it is now.
    pub status: ToolStatusWord,
    /// One line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The tool's input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, type = "unknown"))]
    pub input: Option<Json>,
    /// What it printed or returned so far: whole, or to clients its head and tail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Whether something in the middle of the output was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_truncated: Option<bool>,
    /// Bytes of the whole output, where something was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
    /// File changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(as = "Option<Vec<Diff>>"))]
    pub diffs: Vec<Diff>,
    /// Files it touches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(as = "Option<Vec<Location>>"))]
    pub locations: Vec<Location>,
    /// Stands in place of title, input, output, diffs and locations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Sealed>,
}

impl ToolCall {
    /// As clients are told it: of a long output its head and tail.
    pub(crate) fn shortened(mut self) -> Self {
        let (output, whole_bytes) = shortened(self.output);
        self.output = output;
        (self.output_truncated, self.output_bytes) = (whole_bytes.map(|_| true), whole_bytes);
        self
    }
}

impl ToolUpdate {
    /// As clients are told it: of a long output its head and tail.
    pub(crate) fn shortened(mut self) -> Self {
        let (output, whole_bytes) = shortened(self.output);
        self.output = output;
        (self.output_truncated, self.output_bytes) = (whole_bytes.map(|_| true), whole_bytes);
        self
    }
}

/// Head and tail of a long output, and the bytes of the whole.
fn shortened(output: Option<String>) -> (Option<String>, Option<u64>) {
    let Some(whole) = output else { return (None, None) };
    if whole.len() <= OUTPUT_SHOWN_BYTES_MAX {
        return (Some(whole), None);
    }
    let head = character_before(&whole, OUTPUT_SHOWN_BYTES_MAX / 2);
    let tail = character_before(&whole, whole.len() - OUTPUT_SHOWN_BYTES_MAX / 2);
    let left_out = tail - head;
    let shown = format!("{}\n… {left_out} bytes omitted …\n{}", &whole[..head], &whole[tail..]);
    (Some(shown), u64::try_from(whole.len()).ok())
}

/// The last place not after this byte at which a character begins.
pub fn character_before(text: &str, byte: usize) -> usize {
    let byte = byte.min(text.len());
    (0..=byte).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

impl From<&content::ToolCall> for ToolCall {
    fn from(call: &content::ToolCall) -> Self {
        let update = content::ToolUpdate {
            id: call.id.clone(),
            status: call.status,
            detail: call.detail.clone(),
        };
        let ToolUpdate {
            tool_call_id,
            status,
            title,
            input,
            output,
            output_truncated,
            output_bytes,
            diffs,
            locations,
            sealed,
        } = ToolUpdate::from(&update);
        Self {
            tool_call_id,
            tool: call.tool.clone(),
            kind: call.kind.into(),
            status,
            title,
            input,
            output,
            output_truncated,
            output_bytes,
            diffs,
            locations,
            sealed,
            run_id: call.run.clone(),
            parent_tool_call_id: call.parent.clone(),
        }
    }
}

impl From<ToolCall> for content::ToolCall {
    fn from(call: ToolCall) -> Self {
        let (tool, kind) = (call.tool, call.kind.into());
        let (run, parent) = (call.run_id, call.parent_tool_call_id);
        let update = content::ToolUpdate::from(ToolUpdate {
            tool_call_id: call.tool_call_id,
            status: call.status,
            title: call.title,
            input: call.input,
            output: call.output,
            output_truncated: None,
            output_bytes: None,
            diffs: call.diffs,
            locations: call.locations,
            sealed: call.sealed,
        });
        Self {
            id: update.id,
            tool,
            kind,
            status: update.status,
            detail: update.detail,
            run,
            parent,
        }
    }
}

impl From<&content::ToolUpdate> for ToolUpdate {
    fn from(update: &content::ToolUpdate) -> Self {
        let (open, sealed) = match &update.detail {
            Content::Open(detail) => (Some(detail), None),
            Content::Sealed(sealed) => (None, Some(sealed.into())),
        };
        let input = open.and_then(|detail| detail.input.as_deref()).map(Json::from_text);
        Self {
            tool_call_id: update.id.clone(),
            status: update.status.into(),
            title: open.and_then(|detail| detail.title.clone()),
            input,
            output: open.and_then(|detail| detail.output.clone()),
            output_truncated: None,
            output_bytes: None,
            diffs: open.map_or(vec![], |detail| detail.diffs.iter().map(Into::into).collect()),
            locations: open
                .map_or(vec![], |detail| detail.locations.iter().map(Into::into).collect()),
            sealed,
        }
    }
}

impl From<ToolUpdate> for content::ToolUpdate {
    fn from(update: ToolUpdate) -> Self {
        let detail = match update.sealed {
            Some(sealed) => Content::Sealed(sealed.into()),
            None => Content::Open(ToolDetail {
                title: update.title,
                input: update.input.map(Json::into_text),
                output: update.output,
                diffs: update.diffs.into_iter().map(Into::into).collect(),
                locations: update.locations.into_iter().map(Into::into).collect(),
            }),
        };
        Self { id: update.tool_call_id, status: update.status.into(), detail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(output: String) -> ToolUpdate {
        let detail = ToolDetail { output: Some(output), ..ToolDetail::default() };
        let update = content::ToolUpdate {
            id: "t1".into(),
            status: content::ToolStatus::Completed,
            detail: Content::Open(detail),
        };
        ToolUpdate::from(&update).shortened()
    }

    // spec: native/tool_output.1
    #[test]
    fn of_a_long_output_its_head_and_tail_are_told() {
        let whole = format!("head{}tail", "ä".repeat(OUTPUT_SHOWN_BYTES_MAX));
        let told = update(whole.clone());
        let shown = told.output.unwrap();
        assert!(shown.starts_with("headä") && shown.ends_with("ätail"));
        assert!(shown.contains("bytes omitted"));
        assert!(shown.len() < OUTPUT_SHOWN_BYTES_MAX + 64);
        assert_eq!(told.output_truncated, Some(true));
        assert_eq!(told.output_bytes, Some(whole.len() as u64));
    }

    // spec: native/tool_output.1
    #[test]
    fn an_output_at_the_bound_is_told_whole() {
        let whole = "x".repeat(OUTPUT_SHOWN_BYTES_MAX);
        let told = update(whole.clone());
        assert_eq!(told.output, Some(whole));
        assert_eq!((told.output_truncated, told.output_bytes), (None, None));
    }
}
