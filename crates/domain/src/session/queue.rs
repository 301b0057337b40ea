//! The order in which queued sends go to the agent, and whether they may go now.
//!
//! The relay owns the queue. A queued send has not left the relay, so it can still be edited,
//! moved or discarded. An interrupt holds the queue, so that stopping the agent does not start the
//! next run.
//!
//! Not here: the outcome of a send (`delivery`).

use serde::{Deserialize, Serialize};

use super::delivery::Mode;
use crate::{Content, MessageId, Refusal};

/// Messages that can wait for one agent.
pub const WAITING_MAX: usize = 1_000;
/// Sends that may be with a proxy at once, all of a plain one or the steers; the rest wait here.
pub const HANDED_MAX: usize = 64;

/// Facts about the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A person stopped the agent: what waits stays where it is.
    Held,
    /// What waits may go on.
    Resumed,
    /// The words of a waiting message changed.
    Edited {
        /// Which message.
        id: MessageId,
        /// Its new words.
        text: Content<String>,
    },
    /// A waiting message changed its place.
    Moved {
        /// Which message.
        id: MessageId,
        /// From 0.
        to: usize,
    },
}

/// How the machine is reached, as far as sends are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// It is not: everything waits.
    Away,
    /// By a plain v1 proxy, which takes every send at once.
    Plain,
    /// By a proxy with a journal, which takes one send after the other.
    Linked,
}

/// Everything that decides whether a waiting send may leave.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    /// How the machine is reached.
    pub reach: Reach,
    /// Whether the agent takes messages in the middle of a run.
    pub can_steer: bool,
    /// Whether a run is active.
    pub has_run: bool,
    /// Whether an interrupt holds the queue.
    pub is_held: bool,
    /// Sends that are with the proxy and not settled.
    pub handed: usize,
}

impl Way {
    /// The waiting sends that may leave now, next first.
    pub fn leaving<'a>(
        &self,
        waiting: impl Iterator<Item = (&'a MessageId, Option<Mode>)> + Clone,
    ) -> Vec<&'a MessageId> {
        if self.is_held {
            return vec![];
        }
        let room = HANDED_MAX.saturating_sub(self.handed);
        match self.reach {
            Reach::Away => vec![],
            Reach::Plain => waiting.take(room).map(|(id, _)| id).collect(),
            Reach::Linked => {
                let steers = waiting.clone().filter(|(_, mode)| *mode == Some(Mode::Steer));
                let steers = steers.take(if self.can_steer { room } else { 0 });
                let steers: Vec<_> = steers.map(|(id, _)| id).collect();
                if !steers.is_empty() {
                    return steers;
                }
                let is_busy = self.has_run || self.handed > 0;
                waiting.take(usize::from(!is_busy)).map(|(id, _)| id).collect()
            }
        }
    }
}

/// State derived from recorded events alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    order: Vec<MessageId>,
    held: bool,
}

impl Queue {
    /// The waiting messages, next first.
    pub fn order(&self) -> &[MessageId] {
        &self.order
    }

    /// Whether an interrupt holds it.
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// One more may wait.
    pub fn admit(&self) -> Result<(), Refusal> {
        if self.order.len() >= WAITING_MAX {
            return Err(Refusal::QueueFull { limit: WAITING_MAX });
        }
        Ok(())
    }

    /// A person edits a message that still waits.
    pub fn edit(&self, id: &MessageId, text: &Content<String>) -> Result<Event, Refusal> {
        self.place(id)?;
        Ok(Event::Edited { id: id.clone(), text: text.clone() })
    }

    /// A person moves a message that still waits.
    pub fn shift(&self, id: &MessageId, to: usize) -> Result<Event, Refusal> {
        self.place(id)?;
        Ok(Event::Moved { id: id.clone(), to: to.min(self.order.len() - 1) })
    }

    /// Where a message waits.
    pub fn place(&self, id: &MessageId) -> Result<usize, Refusal> {
        let place = self.order.iter().position(|waiting| waiting == id);
        place.ok_or_else(|| Refusal::NotQueued(id.clone()))
    }

    /// Cannot fail: what is recorded has happened.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Held => self.held = true,
            Event::Resumed => self.held = false,
            Event::Edited { .. } => {}
            Event::Moved { id, to } => {
                self.leave(id);
                self.order.insert((*to).min(self.order.len()), id.clone());
            }
        }
    }

    /// An accepted send waits at the end.
    pub fn join(&mut self, id: &MessageId) {
        self.order.push(id.clone());
    }

    /// A send was handed over or ended.
    pub fn leave(&mut self, id: &MessageId) {
        self.order.retain(|waiting| waiting != id);
    }
}
