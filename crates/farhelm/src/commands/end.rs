//! The end of a session that is followed: when nothing more comes.
//!
//! **Invariant**: a session that was closed and opened again has not ended, although its history
//! has a `session_closed`.
//!
//! Not here: showing events.

use serde_json::Value;

/// How far a session was shown, and whether it is closed.
pub(super) struct End {
    /// Whether it is closed as far as it was shown.
    pub(super) is_closed: bool,
    /// The last event that there was at the beginning.
    pub(super) last_sequence: u64,
    /// The last event that was shown.
    pub(super) shown: u64,
}

impl End {
    /// Whether nothing more comes, and everything that came is shown.
    pub(super) fn has_come(&self) -> bool {
        self.is_closed && self.shown >= self.last_sequence
    }

    /// An event is shown.
    pub(super) fn show(&mut self, frame: &Value) {
        self.skip_to(frame["sequence"].as_u64().unwrap_or_default());
        match frame["type"].as_str() {
            Some("session_closed") => self.is_closed = true,
            Some("session_up") => self.is_closed = false,
            Some(_) | None => {}
        }
    }

    /// Everything up to this event is shown, or is no longer there.
    pub(super) fn skip_to(&mut self, sequence: u64) {
        self.shown = self.shown.max(sequence);
    }
}
