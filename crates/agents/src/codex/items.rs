//! Converts items of a conversation to tool calls and messages.
//!
//! Not here: when they are reported (`observation`, `history`), how a patch is read (`patches`).

use std::path::Path;

use domain::content::{
    Author, Location, Message, Part, ToolCall, ToolDetail, ToolKind, ToolStatus,
};
use domain::{Content, Timestamp, ToolCallId};
use serde_json::{Value, json};

use super::frames::{Change, CommandAction, Item, UserInput};
use super::patches;
use crate::Drawing;

/// Characters of a title. What is longer is in the input.
const TITLE_CHARACTERS_MAX: usize = 200;
/// Shells in whose `-c` Codex wraps a command.
const SHELLS: [&str; 4] = ["bash", "zsh", "sh", "dash"];

/// The tool call that an item is, if it is one.
pub(super) fn tool_call(item: &Item, workspace: &Path) -> Option<ToolCall> {
    let (id, tool, kind, status, detail) = match item {
        Item::CommandExecution { id, command_actions: actions, status, .. } => {
            (id, "shell".to_owned(), command_kind(actions), status.as_str(), command_detail(item))
        }
        Item::FileChange { id, changes, status } => {
            let detail = change_detail(changes, workspace);
            (id, "apply_patch".to_owned(), ToolKind::Edit, status.as_str(), detail)
        }
        Item::McpToolCall { id, server, tool, status, arguments, result, error } => {
            let output = error.get("message").and_then(Value::as_str).map(str::to_owned);
            let detail = ToolDetail {
                title: Some(one_line(&format!("{server}: {tool}"))),
                input: some_json(arguments),
                output: output.or_else(|| texts(result.get("content")?)),
                ..ToolDetail::default()
            };
            (id, format!("{server}.{tool}"), ToolKind::Other, status.as_str(), detail)
        }
        Item::DynamicToolCall { id, tool, status, arguments, content_items } => {
            let detail = ToolDetail {
                title: Some(one_line(tool)),
                input: some_json(arguments),
                output: texts(content_items),
                ..ToolDetail::default()
            };
            (id, tool.clone(), ToolKind::Other, status.as_str(), detail)
        }
        Item::CollabAgentToolCall { id, tool, status, prompt, model, .. } => {
            let about = prompt.as_deref().unwrap_or(tool);
            let detail = ToolDetail {
                title: Some(one_line(about)),
                input: Some(json!({ "prompt": prompt, "model": model }).to_string()),
                ..ToolDetail::default()
            };
            (id, tool.clone(), ToolKind::Other, status.as_str(), detail)
        }
        Item::WebSearch { id, query } => {
            let title = Some(one_line(query)).filter(|title| !title.is_empty());
            let input = Some(json!({ "query": query }).to_string());
            let detail = ToolDetail { title, input, ..ToolDetail::default() };
            (id, "web_search".to_owned(), ToolKind::Search, "", detail)
        }
        Item::ImageView { id, path } => {
            let path = path.as_str().unwrap_or_default().to_owned();
            let detail = ToolDetail {
                title: Some(one_line(&shown_path(&path, workspace))),
                locations: vec![Location { path, line: None }],
                ..ToolDetail::default()
            };
            (id, "view_image".to_owned(), ToolKind::Read, "", detail)
        }
        Item::ImageGeneration { id, status, revised_prompt, saved_path, .. } => {
            let location = |path: &String| Location { path: path.clone(), line: None };
            let detail = ToolDetail {
                title: revised_prompt.as_deref().map(one_line),
                output: saved_path.clone(),
                locations: saved_path.iter().map(location).collect(),
                ..ToolDetail::default()
            };
            (id, "image_generation".to_owned(), ToolKind::Other, status.as_str(), detail)
        }
        Item::UserMessage { .. }
        | Item::AgentMessage { .. }
        | Item::Plan { .. }
        | Item::Reasoning { .. }
        | Item::SubAgentActivity { .. }
        | Item::EnteredReviewMode { .. }
        | Item::ExitedReviewMode { .. }
        | Item::ContextCompaction {}
        | Item::Other => return None,
    };
    Some(ToolCall {
        id: id.as_str().into(),
        tool,
        kind,
        status: status_of(status),
        detail: Content::Open(detail),
        run: None,
        parent: None,
    })
}

fn command_detail(item: &Item) -> ToolDetail {
    let Item::CommandExecution {
        command, cwd, command_actions, aggregated_output, exit_code, ..
    } = item
    else {
        return ToolDetail::default();
    };
    ToolDetail {
        title: Some(one_line(&command_title(command, command_actions))),
        input: Some(json!({ "command": command, "cwd": cwd }).to_string()),
        output: command_output(aggregated_output.as_deref(), *exit_code),
        locations: command_locations(command_actions),
        ..ToolDetail::default()
    }
}

