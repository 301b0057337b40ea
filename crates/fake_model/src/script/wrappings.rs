//! What agents wrap around a person's words and around results, and how to take it off.
//!
//! Not here: any decision (`script`).

/// Claude Code tells the model with this that the person stopped a turn; the rest of the bracket
/// varies.
pub(crate) const INTERRUPTED: &str = "[Request interrupted by user";

/// Elements that an agent adds for the model, not the person's words.
const ELEMENTS: [&str; 12] = [
    "system-reminder",
    "local-command-caveat",
    "command-name",
    "command-message",
    "command-args",
    "local-command-stdout",
    "environment_context",
    "user_instructions",
    "session_context",
    "permissions instructions",
    "skills_instructions",
    "INSTRUCTIONS",
];

const REMINDER: &str = "system-reminder";
/// Claude Code hands words that came during a tool to the model inside the tool's result.
const SENT_MEANWHILE: &str = "sent a new message while you were working:";

/// Codex and Gemini head what a command printed with how it went, and this.
const PRINTED: &str = "Output:";
/// Gemini puts these around what a command printed.
const AROUND_PRINTED: [&str; 3] =
    ["<untrusted_context>", "</untrusted_context>", "Process Group PGID:"];

/// A tool's result without what the agent added.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unwrapped {
    pub(crate) text: String,
    /// What the person said while the tool ran.
    pub(crate) also: Option<String>,
}

/// The person's own words.
pub(crate) fn without_wrappings(text: &str) -> String {
    let mut text = text.to_owned();
    for element in ELEMENTS {
        while let Some((before, _, after)) = around(&text, element) {
            text = format!("{before}{after}");
        }
    }
    text.trim().to_owned()
}

/// The words beside an interruption.
pub(crate) fn without_interruption(text: &str) -> String {
    let mut text = text.to_owned();
    while let Some(start) = text.find(INTERRUPTED) {
        let end = text[start..].find(']').map_or(text.len(), |length| start + length + 1);
        text.replace_range(start..end, "");
    }
    text.trim().to_owned()
}

/// Takes apart a result and what was put into it on the way.
pub(crate) fn unwrap_result(result: &str) -> Unwrapped {
    let mut also = Vec::new();
    let mut text = result.to_owned();
    while let Some((before, inside, after)) = around(&text, REMINDER) {
        if let Some((_, said)) = inside.split_once(SENT_MEANWHILE) {
            // What follows the first empty line is advice to the model.
            let said = said.trim_start();
            also.push(said.split("\n\n").next().unwrap_or(said).trim().to_owned());
        }
        text = format!("{before}{after}");
    }
    let also = (!also.is_empty()).then(|| also.join("\n"));
    Unwrapped { text: printed(&text), also }
}

/// What the command itself printed, as far as it can be told.
fn printed(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let heading = lines.iter().rposition(|line| line.starts_with(PRINTED));
    let kept = lines.iter().enumerate().skip(heading.unwrap_or(0)).map(|(index, line)| {
        if Some(index) == heading { line.trim_start_matches(PRINTED) } else { line }
    });
    let kept = kept.filter(|line| !AROUND_PRINTED.iter().any(|start| line.starts_with(start)));
    kept.collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// The first element of this name: what stands before, inside and after it.
fn around<'a>(text: &'a str, element: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let (before, rest) = text.split_once(&format!("<{element}>"))?;
    let (inside, after) = rest.split_once(&format!("</{element}>"))?;
    Some((before, inside, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrappings_are_taken_off_wherever_they_stand() {
        let text = "<system-reminder>a\nb</system-reminder>\nhello\n\
                    <environment_context>c</environment_context><system-reminder>d</system-reminder>";
        assert_eq!(without_wrappings(text), "hello");
        assert_eq!(without_wrappings("<system-reminder>open"), "<system-reminder>open");
    }

    #[test]
    fn the_words_beside_an_interruption_stay() {
        assert_eq!(without_interruption("[Request interrupted by user for tool use]\nhi"), "hi");
        assert_eq!(without_interruption("hi [Request interrupted by user"), "hi");
    }

    #[test]
    fn what_a_command_printed_is_found_below_its_heading() {
        let codex = "Chunk ID: 1\nWall time: 0.1 seconds\nOutput:\nmade\nit";
        assert_eq!(unwrap_result(codex).text, "made\nit");
        let gemini =
            "<untrusted_context>\nOutput: made\nProcess Group PGID: 7\n</untrusted_context>";
        assert_eq!(unwrap_result(gemini).text, "made");
    }

    #[test]
    fn words_that_came_during_a_tool_are_found_in_its_result() {
        let result = "slept\n<system-reminder>\nThe user sent a new message while you were \
                      working:\nsteer left\n\nGo on with your task.\n</system-reminder>";
        let expected = Unwrapped { text: "slept".into(), also: Some("steer left".into()) };
        assert_eq!(unwrap_result(result), expected);
        let plain = unwrap_result("made <system-reminder>other</system-reminder>");
        assert_eq!(plain, Unwrapped { text: "made".into(), also: None });
    }
}
