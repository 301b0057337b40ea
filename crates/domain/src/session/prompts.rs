//! Permission prompts of one session.
//!
//! A prompt is a question that the agent is blocked on. It is shown to every watcher and settled
//! exactly once: by a person, by expiry, or by withdrawal. The settled choice stays *owed* to the
//! agent until the proxy confirms it, so a crash in between loses nothing. If the proxy could not
//! apply it, the prompt opens again with the reason.
//!
//! Not here: JSON names (`wire`), sleeping and sending (`relay`), buttons in a DOM (`agents`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::content::{Diff, Failure};
use crate::{ChoiceId, Content, PromptId, Refusal, RequestId, RunId, Timestamp, ToolCallId};

/// Open prompts per session, unless configured. A person cannot survey more; an agent that needs more is looping.
pub const PROMPTS_OPEN_MAX: usize = 32;

/// A question and its buttons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// Repeats of the same dialog carry the same id.
    pub id: PromptId,
    /// As the agent words it.
    pub text: Content<String>,
    /// At least one.
    pub choices: Vec<Choice>,
    /// `None` waits for a person, however long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiry: Option<Expiry>,
    /// When the agent began to wait, as the proxy says.
    pub detected_at: Timestamp,
    /// The run that is blocked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// What a client with more room shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Content<Detail>>,
}

/// One button.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// What an answer names.
    pub id: ChoiceId,
    /// What a person reads.
    pub label: String,
    /// Whether the agent's own UI marks it as the default.
    pub is_default: bool,
    /// What it does, where the agent tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// It lets something happen that needs answers to the agent's questions. A button that is
    /// itself an answer does not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wants_answers: bool,
}

/// What a button does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Lets this one happen.
    AllowOnce,
    /// Lets this and its like happen.
    AllowAlways,
    /// Says no.
    Reject,
}

/// What happens when nobody answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expiry {
    /// The first instant at which the prompt counts as unanswered.
    pub at: Timestamp,
    /// How long the agent said it would wait.
    pub timeout_ms: u64,
    /// One of the prompt's choices. `None` presses nothing: the agent is told that it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<ChoiceId>,
}

/// The matter of the question.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detail {
    /// The tool that wants to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The call that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call: Option<ToolCallId>,
    /// Its input as the agent wrote it (JSON text), unread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// What would change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diffs: Vec<Diff>,
    /// The agent's own "always allow" rules (JSON text), unread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestions: Option<String>,
    /// Questions with options, where the agent asks some (JSON text), unread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub questions: Option<String>,
}

/// What an answer may carry besides its choice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerDetail {
    /// The input to use instead (JSON text), unread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_input: Option<String>,
    /// Words for the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Answers to its questions (JSON text), unread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<String>,
    /// Whether the run ends with it.
    #[serde(default)]
    pub stop: bool,
}

/// Why a prompt was settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settled {
    /// Somebody chose.
    ByPerson {
        /// Their credential's name.
        name: String,
    },
    /// Nobody did.
    ByExpiry,
    /// The question went away.
    Withdrawn,
}

/// Facts about prompts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The agent is blocked.
    Asked(Prompt),
    /// It is decided. Unless withdrawn, the agent does not know yet.
    Settled {
        /// Which prompt.
        prompt: PromptId,
        /// The button, if any is pressed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        choice: Option<ChoiceId>,
        /// Who or what decided.
        settled: Settled,
        /// Names the order to the proxy.
        request: RequestId,
        /// What else the answer carries.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<Content<AnswerDetail>>,
    },
    /// The proxy pressed the button.
    Confirmed(PromptId),
    /// The proxy could not press it: the question is open again.
    Reopened {
        /// The question, whole, as it was asked; its time has run once, now it waits for a person.
        prompt: Box<Prompt>,
        /// Why.
        failure: Failure,
    },
}

/// An answer that the agent must still be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owed {
    /// The question, kept whole so that it can open again.
    pub prompt: Prompt,
    /// The button, if any is pressed.
    pub choice: Option<ChoiceId>,
    /// Whether a person chose it.
    pub by_person: bool,
    /// Names the order to the proxy.
    pub request: RequestId,
    /// What else the answer carries.
    pub detail: Option<Content<AnswerDetail>>,
}

/// State derived from recorded events alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompts {
    open: BTreeMap<PromptId, Prompt>,
    owed: BTreeMap<PromptId, Owed>,
}

impl Prompts {
    /// The agent asks. A repeat of an open prompt records nothing: proxies poll.
    pub fn ask(&self, prompt: &Prompt, open_max: usize) -> Result<Vec<Event>, Refusal> {
        if self.open.contains_key(&prompt.id) || self.owed.contains_key(&prompt.id) {
            return Ok(vec![]);
        }
        if self.open.len() >= open_max {
            return Err(Refusal::TooManyPrompts { limit: open_max });
        }
        Ok(vec![Event::Asked(prompt.clone())])
    }

