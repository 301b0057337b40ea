//! What the demo agent received: one JSON line per message.
//!
//! Not here: writing and syncing the lines (`proxy`).

use std::collections::VecDeque;

use domain::{MessageId, Sequence};
use serde::{Deserialize, Serialize};

/// Messages that are remembered in memory. Only those whose delivery a crash may have hidden are
/// ever looked up, and the proxy has far fewer of them open.
pub const REMEMBERED_MAX: usize = 4_096;

/// One line of the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// The message's id.
    pub id: MessageId,
    /// Which attempt at it.
    pub attempt: Sequence,
    /// Its words.
    pub text: String,
}

/// The record, as far back as it is ever looked up.
#[derive(Debug, Default)]
pub(super) struct Record {
    taken: VecDeque<(MessageId, Sequence)>,
}

impl Record {
    /// A line that does not parse was cut off while it was written: the message did not arrive.
    pub(super) fn read(text: &str) -> Self {
        let mut record = Self::default();
        for line in text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok()) {
            record.remember(&line.id, line.attempt);
        }
        record
    }

    /// Takes a message in and gives the line to write.
    pub(super) fn take(&mut self, id: &MessageId, attempt: Sequence, text: &str) -> String {
        self.remember(id, attempt);
        let line = Line { id: id.clone(), attempt, text: text.to_owned() };
        serde_json::to_string(&line).unwrap_or_default()
    }

    pub(super) fn has(&self, id: &MessageId, attempt: Sequence) -> bool {
        self.taken.iter().any(|(taken, of)| taken == id && *of == attempt)
    }

    fn remember(&mut self, id: &MessageId, attempt: Sequence) {
        self.taken.push_back((id.clone(), attempt));
        if self.taken.len() > REMEMBERED_MAX {
            self.taken.pop_front();
        }
    }
}
