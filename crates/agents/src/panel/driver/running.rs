//! Runs, as far as a panel shows them: from the first sign of work until it was quiet for a while.

use domain::content::Failure;
use domain::session::runs::Outcome;
use domain::{RequestId, RunId, Timestamp};
use sha2::{Digest, Sha256};

use super::delivery::Flight;
use super::{PanelDriver, Purpose};
use crate::panel::frames::Push;

/// How long a panel must be quiet before what it shows counts as finished. Buttons flicker between
/// two steps of an agent.
const SETTLE_MS: u64 = 800;
/// The same where nothing goes on, and nothing is being loaded: what comes then comes whole.
const SETTLE_AT_REST_MS: u64 = 100;
/// How long after a delivery the agent may take to show that it is at work.
const BEGIN_MS: u64 = 10_000;

/// The run that goes on.
#[derive(Debug, Default)]
pub(super) struct Running {
    /// Whether the panel shows work, or a question.
    pub(super) is_busy: bool,
    /// Since when it shows none.
    idle_since: Option<Timestamp>,
    /// When a row last changed.
    pub(super) changed_at: Timestamp,
    /// Until then the agent may still begin.
    expected_until: Option<Timestamp>,
    /// A person stopped it.
    was_stopped: bool,
    /// The run that ended last.
    pub(super) last_ended: Option<RunId>,
    /// The activity that was told last, without its digits.
    told: Option<(String, String)>,
}

impl Running {
    /// A send was delivered: the agent will begin.
    pub(super) fn expect(&mut self, flight: &Flight, now: Timestamp) {
        if !flight.was_busy && !self.is_busy {
            self.expected_until = Some(now.plus_ms(BEGIN_MS));
        }
    }

    /// The agent answers.
    pub(super) fn answered(&mut self) {
        self.expected_until = None;
    }

    /// Since when all is quiet.
    fn quiet_since(&self) -> Option<Timestamp> {
        self.idle_since.map(|since| since.max(self.changed_at))
    }

    pub(super) fn is_settled(&self, settle_ms: u64, now: Timestamp) -> bool {
        self.quiet_since().is_some_and(|since| now.ms_since(since) >= settle_ms)
    }
}

impl PanelDriver {
    /// Takes in whether the panel shows work. A run begins with its first sign.
    pub(super) fn note_busy(&mut self, last: &Push, now: Timestamp) {
        let is_busy = last.busy || !last.dialogs.is_empty();
        self.running.is_busy = is_busy;
        if !is_busy {
            self.running.idle_since.get_or_insert(now);
            return;
        }
        self.running.idle_since = None;
        self.running.expected_until = None;
        self.begin_run(now);
    }

    /// The agent is at work: on what is being sent, or on something of its own.
    pub(super) fn begin_run(&mut self, now: Timestamp) {
        let begun = self.flight().map(|flight| {
            flight.was_busy = true;
            (flight.run.clone(), flight.id.clone())
        });
        if self.scribe.run().is_some() {
            return;
        }
        let (run, cause) = match begun {
            Some((run, cause)) => (run, Some(cause)),
            None => (self.own_run(now), None),
        };
        self.running.was_stopped = false;
        self.scribe.begin_run(run, cause, now);
    }

    /// How long a panel must be quiet now.
    pub(super) fn settle_ms(&self, now: Timestamp) -> u64 {
        let is_at_rest = self.scribe.run().is_none() && now >= self.warm_at;
        if is_at_rest { SETTLE_AT_REST_MS } else { SETTLE_MS }
    }

    /// A name for a run that began in the panel itself.
    fn own_run(&self, now: Timestamp) -> RunId {
        let digest = Sha256::digest(format!("{} {}", self.session, now.0).as_bytes());
        let hex = digest.iter().take(8).fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
        format!("run-panel-{hex}").into()
    }

    /// The run ends when all is quiet.
    pub(super) fn end_quiet_run(&mut self, now: Timestamp) {
        let is_expected = self.running.expected_until.is_some_and(|until| until > now);
        if self.scribe.run().is_none()
            || is_expected
            || self.flight().is_some()
            || !self.running.is_settled(SETTLE_MS, now)
        {
            return;
        }
        self.finish_rows(now);
        let was_stopped = self.running.was_stopped;
        let outcome = if was_stopped { Outcome::Interrupted } else { Outcome::Completed };
        self.end_run(outcome, now);
    }

    pub(super) fn end_run(&mut self, outcome: Outcome, now: Timestamp) {
        self.running.last_ended = self.scribe.run().cloned();
        self.running.was_stopped = false;
        self.running.expected_until = None;
        self.running.told = None;
        self.scribe.end_run(outcome, None, now);
    }

    /// When all will have been quiet long enough.
    pub(super) fn quiet_deadline(&self) -> Option<Timestamp> {
        let is_open = self.scribe.run().is_some() || self.rows.has_unfinished();
        let is_typing = self.is_doing(|it| matches!(it, Purpose::Send(_)));
        if !is_open || is_typing || !self.can_follow() {
            return None;
        }
        let quiet = self.running.quiet_since()?.plus_ms(self.settle_ms(self.woken_at));
        Some(self.running.expected_until.map_or(quiet, |until| until.max(quiet)))
    }

    /// What came of the stop button.
    pub(super) fn stopped(&mut self, request: Option<RequestId>, failure: Option<Failure>) {
        self.running.was_stopped |= failure.is_none() && self.scribe.run().is_some();
        if let Some(request) = request {
            self.scribe.answered(&request, failure);
        }
    }

    /// What the agent does, where that is news. Seconds that count up are none.
    pub(super) fn tell_activity(&mut self, last: &Push, now: Timestamp) {
        let (kind, label) = if !last.dialogs.is_empty() {
            ("waiting_for_user", "Waiting for an answer")
        } else if let Some(activity) = &last.activity {
            (activity.kind.as_str(), activity.label.as_str())
        } else if last.busy || self.scribe.run().is_some() {
            ("generating", "Generating")
        } else {
            ("idle", "Idle")
        };
        let bare: String = label.chars().filter(|c| !c.is_ascii_digit()).collect();
        let told = (kind.to_owned(), bare);
        if self.running.told.as_ref() != Some(&told) {
            self.running.told = Some(told);
            self.scribe.activity(kind, label, now);
        }
    }
}
