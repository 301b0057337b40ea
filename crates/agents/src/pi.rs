//! The driver of pi, through its RPC mode.
//!
//! pi itself asks no permission questions. An extension that comes with the driver asks before
//! every tool call that does more than read, and Farhelm does not use pi if that extension did not
//! report.
//!
//! | matter | how |
//! |---|---|
//! | a send | `prompt`; delivered when pi has accepted it and has it in its record |
//! | a steer | `prompt` with `streamingBehavior: steer`; delivered when pi takes it out of its queue |
//! | interrupt | `clear_queue` and `abort`: otherwise pi continues with the rest of its queue |
//! | end of a run | `agent_settled`; in versions before it, `agent_end` and a check of its state |
//! | look-up | entries of pi's session file after the one noted before the write |
//!
//! Invariant: pi's own queue is empty while no run is active, and holds only steers while one is.
//!
//! Not here: starting programs and reading files (`proxy`).

mod delivery;
mod dialogs;
mod frames;
mod life;
mod lookup;
mod notes;
mod observation;
mod orders;
mod stored;
mod tools;
mod transport;

use std::collections::VecDeque;

use domain::{RequestId, Timestamp};

use crate::{Driver, Input, Order, Output, Scribe, Setup};
use delivery::{Deliveries, Leaf};
use dialogs::Dialogs;
use life::Life;
use lookup::Sought;
use notes::{Known, Notes};
use observation::Watch;
use transport::Requests;

pub use stored::summary;

/// The agent's name in `agent_type`.
pub const AGENT: &str = "pi";
/// Asks before a tool does anything but look.
const MODE_ASK: &str = "ask";
/// Asks nothing.
const MODE_YOLO: &str = "yolo";
/// How it may be told to ask for permission; the first is how it starts.
const MODES: [&str; 2] = [MODE_ASK, MODE_YOLO];
/// Orders that wait for the program. Beyond, they fail.
const WAITING_MAX: usize = 64;

/// One pi session.
#[derive(Debug)]
pub struct Pi {
    setup: Setup,
    notes: Notes,
    scribe: Scribe,
    life: Life,
    requests: Requests,
    /// What pi last said of itself.
    known: Known,
    /// How many of the questions about its configuration are not answered yet.
    reading: usize,
    /// Those who wait for the configuration to be read.
    readers: Vec<RequestId>,
    waiting: VecDeque<Order>,
    deliveries: Deliveries,
    leaf: Leaf,
    dialogs: Dialogs,
    watch: Watch,
    interrupt: Option<Interrupt>,
    lookups: Vec<Sought>,
    is_closed: bool,
}

/// A run that is to stop.
#[derive(Debug)]
struct Interrupt {
    requests: Vec<RequestId>,
    until: Timestamp,
    is_ending: bool,
}

impl Pi {
    /// A session with what it remembers.
    pub fn new(setup: Setup) -> Self {
        let notes = Notes::read(&setup.notes);
        let known = notes.known.clone().unwrap_or_default();
        let leaf = notes.last_leaf().map_or(Leaf::Unknown, |leaf| Leaf::At(leaf.to_owned()));
        Self {
            setup,
            notes,
            scribe: Scribe::default(),
            life: Life::Asleep,
            requests: Requests::default(),
            known,
            reading: 0,
            readers: vec![],
            waiting: VecDeque::new(),
            deliveries: Deliveries::default(),
            leaf,
            dialogs: Dialogs::default(),
            watch: Watch::default(),
            interrupt: None,
            lookups: vec![],
            is_closed: false,
        }
    }

    fn mode(&self) -> &str {
        let chosen = self.notes.mode.as_deref().or(self.setup.mode.as_deref());
        chosen.unwrap_or(MODE_ASK)
    }
}

impl Driver for Pi {
    fn ready_by(&mut self, at: Timestamp) {
        self.setup.ready_by = Some(at);
    }

    fn start(&mut self, now: Timestamp) -> Vec<Output> {
        self.begin(now);
        self.scribe.take()
    }

    fn on_order(&mut self, order: &Order, now: Timestamp) -> Vec<Output> {
        if !self.is_closed {
            self.obey(order, now);
        }
        self.scribe.take()
    }

    fn on_input(&mut self, input: Input, now: Timestamp) -> Vec<Output> {
        if !self.is_closed {
            match input {
                Input::Line(line) => self.hear(&line, now),
                Input::Complaint(line) => self.scribe.complaint(&line, now),
                Input::Ended(ended) => self.ended(&ended, now),
                Input::Read { path, text } => self.read(&path, text.as_deref(), now),
                Input::Held(picture) => self.scribe.held(picture),
                Input::Kept { message, outcome } => {
                    self.scribe.kept(&message, outcome);
                    self.retold(now);
                }
                // pi has the machine's own, and no panel.
                Input::Filed { .. } | Input::Terminal(..) | Input::Panel(_) => {}
            }
        }
        self.scribe.take()
    }

    fn on_deadline(&mut self, now: Timestamp) -> Vec<Output> {
        if !self.is_closed {
            self.scribe.on_deadline(now);
            self.retold(now);
            self.give_up_start(now);
            self.insist(now);
            self.deliver_overdue(now);
        }
        self.scribe.take()
    }

    fn deadline(&self) -> Option<Timestamp> {
        if self.is_closed {
            return None;
        }
        let insist = self.interrupt.as_ref().filter(|it| !it.is_ending).map(|it| it.until);
        let due =
            [self.scribe.deadline(), self.life.deadline(), self.deliveries.deadline(), insist];
        due.into_iter().flatten().min()
    }

    fn conversation(&self) -> Option<&str> {
        Some(self.known.session.as_str()).filter(|session| !session.is_empty())
    }

    fn shorten_notes(&self, notes: &str) -> Option<String> {
        Some(Notes::shortened(notes))
    }

    fn is_at_rest(&self) -> bool {
        self.life == Life::Up
            && self.scribe.run().is_none()
            && !self.scribe.is_asking_any()
            && self.deliveries.is_idle()
            && self.lookups.is_empty()
            && self.readers.is_empty()
            && !self.requests.has_setting()
    }
}

#[cfg(test)]
mod tests;
