//! Answering permission prompts, and the end of a prompt.

use domain::session::prompts;
use domain::{ChoiceId, Content, PromptId};
use serde::{Deserialize, Serialize};

use crate::native::shapes::{AnswerDetail, Json, Sealed, id};

/// A person answers; or the relay passes an answer on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct PermissionResponse {
    /// Which prompt.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub prompt_id: PromptId,
    /// Which button. Absent only towards a proxy: nothing is pressed.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub choice_id: Option<ChoiceId>,
    /// Towards a proxy: the clock chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_applied: Option<bool>,
    /// Extension (feature `prompt_detail`): the input to use instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, type = "unknown"))]
    pub updated_input: Option<Json>,
    /// Extension: words for the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Extension: answers to its questions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, type = "unknown"))]
    pub answers: Option<Json>,
    /// Extension: whether the run ends with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<bool>,
    /// Extension: stands in place of the other extensions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Sealed>,
}

impl PermissionResponse {
    /// What the answer carries besides its choice.
    pub fn detail(self) -> Option<Content<prompts::AnswerDetail>> {
        let Self { updated_input, message, answers, stop, sealed, .. } = self;
        AnswerDetail { updated_input, message, answers, stop, sealed }.into_model()
    }
}

/// A prompt is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct PermissionPromptExpired {
    /// Which prompt.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub prompt_id: PromptId,
    /// The button, if any was pressed.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub applied_choice: Option<ChoiceId>,
}

/// Somebody answered a prompt (feature `prompt_resolved`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct PermissionPromptResolved {
    /// Which prompt.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub prompt_id: PromptId,
    /// The button.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub choice_id: Option<ChoiceId>,
    /// Who, by the name of their credential.
    pub answered_by: String,
}
