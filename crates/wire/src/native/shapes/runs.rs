//! Runs, plans, notices and the context usage (features `runs`, `plan`, `context`).

use domain::content::{self, PlanStatus};
use domain::session::{runs, transcript};
use domain::{Content, MessageId, RunId};
use serde::{Deserialize, Serialize};

use super::{Sealed, id, words};

/// The body of `run_started`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct RunStarted {
    /// Which run.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub run_id: RunId,
    /// The send that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "id::optional")]
    #[cfg_attr(test, ts(as = "Option<String>"))]
    pub cause: Option<MessageId>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum OutcomeWord {
    /// The agent was done.
    Completed,
    /// Somebody stopped it, or a crash did: then there is a reason.
    Interrupted,
    /// The agent gave up.
    Failed,
}

/// The body of `run_ended`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct RunEnded {
    /// Which run.
    #[serde(deserialize_with = "id::required")]
    #[cfg_attr(test, ts(as = "String"))]
    pub run_id: RunId,
    /// How.
    pub outcome: OutcomeWord,
    /// Why it failed, or was cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How long a run that was cut off had gone on: its end is told much later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(type = "number"))]
    pub lasted_ms: Option<u64>,
    /// What it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

impl RunEnded {
    /// In the wire's words.
    pub fn of(run: &RunId, outcome: &runs::Outcome, usage: Option<&content::Usage>) -> Self {
        let (outcome, reason, lasted_ms) = match outcome {
            runs::Outcome::Completed => (OutcomeWord::Completed, None, None),
            runs::Outcome::Interrupted => (OutcomeWord::Interrupted, None, None),
            runs::Outcome::Failed(reason) => (OutcomeWord::Failed, Some(reason.clone()), None),
            runs::Outcome::Cut(cut) => {
                (OutcomeWord::Interrupted, Some(cut.why.clone()), cut.lasted_ms)
            }
        };
        Self { run_id: run.clone(), outcome, reason, lasted_ms, usage: usage.map(Into::into) }
    }

    /// In the domain's words.
    pub fn into_model(self) -> (RunId, runs::Outcome, Option<content::Usage>) {
        let outcome = match self.outcome {
            OutcomeWord::Completed => runs::Outcome::Completed,
            OutcomeWord::Interrupted => match self.reason {
                Some(why) => runs::Outcome::Cut(runs::Cut { why, lasted_ms: self.lasted_ms }),
                None => runs::Outcome::Interrupted,
            },
            OutcomeWord::Failed => runs::Outcome::Failed(self.reason.unwrap_or_default()),
        };
        (self.run_id, outcome, self.usage.map(Into::into))
    }
}

/// Tokens and money of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct Usage {
    /// Read by the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Written by the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Of the input, read from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// US dollars, as the agent reckons it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

const MICROS: f64 = 1_000_000.0;
/// Beyond this (a million dollars) a cost is a mistake and is cut here.
const COST_MICROS_MAX: f64 = 1e12;

impl From<&content::Usage> for Usage {
    #[expect(clippy::cast_precision_loss, reason = "money below 2^53 millionths is exact")]
    fn from(usage: &content::Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cached_tokens: usage.cached_tokens,
            cost_usd: usage.cost_micro_usd.map(|micros| micros as f64 / MICROS),
        }
    }
}

impl From<Usage> for content::Usage {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to 0 ..= COST_MICROS_MAX before"
    )]
    fn from(usage: Usage) -> Self {
        let micros = |usd: f64| (usd * MICROS).round().clamp(0.0, COST_MICROS_MAX) as u64;
        Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cached_tokens: usage.cached_tokens,
            cost_micro_usd: usage.cost_usd.map(micros),
        }
    }
}

words! {
    /// How far a line of the plan is.
    PlanStatusWord for PlanStatus {
        Pending = "pending",
        InProgress = "in_progress",
        Completed = "completed",
    }
}

/// One line of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct PlanEntry {
    /// What is to be done.
    pub text: String,
    /// How far it is.
    pub status: PlanStatusWord,
}

/// The body of `plan`: the agent's list of things to do, whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct Plan {
    /// In order.
    #[serde(default)]
    pub entries: Vec<PlanEntry>,
    /// Stands in place of the entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Sealed>,
}

impl From<&Content<Vec<content::PlanEntry>>> for Plan {
    fn from(plan: &Content<Vec<content::PlanEntry>>) -> Self {
        match plan {
            Content::Sealed(sealed) => Self { entries: vec![], sealed: Some(sealed.into()) },
            Content::Open(entries) => {
                let line = |entry: &content::PlanEntry| PlanEntry {
                    text: entry.text.clone(),
                    status: entry.status.into(),
                };
                Self { entries: entries.iter().map(line).collect(), sealed: None }
            }
        }
    }
}

impl From<Plan> for Content<Vec<content::PlanEntry>> {
    fn from(plan: Plan) -> Self {
        if let Some(sealed) = plan.sealed {
            return Self::Sealed(sealed.into());
        }
        let line =
            |entry: PlanEntry| content::PlanEntry { text: entry.text, status: entry.status.into() };
        Self::Open(plan.entries.into_iter().map(line).collect())
    }
}

/// The body of `notice`: something to know that nobody said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct Notice {
    /// A stable word: `rate_limit`, `compaction`, `error`, …
    pub kind: String,
    /// For a person.
    pub text: String,
}

impl From<&transcript::Notice> for Notice {
    fn from(notice: &transcript::Notice) -> Self {
        Self { kind: notice.kind.clone(), text: notice.text.clone() }
    }
}

impl From<Notice> for transcript::Notice {
    fn from(notice: Notice) -> Self {
        Self { kind: notice.kind, text: notice.text }
    }
}

/// The body of `context_usage`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct ContextUsage {
    /// Tokens in it.
    pub used_tokens: u64,
    /// Tokens that fit.
    pub window_tokens: u64,
}

impl From<transcript::ContextUse> for ContextUsage {
    fn from(context: transcript::ContextUse) -> Self {
        Self { used_tokens: context.used_tokens, window_tokens: context.window_tokens }
    }
}

impl From<ContextUsage> for transcript::ContextUse {
    fn from(context: ContextUsage) -> Self {
        Self { used_tokens: context.used_tokens, window_tokens: context.window_tokens }
    }
}
