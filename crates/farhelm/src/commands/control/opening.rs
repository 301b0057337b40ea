//! Prints `init` first, as Claude Code does: a program reads the state of the session from it, even
//! before it sends anything.
//!
//! **Invariant**: nothing is printed twice, and nothing overtakes what was printed or held before.

use serde_json::Value;

/// Frames that wait for the first `init`. With more, it is not waited for.
const HELD_MAX: usize = 256;

/// What waits for the first `init`; `None` once it was printed.
pub(super) struct Opening(Option<Vec<String>>);

impl Opening {
    pub(super) fn new() -> Self {
        Self(Some(vec![]))
    }

    /// The lines to print now that this frame came. Only the result of a message that was not
    /// sent at all comes without an `init`.
    pub(super) fn take(&mut self, frame: &Value, text: &str) -> Vec<String> {
        let Some(held) = &mut self.0 else { return vec![text.to_owned()] };
        let is_init = frame["type"] == "system" && frame["subtype"] == "init";
        if !is_init && frame["type"] != "result" && held.len() < HELD_MAX {
            held.push(text.to_owned());
            return vec![];
        }
        let mut lines = self.0.take().unwrap_or_default();
        let place = if is_init { 0 } else { lines.len() };
        lines.insert(place, text.to_owned());
        lines
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn taken(opening: &mut Opening, frame: &Value) -> Vec<Value> {
        let lines = opening.take(frame, &frame.to_string());
        lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    // spec: control/stdio.7
    #[test]
    fn a_question_that_is_open_when_the_program_starts_is_printed_after_init() {
        let mut opening = Opening::new();
        let state = json!({ "type": "system", "subtype": "session_state_changed" });
        let asked = json!({ "type": "control_request", "request_id": "p1" });
        let withdrawn = json!({ "type": "control_cancel_request", "request_id": "p1" });
        let init = json!({ "type": "system", "subtype": "init" });
        for early in [&state, &asked, &withdrawn] {
            assert_eq!(taken(&mut opening, early), [] as [Value; 0]);
        }
        let expected = [&init, &state, &asked, &withdrawn].map(Value::clone);
        assert_eq!(taken(&mut opening, &init), expected);
        assert_eq!(taken(&mut opening, &asked), [asked], "from then on at once");
    }

    #[test]
    fn the_result_of_a_message_that_was_not_sent_waits_for_no_init() {
        let mut opening = Opening::new();
        let state = json!({ "type": "system", "subtype": "session_state_changed" });
        let result = json!({ "type": "result" });
        taken(&mut opening, &state);
        assert_eq!(taken(&mut opening, &result), [state, result]);
    }

    #[test]
    fn init_is_not_waited_for_for_ever() {
        let mut opening = Opening::new();
        let asked = json!({ "type": "control_request" });
        for _ in 0..HELD_MAX {
            assert_eq!(taken(&mut opening, &asked), [] as [Value; 0]);
        }
        assert_eq!(taken(&mut opening, &asked).len(), HELD_MAX + 1);
    }
}
