//! Codex's own conversations, for lists: the beginning of a file below `$CODEX_HOME/sessions`, one
//! line of JSON each.
//!
//! Not here: resuming one, and its messages (`history`, through the program).

use serde_json::Value;

use crate::{Summary, moment};

/// Characters of a title.
const TITLE_CHARACTERS_MAX: usize = 120;
/// Lines in which a title is looked for.
const LINES_MAX: usize = 200;

/// What the head of a file says of its conversation; `None` for a file that is not one, and for
/// the conversation of a subagent.
pub fn summary(file_name: &str, text: &str) -> Option<Summary> {
    file_name.strip_prefix("rollout-")?.strip_suffix(".jsonl")?;
    let mut lines = text.lines().take(LINES_MAX);
    let head: Value = serde_json::from_str(lines.next()?).ok()?;
    let head = head.get("payload").filter(|_| head.get("type") == Some(&"session_meta".into()))?;
    if head.get("source").is_some_and(|source| source.get("subagent").is_some()) {
        return None;
    }
    let mut updated_at = None;
    let mut title = None;
    for line in lines.filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        updated_at = line.get("timestamp").and_then(Value::as_str).and_then(moment).or(updated_at);
        title = title.or_else(|| words_of(&line));
    }
    Some(Summary {
        id: head.get("id")?.as_str()?.to_owned(),
        title,
        workspace: head.get("cwd").and_then(Value::as_str).map(str::to_owned),
        updated_at: updated_at.filter(|_| is_whole(text)),
    })
}

/// Whether all lines were looked at: the time of an earlier line says nothing about the end.
fn is_whole(text: &str) -> bool {
    text.ends_with('\n') && text.lines().count() <= LINES_MAX
}

/// What a person said, in either form in which Codex writes it down.
fn words_of(line: &Value) -> Option<String> {
    let payload = line.get("payload")?;
    let text = match payload.get("type")?.as_str()? {
        "user_message" => payload.get("message")?.as_str()?,
        "item_completed" => {
            let item = payload.get("item")?;
            let is_user = item.get("type")? == "UserMessage";
            let pieces = item.get("content")?.as_array().filter(|_| is_user)?;
            pieces.iter().find_map(|piece| piece.get("text")?.as_str())?
        }
        _ => return None,
    };
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    Some(line.trim().chars().take(TITLE_CHARACTERS_MAX).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "rollout-2026-11-16T02-40-00-t1.jsonl";

    fn file(user: &str) -> String {
        let head = r#"{"timestamp":"2026-11-16T02:40:00.000Z","type":"session_meta","payload":{"id":"t1","cwd":"/w","source":"vscode"}}"#;
        format!("{head}\n{user}\n")
    }

    #[test]
    fn a_conversation_is_called_by_its_first_words() {
        let user = r#"{"timestamp":"2026-11-16T02:40:07.750Z","type":"event_msg","payload":{"type":"item_completed","item":{"type":"UserMessage","content":[{"type":"text","text":"\n fix it\nplease"}]}}}"#;
        let summary = summary(NAME, &file(user)).unwrap();
        assert_eq!((summary.id.as_str(), summary.title.as_deref()), ("t1", Some("fix it")));
        assert_eq!(summary.workspace.as_deref(), Some("/w"));
        assert_eq!(summary.updated_at.map(|at| at.0), Some(1_794_796_807_750));
    }

    #[test]
    fn the_older_form_is_read_too() {
        let user = r#"{"type":"event_msg","payload":{"type":"user_message","message":"hello"}}"#;
        assert_eq!(summary(NAME, &file(user)).unwrap().title.as_deref(), Some("hello"));
    }

    #[test]
    fn other_files_and_subagents_are_no_conversations() {
        assert_eq!(summary("notes.jsonl", &file("")), None);
        assert_eq!(summary(NAME, "{}\n"), None);
        let child = file("").replace(r#""vscode""#, r#"{"subagent":"review"}"#);
        assert_eq!(summary(NAME, &child), None);
    }
}
