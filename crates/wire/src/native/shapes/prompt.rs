//! Permission prompts and the fields of an answer.

use domain::content::Failure;
use domain::session::prompts as model;
use domain::{ChoiceId, Content, PromptId, RunId, Timestamp, ToolCallId};
use serde::{Deserialize, Serialize};

use super::{Diff, ErrorBody, Json, Sealed, Time, id, words};
use crate::questions;

words! {
    /// What a button does.
    EffectWord for model::Effect {
        AllowOnce = "allow_once",
        AllowAlways = "allow_always",
        Reject = "reject",
    }
}

/// One button.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct Choice {
    /// What an answer names.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub choice_id: ChoiceId,
    /// What a person reads.
    pub label: String,
    /// Whether the agent's own UI marks it.
    pub is_default: bool,
    /// Extension: what it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<EffectWord>,
}

/// The body of `permission_prompt`, and an entry of `open_prompts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct Prompt {
    /// Belongs to one dialog as long as it is open.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub prompt_id: PromptId,
    /// As the agent words it.
    pub prompt_text: String,
    /// At least one.
    pub choices: Vec<Choice>,
    /// How long the dialog waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// In `open_prompts`: when its time is up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub expires_at: Option<Time>,
    /// What is chosen when nobody answers.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub default_choice: Option<ChoiceId>,
    /// When the dialog appeared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub detected_at: Option<Time>,
    /// Extension: the run that is blocked.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub run_id: Option<RunId>,
    /// Extension: stands in place of the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Sealed>,
    /// Extension: the tool that wants to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Extension: the call that waits.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub tool_call_id: Option<ToolCallId>,
    /// Extension: its input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, type = "unknown"))]
    pub input: Option<Json>,
    /// Extension: what would change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(as = "Option<Vec<Diff>>"))]
    pub diffs: Vec<Diff>,
    /// Extension: the agent's own "always allow" rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, type = "unknown"))]
    pub suggestions: Option<Json>,
    /// Extension: questions with options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, type = "unknown"))]
    pub questions: Option<Json>,
    /// Extension: stands in place of tool, input, diffs, suggestions and questions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_detail: Option<Sealed>,
    /// Extension: why an answer could not be applied, when the prompt opened again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
}

impl Prompt {
    /// In the document's own fields.
    pub fn plain(prompt: &model::Prompt) -> Self {
        Self {
            prompt_id: prompt.id.clone(),
            prompt_text: prompt.text.open().cloned().unwrap_or_default(),
            choices: prompt.choices.iter().map(|choice| Choice::of(choice, None)).collect(),
            timeout_ms: prompt.expiry.as_ref().map(|expiry| expiry.timeout_ms),
            expires_at: None,
            default_choice: prompt.expiry.as_ref().and_then(|expiry| expiry.choice.clone()),
            detected_at: Some(prompt.detected_at.into()),
            run_id: None,
            sealed: None,
            tool: None,
            tool_call_id: None,
            input: None,
            diffs: vec![],
            suggestions: None,
            questions: None,
            sealed_detail: None,
            error: None,
        }
    }

    /// With everything that is known of it.
    pub fn full(prompt: &model::Prompt) -> Self {
        let mut full = Self::plain(prompt);
        full.choices = prompt.choices.iter().map(|c| Choice::of(c, c.effect)).collect();
        full.run_id.clone_from(&prompt.run);
        if let Content::Sealed(sealed) = &prompt.text {
            full.sealed = Some(sealed.into());
        }
        match &prompt.detail {
            None => {}
            Some(Content::Sealed(sealed)) => full.sealed_detail = Some(sealed.into()),
            Some(Content::Open(detail)) => {
                full.tool.clone_from(&detail.tool);
                full.tool_call_id.clone_from(&detail.tool_call);
                full.input = detail.input.as_deref().map(Json::from_text);
                full.diffs = detail.diffs.iter().map(Into::into).collect();
                full.suggestions = detail.suggestions.as_deref().map(Json::from_text);
                full.questions = detail.questions.as_deref().map(Json::from_text);
            }
        }
        full
    }

    /// The same as an entry of `open_prompts`: with its deadline instead of its duration.
    #[must_use]
    pub fn with_deadline(self, prompt: &model::Prompt) -> Self {
        let expires_at = prompt.expiry.as_ref().map(|expiry| expiry.at.into());
        Self { expires_at, timeout_ms: None, ..self }
    }

