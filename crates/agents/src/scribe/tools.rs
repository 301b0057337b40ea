//! Open tool calls.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use domain::content::{ToolCall, ToolDetail, ToolKind, ToolStatus, ToolUpdate};
use domain::{Content, Timestamp, ToolCallId};

/// Tool calls that are known at once. At the bound the oldest by name is forgotten.
const KNOWN_MAX: usize = 1_024;
/// The least time between two tellings of what a tool printed so far.
const OUTPUT_EVERY_MS: u64 = 500;
/// Output beyond this many bytes is told only at the end, because each telling is whole.
const OUTPUT_LIVE_BYTES_MAX: usize = 32 * 1024;
/// Characters of a label.
const LABEL_CHARACTERS_MAX: usize = 80;

/// Subagents of subagents that are followed.
const DEPTH_MAX: usize = 16;

/// What goes on when a run ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Outlives {
    /// Nothing.
    #[default]
    Nothing,
    /// Subagents whose own call ended before them: they work in the background.
    Background,
}

#[derive(Debug, Default)]
pub(super) struct Tools(BTreeMap<ToolCallId, Known>);

#[derive(Debug)]
struct Known {
    status: ToolStatus,
    parent: Option<ToolCallId>,
    told_at: Option<Timestamp>,
    /// The fingerprint of what was told last.
    told: Option<u64>,
}

/// What is news about a tool call.
pub(super) enum Told {
    New(ToolCall),
    Update(ToolUpdate),
    Nothing,
}

impl Tools {
    pub(super) fn begin(&mut self, call: ToolCall) -> Told {
        if self.0.contains_key(&call.id) {
            let update = ToolUpdate { id: call.id, status: call.status, detail: call.detail };
            return self.update(update).map_or(Told::Nothing, Told::Update);
        }
        if self.0.len() >= KNOWN_MAX {
            self.0.pop_first();
        }
        let parent = call.parent.clone();
        let known = Known { status: call.status, parent, told_at: None, told: None };
        self.0.insert(call.id.clone(), known);
        Told::New(call)
    }

    pub(super) fn update(&mut self, update: ToolUpdate) -> Option<ToolUpdate> {
        let known = self.0.get_mut(&update.id)?;
        let is_empty = update.detail == Content::Open(ToolDetail::default());
        if !is_open(known.status) || (known.status == update.status && is_empty) {
            return None;
        }
        known.status = update.status;
        Some(update)
    }

    pub(super) fn output(
        &mut self,
        id: &ToolCallId,
        whole: &str,
        now: Timestamp,
    ) -> Option<ToolUpdate> {
        let known = self.0.get_mut(id).filter(|known| is_open(known.status))?;
        let is_soon = known.told_at.is_some_and(|at| now.ms_since(at) < OUTPUT_EVERY_MS);
        if is_soon || whole.is_empty() || whole.len() > OUTPUT_LIVE_BYTES_MAX {
            return None;
        }
        // Not by its length: of what is long the end is kept.
        let mut hasher = DefaultHasher::new();
        whole.hash(&mut hasher);
        if known.told.replace(hasher.finish()) == Some(hasher.finish()) {
            return None;
        }
        known.told_at = Some(now);
        known.status = ToolStatus::Running;
        let detail = ToolDetail { output: Some(whole.to_owned()), ..ToolDetail::default() };
        Some(ToolUpdate { id: id.clone(), status: known.status, detail: Content::Open(detail) })
    }

    pub(super) fn is_open(&self, id: &ToolCallId) -> bool {
        self.0.get(id).is_some_and(|known| is_open(known.status))
    }

    pub(super) fn any_open(&self) -> bool {
        self.0.values().any(|known| is_open(known.status))
    }

    /// Whether what belongs to this call goes on behind the call that began it all: that one
    /// ended, and its subagent did not.
    pub(super) fn is_behind(&self, parent: &ToolCallId) -> bool {
        let mut first = parent;
        for _ in 0..DEPTH_MAX {
            match self.0.get(first).and_then(|known| known.parent.as_ref()) {
                Some(above) => first = above,
                None => break,
            }
        }
        !self.is_open(first)
    }

    /// Cancels what is open, and forgets all but what is to outlive the run.
    pub(super) fn close_all(&mut self, outlives: Outlives) -> Vec<ToolUpdate> {
        let kept: Vec<ToolCallId> = match outlives {
            Outlives::Nothing => vec![],
            Outlives::Background => {
                let behind = self.0.iter().filter(|(_, known)| {
                    let is_behind = known.parent.as_ref().is_some_and(|it| self.is_behind(it));
                    is_behind && is_open(known.status)
                });
                behind.map(|(id, _)| id.clone()).collect()
            }
        };
        let mut known = std::mem::take(&mut self.0);
        self.0 = kept.iter().filter_map(|id| known.remove_entry(id)).collect();
        let open = known.into_iter().filter(|(_, known)| is_open(known.status));
        let cancel = |(id, _)| {
            let detail = Content::Open(ToolDetail::default());
            ToolUpdate { id, status: ToolStatus::Cancelled, detail }
        };
        open.map(cancel).collect()
    }
}

pub(super) fn is_open(status: ToolStatus) -> bool {
    match status {
        ToolStatus::Pending | ToolStatus::Running => true,
        ToolStatus::Completed | ToolStatus::Failed | ToolStatus::Cancelled => false,
    }
}

/// What a person reads while the tool is at work.
pub(super) fn label(call: &ToolCall) -> String {
    let title = call.detail.open().and_then(|detail| detail.title.as_deref());
    let title = title.and_then(|title| title.lines().next()).unwrap_or(&call.tool);
    format!("Running: {}", title.chars().take(LABEL_CHARACTERS_MAX).collect::<String>())
}

/// The native document's word for what an agent does with such a tool.
pub(super) fn activity(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Read | ToolKind::Search | ToolKind::Fetch => "reading_files",
        ToolKind::Edit => "applying_patch",
        ToolKind::Execute | ToolKind::Other => "running_command",
    }
}
