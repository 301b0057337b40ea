//! Claude Code: driven over its standard input and output in lines of JSON, with its control
//! protocol for questions, interrupts and settings.
//!
//! | file | what |
//! |---|---|
//! | `transport` | how it is started, what is written to it, requests of ours |
//! | `frames` | what it prints |
//! | `life` | when its program runs, with which conversation |
//! | `hearing`, `observation` | what follows from what it prints |
//! | `orders`, `delivery`, `questions` | what people ask of it, send to it, answer it |
//! | `stored` | its own record of conversations |
//!
//! Invariant: a send counts as delivered when the agent took it, not when it only queued it.
//!
//! Not here: processes and files themselves (`proxy`).

mod delivery;
mod frames;
mod hearing;
mod import;
mod life;
mod notes;
mod observation;
mod orders;
mod plans;
mod questions;
mod settings;
pub mod stored;
mod tools;
mod transport;

use std::collections::VecDeque;

use domain::{PromptId, RequestId, Timestamp};

use crate::{Driver, Input, Known, Order, Output, Scribe, Setup};
use delivery::{Searched, Written};
use life::Life;
use notes::Notes;
use observation::Watch;
use questions::Question;
use settings::Settings;
use transport::Requests;

/// The agent's name in `agent_type`.
pub const AGENT: &str = "claude";

/// What is known of it before it is looked for.
pub(crate) const KNOWN: Known = Known {
    name: AGENT,
    display_name: "Claude Code",
    command: "claude",
    args: &[],
    install: "Install it with: npm install -g @anthropic-ai/claude-code",
};

/// One session of Claude Code.
#[derive(Debug)]
pub struct Claude {
    setup: Setup,
    notes: Notes,
    settings: Settings,
    life: Life,
    /// Orders that came while the program was not up.
    waiting: VecDeque<Order>,
    requests: Requests,
    written: VecDeque<Written>,
    searches: VecDeque<Searched>,
    /// Questions that wait, each under the name that people know it by.
    questions: Vec<(PromptId, Question)>,
    interrupts: Interrupts,
    watch: Watch,
    scribe: Scribe,
}

/// People who wait for a run to stop.
#[derive(Debug, Default)]
struct Interrupts {
    requests: Vec<RequestId>,
    /// When the program is ended because it did not.
    until: Option<Timestamp>,
}

impl Claude {
    /// A session, new or with what was noted of it.
    pub fn new(setup: Setup) -> Self {
        let notes = Notes::read(&setup.notes);
        Self {
            settings: Settings::new(setup.mode.as_deref()),
            notes,
            setup,
            life: Life::Down,
            waiting: VecDeque::new(),
            requests: Requests::default(),
            written: VecDeque::new(),
            searches: VecDeque::new(),
            questions: vec![],
            interrupts: Interrupts::default(),
            watch: Watch::default(),
            scribe: Scribe::default(),
        }
    }
}

impl Driver for Claude {
    fn ready_by(&mut self, at: Timestamp) {
        self.setup.ready_by = Some(at);
    }

    fn start(&mut self, now: Timestamp) -> Vec<Output> {
        self.begin(now);
        self.scribe.take()
    }

    fn on_order(&mut self, order: &Order, now: Timestamp) -> Vec<Output> {
        if Self::needs_program(order) && !matches!(self.life, Life::Up) {
            self.wait(order, now);
        } else {
            self.obey(order, now);
        }
        self.scribe.take()
    }

    fn on_input(&mut self, input: Input, now: Timestamp) -> Vec<Output> {
        match input {
            Input::Line(line) => self.hear(&line, now),
            Input::Complaint(line) => self.scribe.complaint(&line, now),
            Input::Ended(how) => self.ended(&how, now),
            Input::Read { path, text } => {
                self.found(&path, text.as_deref());
                self.import(&path, text.as_deref(), now);
                self.located(&path, text.is_some(), now);
            }
            Input::Held(picture) => self.scribe.held(picture),
            Input::Kept { message, outcome } => {
                self.scribe.kept(&message, outcome);
                self.retold(now);
            }
            // Claude Code has the machine's own, and no panel.
            Input::Filed { .. } | Input::Terminal(..) | Input::Panel(_) => {}
        }
        self.scribe.take()
    }

    fn on_deadline(&mut self, now: Timestamp) -> Vec<Output> {
        self.scribe.on_deadline(now);
        self.watch.on_deadline(&mut self.scribe, now);
        self.late(now);
        self.retold(now);
        self.scribe.take()
    }

    fn deadline(&self) -> Option<Timestamp> {
        let starting = match &self.life {
            Life::Starting(starting) => Some(starting.until),
            Life::Down
            | Life::Importing(_)
            | Life::Retelling
            | Life::Locating(_)
            | Life::Up
            | Life::Ending(_) => None,
        };
        let due = [
            starting,
            self.interrupts.until,
            self.requests.deadline(),
            self.watch.deadline(),
            self.scribe.deadline(),
        ];
        due.into_iter().flatten().min()
    }

    fn conversation(&self) -> Option<&str> {
        self.notes.conversation.as_deref()
    }

    fn shorten_notes(&self, notes: &str) -> Option<String> {
        Some(Notes::shortened(notes))
    }

    fn is_at_rest(&self) -> bool {
        self.is_resting()
    }
}

#[cfg(test)]
mod tests;
