//! Permission questions of Claude Code as text with buttons, and the answers in its own format.
//!
//! Not here: which questions are open (`prompts`).

use domain::content::Diff;
use domain::session::prompts::{AnswerDetail, Choice, Detail, Effect, Prompt};
use domain::{ChoiceId, Content, PromptId, RunId, Timestamp};
use serde_json::{Map, Value, json};

use super::frames::CanUseTool;
use super::tools;

const YES: &str = "yes";
const ALWAYS: &str = "always";
const NO: &str = "no";
/// Answers come with the answer's detail.
const ANSWER: &str = "answer";
/// Options of a question that become buttons; the agent offers four at most.
const OPTIONS_MAX: usize = 16;
/// Characters of an input that the words of a question repeat.
const SUBJECT_CHARACTERS_MAX: usize = 2_000;

const DECLINED: &str = "The person declined this.";

/// A question that waits.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) request_id: String,
    asked: CanUseTool,
}

/// Why an answer cannot be given to the agent.
pub(super) struct Unfit(pub(super) String);

impl Question {
    pub(super) fn new(request_id: String, asked: CanUseTool) -> Self {
        Self { request_id, asked }
    }

    /// The call that waits.
    pub(super) fn tool_call(&self) -> Option<&str> {
        self.asked.tool_use_id.as_deref()
    }

    pub(super) fn tool(&self) -> &str {
        &self.asked.tool_name
    }

    /// For people.
    pub(super) fn prompt(&self, id: PromptId, run: Option<RunId>, now: Timestamp) -> Prompt {
        Prompt {
            id,
            text: Content::Open(self.text()),
            choices: self.choices(),
            expiry: None,
            detected_at: now,
            run,
            detail: Some(Content::Open(self.detail())),
        }
    }

    fn input(&self) -> Value {
        Value::Object(self.asked.input.clone())
    }