    /// A person answers. The first answer wins.
    pub fn answer(
        &self,
        id: &PromptId,
        choice: &ChoiceId,
        name: &str,
        request: &RequestId,
        detail: Option<&Content<AnswerDetail>>,
    ) -> Result<Event, Refusal> {
        let Some(prompt) = self.open.get(id) else {
            return Err(Refusal::PromptNotOpen(id.clone()));
        };
        let Some(chosen) = prompt.choices.iter().find(|known| known.id == *choice) else {
            return Err(Refusal::NoSuchChoice { prompt: id.clone(), choice: choice.clone() });
        };
        if chosen.wants_answers && !detail.is_some_and(brings_answers) {
            return Err(Refusal::AnswersMissing(id.clone()));
        }
        Ok(Event::Settled {
            prompt: id.clone(),
            choice: Some(choice.clone()),
            settled: Settled::ByPerson { name: name.to_owned() },
            request: request.clone(),
            detail: detail.cloned(),
        })
    }

    /// Settles every prompt whose time is up.
    pub fn expire(&self, now: Timestamp) -> Vec<Event> {
        self.expiries()
            .filter(|(_, expiry)| expiry.at <= now)
            .map(|(id, expiry)| Event::Settled {
                prompt: id.clone(),
                choice: expiry.choice.clone(),
                settled: Settled::ByExpiry,
                request: format!("expire:{id}").into(),
                detail: None,
            })
            .collect()
    }

    /// The dialog vanished on the machine. Nothing is recorded for one that is not open.
    pub fn withdraw(&self, id: &PromptId) -> Option<Event> {
        self.open.contains_key(id).then(|| withdrawn(id))
    }

    /// Withdraws every open prompt that is not among `kept`.
    pub fn withdraw_all_but(&self, kept: &[PromptId]) -> Vec<Event> {
        self.open.keys().filter(|id| !kept.contains(id)).map(withdrawn).collect()
    }

    /// The proxy tried to press the button that this request names.
    pub fn tried(&self, request: &RequestId, failure: Option<&Failure>) -> Option<Event> {
        let owed = self.owed.values().find(|owed| owed.request == *request)?;
        // A question that is no longer there cannot be asked again.
        let failure = failure.filter(|failure| failure.code.as_str() != "prompt_not_found");
        Some(match failure {
            None => Event::Confirmed(owed.prompt.id.clone()),
            Some(failure) => {
                let prompt = Box::new(Prompt { expiry: None, ..owed.prompt.clone() });
                Event::Reopened { prompt, failure: failure.clone() }
            }
        })
    }

    /// The request that carries this prompt's answer to the proxy.
    pub fn owed_request(&self, id: &PromptId) -> Option<&RequestId> {
        self.owed.get(id).map(|owed| &owed.request)
    }

    /// Cannot fail: what is recorded has happened.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Asked(prompt) => {
                self.open.insert(prompt.id.clone(), prompt.clone());
            }
            Event::Settled { prompt, choice, settled, request, detail } => {
                let Some(open) = self.open.remove(prompt) else { return };
                if *settled == Settled::Withdrawn {
                    return;
                }
                let by_person = matches!(settled, Settled::ByPerson { .. });
                let (request, detail) = (request.clone(), detail.clone());
                let owed =
                    Owed { prompt: open, choice: choice.clone(), by_person, request, detail };
                self.owed.insert(prompt.clone(), owed);
            }
            Event::Confirmed(id) => {
                self.owed.remove(id);
            }
            Event::Reopened { prompt, .. } => {
                if self.owed.remove(&prompt.id).is_some() {
                    self.open.insert(prompt.id.clone(), (**prompt).clone());
                }
            }
        }
    }

    /// The open questions.
    pub fn open(&self) -> impl Iterator<Item = &Prompt> {
        self.open.values()
    }

    /// Answers the agent must still be told, on every proxy reconnect, until confirmed.
    pub fn owed(&self) -> impl Iterator<Item = &Owed> {
        self.owed.values()
    }

    /// When to call [`Prompts::expire`] next.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.expiries().map(|(_, expiry)| expiry.at).min()
    }

    fn expiries(&self) -> impl Iterator<Item = (&PromptId, &Expiry)> {
        self.open.iter().filter_map(|(id, prompt)| Some((id, prompt.expiry.as_ref()?)))
    }
}

/// Whether answers come with it, whatever they say. What is sealed may hold some: the machine,
/// which can read it, judges.
fn brings_answers(detail: &Content<AnswerDetail>) -> bool {
    match detail {
        Content::Open(detail) => detail.answers.is_some(),
        Content::Sealed(_) => true,
    }
}

fn withdrawn(id: &PromptId) -> Event {
    Event::Settled {
        prompt: id.clone(),
        choice: None,
        settled: Settled::Withdrawn,
        request: format!("withdraw:{id}").into(),
        detail: None,
    }
}
