//! Codex, driven through its app server (`codex app-server`, JSON-RPC over lines).
//!
//! A session is a thread of Codex, a run is a turn. The program is started when it is needed and
//! continues the thread that the notes name; while it starts, orders wait.
//!
//! Invariant: a message is reported as delivered when Codex shows it, because then it is in Codex's
//! own record, under an id from Farhelm. Messages that were interrupted before that are looked up
//! there. The response to the request alone is not enough: a message that was only answered is lost
//! if the program is killed, and one that was meant to steer a turn is dropped if the turn is
//! interrupted.
//!
//! Not here: where the program runs (`proxy`), how its lines are framed (`rpc`).

mod config;
mod delivery;
mod ending;
mod frames;
mod history;
mod items;
mod news;
mod notes;
mod observation;
mod opening;
mod patches;
mod prompts;
mod settings;
mod stored;
mod turns;

use std::collections::VecDeque;

use domain::content::Failure;
use domain::session::controls::Control;
use domain::session::status::CloseReason;
use domain::{RequestId, Timestamp};
use serde_json::Value;

use crate::rpc::{Incoming, Rpc, Version};
use crate::{Driver, Input, Known, Lookup, Order, Output, Scribe, Setup};
use config::Settings;
use delivery::Sent;
use history::Search;
use notes::{Note, Notes};
use observation::Watch;
use opening::Opening;
use prompts::Prompts;
use settings::Wish;
pub use stored::summary;
use turns::Turn;

/// The agent's name in `agent_type`.
pub const AGENT: &str = "codex";
/// What is known of it before it is looked for.
pub(crate) const KNOWN: Known = Known {
    name: AGENT,
    display_name: "Codex",
    command: "codex",
    args: &[],
    install: "Install it with: npm install -g @openai/codex",
};
/// Orders that wait for the program to start, and messages that wait for a run to end. What
/// comes beyond is refused.
const WAITING_MAX: usize = 64;

/// One Codex session.
#[derive(Debug)]
pub struct Codex {
    setup: Setup,
    notes: Notes,
    rpc: Rpc<Why>,
    scribe: Scribe,
    phase: Phase,
    /// As Codex names the conversation that is open.
    thread: String,
    record: Record,
    waiting: VecDeque<Todo>,
    /// Messages for after the run.
    held: VecDeque<Sent>,
    turn: Option<Turn>,
    prompts: Prompts,
    watch: Watch,
    settings: Settings,
}

/// How far the program is.
#[derive(Debug)]
enum Phase {
    /// None runs, or one that is being ended and is not listened to.
    Asleep,
    /// It is being greeted.
    Starting(Opening),
    /// It can be asked.
    Up,
    /// The session is over.
    Closed,
}

/// What Codex has written down of the thread before this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Record {
    /// All that reached it.
    Kept,
    /// Nothing: nothing was said.
    Empty,
    /// Nothing any more, or not yet when it was killed.
    Lost,
}

/// What waits for the program.
#[derive(Debug)]
enum Todo {
    Order(Order),
    /// Written to a program that died: did it arrive?
    Doubt(Sent),
}

/// Why something was asked of Codex.
#[derive(Debug, Clone)]
enum Why {
    Initialize,
    Account,
    Models,
    Open,
    /// A page of an earlier conversation, or all of it from a server without pages.
    Import,
    ImportWhole,
    Start(Sent),
    Steer(Sent),
    Interrupt,
    /// The commands that an interrupted run left behind.
    Terminals(Vec<String>),
    Settings(RequestId, Wish),
    LookUp(Search),
    LookUpWhole(Search),
    /// Whatever the answer is.
    Ignored,
}

impl Codex {
    /// A session with what it remembers.
    pub fn new(setup: Setup) -> Self {
        Self {
            notes: Notes::read(&setup.notes),
            setup,
            rpc: Rpc::new(Version::Left),
            scribe: Scribe::default(),
            phase: Phase::Asleep,
            thread: String::new(),
            record: Record::Kept,
            waiting: VecDeque::new(),
            held: VecDeque::new(),
            turn: None,
            prompts: Prompts::default(),
            watch: Watch::default(),
            settings: Settings::default(),
        }
    }

