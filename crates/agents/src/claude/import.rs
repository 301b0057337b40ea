//! An earlier conversation, told once before the session is used.

use std::path::Path;

use domain::Timestamp;
use domain::session::Report;

use super::stored::{self, Entry};
use super::{Claude, Life};
use crate::Output;

impl Claude {
    /// The earlier conversation's file was read.
    pub(super) fn import(&mut self, path: &Path, text: Option<&str>, now: Timestamp) {
        let Life::Importing(awaited) = &self.life else { return };
        if awaited != path {
            return;
        }
        if text.is_none() {
            let words = format!("What was said before was not found in {}", path.display());
            self.scribe.notice("import", words);
        }
        for entry in text.map(stored::entries).unwrap_or_default() {
            match entry {
                Entry::Message(message) => self.scribe.message(message),
                Entry::Tool(call) => self.scribe.push(Output::Report(Report::ToolCall(call))),
            }
        }
        self.scribe_remember(super::notes::Notes::imported);
        let conversation = self.conversation(false);
        self.spawn(&conversation, now);
    }
}