    fn questions(&self) -> &[Value] {
        let is_question = self.asked.tool_name == "AskUserQuestion";
        let questions = self.asked.input.get("questions").filter(|_| is_question);
        questions.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    /// The options of a question that one button can answer.
    fn options(&self) -> Vec<&str> {
        match self.questions() {
            [only] if only["multiSelect"] != true => {
                let options = only["options"].as_array().map(Vec::as_slice).unwrap_or_default();
                options.iter().filter_map(|o| o["label"].as_str()).take(OPTIONS_MAX).collect()
            }
            _ => vec![],
        }
    }

    fn text(&self) -> String {
        let asked = &self.asked;
        let questions = self.questions();
        if !questions.is_empty() {
            return questions.iter().map(in_words).collect::<Vec<_>>().join("\n\n");
        }
        let of = |field: &str| asked.input.get(field).and_then(Value::as_str).unwrap_or_default();
        let name = asked.display_name.as_deref().unwrap_or(&asked.tool_name);
        let subject = match asked.tool_name.as_str() {
            "ExitPlanMode" => return format!("Approve this plan?\n\n{}", cut(of("plan"))),
            "Bash" | "PowerShell" => format!("Run this command?\n{}", cut(of("command"))),
            "Edit" | "MultiEdit" => format!("Edit {}?", of("file_path")),
            "Write" => format!("Write {}?", of("file_path")),
            "WebFetch" => format!("Fetch {}?", of("url")),
            tool => format!("Use {name}?\n{}", cut(&tools::title(tool, &self.input()))),
        };
        let mut text = subject;
        let more = [&asked.title, &asked.decision_reason, &asked.description];
        for line in more.into_iter().flatten() {
            if !text.contains(line.as_str()) {
                text = format!("{text}\n{line}");
            }
        }
        match &asked.blocked_path {
            Some(path) if !text.contains(path.as_str()) => format!("{text}\nAffects {path}"),
            Some(_) | None => text,
        }
    }

    fn choices(&self) -> Vec<Choice> {
        let choice = |id: &str, label: &str, effect| Choice {
            id: id.into(),
            label: label.to_owned(),
            is_default: effect == Effect::Reject && self.asked.default_to_no,
            effect: Some(effect),
            wants_answers: false,
        };
        if !self.questions().is_empty() {
            let options = self.options();
            let mut choices: Vec<_> = options
                .iter()
                .enumerate()
                .map(|(at, label)| choice(&option(at), label, Effect::AllowOnce))
                .collect();
            if choices.is_empty() {
                choices.push(choice(ANSWER, "Answer", Effect::AllowOnce));
            }
            choices.push(choice(NO, "Skip", Effect::Reject));
            return choices;
        }
        let is_plan = self.asked.tool_name == "ExitPlanMode";
        let (yes, no) =
            if is_plan { ("Yes, continue", "No, keep planning") } else { ("Yes", "No") };
        let mut choices = vec![choice(YES, yes, Effect::AllowOnce)];
        if let Some(label) = self.always() {
            choices.push(choice(ALWAYS, &label, Effect::AllowAlways));
        }
        choices.push(choice(NO, no, Effect::Reject));
        choices
    }

    /// What "always" would change, all of it, where the agent suggests something.
    fn always(&self) -> Option<String> {
        let suggestions = &self.asked.permission_suggestions;
        if suggestions.is_empty() || self.asked.suppress_always_allow_rule {
            return None;
        }
        let changes: Vec<String> = suggestions.iter().map(change).collect();
        Some(format!("Yes, and {}", changes.join(", and ")))
    }

    fn detail(&self) -> Detail {
        let suggestions = &self.asked.permission_suggestions;
        let questions = self.questions();
        Detail {
            tool: Some(self.asked.tool_name.clone()),
            tool_call: self.tool_call().map(Into::into),
            input: Some(self.input().to_string()),
            diffs: self.diffs(&self.input()),
            suggestions: (!suggestions.is_empty()).then(|| json!(suggestions).to_string()),
            questions: (!questions.is_empty()).then(|| json!(questions).to_string()),
        }
    }

    fn diffs(&self, input: &Value) -> Vec<Diff> {
        tools::diffs(&self.asked.tool_name, input)
    }

    /// The answer in the agent's shape.
    pub(super) fn answer(
        &self,
        choice: Option<&ChoiceId>,
        detail: &AnswerDetail,
    ) -> Result<Answer, Unfit> {
        let id = choice.map_or(NO, ChoiceId::as_str);
        if id == NO {
            let message = detail.message.as_deref().filter(|words| !words.trim().is_empty());
            let mut response = json!({"behavior": "deny", "message": message.unwrap_or(DECLINED)});
            if detail.stop {
                response["interrupt"] = true.into();
            }
            return Ok(Answer { response, input: None, is_allowed: false });
        }
        if !self.choices().iter().any(|choice| choice.id.as_str() == id) {
            return Err(Unfit(format!("Unknown choice {id}")));
        }
        let edited = edited_input(detail)?;
        let mut input = edited.clone().unwrap_or_else(|| self.asked.input.clone());
        if !self.questions().is_empty() {
            input.insert("answers".to_owned(), self.answers(id, detail)?);
        }
        let mut response = json!({"behavior": "allow", "updatedInput": input});
        if id == ALWAYS {
            response["updatedPermissions"] = json!(self.asked.permission_suggestions);
        }
        Ok(Answer { response, input: edited.map(Value::Object), is_allowed: true })
    }

    fn answers(&self, id: &str, detail: &AnswerDetail) -> Result<Value, Unfit> {
        if let Some(given) = &detail.answers {
            let given: Map<String, Value> = serde_json::from_str(given)
                .map_err(|_| Unfit("The answers are not a JSON object".to_owned()))?;
            return Ok(Value::Object(given));
        }
        let options = self.options();
        let chosen = options.iter().enumerate().find(|(at, _)| option(*at) == id);
        match (chosen, self.questions()) {
            (Some((_, label)), [only]) => {
                let question = only["question"].as_str().unwrap_or_default();
                Ok(json!({ question: label }))
            }
            _ => Err(Unfit("Every question needs an answer".to_owned())),
        }
    }
}

/// What is written to the agent, and what it does with it.
pub(super) struct Answer {
    pub(super) response: Value,
    /// The input that a person wrote instead.
    pub(super) input: Option<Value>,
    pub(super) is_allowed: bool,
}

/// An empty object counts as unchanged: it would wipe the input.
fn edited_input(detail: &AnswerDetail) -> Result<Option<Map<String, Value>>, Unfit> {
    let Some(text) = &detail.updated_input else { return Ok(None) };
    let input: Map<String, Value> = serde_json::from_str(text)
        .map_err(|_| Unfit("The edited input is not a JSON object".to_owned()))?;
    Ok(Some(input).filter(|input| !input.is_empty()))
}

fn option(at: usize) -> String {
    format!("option-{}", at + 1)
}

fn in_words(question: &Value) -> String {
    let mut lines = vec![question["question"].as_str().unwrap_or_default().to_owned()];
    let options = question["options"].as_array().map(Vec::as_slice).unwrap_or_default();
    for option in options {
        let label = option["label"].as_str().unwrap_or_default();
        match option["description"].as_str().filter(|words| !words.is_empty()) {
            Some(words) => lines.push(format!("- {label}: {words}")),
            None => lines.push(format!("- {label}")),
        }
    }
    lines.join("\n")
}

/// One of the agent's suggestions, in words.
fn change(suggestion: &Value) -> String {
    let list = |field: &str| {
        let values = suggestion[field].as_array().map(Vec::as_slice).unwrap_or_default();
        values.iter().map(|value| value.as_str().unwrap_or_default()).collect::<Vec<_>>().join(", ")
    };
    let rule = |rule: &Value| {
        let tool = rule["toolName"].as_str().unwrap_or_default();
        match rule["ruleContent"].as_str() {
            Some(content) => format!("{tool}({content})"),
            None => tool.to_owned(),
        }
    };
    let rules = || {
        let rules = suggestion["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
        rules.iter().map(rule).collect::<Vec<_>>().join(", ")
    };
    match suggestion["type"].as_str().unwrap_or_default() {
        "addRules" | "replaceRules" => match suggestion["behavior"].as_str().unwrap_or("allow") {
            "allow" => format!("don't ask again for {}", rules()),
            other => format!("always {other} {}", rules()),
        },
        "setMode" => {
            format!("switch to the mode {}", suggestion["mode"].as_str().unwrap_or_default())
        }
        "addDirectories" => format!("allow work in {}", list("directories")),
        other => other.to_owned(),
    }
}

fn cut(text: &str) -> String {
    text.chars().take(SUBJECT_CHARACTERS_MAX).collect()
}

#[cfg(test)]
mod tests;
