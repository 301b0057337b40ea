//! The order in which waiting sends go to the agent, and whether they may go now.
//!
//! The relay owns the queue: what waits here has not left the relay, so it can still be edited,
//! moved or discarded. An interrupt holds it, so that stopping the agent does not start the next
//! thing.
//!
//! Not here: what became of a send (`delivery`).

use serde::{Deserialize, Serialize};

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
