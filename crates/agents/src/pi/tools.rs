//! pi's tools, as people see them.
//!
//! Not here: whether one may run (`dialogs`).

use domain::Content;
use domain::content::{Diff, Location, ToolCall, ToolDetail, ToolKind, ToolStatus};
use serde_json::Value;

/// Characters of a title.
const TITLE_CHARACTERS_MAX: usize = 200;

pub(super) fn call(id: &str, tool: &str, input: &Value, status: ToolStatus) -> ToolCall {
    ToolCall {
        id: id.into(),
        tool: tool.to_owned(),
        kind: kind(tool),
        status,
        detail: Content::Open(detail(tool, input)),
        run: None,
        parent: None,
    }
}

pub(super) fn detail(tool: &str, input: &Value) -> ToolDetail {
    let path = text(input, "path").or_else(|| text(input, "file_path"));
    let locations = path.iter().map(|path| Location { path: (*path).to_owned(), line: None });
    ToolDetail {
        title: Some(title(tool, input)),
        input: (!input.is_null()).then(|| input.to_string()),
        output: None,
        diffs: diffs(tool, input),
        locations: locations.collect(),
    }
}

fn kind(tool: &str) -> ToolKind {
    match tool {
        "read" => ToolKind::Read,
        "bash" | "powershell" => ToolKind::Execute,
        "edit" | "write" => ToolKind::Edit,
        "grep" | "find" | "ls" => ToolKind::Search,
        other if other.contains("fetch") => ToolKind::Fetch,
        other if other.contains("search") => ToolKind::Search,
        _ => ToolKind::Other,
    }
}

/// One line: the command, the path, what is looked for.
pub(super) fn title(tool: &str, input: &Value) -> String {
    let named = ["command", "path", "file_path", "pattern", "query", "url"];
    let matter = named.into_iter().find_map(|name| text(input, name));
    let line = match (tool, matter) {
        ("bash" | "powershell", Some(command)) => command.to_owned(),
        (_, Some(matter)) => format!("{tool} {matter}"),
        (_, None) => tool.to_owned(),
    };
    let line = line.lines().next().unwrap_or_default();
    line.chars().take(TITLE_CHARACTERS_MAX).collect()
}

/// What an edit or a write would change. pi writes whole files without saying what was there.
pub(super) fn diffs(tool: &str, input: &Value) -> Vec<Diff> {
    let Some(path) = text(input, "path").or_else(|| text(input, "file_path")) else {
        return vec![];
    };
    let diff = |old: Option<&str>, new: Option<&str>| Diff {
        path: path.to_owned(),
        old_text: old.map(str::to_owned),
        new_text: new.map(str::to_owned),
    };
    match tool {
        "write" => text(input, "content").map(|new| diff(None, Some(new))).into_iter().collect(),
        "edit" => {
            let edits = input.get("edits").and_then(Value::as_array);
            let one = std::slice::from_ref(input);
            let edits = edits.map_or(one, Vec::as_slice).iter();
            let pair = |edit| Some((text(edit, "oldText")?, text(edit, "newText")?));
            edits.filter_map(pair).map(|(old, new)| diff(Some(old), Some(new))).collect()
        }
        _ => vec![],
    }
}

fn text<'a>(input: &'a Value, name: &str) -> Option<&'a str> {
    input.get(name).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_edit_shows_each_change_in_either_form_that_pi_has_had() {
        let many = json!({"path": "a.rs", "edits": [
            {"oldText": "x", "newText": "y"}, {"oldText": "p", "newText": "q"}]});
        let one = json!({"path": "a.rs", "oldText": "x", "newText": "y"});
        assert_eq!(diffs("edit", &many).len(), 2);
        assert_eq!(diffs("edit", &one)[0], diffs("edit", &many)[0]);
        assert_eq!(diffs("write", &json!({"path": "b", "content": "hi"}))[0].old_text, None);
        assert!(diffs("bash", &json!({"command": "ls"})).is_empty());
    }

    #[test]
    fn a_title_is_one_line_about_the_matter() {
        assert_eq!(title("bash", &json!({"command": "ls\nrm x"})), "ls");
        assert_eq!(title("read", &json!({"path": "a.rs"})), "read a.rs");
        assert_eq!(title("todo", &json!({})), "todo");
    }
}
