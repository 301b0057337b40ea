//! What waits for the agent, as pi's clients see it: steering messages and follow-ups.
//!
//! A send that begins a run at once never shows here. One that waits shows until the agent has it.
//!
//! Not here: the queue itself, which the relay owns (`domain`).

use std::collections::BTreeMap;

use bytes::Bytes;
use domain::session::delivery::{self, Mode, Send};
use domain::session::{Event, Recorded, Wish, queue};
use domain::{Content, MessageId};
use serde_json::{Value, json};

use super::messages::encode;
use super::{Asked, Connection};
use crate::visitor::Act;

/// What waits, in order. The domain bounds it.
#[derive(Debug, Default)]
pub(super) struct Queue {
    sends: Vec<Queued>,
    is_held: bool,
}

#[derive(Debug)]
struct Queued {
    id: MessageId,
    text: Content<String>,
    is_steer: bool,
    /// Whether it left for the machine.
    is_handed: bool,
    /// Whether it was shown as waiting.
    is_shown: bool,
}

/// A `clear_queue` under way.
#[derive(Debug, Default)]
pub(super) struct Clearing {
    left: usize,
    steering: Vec<String>,
    follow_up: Vec<String>,
}

impl Queue {
    /// What waits when a connection joins.
    pub(super) fn of(waiting: &[Send], is_held: bool) -> Self {
        let sends = waiting.iter().map(|send| Queued::of(send, true)).collect();
        Self { sends, is_held }
    }

    /// Whether something is on its way to an agent that rests.
    pub(super) fn is_starting(&self) -> bool {
        self.sends.iter().any(|send| send.is_handed)
    }

    /// How many are shown.
    pub(super) fn len(&self) -> usize {
        self.sends.iter().filter(|send| send.is_shown).count()
    }

    /// Takes in an event; whether what is shown changed. `is_free`: whether the agent would take
    /// a send at once.
    pub(super) fn apply(&mut self, event: &Event, is_free: bool) -> bool {
        match event {
            Event::Delivery(event) => self.on_delivery(event, is_free),
            Event::Queue(queue::Event::Held) => {
                self.is_held = true;
                false
            }
            Event::Queue(queue::Event::Resumed) => {
                self.is_held = false;
                false
            }
            Event::Queue(queue::Event::Edited { id, text }) => {
                let Some(send) = self.sends.iter_mut().find(|send| send.id == *id) else {
                    return false;
                };
                send.text = text.clone();
                send.is_shown
            }
            Event::Queue(queue::Event::Moved { id, to }) => self.shift(id, *to),
            Event::Prompt(_)
            | Event::Run(_)
            | Event::Control(_)
            | Event::Config(_)
            | Event::Status(_)
            | Event::Transcript(_) => false,
        }
    }

    fn on_delivery(&mut self, event: &delivery::Event, is_free: bool) -> bool {
        match event {
            delivery::Event::Accepted(send) => {
                let waits = !is_free || self.is_held || !self.sends.is_empty();
                self.sends.push(Queued::of(send, waits));
                waits
            }
            delivery::Event::HandedOver { id, .. } => {
                if let Some(send) = self.sends.iter_mut().find(|send| send.id == *id) {
                    send.is_handed = true;
                }
                false
            }
            delivery::Event::Delivered { id, .. } | delivery::Event::Failed { id, .. } => {
                let Some(at) = self.sends.iter().position(|send| send.id == *id) else {
                    return false;
                };
                self.sends.remove(at).is_shown
            }
        }
    }

    /// Places count among those that have not left.
    fn shift(&mut self, id: &MessageId, to: usize) -> bool {
        let Some(at) = self.sends.iter().position(|send| send.id == *id) else { return false };
        let moved = self.sends.remove(at);
        let waiting = self.sends.iter().enumerate().filter(|(_, send)| !send.is_handed);
        let place = waiting.map(|(place, _)| place).nth(to).unwrap_or(self.sends.len());
        self.sends.insert(place, moved);
        true
    }

    /// The frame that tells it.
    pub(super) fn update(&self) -> Bytes {
        let of = |is_steer: bool| -> Vec<&str> {
            let shown = self.sends.iter().filter(|send| send.is_shown);
            shown.filter(|send| send.is_steer == is_steer).map(Queued::words).collect()
        };
        encode(&json!({ "type": "queue_update", "steering": of(true), "followUp": of(false) }))
    }
}

impl Queued {
    fn of(send: &Send, is_shown: bool) -> Self {
        Self {
            id: send.id.clone(),
            text: send.text.clone(),
            is_steer: send.mode == Some(Mode::Steer),
            is_handed: false,
            is_shown,
        }
    }

    fn words(&self) -> &str {
        self.text.open().map_or("[sealed]", String::as_str)
    }
}

impl Connection {
    /// Takes out everything that has not left for the machine.
    pub(super) fn clear_queue(&mut self, flight: u64) -> Vec<Act> {
        let waiting = self.view.queue.sends.iter().filter(|send| !send.is_handed);
        let waiting: Vec<_> =
            waiting.map(|send| (send.id.clone(), send.words().to_owned(), send.is_steer)).collect();
        if waiting.is_empty() {
            return self.cleared(flight, &Clearing::default());
        }
        let clearing = Clearing { left: waiting.len(), ..Clearing::default() };
        self.clearings.insert(flight, clearing);
        let mut acts = vec![];
        for (id, text, is_steer) in waiting {
            let ticket = self.ticket(Asked::Discard { flight, text, is_steer });
            let wish = Box::new(Wish::DiscardQueued { id });
            acts.push(Act::Wish { session: self.view.session.clone(), wish, ticket });
        }
        acts
    }

    /// One was taken out, or had left meanwhile.
    pub(super) fn on_discarded(
        &mut self,
        flight: u64,
        text: String,
        is_steer: bool,
        was_there: bool,
    ) -> Vec<Act> {
        let Some(clearing) = self.clearings.get_mut(&flight) else { return vec![] };
        clearing.left -= 1;
        if was_there {
            let list = if is_steer { &mut clearing.steering } else { &mut clearing.follow_up };
            list.push(text);
        }
        if clearing.left > 0 {
            return vec![];
        }
        let clearing = self.clearings.remove(&flight).unwrap_or_default();
        self.cleared(flight, &clearing)
    }

    fn cleared(&mut self, flight: u64, clearing: &Clearing) -> Vec<Act> {
        let data: Value = json!({ "steering": clearing.steering, "followUp": clearing.follow_up });
        self.flights.succeed(flight, Some(&data)).into_iter().collect()
    }

    /// What waits, if that changed by this event.
    pub(super) fn queue_frame(&mut self, recorded: &Recorded) -> Option<Bytes> {
        let is_free = self.view.run.is_none() && self.view.is_up;
        let changed = self.view.queue.apply(&recorded.event, is_free);
        changed.then(|| self.view.queue.update())
    }
}

/// Queues that are being cleared, by their commands.
pub(super) type Clearings = BTreeMap<u64, Clearing>;
