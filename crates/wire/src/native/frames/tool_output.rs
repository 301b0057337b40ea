//! The rest of a long output (feature `tool_output`).

use domain::{Sequence, ToolCallId};
use serde::{Deserialize, Serialize};

use crate::native::shapes::id;

/// What a tool printed is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct ToolOutputRequest {
    /// Which call.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub tool_call_id: ToolCallId,
    /// The event that told a part of it; without it, the last that told any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<u64>"))]
    pub at_sequence: Option<Sequence>,
    /// From this byte on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// At most so many bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// What a tool printed, or a stretch of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct ToolOutput {
    /// Which call.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub tool_call_id: ToolCallId,
    /// The byte that it begins with.
    pub offset: u64,
    /// Its words.
    pub content: String,
    /// Bytes of the whole.
    pub total_bytes: u64,
    /// Where the next stretch begins, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u64>,
}
