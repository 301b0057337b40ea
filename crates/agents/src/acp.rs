//! Any agent that speaks the Agent Client Protocol: Gemini CLI, opencode, and any agent that a
//! person adds in the configuration.
//!
//! The program is started when it is needed and may be stopped while idle. The conversation is the
//! agent's own; the notes name it, and it is loaded again. Farhelm offers the agent the files of
//! its workspace and terminals; the agent may also use the machine's own, and asks for permission.
//!
//! Invariant: there is never a second prompt while one runs; a send is noted before it is written;
//! every request to the program is answered once, however the program ends.
//!
//! Not here: what particular agents do differently (`quirks`), processes (`proxy`).

mod delivery;
mod files;
mod frames;
mod listing;
mod notes;
mod observation;
mod opening;
mod orders;
mod questions;
mod quirks;
mod replay;
mod settings;
mod terminals;
mod tools;
mod transport;
mod turn;

use std::collections::{BTreeMap, VecDeque};

use domain::content::Failure;
use domain::session::runs::Outcome;
use domain::{MessageId, RequestId, Sequence, Timestamp};

use crate::rpc::{Rpc, Version};
use crate::{Driver, Ended, Input, Order, Output, Scribe, Setup};
use files::Files;
pub use listing::{Listed, Listing};
use notes::{Notes, Wanted};
use observation::Observation;
use opening::Starting;
use questions::Questions;
use quirks::Quirks;
use settings::{Abilities, Setting, Settings};
use terminals::Terminals;
use turn::Turn;

/// Orders that wait for the program or for the run's end. Beyond, they are refused.
const HELD_MAX: usize = 64;

/// Why something was asked of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Ask {
    Initialize,
    New,
    Load,
    Fork,
    /// A setting; for whom, unless the session began with it.
    Set(Setting, String, Option<RequestId>),
    Prompt,
}

/// How far the program is.
#[derive(Debug)]
enum Phase {
    /// There is none.
    Resting,
    /// It does not know the conversation yet.
    Starting(Box<Starting>),
    /// It can be spoken to.
    Up,
    /// The session is over, or never was.
    Closed,
}

/// What waits for the program.
#[derive(Debug)]
enum Held {
    Order(Box<Order>),
    /// A send was written and the program died: did it arrive?
    Check(Unsure),
}

/// A send that the program may have taken before it died. Its run stays open until that is known:
/// a run that ends before its send is reported leaves whoever sent it without an answer.
#[derive(Debug)]
struct Unsure {
    id: MessageId,
    attempt: Sequence,
    /// How the run then ends.
    outcome: Outcome,
}

/// One session.
#[derive(Debug)]
pub struct Acp {
    agent: String,
    setup: Setup,
    quirks: Quirks,
    notes: Notes,
    rpc: Rpc<Ask>,
    scribe: Scribe,
    observation: Observation,
    questions: Questions,
    files: Files,
    terminals: Terminals,
    phase: Phase,
    held: VecDeque<Held>,
    turn: Option<Turn>,
    settings: Settings,
    abilities: Abilities,
    /// How an agent of this kind is logged in to, in its own words.
    login_methods: Vec<String>,
    /// How often a person said each text, as this program's record had it when it was loaded.
    replayed: Option<BTreeMap<String, usize>>,
    /// The program, should it end, ends because it was asked to.
    is_ending: bool,
}

impl Acp {
    /// A session with what its notes say.
    pub fn new(agent: &str, setup: Setup) -> Self {
        let notes = Notes::read(&setup.notes);
        let (settings, abilities) = (notes.settings.clone(), notes.abilities.clone());
        Self {
            agent: agent.to_owned(),
            setup,
            quirks: Quirks::of(agent),
            notes,
            rpc: Rpc::new(Version::Told),
            scribe: Scribe::default(),
            observation: Observation::default(),
            questions: Questions::default(),
            files: Files::default(),
            terminals: Terminals::default(),
            phase: Phase::Resting,
            held: VecDeque::new(),
            turn: None,
            settings,
            abilities,
            login_methods: vec![],
            replayed: None,
            is_ending: false,
        }
    }

    /// What people call the agent.
    fn name(&self) -> &str {
        self.quirks.display_name.unwrap_or(&self.agent)
    }

    fn wanted(&self) -> Wanted {
        self.notes.wanted.clone().unwrap_or_else(|| {
            let model = self.setup.model.as_ref().map(|model| model.as_str().to_owned());
            Wanted::new(model, self.setup.mode.clone())
        })
    }

    fn write(&mut self, line: String) {
        self.scribe.push(Output::Write(line));
    }

    fn remember(&mut self, line: String) {
        self.scribe.push(Output::Remember(line));
    }

    fn ask(&mut self, ask: Ask, method: &str, params: serde_json::Value) {
        let line = self.rpc.request(ask, method, params);
        self.write(line);
    }

