//! A glance: everything that is open in a session right now. It is for a client that starts to
//! watch the session in a dialect that shows one session at a time.
//!
//! From then on a watcher follows the queue with a [`Line`](super::Line).
//!
//! Not here: the conversation (the ledger), messages that are still being written (`passing`).

use super::delivery::Send;
use super::transcript::ContextUse;
use super::{Card, Session};
use crate::{MessageId, RunId, Timestamp};

/// What is open in a session.
#[derive(Debug, Clone)]
pub struct Glance {
    /// Status, configuration, prompts.
    pub card: Card,
    /// Sends that wait for their turn, in order.
    pub waiting: Vec<Send>,
    /// Sends that are with the machine, and not yet known to be with the agent.
    pub handed: Vec<Send>,
    /// Whether they wait for a person to let them go on.
    pub is_held: bool,
    /// The run that goes on, and the send that began it, where that is known.
    pub run: Option<(RunId, Option<MessageId>)>,
    /// When that run began.
    pub run_began_at: Option<Timestamp>,
    /// How full the agent's context is, where it said so.
    pub context: Option<ContextUse>,
}

impl Session {
    /// What is open now.
    pub fn glance(&self) -> Glance {
        let ids = self.queue.order().iter();
        Glance {
            card: self.card(),
            waiting: ids.filter_map(|id| self.sends.waiting(id).cloned()).collect(),
            handed: self.sends.owed().into_iter().map(|(_, send)| send.clone()).collect(),
            is_held: self.queue.is_held(),
            run: self.runs.active().map(|run| (run.clone(), self.runs.cause().cloned())),
            run_began_at: self.runs.began_at(),
            context: self.transcript.context(),
        }
    }
}