    fn write(&mut self, line: String) {
        self.scribe.push(Output::Write(line));
    }

    fn ask(&mut self, why: Why, method: &str, params: Value) {
        let line = self.rpc.request(why, method, params);
        self.write(line);
    }

    fn remember(&mut self, note: Note) {
        self.scribe.push(Output::Remember(note.line()));
        self.notes.take(note);
    }

    fn is_up(&self) -> bool {
        matches!(self.phase, Phase::Up)
    }

    fn order(&mut self, order: &Order, now: Timestamp) {
        match order {
            Order::Answer { request, prompt, choice, detail } => {
                let Some(detail) = self.scribe.open_answer(request, detail.as_ref()) else {
                    return;
                };
                self.answer(request, prompt, choice.as_ref(), &detail, now);
            }
            Order::Control { request, control: Control::Interrupt { run } } => {
                self.interrupt(request, run.as_ref(), now);
            }
            Order::Control { request, control: Control::ReadConfig } => {
                let config = match &self.notes.config {
                    Some(known) if !self.is_up() => known.clone(),
                    Some(_) | None => self.settings.config(now),
                };
                self.scribe.config(config);
                self.scribe.answered(request, None);
            }
            Order::Control { request, control: Control::Close } => self.close(request, now),
            // Answers come as orders of their own.
            Order::Control { control: Control::Answer(_), .. } => {}
            Order::Rest => self.rest(),
            Order::Deliver { .. } | Order::LookUp { .. } | Order::Control { .. } => {
                if self.is_up() {
                    self.perform(Todo::Order(order.clone()));
                } else if self.waiting.len() < WAITING_MAX {
                    self.waiting.push_back(Todo::Order(order.clone()));
                    self.wake(now);
                } else {
                    let words = "Too many messages are already queued while Codex starts. Try \
                                 again in a moment";
                    let failure = Failure::new("send_rejected", words);
                    self.refuse(Todo::Order(order.clone()), &failure);
                }
            }
        }
    }

    /// Does what waited for the program.
    fn perform(&mut self, todo: Todo) {
        match todo {
            Todo::Doubt(sent) => self.look_up(Search::doubting(&sent)),
            Todo::Order(Order::Deliver { send, attempt, files }) => {
                self.deliver(&send, attempt, &files);
            }
            Todo::Order(Order::LookUp { id, attempt }) => {
                self.look_up(Search::ordered(&self.setup.session, &id, attempt));
            }
            Todo::Order(Order::Control { request, control }) => {
                self.change_setting(&request, &control);
            }
            // Done at once, they never wait.
            Todo::Order(Order::Answer { .. } | Order::Rest) => {}
        }
    }

    /// The program cannot be had: what waited for it certainly did not happen.
    fn refuse(&mut self, todo: Todo, failure: &Failure) {
        match todo {
            Todo::Doubt(sent) => self.doubt_remains(&sent.id, sent.attempt),
            Todo::Order(Order::Deliver { send, attempt, .. }) => {
                self.scribe.not_delivered(&send.id, attempt, failure.clone());
            }
            Todo::Order(Order::LookUp { id, attempt }) => {
                self.scribe.push(Output::LookedUp { id, attempt, found: Lookup::Unknown });
            }
            Todo::Order(Order::Control { request, .. } | Order::Answer { request, .. }) => {
                self.scribe.answered(&request, Some(failure.clone()));
            }
            Todo::Order(Order::Rest) => {}
        }
    }

    fn rest(&mut self) {
        if self.is_at_rest() {
            self.phase = Phase::Asleep;
            self.rpc.reset();
            self.scribe.push(Output::End);
        }
    }

    fn close(&mut self, request: &RequestId, now: Timestamp) {
        let has_program = matches!(self.phase, Phase::Starting(_) | Phase::Up);
        let words = "The session was closed";
        self.end_turn(domain::session::runs::Outcome::Interrupted, now);
        self.give_up(&Failure::new("session_closed", words));
        self.phase = Phase::Closed;
        if has_program {
            self.scribe.push(Output::End);
        }
        self.scribe.closed(CloseReason::UserRequested, Some(request.clone()));
    }

