//! Turns one event into text.

use std::fmt::Write as _;

use serde_json::Value;

use crate::output::tame;

/// What an agent thinks is told apart from what it says.
pub(super) const THINKING: &str = "(thinking) ";
/// The status of a session that nothing is wrong with.
pub(super) const HEALTHY: &str = "healthy";
/// Lines of a tool's output that are shown; the rest is counted.
const OUTPUT_LINES_MAX: usize = 20;
/// Characters of a tool's input that are shown.
const INPUT_CHARS_MAX: usize = 200;

/// What to print for an event other than a message; nothing for what only programs need.
pub(super) fn of(kind: &str, frame: &Value, session: &str) -> String {
    let text = |name: &str| tame(frame[name].as_str().unwrap_or_default());
    match kind {
        "message_failed" => {
            let error = &frame["error"];
            let (code, message) = (word(error, "code"), word(error, "message"));
            format!("! message failed to send: {message} ({code})\n")
        }
        "session_up" => {
            let machine = word(&frame["session"], "machine_label");
            let there = if machine.is_empty() { String::new() } else { format!(" on {machine}") };
            format!("- connected{there}\n")
        }
        "session_down" => format!("- disconnected ({})\n", text("reason")),
        "session_closed" => format!("- closed ({})\n", text("reason")),
        "session_renamed" => format!("- renamed: {}\n", text("title")),
        "permission_prompt" => prompt(frame, session),
        "permission_prompt_resolved" => {
            format!("? answered {} by {}\n", text("choice_id"), text("answered_by"))
        }
        "permission_prompt_expired" => match frame["applied_choice"].as_str() {
            Some(choice) => format!("? expired, answered with: {}\n", tame(choice)),
            None => "? the question was withdrawn\n".to_owned(),
        },
        "run_ended" => run_ended(frame),
        "plan" => plan(frame),
        "notice" => format!("- {}: {}\n", text("kind"), text("text")),
        _ => String::new(),
    }
}

/// How a session is now.
pub(super) fn status(frame: &Value) -> String {
    match (word(frame, "status"), word(frame, "reason")) {
        (status, reason) if reason.is_empty() => format!("- {status}\n"),
        (status, reason) => format!("- {status}: {reason}\n"),
    }
}

/// A message, whole.
pub(super) fn message(message: &Value) -> String {
    let role = word(message, "role");
    if !message["sealed"].is_null() {
        return format!("{role}: (encrypted)\n");
    }
    let Some(parts) = message["parts"].as_array() else {
        return format!("{role}: {}\n", word(message, "content"));
    };
    let mut told = String::new();
    for part in parts {
        let text = word(part, "text");
        let line = match part["kind"].as_str() {
            Some("thinking") => format!("{THINKING}{text}"),
            Some("image" | "file") => format!("{role}: [{}]", word(part, "name")),
            Some("tool_call") => continue,
            Some(_) | None => format!("{role}: {text}"),
        };
        let _ = writeln!(told, "{line}");
    }
    told
}

fn prompt(frame: &Value, session: &str) -> String {
    let choices: Vec<String> = frame["choices"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|choice| word(choice, "choice_id"))
        .collect();
    let mut told = format!("? {}\n", word(frame, "prompt_text"));
    let (id, choices) = (word(frame, "prompt_id"), choices.join("|"));
    let _ = writeln!(told, "  farhelm answer {session} {id} {choices}{}", patience(frame));
    told
}

/// A question whose answer is typed below it: its choices by number.
pub(super) fn question(frame: &Value) -> String {
    let mut told = format!("? {}{}\n", word(frame, "prompt_text"), patience(frame));
    for (place, choice) in frame["choices"].as_array().into_iter().flatten().enumerate() {
        let _ = writeln!(told, "    {}  {}", place + 1, word(choice, "label"));
    }
    told
}

fn patience(frame: &Value) -> String {
    let Some(timeout_ms) = frame["timeout_ms"].as_u64() else { return String::new() };
    let then = frame["default_choice"].as_str().map_or("nothing".to_owned(), tame);
    format!("   (after {} s: {then})", timeout_ms / 1_000)
}

/// What a tool call is named, where the frame says so.
pub(super) fn tool_name(frame: &Value) -> Option<String> {
    let (tool, title) = (word(frame, "tool"), word(frame, "title"));
    match (tool.is_empty(), title.is_empty() || title == tool) {
        (true, true) => None,
        (true, false) => Some(title),
        (false, true) => Some(tool),
        (false, false) => Some(format!("{tool}: {title}")),
    }
}

/// A tool call, or how far it is.
pub(super) fn tool(frame: &Value, name: &str) -> String {
    let (status, name) = (word(frame, "status"), tame(name));
    let mut told = format!("* {name} [{status}]\n");
    if !frame["input"].is_null() {
        let input = tame(&frame["input"].to_string());
        let mut shown: String = input.chars().take(INPUT_CHARS_MAX).collect();
        if shown.len() < input.len() {
            shown.push('…');
        }
        let _ = writeln!(told, "    {shown}");
    }
    for diff in frame["diffs"].as_array().into_iter().flatten() {
        let _ = writeln!(told, "    changes {}", word(diff, "path"));
    }
    let output = word(frame, "output");
    for line in output.lines().take(OUTPUT_LINES_MAX) {
        let _ = writeln!(told, "    | {line}");
    }
    let left = output.lines().count().saturating_sub(OUTPUT_LINES_MAX);
    if left > 0 {
        let _ = writeln!(told, "    | … {left} more lines");
    }
    told
}

fn run_ended(frame: &Value) -> String {
    let outcome = word(frame, "outcome");
    let reason = word(frame, "reason");
    let mut told = format!("- {outcome}");
    if !reason.is_empty() {
        let _ = write!(told, ": {reason}");
    }
    if let Some(lasted_ms) = frame["lasted_ms"].as_u64() {
        let _ = write!(told, ", after {}", lasted(lasted_ms));
    }
    let usage = &frame["usage"];
    if let (Some(input), Some(output)) =
        (usage["input_tokens"].as_u64(), usage["output_tokens"].as_u64())
    {
        let _ = write!(told, ", {input} + {output} tokens");
    }
    if let Some(cost) = usage["cost_usd"].as_f64().filter(|cost| *cost > 0.0) {
        let _ = write!(told, ", ${cost:.4}");
    }
    told.push('\n');
    told
}

/// How long something took: seconds below a minute, then minutes, then hours.
fn lasted(duration_ms: u64) -> String {
    let seconds = duration_ms / 1_000;
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

fn plan(frame: &Value) -> String {
    let mut told = "- plan\n".to_owned();
    for entry in frame["entries"].as_array().into_iter().flatten() {
        let mark = match entry["status"].as_str() {
            Some("completed") => 'x',
            Some("in_progress") => '>',
            Some(_) | None => ' ',
        };
        let _ = writeln!(told, "  [{mark}] {}", word(entry, "text"));
    }
    told
}

fn word(value: &Value, name: &str) -> String {
    tame(value[name].as_str().unwrap_or_default())
}
