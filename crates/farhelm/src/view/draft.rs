//! The unfinished message that is on the screen.

use serde_json::Value;

use super::words;
use crate::output::tame;

/// A message that is being written, at its last part.
#[derive(Debug)]
pub(super) struct Draft {
    message: String,
    part: u64,
    /// How far it is shown, in UTF-16 units.
    units: usize,
    /// The message as it stands on the screen, earlier parts and all.
    shown: String,
}

impl Draft {
    /// A new line begins with these words.
    pub(super) fn begin(delta: &Value) -> Option<(Self, String)> {
        let message = delta["message_id"].as_str()?.to_owned();
        let is_text = delta["kind"] != "thinking";
        let part = delta["part"].as_u64().unwrap_or_default();
        let mut draft = Self { message, part, units: 0, shown: String::new() };
        let lead = if is_text { "assistant: " } else { words::THINKING };
        // Joined in the middle: what came before will be in the finished message.
        draft.units = usize::try_from(delta["offset"].as_u64()?).ok()?;
        let gap = if draft.units > 0 { "… " } else { "" };
        draft.shown = format!("{lead}{gap}");
        let more = draft.go_on(delta)?;
        (!more.is_empty()).then(|| (draft, format!("{lead}{gap}{more}")))
    }

    /// More words of the same part; `None` when they are of another.
    pub(super) fn go_on(&mut self, delta: &Value) -> Option<String> {
        let same = delta["message_id"] == *self.message && delta["part"] == self.part;
        if !same {
            return None;
        }
        let offset = usize::try_from(delta["offset"].as_u64()?).ok()?;
        let content = delta["content"].as_str()?;
        if offset > self.units {
            // Words between were missed; the finished message will have them.
            return Some(String::new());
        }
        let known = self.units - offset;
        let fresh = skip_units(content, known);
        self.units += fresh.encode_utf16().count();
        let fresh = tame(fresh);
        self.shown.push_str(&fresh);
        Some(fresh)
    }

    /// It stands below an earlier part of the same message.
    pub(super) fn below(mut self, earlier: &Self) -> Self {
        if earlier.message == self.message {
            self.shown = format!("{}\n{}", earlier.shown, self.shown);
        }
        self
    }

    /// Whether it became this message, and all that a person would see of it is on the screen.
    pub(super) fn says(&self, message: &Value) -> bool {
        let whole = words::message(message);
        message["message_id"] == *self.message && whole.strip_suffix('\n') == Some(&self.shown)
    }
}

/// The rest of a text after this many UTF-16 units.
fn skip_units(text: &str, units: usize) -> &str {
    let mut passed = 0;
    for (at, character) in text.char_indices() {
        if passed >= units {
            return &text[at..];
        }
        passed += character.len_utf16();
    }
    ""
}
