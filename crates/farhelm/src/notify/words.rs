//! Cleans text from agents and people for lock screens and for other programs.
//!
//! **Invariant**: every text is bounded and contains no control characters, no invisible
//! characters, and none that change the direction of text.
//!
//! Not here: the rest of a notification (`notice`).

use domain::session::prompts::{Detail, Prompt};
use domain::{Content, PromptId};
use serde_json::Value;

/// Characters of a name. What is longer is cut.
const NAME_CHARS_MAX: usize = 80;
/// Characters of a question or a reason. What is longer is cut.
const WORDS_CHARS_MAX: usize = 600;
/// Lines of it.
const LINES_MAX: usize = 20;
/// Characters of a command that waits. What is longer is cut.
const COMMAND_CHARS_MAX: usize = 400;

/// A question, as far as a call tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) id: PromptId,
    pub(super) words: String,
    /// What would run, where the agent tells.
    pub(super) command: Option<String>,
}

impl Question {
    pub(super) fn new(prompt: &Prompt) -> Self {
        let words = match &prompt.text {
            Content::Open(text) => clean(text),
            Content::Sealed(_) => "The question is encrypted. Open the page to read it.".to_owned(),
        };
        let command = command(prompt);
        let words = match &command {
            Some(command) if !words.contains(command) => format!("{words}\n{command}"),
            Some(_) | None => words,
        };
        Self { id: prompt.id.clone(), words, command }
    }
}

/// What people call something.
pub(super) fn name(text: &str) -> String {
    clean_line(text, NAME_CHARS_MAX)
}

/// A few lines that somebody wrote.
pub(super) fn clean(text: &str) -> String {
    let lines = text.lines().take(LINES_MAX).map(|line| clean_line(line, WORDS_CHARS_MAX));
    let lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
    cut(&lines.join("\n"), WORDS_CHARS_MAX)
}

/// What would run: the input's `command`, else the tool and what it would work on.
fn command(prompt: &Prompt) -> Option<String> {
    let Detail { tool, input, .. } = prompt.detail.as_ref().and_then(Content::open)?;
    let input = input.as_deref().and_then(|input| serde_json::from_str::<Value>(input).ok());
    let input = input.unwrap_or_default();
    let said = ["command", "file_path", "path", "url"].iter().find_map(|key| input.get(key));
    let said = match said {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Array(words)) => {
            Some(words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "))
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => None,
    };
    let words = if input.get("command").is_some() {
        said?
    } else {
        [tool.clone(), said].into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    Some(clean_line(&words, COMMAND_CHARS_MAX)).filter(|words| !words.is_empty())
}

fn clean_line(text: &str, chars_max: usize) -> String {
    // What is cut away is not looked at, however long it is.
    let shown = text.chars().filter(|it| !is_hidden(*it)).take(chars_max + 1);
    let shown: String = shown.map(|it| if it.is_control() { ' ' } else { it }).collect();
    cut(shown.trim(), chars_max)
}

/// Marks that turn the direction of text or are not seen at all.
fn is_hidden(it: char) -> bool {
    matches!(it,
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}')
}

fn cut(text: &str, chars_max: usize) -> String {
    if text.chars().nth(chars_max).is_none() {
        return text.to_owned();
    }
    text.chars().take(chars_max - 1).chain(['…']).collect()
}