    /// The same, opened again because of this failure.
    #[must_use]
    pub fn with_error(self, failure: &Failure) -> Self {
        Self { error: Some(failure.into()), ..self }
    }

    /// What a proxy asks. Relative time becomes absolute here, at the edge, once.
    pub fn into_model(self, received: Timestamp) -> Result<model::Prompt, String> {
        if self.choices.is_empty() {
            return Err("permission_prompt needs at least one choice".to_owned());
        }
        if let Some(named) = &self.default_choice
            && !self.choices.iter().any(|choice| choice.choice_id == *named)
        {
            return Err(format!("default_choice {named} is not among the choices"));
        }
        let choice = self.default_choice.clone();
        let expiry = self.timeout_ms.map(|timeout_ms| model::Expiry {
            at: received.plus_ms(timeout_ms),
            timeout_ms,
            choice,
        });
        let text = match self.sealed.clone() {
            Some(sealed) => Content::Sealed(sealed.into()),
            None => Content::Open(self.prompt_text.clone()),
        };
        Ok(questions::marked(model::Prompt {
            id: self.prompt_id.clone(),
            text,
            expiry,
            detected_at: self.detected_at.map_or(received, Into::into),
            run: self.run_id.clone(),
            detail: self.detail(),
            choices: self.choices.into_iter().map(Into::into).collect(),
        }))
    }

    fn detail(&self) -> Option<Content<model::Detail>> {
        if let Some(sealed) = self.sealed_detail.clone() {
            return Some(Content::Sealed(sealed.into()));
        }
        let text = |json: &Option<Json>| json.as_ref().map(|json| json.text().to_owned());
        let detail = model::Detail {
            tool: self.tool.clone(),
            tool_call: self.tool_call_id.clone(),
            input: text(&self.input),
            diffs: self.diffs.iter().cloned().map(Into::into).collect(),
            suggestions: text(&self.suggestions),
            questions: text(&self.questions),
        };
        (detail != model::Detail::default()).then_some(Content::Open(detail))
    }
}

impl Choice {
    fn of(choice: &model::Choice, effect: Option<model::Effect>) -> Self {
        Self {
            choice_id: choice.id.clone(),
            label: choice.label.clone(),
            is_default: choice.is_default,
            effect: effect.map(Into::into),
        }
    }
}

impl From<Choice> for model::Choice {
    fn from(choice: Choice) -> Self {
        let (id, label) = (choice.choice_id, choice.label);
        let (is_default, effect) = (choice.is_default, choice.effect.map(Into::into));
        Self { id, label, is_default, effect, wants_answers: false }
    }
}

/// What an answer may carry besides its choice (feature `prompt_detail`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct AnswerDetail {
    /// The input to use instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, type = "unknown"))]
    pub updated_input: Option<Json>,
    /// Words for the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Answers to its questions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, type = "unknown"))]
    pub answers: Option<Json>,
    /// Whether the run ends with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<bool>,
    /// Stands in place of the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Sealed>,
}

impl From<&Content<model::AnswerDetail>> for AnswerDetail {
    fn from(detail: &Content<model::AnswerDetail>) -> Self {
        match detail {
            Content::Sealed(sealed) => Self { sealed: Some(sealed.into()), ..Self::default() },
            Content::Open(detail) => Self {
                updated_input: detail.updated_input.as_deref().map(Json::from_text),
                message: detail.message.clone(),
                answers: detail.answers.as_deref().map(Json::from_text),
                stop: detail.stop.then_some(true),
                sealed: None,
            },
        }
    }
}

impl AnswerDetail {
    /// `None` where the answer is its choice and nothing else.
    pub fn into_model(self) -> Option<Content<model::AnswerDetail>> {
        if let Some(sealed) = self.sealed {
            return Some(Content::Sealed(sealed.into()));
        }
        let detail = model::AnswerDetail {
            updated_input: self.updated_input.map(Json::into_text),
            message: self.message,
            answers: self.answers.map(Json::into_text),
            stop: self.stop.unwrap_or(false),
        };
        (detail != model::AnswerDetail::default()).then_some(Content::Open(detail))
    }
}
