//! Which of the offered tools does what the script wants, and with which input.
//!
//! Invariant: only tools that the request offers are called, and only with fields that their
//! schemas name (`tool:` excepted, whose input is the test's own).
//!
//! Not here: how an API writes a call (`api`).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The tools of a request, by name.
pub(crate) type Tools = BTreeMap<String, Offer>;

/// How a tool takes its input.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Offer {
    /// JSON that fits this schema.
    Function(Value),
    /// Free text.
    Freeform,
}

/// The input of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Input {
    Json(Value),
    Text(String),
}

type Call = (String, Input);

const SHELLS: [&str; 8] = [
    "Bash",
    "bash",
    "run_shell_command",
    "exec_command",
    "shell_command",
    "shell",
    "local_shell",
    "execute",
];
const WRITERS: [&str; 3] = ["Write", "write", "write_file"];
const PATHS: [&str; 3] = ["file_path", "filePath", "path"];
const LISTS: [&str; 4] = ["TodoWrite", "todowrite", "write_todos", "update_plan"];
const WRITTEN: &str = "hello\n";

/// Runs a command; with `!` in front, outside of the agent's sandbox where it can be asked for.
pub(crate) fn shell(command: &str, tools: &Tools) -> Option<Call> {
    let (name, fields) = first(&SHELLS, tools)?;
    let bare = command.strip_prefix('!').map(str::trim);
    let escalated = bare.is_some();
    let command = bare.unwrap_or(command);
    let mut input = Map::new();
    if fields.contains_key("cmd") {
        input.insert("cmd".into(), command.into());
    } else if fields.get("command").is_some_and(|field| field["type"] == "array") {
        input.insert("command".into(), json!(["bash", "-lc", command]));
    } else {
        input.insert("command".into(), command.into());
    }
    if fields.contains_key("description") {
        input.insert("description".into(), "run the command".into());
    }
    if escalated {
        if fields.contains_key("sandbox_permissions") {
            input.insert("sandbox_permissions".into(), "require_escalated".into());
            input.insert("justification".into(), "needs to write".into());
        } else if fields.contains_key("with_escalated_permissions") {
            input.insert("with_escalated_permissions".into(), true.into());
            input.insert("justification".into(), "needs to write".into());
        }
    }
    Some((name, Input::Json(input.into())))
}

/// Writes a small file.
pub(crate) fn write(path: &str, tools: &Tools) -> Option<Call> {
    if let Some((name, fields)) = first(&WRITERS, tools) {
        let mut input = Map::new();
        if let Some(field) = PATHS.into_iter().find(|field| fields.contains_key(*field)) {
            input.insert(field.into(), path.into());
        }
        input.insert("content".into(), WRITTEN.into());
        return Some((name, Input::Json(input.into())));
    }
    let addition = format!("*** Begin Patch\n*** Add File: {path}\n+hello\n*** End Patch");
    if tools.contains_key("apply_patch") {
        return Some(("apply_patch".into(), Input::Text(format!("{addition}\n"))));
    }
    // Codex without a tool for patches looks for them in its shell's commands.
    let command = format!("apply_patch <<'EOF'\n{addition}\nEOF");
    let name = "exec_command".to_owned();
    tools.contains_key(&name).then(|| (name, Input::Json(json!({"cmd": command}))))
}

/// `NAME {json}`, to the letter.
pub(crate) fn named(rest: &str, tools: &Tools) -> Option<Call> {
    let (name, input) = rest.split_once(' ').unwrap_or((rest, "{}"));
    let input = match tools.get(name)? {
        Offer::Function(_) => Input::Json(serde_json::from_str(input).ok()?),
        Offer::Freeform => Input::Text(input.to_owned()),
    };
    Some((name.to_owned(), input))
}

/// A list of steps, separated by `;`, the first of them under way.
pub(crate) fn plan(rest: &str, tools: &Tools) -> Option<Call> {
    let steps: Vec<&str> = rest.split(';').map(str::trim).filter(|s| !s.is_empty()).collect();
    let Some((name, fields)) = first(&LISTS, tools) else {
        // One task a call: the first step stands for the plan.
        let (name, fields) = first(&["TaskCreate"], tools)?;
        return Some((name, Input::Json(step(steps.first()?, 0, &fields))));
    };
    let list = ["todos", "plan"].into_iter().find(|field| fields.contains_key(*field))?;
    let of_step = fields[list]["items"]["properties"].as_object().cloned().unwrap_or_default();
    let steps = steps.iter().enumerate().map(|(index, text)| step(text, index, &of_step));
    Some((name, Input::Json(json!({ list: steps.collect::<Vec<_>>() }))))
}

