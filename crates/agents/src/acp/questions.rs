//! The agent's permission questions, from its request to our answer.
//!
//! Invariant: every request is answered once: by a person, by an interrupt, or by the end of the
//! program.

use std::collections::BTreeMap;

use domain::content::ToolKind;
use domain::session::prompts::{Choice, Detail, Effect, PROMPTS_OPEN_MAX, Prompt};
use domain::{ChoiceId, Content, PromptId, RunId, Timestamp, ToolCallId};
use serde_json::{Value, json};

use super::frames::{Permission, PermissionOption};
use super::quirks::Quirks;
use super::tools;
use crate::rpc::TheirId;

/// Bytes of what the agent says about a question besides its title.
const REMARK_BYTES_MAX: usize = 2 * 1024;

/// A question that waits.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) id: TheirId,
    pub(super) tool: Option<ToolCallId>,
    rejecting: Vec<ChoiceId>,
    choices: Vec<ChoiceId>,
}

impl Question {
    pub(super) fn has(&self, choice: &ChoiceId) -> bool {
        self.choices.contains(choice)
    }

    /// Whether a choice says no.
    pub(super) fn is_no(&self, choice: &ChoiceId) -> bool {
        self.rejecting.contains(choice)
    }
}

/// The questions that wait, by their prompts.
#[derive(Debug, Default)]
pub(super) struct Questions(BTreeMap<PromptId, Question>);

impl Questions {
    /// A question as everybody understands it; `None` where it cannot be asked.
    pub(super) fn ask(
        &mut self,
        id: TheirId,
        permission: &Permission,
        run: Option<&RunId>,
        quirks: &Quirks,
        now: Timestamp,
    ) -> Option<Prompt> {
        if permission.options.is_empty() || self.0.len() >= PROMPTS_OPEN_MAX {
            return None;
        }
        // Their numbers begin anew with each program, runs do not.
        let prompt = PromptId::from(match run {
            Some(run) => format!("{run}-ask-{id}"),
            None => format!("ask-{}-{id}", now.0),
        });
        let frame = &permission.tool_call;
        let tool = Some(frame.id.as_str()).filter(|id| !id.is_empty());
        let tool = tool.map(ToolCallId::from);
        let ids = |options: &mut dyn Iterator<Item = &PermissionOption>| {
            options.map(|option| ChoiceId::from(option.option_id.as_str())).collect()
        };
        let all = &permission.options;
        let question = Question {
            id,
            tool: tool.clone(),
            rejecting: ids(&mut all.iter().filter(|o| effect(&o.kind) == Some(Effect::Reject))),
            choices: ids(&mut all.iter()),
        };
        self.0.insert(prompt.clone(), question);
        let detail = Detail {
            tool: Some(tools::name(frame, quirks)),
            tool_call: tool,
            input: frame.raw_input.as_ref().and_then(tools::input),
            diffs: tools::diffs(&frame.content),
            suggestions: None,
            questions: None,
        };
        Some(Prompt {
            id: prompt,
            text: Content::Open(text(permission, quirks)),
            choices: all.iter().map(choice).collect(),
            expiry: None,
            detected_at: now,
            run: run.cloned(),
            detail: Some(Content::Open(detail)),
        })
    }

    pub(super) fn get(&self, prompt: &PromptId) -> Option<&Question> {
        self.0.get(prompt)
    }

    pub(super) fn take(&mut self, prompt: &PromptId) -> Option<Question> {
        self.0.remove(prompt)
    }

    /// The prompt that a request of theirs became.
    pub(super) fn prompt_of(&self, id: &TheirId) -> Option<PromptId> {
        self.0.iter().find(|(_, question)| question.id == *id).map(|(prompt, _)| prompt.clone())
    }

    pub(super) fn take_all(&mut self) -> Vec<(PromptId, Question)> {
        std::mem::take(&mut self.0).into_iter().collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What the agent is told; without a choice the question is over.
pub(super) fn outcome(choice: Option<&ChoiceId>) -> Value {
    match choice {
        Some(choice) => {
            json!({ "outcome": { "outcome": "selected", "optionId": choice.as_str() } })
        }
        None => json!({ "outcome": { "outcome": "cancelled" } }),
    }
}

fn choice(option: &PermissionOption) -> Choice {
    let label = if option.name.is_empty() { &option.option_id } else { &option.name };
    Choice {
        id: option.option_id.as_str().into(),
        label: label.clone(),
        is_default: false,
        effect: effect(&option.kind),
        wants_answers: false,
    }
}

fn effect(kind: &str) -> Option<Effect> {
    match kind {
        "allow_once" => Some(Effect::AllowOnce),
        "allow_always" => Some(Effect::AllowAlways),
        "reject_once" | "reject_always" => Some(Effect::Reject),
        _ => None,
    }
}

/// In words for a person.
fn text(permission: &Permission, quirks: &Quirks) -> String {
    let frame = &permission.tool_call;
    let title = frame.title.as_deref().and_then(tools::one_line);
    let title = title.unwrap_or_else(|| tools::name(frame, quirks));
    let what = match tools::kind(frame.kind.as_deref()) {
        ToolKind::Read => "Read",
        ToolKind::Edit => "Change files",
        ToolKind::Execute => "Run a command",
        ToolKind::Search => "Search",
        ToolKind::Fetch => "Fetch from the network",
        ToolKind::Other => "Use a tool",
    };
    let remark = tools::words(&frame.content).unwrap_or_default();
    let end =
        (0..=REMARK_BYTES_MAX.min(remark.len())).rev().find(|at| remark.is_char_boundary(*at));
    let remark = remark[..end.unwrap_or(0)].trim();
    if remark.is_empty() {
        format!("{what}: {title}")
    } else {
        format!("{what}: {title}\n{remark}")
    }
}
