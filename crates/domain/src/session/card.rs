//! The card: what lists and greetings show of a session without opening it.
//!
//! It is stored beside the ledger whenever one of its facts changes. A relay with thousands of
//! sessions therefore starts without replaying any of them, and still wakes those whose deadlines
//! are due.
//!
//! Not here: the head of the ledger, which changes with every event (`store`).

use serde::{Deserialize, Serialize};

use super::config::AgentConfig;
use super::prompts::Prompt;
use super::status::Status;
use super::{Event, Policy, Session};
use crate::{RunId, Timestamp};

/// What lists and greetings show of a session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Card {
    /// Reachability, health and names.
    pub status: Status,
    /// The configuration as last read.
    pub config: Option<AgentConfig>,
    /// The questions that wait for a person.
    pub prompts: Vec<Prompt>,
    /// The run that is going on.
    pub run: Option<RunId>,
    /// Messages of people and of the agent, as of when the card was made.
    #[serde(default)]
    pub messages: u64,
    /// Results of tools, as of when the card was made.
    #[serde(default)]
    pub results: u64,
    /// When time alone changes the session; `None` when the release that made the card did not
    /// say.
    #[serde(default)]
    pub deadlines: Option<Deadlines>,
}

/// What of a session ends by time alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadlines {
    /// Since when the first of its sends waits for the machine that is away. When that send fails
    /// depends on how the relay is configured then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_since: Option<Timestamp>,
    /// When the first prompt or control request expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

impl Deadlines {
    /// The first one.
    pub fn next(self, policy: Policy) -> Option<Timestamp> {
        let grace = self.waiting_since.map(|since| policy.grace_ends(since));
        [grace, self.expires_at].into_iter().flatten().min()
    }
}

impl Card {
    /// Whether this event changes the card.
    pub fn shows(event: &Event) -> bool {
        match event {
            Event::Status(_) | Event::Config(_) | Event::Prompt(_) | Event::Run(_) => true,
            Event::Delivery(_) | Event::Queue(_) | Event::Control(_) | Event::Transcript(_) => {
                false
            }
        }
    }
}

impl Session {
    /// This session's card as of now.
    pub fn card(&self) -> Card {
        Card {
            status: self.status.clone(),
            config: self.config.clone(),
            prompts: self.prompts.open().cloned().collect(),
            run: self.runs.active().cloned(),
            messages: self.transcript.messages(),
            results: self.transcript.results(),
            deadlines: Some(self.deadlines()),
        }
    }
}
