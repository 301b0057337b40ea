//! Codex's questions: their text, their buttons, and the answer that each button sends.
//!
//! Not here: asking and answering (`prompts`).

use std::path::Path;

use domain::content::Diff;
use domain::session::prompts::{Detail, Effect};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::codex::frames::{CommandAction, read};
use crate::codex::items;

/// Words of a rule that are shown.
const RULE_CHARACTERS_MAX: usize = 80;

/// A question.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) text: String,
    pub(super) choices: Vec<Answer>,
    /// What "no, and stop" says, where Codex knows it.
    pub(super) stop: Option<Value>,
    /// What is said when nobody presses anything.
    pub(super) over: Value,
    pub(super) blank: Blank,
    pub(super) detail: Detail,
}

/// A button.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) id: &'static str,
    pub(super) label: String,
    pub(super) effect: Option<Effect>,
    pub(super) result: Value,
}

impl Answer {
    fn new(id: &'static str, label: impl Into<String>, effect: Effect, result: Value) -> Self {
        Self { id, label: label.into(), effect: Some(effect), result }
    }

    pub(super) fn is_no(&self) -> bool {
        self.effect == Some(Effect::Reject)
    }
}

/// What a person fills in.
#[derive(Debug)]
pub(super) enum Blank {
    Nothing,
    /// Answers to these questions: the id and the words of each.
    Answers(Vec<(String, String)>),
    /// The fields of a form.
    Content,
}

fn decision(decision: impl Into<Value>) -> Value {
    json!({ "decision": decision.into() })
}