    fn line(&mut self, line: &str, now: Timestamp) {
        match self.rpc.read(line) {
            Incoming::Answer { tag, result } => self.answered(tag, result, now),
            Incoming::Request { id, method, params } => self.asked(id, &method, &params, now),
            Incoming::Notification { method, params } => self.told(&method, &params, now),
            Incoming::Strange(line) => self.strange(&line, &line),
        }
    }

    fn answered(&mut self, why: Why, result: Result<Value, crate::rpc::RpcError>, now: Timestamp) {
        match why {
            Why::Initialize | Why::Account | Why::Models | Why::Open => {
                self.opening_answered(&why, result, now);
            }
            Why::Import => self.page_of_history(result, now),
            Why::ImportWhole => self.whole_history(result, now),
            Why::Start(sent) => self.start_answered(sent, result, now),
            Why::Steer(sent) => self.steer_answered(sent, result.is_ok()),
            Why::Interrupt => self.interrupt_answered(result, now),
            Why::Terminals(items) => self.terminals_listed(&items, result),
            Why::Settings(request, wish) => self.setting_answered(&request, wish, result),
            Why::LookUp(search) => self.page_looked_up(search, result),
            Why::LookUpWhole(search) => self.whole_looked_up(&search, result),
            Why::Ignored => {}
        }
    }
}

impl Driver for Codex {
    fn ready_by(&mut self, at: Timestamp) {
        self.setup.ready_by = Some(at);
    }

    fn start(&mut self, now: Timestamp) -> Vec<Output> {
        if let Some(config) = self.notes.config.clone().filter(|_| self.notes.thread.is_some()) {
            self.scribe.config(config);
            self.scribe.tell_status(None, now);
        } else {
            self.wake(now);
        }
        self.scribe.take()
    }

    fn on_order(&mut self, order: &Order, now: Timestamp) -> Vec<Output> {
        if !matches!(self.phase, Phase::Closed) {
            self.order(order, now);
        }
        self.scribe.take()
    }

    fn on_input(&mut self, input: Input, now: Timestamp) -> Vec<Output> {
        let is_listening = matches!(self.phase, Phase::Starting(_) | Phase::Up);
        match input {
            Input::Line(line) if is_listening => self.line(&line, now),
            Input::Complaint(line) => self.scribe.complaint(&without_colours(&line), now),
            Input::Ended(ended) if is_listening => self.ended(ended, now),
            Input::Held(picture) => self.scribe.held(picture),
            Input::Kept { message, outcome } => {
                self.scribe.kept(&message, outcome);
                self.retold(now);
            }
            // Codex has the machine's own files and terminals, and no panel.
            Input::Line(_)
            | Input::Ended(_)
            | Input::Read { .. }
            | Input::Filed { .. }
            | Input::Terminal(..)
            | Input::Panel(_) => {}
        }
        self.scribe.take()
    }

    fn on_deadline(&mut self, now: Timestamp) -> Vec<Output> {
        self.scribe.on_deadline(now);
        self.retold(now);
        self.opening_deadline(now);
        self.turn_deadline(now);
        self.scribe.take()
    }

    fn deadline(&self) -> Option<Timestamp> {
        let opening = match &self.phase {
            Phase::Starting(opening) => Some(opening.until()),
            Phase::Asleep | Phase::Up | Phase::Closed => None,
        };
        let turn = self.turn.as_ref().and_then(Turn::deadline);
        [opening, turn, self.scribe.deadline()].into_iter().flatten().min()
    }

    fn conversation(&self) -> Option<&str> {
        self.notes.thread.as_deref()
    }

    fn shorten_notes(&self, notes: &str) -> Option<String> {
        Some(Notes::shortened(notes))
    }

    fn is_at_rest(&self) -> bool {
        let is_waiting = self.rpc.pending().any(|why| !matches!(why, Why::Ignored | Why::Models));
        self.is_up()
            && self.turn.is_none()
            && self.held.is_empty()
            && self.prompts.is_empty()
            && !is_waiting
    }
}

/// Codex paints its complaints for a terminal.
fn without_colours(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find("\u{1b}[") {
        plain.push_str(&rest[..at]);
        let code = &rest[at + 2..];
        let end = code.find(|c: char| c.is_ascii_alphabetic()).map_or(code.len(), |end| end + 1);
        rest = &code[end..];
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests;