/// One step, in whichever fields this tool's schema has.
fn step(text: &str, index: usize, fields: &Map<String, Value>) -> Value {
    let status = if index == 0 { "in_progress" } else { "pending" };
    let number = (index + 1).to_string();
    let known = [
        ("content", text),
        ("description", text),
        ("step", text),
        ("subject", text),
        ("activeForm", text),
        ("status", status),
        ("priority", "medium"),
        ("id", &number),
    ];
    let named = known.into_iter().filter(|(field, _)| fields.contains_key(*field));
    Value::Object(named.map(|(field, value)| (field.to_owned(), value.into())).collect())
}

/// The first of these tools that is offered, and the fields of its input.
fn first(names: &[&str], tools: &Tools) -> Option<(String, Map<String, Value>)> {
    names.iter().find_map(|name| match tools.get(*name)? {
        Offer::Function(schema) => {
            let fields = schema["properties"].as_object().cloned().unwrap_or_default();
            Some(((*name).to_owned(), fields))
        }
        Offer::Freeform => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offering(name: &str, properties: &Value) -> Tools {
        let schema = json!({"type": "object", "properties": properties});
        [(name.to_owned(), Offer::Function(schema))].into()
    }

    fn json_of(call: Option<Call>) -> (String, Value) {
        match call.unwrap() {
            (name, Input::Json(input)) => (name, input),
            (name, Input::Text(text)) => (name, text.into()),
        }
    }

    #[test]
    fn a_shell_is_called_in_the_fields_it_has() {
        let words = json!({"command": {"type": "array"}});
        let (_, input) = json_of(shell("ls", &offering("shell", &words)));
        assert_eq!(input, json!({"command": ["bash", "-lc", "ls"]}));

        let described = json!({"command": {"type": "string"}, "description": {}});
        let (name, input) = json_of(shell("ls", &offering("Bash", &described)));
        assert_eq!(name, "Bash");
        assert_eq!(input, json!({"command": "ls", "description": "run the command"}));
    }

    #[test]
    fn an_exclamation_mark_asks_to_leave_the_sandbox() {
        let fields = json!({"cmd": {}, "sandbox_permissions": {}, "justification": {}});
        let (_, input) = json_of(shell("! mkdir d", &offering("exec_command", &fields)));
        assert_eq!(input["cmd"], "mkdir d");
        assert_eq!(input["sandbox_permissions"], "require_escalated");
    }

    #[test]
    fn a_file_is_written_with_a_tool_or_as_a_patch() {
        let fields = json!({"filePath": {}, "content": {}});
        let (_, input) = json_of(write("f", &offering("write", &fields)));
        assert_eq!(input, json!({"filePath": "f", "content": "hello\n"}));

        let patches = Tools::from([("apply_patch".to_owned(), Offer::Freeform)]);
        let (name, patch) = json_of(write("f", &patches));
        assert_eq!(name, "apply_patch");
        assert!(patch.as_str().unwrap().contains("*** Add File: f\n+hello\n"), "{patch}");

        let (name, input) = json_of(write("f", &offering("exec_command", &json!({"cmd": {}}))));
        assert_eq!(name, "exec_command");
        assert!(input["cmd"].as_str().unwrap().starts_with("apply_patch <<'EOF'\n"), "{input}");
    }

    #[test]
    fn a_named_tool_gets_exactly_the_given_input() {
        let tools = offering("Ask", &json!({}));
        assert_eq!(json_of(named("Ask {\"a\": [1]}", &tools)).1, json!({"a": [1]}));
        assert_eq!(json_of(named("Ask", &tools)).1, json!({}));
        assert_eq!(named("Other {}", &tools), None);
        assert_eq!(named("Ask {broken", &tools), None);
    }

    #[test]
    fn a_plan_takes_the_shape_of_each_agents_list() {
        let step = json!({"step": {}, "status": {}});
        let codex = json!({"plan": {"items": {"properties": step}}});
        let (_, input) = json_of(plan("look; mend", &offering("update_plan", &codex)));
        let expected = json!({"plan": [
            {"step": "look", "status": "in_progress"},
            {"step": "mend", "status": "pending"},
        ]});
        assert_eq!(input, expected);

        let task = json!({"subject": {}, "description": {}});
        let (name, input) = json_of(plan("look; mend", &offering("TaskCreate", &task)));
        assert_eq!(name, "TaskCreate");
        assert_eq!(input, json!({"subject": "look", "description": "look"}));
    }
}