fn declines() -> [Answer; 2] {
    [
        Answer::new("decline", "Deny", Effect::Reject, decision("decline")),
        Answer::new("cancel", "Deny and stop", Effect::Reject, decision("cancel")),
    ]
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WantsToRun {
    item_id: String,
    reason: Option<String>,
    command: Option<String>,
    cwd: Option<Value>,
    #[serde(default)]
    command_actions: Option<Vec<CommandAction>>,
    network_approval_context: Option<Value>,
    available_decisions: Option<Vec<Value>>,
    proposed_execpolicy_amendment: Option<Value>,
}

/// `item/commandExecution/requestApproval`.
pub(super) fn command(params: &Value) -> Option<Question> {
    let asked: WantsToRun = read(params)?;
    let command = asked.command.as_deref().unwrap_or_default();
    let actions = asked.command_actions.as_deref().unwrap_or_default();
    let host = asked.network_approval_context.as_ref().and_then(|context| context.get("host"));
    let mut text = match host.and_then(Value::as_str) {
        Some(host) => format!("Codex wants to reach {host}"),
        None => format!("Codex wants to run: {}", items::command_title(command, actions)),
    };
    add_reason(&mut text, asked.reason.as_deref());
    // A server that does not list its decisions knows these.
    let available = asked
        .available_decisions
        .unwrap_or_else(|| vec!["accept".into(), "acceptForSession".into()]);
    let mut choices: Vec<_> = available.iter().filter_map(allowing).collect();
    choices.extend(declines());
    Some(Question {
        text,
        choices,
        stop: Some(decision("cancel")),
        over: decision("decline"),
        blank: Blank::Nothing,
        detail: Detail {
            tool: Some("shell".to_owned()),
            tool_call: Some(items::call_id(&asked.item_id)),
            input: Some(json!({ "command": command, "cwd": asked.cwd }).to_string()),
            suggestions: asked.proposed_execpolicy_amendment.map(|rule| rule.to_string()),
            ..Detail::default()
        },
    })
}

/// The button for one of the decisions that Codex offers, if it allows something.
fn allowing(offered: &Value) -> Option<Answer> {
    let (id, label, effect) = match offered.as_str() {
        Some("accept") => ("accept", "Allow".to_owned(), Effect::AllowOnce),
        Some("acceptForSession") => {
            ("accept_for_session", "Allow in this session".to_owned(), Effect::AllowAlways)
        }
        Some(_) => return None,
        None => {
            let object = offered.as_object()?;
            if let Some(rule) = object.get("acceptWithExecpolicyAmendment") {
                let words = words_of(rule.get("execpolicy_amendment")?);
                let label = format!("Always allow commands that start with: {words}");
                ("accept_always", label, Effect::AllowAlways)
            } else {
                let rule = object.get("applyNetworkPolicyAmendment")?;
                let rule = rule.get("network_policy_amendment")?;
                let host = rule.get("host")?.as_str()?;
                if rule.get("action")?.as_str()? == "allow" {
                    ("allow_host", format!("Always allow {host}"), Effect::AllowAlways)
                } else {
                    ("deny_host", format!("Never allow {host}"), Effect::Reject)
                }
            }
        }
    };
    Some(Answer::new(id, label, effect, decision(offered.clone())))
}

fn words_of(rule: &Value) -> String {
    let words = rule.as_array().into_iter().flatten().filter_map(Value::as_str);
    let words = words.collect::<Vec<_>>().join(" ");
    words.chars().take(RULE_CHARACTERS_MAX).collect()
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileChange {
    item_id: String,
    reason: Option<String>,
    grant_root: Option<String>,
}

/// `item/fileChange/requestApproval`. What would change was told with the item.
pub(super) fn file_change(params: &Value, diffs: Vec<Diff>, workspace: &Path) -> Option<Question> {
    let asked: FileChange = read(params)?;
    let mut paths: Vec<_> =
        diffs.iter().map(|diff| items::shown_path(&diff.path, workspace)).collect();
    paths.dedup();
    let mut text = match paths.as_slice() {
        [] => "Codex wants to change files".to_owned(),
        paths => format!("Codex wants to change: {}", paths.join(", ")),
    };
    if let Some(root) = &asked.grant_root {
        text.push_str("\nIt also asks to write, for the rest of the session, in ");
        text.push_str(root);
    }
    add_reason(&mut text, asked.reason.as_deref());
    let mut choices = vec![
        Answer::new("accept", "Allow", Effect::AllowOnce, decision("accept")),
        Answer::new(
            "accept_for_session",
            "Allow changes to these files in this session",
            Effect::AllowAlways,
            decision("acceptForSession"),
        ),
    ];
    choices.extend(declines());
    Some(Question {
        text,
        choices,
        stop: Some(decision("cancel")),
        over: decision("decline"),
        blank: Blank::Nothing,
        detail: Detail {
            tool: Some("apply_patch".to_owned()),
            tool_call: Some(items::call_id(&asked.item_id)),
            diffs,
            ..Detail::default()
        },
    })
}

/// `item/permissions/requestApproval`.
pub(super) fn permissions(params: &Value) -> Option<Question> {
    let wanted = params.get("permissions")?;
    let mut text = "Codex wants more permissions".to_owned();
    add_reason(&mut text, params.get("reason").and_then(Value::as_str));
    // What is null is not wanted, and must not be granted as such.
    let granted: Map<String, Value> = wanted
        .as_object()?
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let grant = |scope: &str| json!({ "permissions": granted, "scope": scope });
    let nothing = json!({ "permissions": {}, "scope": "turn" });
    let choices = vec![
        Answer::new("accept", "Allow for this run", Effect::AllowOnce, grant("turn")),
        Answer::new(
            "accept_for_session",
            "Allow in this session",
            Effect::AllowAlways,
            grant("session"),
        ),
        Answer::new("decline", "Deny", Effect::Reject, nothing.clone()),
    ];
    Some(Question {
        text,
        choices,
        stop: None,
        over: nothing,
        blank: Blank::Nothing,
        detail: Detail {
            tool: Some("request_permissions".to_owned()),
            tool_call: params.get("itemId").and_then(Value::as_str).map(items::call_id),
            input: Some(wanted.to_string()),
            ..Detail::default()
        },
    })
}

#[derive(Debug, Deserialize)]
struct Asked {
    id: String,
    #[serde(default)]
    question: String,
}

/// `item/tool/requestUserInput`.
pub(super) fn user_input(params: &Value) -> Option<Question> {
    let questions = params.get("questions")?;
    let asked: Vec<Asked> = read(questions)?;
    let text: Vec<_> = asked.iter().map(|asked| asked.question.as_str()).collect();
    let nothing = json!({ "answers": {} });
    let choices = vec![
        Answer::new("answer", "Answer", Effect::AllowOnce, nothing.clone()),
        Answer::new("decline", "Skip", Effect::Reject, nothing.clone()),
    ];
    Some(Question {
        text: text.join("\n"),
        choices,
        stop: None,
        over: nothing,
        blank: Blank::Answers(asked.into_iter().map(|asked| (asked.id, asked.question)).collect()),
        detail: Detail {
            tool: Some("request_user_input".to_owned()),
            tool_call: params.get("itemId").and_then(Value::as_str).map(items::call_id),
            questions: Some(questions.to_string()),
            ..Detail::default()
        },
    })
}

/// What a person answered, by question, in the form Codex wants. A person's client may name a
/// question by its id or by its words, and answer with one text or several.
pub(super) fn answers(questions: &[(String, String)], filled: &Value) -> Value {
    let mut answers = Map::new();
    for (id, question) in questions {
        let given = filled.get(id).or_else(|| filled.get(question));
        let texts: Vec<_> = match given {
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
            Some(one) => one.as_str().into_iter().collect(),
            None => vec![],
        };
        if !texts.is_empty() {
            answers.insert(id.clone(), json!({ "answers": texts }));
        }
    }
    answers.into()
}

/// `mcpServer/elicitation/request`.
pub(super) fn elicitation(params: &Value) -> Option<Question> {
    let server = params.get("serverName").and_then(Value::as_str).unwrap_or("An MCP server");
    let message = params.get("message")?.as_str()?;
    let mut text = format!("{server} asks: {message}");
    if let Some(url) = params.get("url").and_then(Value::as_str) {
        text.push('\n');
        text.push_str(url);
    }
    let schema = params.get("requestedSchema").filter(|schema| !schema.is_null());
    let content = schema.map_or(Value::Null, |_| json!({}));
    let reply = |action: &str, content: Value| json!({ "action": action, "content": content, "_meta": null });
    let choices = vec![
        Answer::new("accept", "Accept", Effect::AllowOnce, reply("accept", content)),
        Answer::new("decline", "Decline", Effect::Reject, reply("decline", Value::Null)),
    ];
    Some(Question {
        text,
        choices,
        stop: Some(reply("cancel", Value::Null)),
        over: reply("cancel", Value::Null),
        blank: if schema.is_some() { Blank::Content } else { Blank::Nothing },
        detail: Detail {
            tool: Some(server.to_owned()),
            questions: schema.map(Value::to_string),
            ..Detail::default()
        },
    })
}

fn add_reason(text: &mut String, reason: Option<&str>) {
    if let Some(reason) = reason.filter(|reason| !reason.trim().is_empty()) {
        text.push_str("\nReason: ");
        text.push_str(reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_decisions_that_codex_offers_are_offered_and_no_is_always_there() {
        let params = json!({
            "itemId": "call_1",
            "reason": "needs to write",
            "command": "/bin/bash -lc 'mkdir a'",
            "availableDecisions": [
                "accept",
                { "acceptWithExecpolicyAmendment": { "execpolicy_amendment": ["mkdir", "a"] } },
                "cancel",
            ],
        });
        let question = command(&params).unwrap();
        assert_eq!(question.text, "Codex wants to run: mkdir a\nReason: needs to write");
        let ids: Vec<_> = question.choices.iter().map(|answer| answer.id).collect();
        assert_eq!(ids, ["accept", "accept_always", "decline", "cancel"]);
        assert!(question.choices[1].label.ends_with("mkdir a"));
        let rule = &question.choices[1].result["decision"]["acceptWithExecpolicyAmendment"];
        assert_eq!(rule["execpolicy_amendment"], json!(["mkdir", "a"]));
    }

    #[test]
    fn what_is_not_wanted_is_not_granted() {
        let params =
            json!({ "permissions": { "network": { "enabled": true }, "fileSystem": null } });
        let question = permissions(&params).unwrap();
        let granted = &question.choices[0].result["permissions"];
        assert_eq!(*granted, json!({ "network": { "enabled": true } }));
        assert_eq!(question.over["permissions"], json!({}));
    }

    #[test]
    fn answers_are_found_by_id_or_by_words() {
        let questions = [("q1".to_owned(), "Which?".to_owned()), ("q2".to_owned(), "Who?".into())];
        let filled = json!({ "Which?": "this", "q2": ["a", "b"] });
        let expected = json!({ "q1": { "answers": ["this"] }, "q2": { "answers": ["a", "b"] } });
        assert_eq!(answers(&questions, &filled), expected);
    }
}