fn change_detail(changes: &[Change], workspace: &Path) -> ToolDetail {
    let paths: Vec<_> = changes.iter().map(|change| shown_path(&change.path, workspace)).collect();
    ToolDetail {
        title: Some(one_line(&paths.join(", "))),
        diffs: patches::diffs(changes),
        locations: patches::locations(changes),
        ..ToolDetail::default()
    }
}

/// The message that an item is, if it is one, whole.
pub(super) fn message(item: &Item, now: Timestamp) -> Option<Message> {
    let (id, author, parts, at_ms) = match item {
        Item::UserMessage { id, content, started_at_ms, .. } => {
            (id, Author::User, user_parts(content), started_at_ms)
        }
        Item::AgentMessage { id, text, started_at_ms } | Item::Plan { id, text, started_at_ms } => {
            (id, Author::Assistant, vec![Part::Text(text.clone())], started_at_ms)
        }
        Item::Reasoning { id, summary, content, started_at_ms } => {
            let thoughts = summary.iter().chain(content).cloned().map(Part::Thinking);
            (id, Author::Assistant, thoughts.collect(), started_at_ms)
        }
        Item::CommandExecution { .. }
        | Item::FileChange { .. }
        | Item::McpToolCall { .. }
        | Item::DynamicToolCall { .. }
        | Item::CollabAgentToolCall { .. }
        | Item::SubAgentActivity { .. }
        | Item::WebSearch { .. }
        | Item::ImageView { .. }
        | Item::ImageGeneration { .. }
        | Item::EnteredReviewMode { .. }
        | Item::ExitedReviewMode { .. }
        | Item::ContextCompaction {}
        | Item::Other => return None,
    };
    let is_filled = |part: &Part| match part {
        Part::Text(text) | Part::Thinking(text) => !text.is_empty(),
        Part::Image(_) | Part::File(_) | Part::ToolCall(_) => true,
    };
    let parts: Vec<_> = parts.into_iter().filter(is_filled).collect();
    (!parts.is_empty() || !drawings(item).is_empty()).then(|| Message {
        id: id.as_str().into(),
        author,
        parts: Content::Open(parts),
        created_at: at_ms.map_or(now, Timestamp),
        run: None,
        parent: None,
        digest: None,
    })
}

/// How far a tool call is, in Codex's word for it. Items without such a word are done at once.
pub(super) fn status_of(word: &str) -> ToolStatus {
    match word {
        "inProgress" | "in_progress" | "generating" => ToolStatus::Running,
        "failed" => ToolStatus::Failed,
        "declined" | "interrupted" => ToolStatus::Cancelled,
        _ => ToolStatus::Completed,
    }
}

/// The command as a person would type it.
pub(super) fn command_title(command: &str, actions: &[CommandAction]) -> String {
    if let [only] = actions
        && !only.command.is_empty()
    {
        return only.command.clone();
    }
    unwrapped(command).to_owned()
}

/// A path as short as it can be said in the workspace.
pub(super) fn shown_path(path: &str, workspace: &Path) -> String {
    match Path::new(path).strip_prefix(workspace) {
        Ok(inside) if !inside.as_os_str().is_empty() => inside.to_string_lossy().into_owned(),
        Ok(_) | Err(_) => path.to_owned(),
    }
}

/// The name of the tool call of an item.
pub(super) fn call_id(item: &str) -> ToolCallId {
    item.into()
}

fn command_kind(actions: &[CommandAction]) -> ToolKind {
    let all = |kinds: &[&str]| {
        !actions.is_empty() && actions.iter().all(|action| kinds.contains(&action.kind.as_str()))
    };
    if all(&["search"]) {
        ToolKind::Search
    } else if all(&["read", "listFiles", "search"]) {
        ToolKind::Read
    } else {
        ToolKind::Execute
    }
}

fn command_locations(actions: &[CommandAction]) -> Vec<Location> {
    let paths = actions.iter().filter_map(|action| action.path.clone());
    paths.map(|path| Location { path, line: None }).collect()
}

fn command_output(output: Option<&str>, exit_code: Option<i64>) -> Option<String> {
    match (output, exit_code) {
        (output, None | Some(0)) => output.map(str::to_owned),
        (output, Some(code)) => {
            let mut output = output.unwrap_or_default().to_owned();
            if !output.is_empty() && !output.ends_with('\n') {
                output.push('\n');
            }
            Some(format!("{output}[exit code {code}]"))
        }
    }
}

/// `/bin/bash -lc 'ls'` is `ls` to a person.
fn unwrapped(command: &str) -> &str {
    let Some((shell, rest)) = command.split_once(' ') else { return command };
    let name = shell.rsplit('/').next().unwrap_or(shell);
    let Some((flag, words)) = rest.split_once(' ') else { return command };
    if !SHELLS.contains(&name) || !["-lc", "-c"].contains(&flag) {
        return command;
    }
    let quoted = words.strip_prefix('\'').and_then(|words| words.strip_suffix('\''));
    quoted.filter(|words| !words.contains('\'')).unwrap_or(words)
}

