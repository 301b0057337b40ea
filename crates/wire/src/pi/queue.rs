//! The queue as pi's clients see it: steering messages and follow-ups.
//!
//! A send that starts a run at once never appears here. A queued send appears until it leaves for
//! the machine; a steering message appears until the agent has it, as in pi itself.
//!
//! Not here: the queue itself, and whether a send is queued (`domain`).

use std::collections::BTreeMap;

use bytes::Bytes;
use domain::session::delivery::{self, Mode, Send};
use domain::session::{Event, Glance, Line, Wish, queue};
use domain::{Content, MessageId};
use serde_json::{Value, json};

use super::messages::encode;
use super::{Asked, Connection};
use crate::visitor::Act;

/// Characters of a message that an error repeats.
const QUOTED_MAX: usize = 200;

/// What waits, in order. The domain bounds it.
#[derive(Debug)]
pub(super) struct Queue {
    line: Line,
    /// The words of what waits and of what is on its way.
    words: BTreeMap<MessageId, Words>,
    /// The frame that was told last.
    told: Bytes,
}

#[derive(Debug)]
struct Words {
    text: Content<String>,
    is_steer: bool,
}

/// A `clear_queue` under way.
#[derive(Debug, Default)]
pub(super) struct Clearing {
    left: usize,
    steering: Vec<String>,
    follow_up: Vec<String>,
    /// What could not be taken out.
    gone: Vec<String>,
}

impl Queue {
    /// The queue before anything is known of the session.
    pub(super) fn empty() -> Self {
        Self::with(Line::empty(), BTreeMap::new())
    }

    /// What waits when a connection joins.
    pub(super) fn of(glance: &Glance) -> Self {
        let sends = glance.waiting.iter().chain(&glance.handed);
        let words = sends.map(|send| (send.id.clone(), Words::of(send)));
        Self::with(Line::of(glance), words.collect())
    }

    fn with(line: Line, words: BTreeMap<MessageId, Words>) -> Self {
        let mut queue = Self { line, words, told: Bytes::new() };
        queue.told = queue.update();
        queue
    }

    /// Whether the agent works, or is about to.
    pub(super) fn is_at_work(&self) -> bool {
        self.line.is_at_work()
    }

    /// How many are shown.
    pub(super) fn len(&self) -> usize {
        self.line.steering().count() + self.line.len()
    }

    /// Takes in an event; the frame that tells what waits, if that changed.
    pub(super) fn apply(&mut self, event: &Event) -> Option<Bytes> {
        match event {
            Event::Delivery(delivery::Event::Accepted(send)) => {
                self.words.insert(send.id.clone(), Words::of(send));
            }
            Event::Delivery(
                delivery::Event::Delivered { id, .. } | delivery::Event::Failed { id, .. },
            ) => {
                self.words.remove(id);
            }
            Event::Queue(queue::Event::Edited { id, text }) => {
                if let Some(words) = self.words.get_mut(id) {
                    words.text = text.clone();
                }
            }
            Event::Delivery(delivery::Event::HandedOver { .. })
            | Event::Queue(_)
            | Event::Run(_)
            | Event::Config(_)
            | Event::Status(_) => {}
            Event::Prompt(_) | Event::Control(_) | Event::Transcript(_) => return None,
        }
        self.line.apply(event);
        let update = self.update();
        if update == self.told {
            return None;
        }
        self.told = update;
        Some(self.told.clone())
    }

    /// The frame that tells it.
    pub(super) fn update(&self) -> Bytes {
        let of = |is_steer: bool| -> Vec<&str> {
            let shown = self.line.steering().chain(self.line.waiting());
            let words = shown.filter_map(|id| self.words.get(id));
            words.filter(|words| words.is_steer == is_steer).map(Words::as_str).collect()
        };
        encode(&json!({ "type": "queue_update", "steering": of(true), "followUp": of(false) }))
    }

    /// Of these, the ones whose words are known.
    fn words_of<'q>(
        &'q self,
        ids: impl Iterator<Item = &'q MessageId>,
    ) -> Vec<(&'q MessageId, &'q Words)> {
        ids.filter_map(|id| Some((id, self.words.get(id)?))).collect()
    }
}

impl Words {
    fn of(send: &Send) -> Self {
        Self { text: send.text.clone(), is_steer: send.mode == Some(Mode::Steer) }
    }

    fn as_str(&self) -> &str {
        self.text.open().map_or("[sealed]", String::as_str)
    }
}

impl Connection {
    /// Takes out everything that waits. Where something has left already and the agent may still
    /// get it, nothing is taken out: the client would think that it has all of it back.
    pub(super) fn clear_queue(&mut self, flight: u64) -> Vec<Act> {
        let queue = &self.view.queue;
        let left = queue.words_of(queue.line.handed());
        if !left.is_empty() {
            let left = quoted(left.iter().map(|(_, words)| words.as_str()));
            let words = format!(
                "Cannot withdraw {left}: already on its way to the agent. Nothing was removed \
                 from the queue"
            );
            return self.flights.fail(flight, &words).into_iter().collect();
        }
        let waiting = queue.words_of(queue.line.waiting());
        let waiting: Vec<_> = waiting
            .into_iter()
            .map(|(id, words)| (id.clone(), words.as_str().to_owned(), words.is_steer))
            .collect();
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
        let list = match (was_there, is_steer) {
            (false, _) => &mut clearing.gone,
            (true, true) => &mut clearing.steering,
            (true, false) => &mut clearing.follow_up,
        };
        list.push(text);
        if clearing.left > 0 {
            return vec![];
        }
        let clearing = self.clearings.remove(&flight).unwrap_or_default();
        self.cleared(flight, &clearing)
    }

    fn cleared(&mut self, flight: u64, clearing: &Clearing) -> Vec<Act> {
        let Clearing { steering, follow_up, gone, .. } = clearing;
        let data: Value = json!({ "steering": steering, "followUp": follow_up });
        let answer = if gone.is_empty() {
            self.flights.succeed(flight, Some(&data))
        } else {
            let taken = steering.iter().chain(follow_up).map(String::as_str);
            let words = format!(
                "Could not withdraw {}, which may reach the agent; removed from the queue: {}",
                quoted(gone.iter().map(String::as_str)),
                quoted(taken)
            );
            self.flights.fail_with(flight, &words, &data)
        };
        answer.into_iter().collect()
    }
}

/// Messages as an error repeats them.
fn quoted<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let quote = |text: &str| {
        let mut short: String = text.chars().take(QUOTED_MAX).collect();
        if short.len() < text.len() {
            short.push('…');
        }
        format!("\"{short}\"")
    };
    let quotes: Vec<_> = texts.map(quote).collect();
    if quotes.is_empty() { "nothing".to_owned() } else { quotes.join(", ") }
}

/// Queues that are being cleared, by their commands.
pub(super) type Clearings = BTreeMap<u64, Clearing>;
