//! Runs: periods of agent work, from start to end.
//!
//! Not here: what the agent says during a run (`transcript`).

use serde::{Deserialize, Serialize};

use crate::content::Usage;
use crate::{MessageId, RunId, Timestamp};

/// Facts about runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The agent works.
    Started {
        /// Which run.
        run: RunId,
        /// The send that it answers, if one started it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<MessageId>,
    },
    /// The agent rests.
    Ended {
        /// Which run.
        run: RunId,
        /// How it ended.
        outcome: Outcome,
        /// What it took.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    },
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The agent was done.
    Completed,
    /// A person stopped it.
    Interrupted,
    /// The agent gave up.
    Failed(String),
    /// Its end was not told by its agent: its machine stopped in the middle of it, say.
    Cut(Cut),
}

/// How a run was cut off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// Why, for a person.
    pub why: String,
    /// How long it had gone on, where that is known: its end is told much later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasted_ms: Option<u64>,
}

/// State derived from recorded events alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runs {
    active: Option<(RunId, Timestamp)>,
    /// The send that began it, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cause: Option<MessageId>,
    /// The run that ended last, so that a repeated word about it starts nothing.
    last_ended: Option<RunId>,
    /// When its machine went away, while nothing came of the run since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lost_at: Option<Timestamp>,
}

impl Runs {
    /// The run that is going on.
    pub fn active(&self) -> Option<&RunId> {
        self.active.as_ref().map(|(run, _)| run)
    }

    /// When the run that is going on began.
    pub fn began_at(&self) -> Option<Timestamp> {
        self.active.as_ref().map(|(_, at)| *at)
    }

    /// How long the run that is going on went on, as far as that is known. `seen_at` is when it
    /// certainly did: later than its machine went away, if it did.
    pub fn lasted_ms(&self, seen_at: Option<Timestamp>) -> Option<u64> {
        Some(self.lost_at.or(seen_at)?.ms_since(self.began_at()?))
    }

    /// The send that began the run that is going on.
    pub fn cause(&self) -> Option<&MessageId> {
        self.cause.as_ref()
    }

    /// A run starts. A repeated word starts nothing.
    pub fn start(&self, run: &RunId, cause: Option<&MessageId>) -> Option<Event> {
        let is_known = self.active() == Some(run) || self.last_ended.as_ref() == Some(run);
        (!is_known).then(|| Event::Started { run: run.clone(), cause: cause.cloned() })
    }

    /// A run ends. A word about another run than the active one changes nothing.
    pub fn end(&self, run: &RunId, outcome: &Outcome, usage: Option<&Usage>) -> Option<Event> {
        (self.active() == Some(run)).then(|| Event::Ended {
            run: run.clone(),
            outcome: outcome.clone(),
            usage: usage.cloned(),
        })
    }

    /// Its machine went away: what becomes of the run is not known from then on.
    pub fn lose(&mut self, at: Timestamp) {
        if self.active.is_some() {
            self.lost_at = Some(at);
        }
    }

    /// Something came of the run: it goes on.
    pub fn find(&mut self) {
        self.lost_at = None;
    }

    /// Cannot fail: what is recorded has happened.
    pub fn apply(&mut self, event: &Event, at: Timestamp) {
        self.lost_at = None;
        match event {
            Event::Started { run, cause } => {
                self.active = Some((run.clone(), at));
                self.cause.clone_from(cause);
            }
            Event::Ended { run, .. } => {
                self.active = None;
                self.cause = None;
                self.last_ended = Some(run.clone());
            }
        }
    }
}