fn user_parts(content: &[UserInput]) -> Vec<Part> {
    let text = |input: &UserInput| match input {
        UserInput::Text { text } => Some(text.clone()),
        UserInput::LocalImage { path } => Some(format!("[image: {path}]")),
        // Told as a picture.
        UserInput::Image { url } if drawing_of("picture", url).is_some() => None,
        UserInput::Image { url } if url.starts_with("data:") => Some("[image]".to_owned()),
        UserInput::Image { url } => Some(format!("[image: {url}]")),
        UserInput::Other => None,
    };
    let texts: Vec<_> = content.iter().filter_map(text).collect();
    vec![Part::Text(texts.join("\n"))]
}

/// The pictures that an item holds.
pub(super) fn drawings(item: &Item) -> Vec<Drawing> {
    match item {
        Item::UserMessage { content, .. } => {
            let drawing = |input: &UserInput| match input {
                UserInput::Image { url } => drawing_of("picture", url),
                UserInput::Text { .. } | UserInput::LocalImage { .. } | UserInput::Other => None,
            };
            content.iter().filter_map(drawing).collect()
        }
        Item::ImageGeneration { result: Some(base64), .. } if !base64.is_empty() => {
            let (what, media_type) = ("generated".to_owned(), "image/png".to_owned());
            vec![Drawing { what, media_type, base64: base64.clone() }]
        }
        Item::McpToolCall { tool, result, .. } => {
            let pieces = result.get("content").and_then(Value::as_array).into_iter().flatten();
            let pictures = pieces.filter(|piece| piece["type"] == "image");
            let drawing = |piece: &Value| {
                let text = |field: &str| piece[field].as_str().map(str::to_owned);
                let (what, media_type) = (tool.clone(), text("mimeType").unwrap_or_default());
                Some(Drawing { what, media_type, base64: text("data")? })
            };
            pictures.filter_map(drawing).collect()
        }
        Item::DynamicToolCall { tool, content_items, .. } => {
            let pieces = content_items.as_array().into_iter().flatten();
            let urls = pieces.filter_map(|piece| piece.get("imageUrl")?.as_str());
            urls.filter_map(|url| drawing_of(tool, url)).collect()
        }
        Item::ImageGeneration { .. }
        | Item::AgentMessage { .. }
        | Item::Plan { .. }
        | Item::Reasoning { .. }
        | Item::CommandExecution { .. }
        | Item::FileChange { .. }
        | Item::CollabAgentToolCall { .. }
        | Item::SubAgentActivity { .. }
        | Item::WebSearch { .. }
        | Item::ImageView { .. }
        | Item::EnteredReviewMode { .. }
        | Item::ExitedReviewMode { .. }
        | Item::ContextCompaction {}
        | Item::Other => vec![],
    }
}

/// The picture in a `data:` address.
fn drawing_of(what: &str, url: &str) -> Option<Drawing> {
    let (media_type, base64) = url.strip_prefix("data:")?.split_once(";base64,")?;
    let (what, media_type) = (what.to_owned(), media_type.to_owned());
    Some(Drawing { what, media_type, base64: base64.to_owned() })
}

fn some_json(value: &Value) -> Option<String> {
    (!value.is_null()).then(|| value.to_string())
}

/// The texts among pieces of content, joined.
fn texts(content: &Value) -> Option<String> {
    let pieces = content.as_array()?.iter();
    let texts: Vec<_> = pieces.filter_map(|piece| piece.get("text")?.as_str()).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

fn one_line(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    line.chars().take(TITLE_CHARACTERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_around_a_command_is_not_shown() {
        assert_eq!(unwrapped("/bin/bash -lc 'mkdir a && echo made'"), "mkdir a && echo made");
        assert_eq!(unwrapped("/usr/bin/zsh -c ls"), "ls");
        assert_eq!(unwrapped("git status -s"), "git status -s");
        assert_eq!(unwrapped("make"), "make");
    }

    #[test]
    fn a_command_that_only_looks_is_a_read_or_a_search() {
        let action = |kind: &str| CommandAction {
            kind: kind.into(),
            command: "x".into(),
            path: Some("a.rs".into()),
        };
        assert_eq!(command_kind(&[action("read")]), ToolKind::Read);
        assert_eq!(command_kind(&[action("search")]), ToolKind::Search);
        assert_eq!(command_kind(&[action("read"), action("unknown")]), ToolKind::Execute);
        assert_eq!(command_kind(&[]), ToolKind::Execute);
    }

    #[test]
    fn a_failed_command_says_its_exit_code() {
        assert_eq!(command_output(Some("no"), Some(2)).as_deref(), Some("no\n[exit code 2]"));
        assert_eq!(command_output(Some("ok\n"), Some(0)).as_deref(), Some("ok\n"));
        assert_eq!(command_output(None, None), None);
    }
}
