//! Claude Code's tools, identified by the names of their inputs.
//!
//! Not here: when a call begins and ends (`observation`).

use domain::Content;
use domain::content::{Diff, Location, ToolCall, ToolDetail, ToolKind, ToolStatus};
use serde_json::Value;

/// Characters of a title.
const TITLE_CHARACTERS_MAX: usize = 200;

/// A call as it begins.
pub(super) fn call(id: &str, name: &str, input: &Value, parent: Option<&str>) -> ToolCall {
    ToolCall {
        id: id.into(),
        tool: name.to_owned(),
        kind: kind(name),
        status: ToolStatus::Pending,
        detail: Content::Open(detail(name, input)),
        run: None,
        parent: parent.map(Into::into),
    }
}

/// What its input says.
pub(super) fn detail(name: &str, input: &Value) -> ToolDetail {
    ToolDetail {
        title: Some(title(name, input)),
        input: Some(input.to_string()),
        output: None,
        diffs: diffs(name, input),
        locations: locations(input),
    }
}

/// What sort of thing it does.
fn kind(name: &str) -> ToolKind {
    match name {
        "Read" | "NotebookRead" | "TaskOutput" | "BashOutput" => ToolKind::Read,
        "Edit" | "MultiEdit" | "Write" | "NotebookEdit" => ToolKind::Edit,
        "Bash" | "PowerShell" | "KillShell" | "KillBash" | "Monitor" => ToolKind::Execute,
        "Glob" | "Grep" | "LS" | "ToolSearch" | "WebSearch" | "web_search" => ToolKind::Search,
        "WebFetch" | "web_fetch" => ToolKind::Fetch,
        _ => ToolKind::Other,
    }
}

/// One line for people: the command, the path, what is looked for.
pub(super) fn title(name: &str, input: &Value) -> String {
    let words = |field: &str| input[field].as_str().filter(|text| !text.trim().is_empty());
    let subject = match name {
        "Bash" | "PowerShell" => words("command"),
        "Agent" | "Task" => words("description"),
        "AskUserQuestion" => input["questions"][0]["question"].as_str(),
        "ExitPlanMode" => Some("Plan ready"),
        "TodoWrite" => Some("To-do list"),
        "WebSearch" | "web_search" | "ToolSearch" => words("query"),
        _ => {
            ["file_path", "notebook_path", "path", "pattern", "url", "subject", "skill", "command"]
                .into_iter()
                .find_map(words)
        }
    };
    let line = subject.and_then(|text| text.trim().lines().next()).unwrap_or_default();
    let line = match name {
        "Bash" | "PowerShell" | "ExitPlanMode" | "TodoWrite" | "AskUserQuestion" => line.to_owned(),
        _ if line.is_empty() => name.to_owned(),
        _ => format!("{name} {line}"),
    };
    let line = if line.is_empty() { name.to_owned() } else { line };
    line.chars().take(TITLE_CHARACTERS_MAX).collect()
}

/// What would change.
pub(super) fn diffs(name: &str, input: &Value) -> Vec<Diff> {
    let words = |value: &Value| value.as_str().map(str::to_owned);
    let path = || words(&input["file_path"]).or_else(|| words(&input["notebook_path"]));
    let Some(path) = path() else { return vec![] };
    let diff = |old_text, new_text| Diff { path: path.clone(), old_text, new_text };
    match name {
        "Edit" => vec![diff(words(&input["old_string"]), words(&input["new_string"]))],
        "MultiEdit" => {
            let edits = input["edits"].as_array().map(Vec::as_slice).unwrap_or_default();
            let edits =
                edits.iter().map(|e| diff(words(&e["old_string"]), words(&e["new_string"])));
            edits.collect()
        }
        "Write" => vec![diff(None, words(&input["content"]))],
        "NotebookEdit" => vec![diff(None, words(&input["new_source"]))],
        _ => vec![],
    }
}

/// What did change, where the tool tells: a file that was written over had an old text.
pub(super) fn outcome(result: &Value) -> Vec<Diff> {
    let (Some(path), Some("update")) = (result["filePath"].as_str(), result["type"].as_str())
    else {
        return vec![];
    };
    let words = |field: &str| result[field].as_str().map(str::to_owned);
    match (words("originalFile"), words("content")) {
        (Some(old), Some(new)) => {
            vec![Diff { path: path.to_owned(), old_text: Some(old), new_text: Some(new) }]
        }
        _ => vec![],
    }
}

fn locations(input: &Value) -> Vec<Location> {
    let path = ["file_path", "notebook_path", "path"].into_iter().find_map(|f| input[f].as_str());
    let line = input["offset"].as_u64().and_then(|line| u32::try_from(line).ok());
    path.map(|path| Location { path: path.to_owned(), line }).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_title_is_the_command_or_the_path() {
        assert_eq!(title("Bash", &json!({"command": "ls -l\nrm x"})), "ls -l");
        assert_eq!(title("Read", &json!({"file_path": "/a"})), "Read /a");
        assert_eq!(title("mcp__x__y", &json!({})), "mcp__x__y");
        assert_eq!(title("Bash", &json!({})), "Bash");
    }

    #[test]
    fn edits_are_told_as_old_and_new_text() {
        let edit = json!({"file_path": "/a", "old_string": "1", "new_string": "2"});
        let diff = |old: Option<&str>, new: &str| Diff {
            path: "/a".into(),
            old_text: old.map(str::to_owned),
            new_text: Some(new.into()),
        };
        assert_eq!(diffs("Edit", &edit), [diff(Some("1"), "2")]);
        assert_eq!(
            diffs("MultiEdit", &json!({"file_path": "/a", "edits": [edit]})),
            [diff(Some("1"), "2")]
        );
        assert_eq!(diffs("Write", &json!({"file_path": "/a", "content": "x"})), [diff(None, "x")]);
        let over = json!({"type": "update", "filePath": "/a", "originalFile": "1", "content": "x"});
        assert_eq!(outcome(&over), [diff(Some("1"), "x")]);
        assert_eq!(outcome(&json!({"type": "create", "filePath": "/a", "content": "x"})), []);
    }
}
