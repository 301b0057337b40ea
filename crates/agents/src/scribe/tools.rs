//! Tool calls that are open.

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

#[derive(Debug, Default)]
pub(super) struct Tools(BTreeMap<ToolCallId, Known>);

#[derive(Debug)]
struct Known {
    status: ToolStatus,
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
        let known = Known { status: call.status, told_at: None, told: None };
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

    /// Cancels what is open, and forgets all.
    pub(super) fn close_all(&mut self) -> Vec<ToolUpdate> {
        let known = std::mem::take(&mut self.0);
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
