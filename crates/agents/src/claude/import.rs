//! Imports an earlier conversation once, before the session is used.
//!
//! Not here: reading the record (`stored`), waiting for its pictures (`scribe`).

use std::path::Path;

use domain::Timestamp;

use super::{Claude, Life, stored};

impl Claude {
    /// The earlier conversation's file was read.
    pub(super) fn import(&mut self, path: &Path, text: Option<&str>, now: Timestamp) {
        let Life::Importing(awaited) = &self.life else { return };
        if awaited != path {
            return;
        }
        if text.is_none() {
            let words = format!("The earlier messages were not found in {}", path.display());
            self.scribe.notice("import", words);
        }
        self.life = Life::Retelling;
        self.scribe.retell(text.map(stored::entries).unwrap_or_default(), now);
        self.retold(now);
    }

    /// Goes on when all of it is told.
    pub(super) fn retold(&mut self, now: Timestamp) {
        if !self.scribe.take_retold() || !matches!(self.life, Life::Retelling) {
            return;
        }
        self.scribe_remember(super::notes::Notes::imported);
        let conversation = self.conversation(false);
        self.spawn(&conversation, now);
    }
}