    fn tell_config(&mut self, now: Timestamp) {
        if let Some(line) = self.notes.note_known(&self.settings, &self.abilities) {
            self.remember(line);
        }
        self.scribe.config(self.settings.config(&self.abilities, now));
    }

    /// Why the program is no more, in words for a person.
    fn reason(&self, ended: &Ended) -> String {
        let words = format!("{} stopped: {}", self.name(), ended.words());
        match self.scribe.last_complaints() {
            Some(complaints) => format!("{words}\n{complaints}"),
            None => words,
        }
    }

    fn ended(&mut self, ended: &Ended, now: Timestamp) {
        let reason = self.reason(ended);
        let was_asked = std::mem::take(&mut self.is_ending);
        for ask in self.rpc.reset() {
            if let Ask::Set(_, _, Some(request)) = ask {
                self.scribe.answered(&request, Some(Failure::new("internal", reason.clone())));
            }
        }
        self.questions.take_all();
        self.files.clear();
        self.terminals.clear();
        match std::mem::replace(&mut self.phase, Phase::Resting) {
            Phase::Closed => self.phase = Phase::Closed,
            Phase::Resting => {}
            Phase::Starting(_) => {
                let code = match ended {
                    Ended::NotStarted(failure) => failure.code.as_str().to_owned(),
                    Ended::Exited(_) | Ended::Killed(_) | Ended::Guarded(_) => {
                        "agent_not_open".to_owned()
                    }
                };
                self.start_failed(Failure::new(&code, reason), now);
            }
            Phase::Up => {
                let stopped = self.cut_turn(&reason, now);
                if !stopped && !was_asked {
                    let words = format!("{reason}\nSend a message to start it again");
                    let health = domain::session::status::Health::Degraded;
                    self.scribe.health(health, Some(words), now);
                }
                self.go_on(now);
            }
        }
    }

    /// Does what waits, as far as the program is ready for it; starts it where it is needed.
    fn go_on(&mut self, now: Timestamp) {
        match &self.phase {
            Phase::Closed | Phase::Starting(_) => {}
            Phase::Resting if self.held.is_empty() => {}
            Phase::Resting => self.spawn(now),
            Phase::Up => self.serve_held(now),
        }
    }
}

impl Driver for Acp {
    fn ready_by(&mut self, at: Timestamp) {
        self.setup.ready_by = Some(at);
    }

    fn start(&mut self, now: Timestamp) -> Vec<Output> {
        if self.notes.is_ready {
            self.scribe.config(self.settings.config(&self.abilities, now));
            self.scribe.tell_status(None, now);
        } else {
            self.spawn(now);
        }
        self.scribe.take()
    }

    fn on_order(&mut self, order: &Order, now: Timestamp) -> Vec<Output> {
        if !matches!(self.phase, Phase::Closed) {
            self.take_order(order, now);
        }
        self.scribe.take()
    }

    fn on_input(&mut self, input: Input, now: Timestamp) -> Vec<Output> {
        match input {
            Input::Line(line) => self.hear(&line, now),
            Input::Complaint(line) => self.scribe.complaint(&line, now),
            Input::Ended(ended) => self.ended(&ended, now),
            Input::Filed { number, outcome } => self.filed(number, outcome),
            Input::Terminal(id, news) => self.terminal_news(id, news, now),
            Input::Held(picture) => self.scribe.held(picture),
            Input::Kept { message, outcome } => {
                self.scribe.kept(&message, outcome);
                self.retold(now);
            }
            // Nothing of the agent's own is read here, and it has no panel.
            Input::Read { .. } | Input::Panel(_) => {}
        }
        self.scribe.take()
    }

    fn on_deadline(&mut self, now: Timestamp) -> Vec<Output> {
        self.scribe.on_deadline(now);
        self.retold(now);
        self.observation.on_deadline(&mut self.scribe, now);
        self.hurry_start(now);
        self.watch_turn(now);
        self.scribe.take()
    }

    fn deadline(&self) -> Option<Timestamp> {
        let starting = match &self.phase {
            Phase::Starting(starting) => Some(starting.deadline()),
            Phase::Resting | Phase::Up | Phase::Closed => None,
        };
        let all =
            [self.scribe.deadline(), self.observation.deadline(), starting, self.turn_deadline()];
        all.into_iter().flatten().min()
    }

    fn conversation(&self) -> Option<&str> {
        self.notes.conversation.as_deref()
    }

    fn shorten_notes(&self, notes: &str) -> Option<String> {
        Some(Notes::shortened(notes))
    }

    fn is_at_rest(&self) -> bool {
        matches!(self.phase, Phase::Up)
            && self.turn.is_none()
            && self.held.is_empty()
            && self.questions.is_empty()
            && self.files.is_empty()
            && !self.terminals.any_at_work()
            && self.rpc.pending().next().is_none()
            && (self.abilities.can_load || !self.notes.has_begun())
    }
}

#[cfg(test)]
mod tests;
