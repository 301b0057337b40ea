//! The unfinished messages of a session, as far as clients have seen them.
//!
//! Not here: reporting them as messages after a crash (`engine::crash`).

use std::collections::BTreeMap;

use domain::passing::{DRAFTS_MAX, Delta, Drafts};
use domain::{MessageId, ToolCallId};

/// Messages in the making, and the calls of the subagents that write them.
#[derive(Debug, Default)]
pub struct Unfinished {
    drafts: Drafts,
    parents: BTreeMap<MessageId, ToolCallId>,
}

impl Unfinished {
    /// More words. `parent` is the call of the subagent that says them.
    pub fn take(&mut self, delta: &Delta, parent: Option<&ToolCallId>) {
        self.drafts.take(delta);
        if let Some(parent) = parent {
            self.parents.insert(delta.message.clone(), parent.clone());
            if self.parents.len() > DRAFTS_MAX {
                // The oldest draft made room.
                let drafts = &self.drafts;
                self.parents.retain(|message, _| drafts.has(message));
            }
        }
    }

    /// A message is whole.
    pub fn finish(&mut self, message: &MessageId) {
        self.drafts.finish(message);
        self.parents.remove(message);
    }

    /// What belongs to the run is over with it. A subagent may go on in the background.
    pub fn end_run(&mut self) {
        let parents = &self.parents;
        self.drafts.keep(|message| parents.contains_key(message));
    }

    /// Whether nothing is in the making.
    pub fn is_empty(&self) -> bool {
        self.drafts.is_empty()
    }

    /// The call of the subagent that writes a message.
    pub fn parent(&self, message: &MessageId) -> Option<&ToolCallId> {
        self.parents.get(message)
    }

    /// Everything in the making as deltas from offset 0.
    pub fn replay(&self) -> Vec<Delta> {
        self.drafts.replay()
    }

    /// The same, with its parent beside each message's first piece.
    pub fn pieces(&self) -> Vec<(Delta, Option<ToolCallId>)> {
        let mut last = None;
        let piece = |delta: Delta| {
            let is_first = last.as_ref() != Some(&delta.message);
            last = Some(delta.message.clone());
            let parent = self.parent(&delta.message).filter(|_| is_first).cloned();
            (delta, parent)
        };
        self.replay().into_iter().map(piece).collect()
    }
}
