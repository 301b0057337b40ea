//! What Codex reports besides the conversation: plans, warnings, limits, errors.
//!
//! Invariant: a message that would repeat at every turn is reported once; one that is not
//! understood is reported a few times.
//!
//! Not here: the conversation itself (`observation`).

use std::collections::{BTreeMap, BTreeSet};

use domain::Timestamp;
use domain::content::{PlanEntry, PlanStatus};
use serde_json::Value;

use super::Codex;
use super::frames::{Failed, PlanUpdated, RateLimitsUpdated, Step, Window};

/// Unknown messages that are told per session.
const UNKNOWN_TOLD_MAX: usize = 5;
/// Warnings that are known, so that the same is not told at each turn.
const WARNINGS_MAX: usize = 64;
/// Percent of a rate limit from which on it is told.
const LIMIT_STEPS_PERCENT: [f64; 3] = [80.0, 95.0, 100.0];

/// What was told already.
#[derive(Debug, Default)]
pub(super) struct News {
    warnings: BTreeSet<String>,
    unknown: BTreeSet<String>,
    /// How many steps of each rate limit.
    limits: BTreeMap<u64, usize>,
}

impl Codex {
    /// A message that is not known, or not in this form.
    pub(super) fn strange(&mut self, kind: &str, text: &str) {
        let is_known = self.watch.news.unknown.contains(kind);
        if is_known || self.watch.news.unknown.len() >= UNKNOWN_TOLD_MAX {
            return;
        }
        self.watch.news.unknown.insert(kind.to_owned());
        self.scribe.notice("unknown_message", text);
    }

    pub(super) fn plan_updated(&mut self, plan: PlanUpdated) {
        let entry = |step: Step| PlanEntry {
            text: step.step,
            status: match step.status.as_str() {
                "completed" => PlanStatus::Completed,
                "inProgress" => PlanStatus::InProgress,
                _ => PlanStatus::Pending,
            },
        };
        self.scribe.plan(plan.plan.into_iter().map(entry).collect());
    }

    pub(super) fn failed(&mut self, failed: &Failed) {
        let words = failed.error.words();
        if failed.will_retry {
            self.scribe.notice("retry", words);
        } else if let Some(turn) = &mut self.turn {
            turn.error = Some(words);
        } else {
            self.scribe.notice("error", words);
        }
    }

    pub(super) fn rerouted(&mut self, params: &Value, now: Timestamp) {
        let Some(model) = params.get("toModel").and_then(Value::as_str) else { return };
        self.scribe.notice("model", format!("Codex switched to the model {model}"));
        self.settings.rerouted(model);
        self.tell_config(now);
    }

    /// The same warning is told once.
    pub(super) fn warn(&mut self, kind: &str, words: &Value) {
        let Some(words) = words.as_str() else { return };
        let warnings = &mut self.watch.news.warnings;
        if warnings.len() < WARNINGS_MAX && warnings.insert(words.to_owned()) {
            self.scribe.notice(kind, words);
        }
    }

    pub(super) fn tool_server(&mut self, params: &Value) {
        if params.get("status").and_then(Value::as_str) == Some("failed") {
            let name = params.get("name").and_then(Value::as_str).unwrap_or("(unnamed)");
            let error = params.get("error").and_then(Value::as_str).unwrap_or("no reason given");
            let words = Value::from(format!("The MCP server {name} did not start: {error}"));
            self.warn("warning", &words);
        }
    }

    pub(super) fn rate_limits(&mut self, told: &RateLimitsUpdated) {
        let limits = &told.rate_limits;
        for window in [&limits.primary, &limits.secondary].into_iter().flatten() {
            self.rate_limit(window);
        }
        if let Some(reached) = &limits.rate_limit_reached_type {
            let words = format!("Reached a limit of the account: {reached}");
            self.warn("rate_limit", &words.into());
        }
    }

    fn rate_limit(&mut self, window: &Window) {
        let minutes = window.window_duration_mins.unwrap_or(0);
        let steps = LIMIT_STEPS_PERCENT.iter().filter(|step| window.used_percent >= **step).count();
        let told = self.watch.news.limits.insert(minutes, steps).unwrap_or(0);
        if steps > told {
            let used = window.used_percent;
            let words = match minutes {
                0 => format!("{used:.0} % of the account's limit used"),
                _ => format!("{used:.0} % of the account's limit for {} used", span(minutes)),
            };
            self.scribe.notice("rate_limit", words);
        }
    }
}

fn span(minutes: u64) -> String {
    match minutes {
        0..60 => format!("{minutes} minutes"),
        60..2_880 => format!("{} hours", minutes / 60),
        _ => format!("{} days", minutes / 1_440),
    }
}
