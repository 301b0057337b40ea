//! Turns of Codex as runs: how they begin and end, how they are stopped, and what they used.
//!
//! Invariant: a person can always stop a run. If a turn does not end when it is interrupted, the
//! program is ended.
//!
//! Not here: what happens during a turn (`observation`).

use domain::content::{Failure, Usage};
use domain::session::runs::Outcome;
use domain::{RequestId, RunId, Timestamp};
use serde_json::{Value, json};

use super::delivery::Sent;
use super::frames::{self, Terminals, Tokens, TokensUsed, read};
use super::{Codex, Why};
use crate::Output;
use crate::rpc::RpcError;

/// How long an interrupt may take.
const INTERRUPT_MS_MAX: u64 = 10_000;

/// The turn that goes on.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) run: RunId,
    /// As Codex names it; not known until it answered.
    id: Option<String>,
    /// The message that began it, while Codex has taken it but not shown it.
    unshown: Option<Sent>,
    /// Those that steer it, while Codex has taken them but not shown them.
    steering: Vec<Sent>,
    /// The interrupts that wait for its end.
    interrupts: Vec<RequestId>,
    /// When it is ended with the program.
    stop_at: Option<Timestamp>,
    /// What the thread had taken when the turn began, and has taken now.
    before: Option<Tokens>,
    now: Option<Tokens>,
    /// Why Codex gave up.
    pub(super) error: Option<String>,
}

impl Turn {
    /// One that we ask for.
    pub(super) fn ours(run: RunId) -> Self {
        Self {
            run,
            id: None,
            unshown: None,
            steering: vec![],
            interrupts: vec![],
            stop_at: None,
            before: None,
            now: None,
            error: None,
        }
    }

    /// Codex took the message that begins it.
    pub(super) fn taken(&mut self, sent: Sent) {
        self.unshown = Some(sent);
    }

    /// Codex took a message that steers it.
    pub(super) fn taken_to_steer(&mut self, sent: Sent) {
        self.steering.push(sent);
    }

    /// The message that began it, if it is not shown yet.
    pub(super) fn take_unshown(&mut self) -> Option<Sent> {
        self.unshown.take()
    }

    /// The steering message of this id, if it is not shown yet.
    pub(super) fn take_steering(&mut self, client: &str) -> Option<Sent> {
        let at = self.steering.iter().position(|sent| sent.client == client)?;
        Some(self.steering.remove(at))
    }

    /// All messages that Codex took and did not show.
    pub(super) fn take_all_unshown(&mut self) -> Vec<Sent> {
        let steering = std::mem::take(&mut self.steering);
        self.unshown.take().into_iter().chain(steering).collect()
    }

    /// Its name, if it is known and nobody wants it to stop.
    pub(super) fn steerable_id(&self) -> Option<String> {
        self.id.clone().filter(|_| self.interrupts.is_empty())
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.stop_at
    }

    fn usage(&self) -> Option<Usage> {
        let (before, now) = (self.before?, self.now?);
        let took = |of: fn(&Tokens) -> u64| Some(of(&now).saturating_sub(of(&before)));
        Some(Usage {
            input_tokens: took(|tokens| tokens.input),
            output_tokens: took(|tokens| tokens.output),
            cached_tokens: took(|tokens| tokens.cached),
            cost_micro_usd: None,
        })
    }
}

impl Codex {
    /// The name of the turn that we asked for is known.
    pub(super) fn turn_named(&mut self, id: &str) {
        let Some(turn) = self.turn.as_mut().filter(|turn| turn.id.is_none()) else { return };
        turn.id = Some(id.to_owned());
        if turn.interrupts.is_empty() {
            self.deliver_held();
        } else {
            self.ask_to_stop();
        }
    }

    /// Codex begins to work: on what we asked, or on its own account.
    pub(super) fn turn_started(&mut self, started: &frames::Turn, now: Timestamp) {
        if self.turn.is_some() {
            self.turn_named(&started.id);
            return;
        }
        let run = RunId::from(format!("run-{}", started.id).as_str());
        self.turn = Some(Turn { id: Some(started.id.clone()), ..Turn::ours(run.clone()) });
        self.scribe.begin_run(run, None, now);
    }

    pub(super) fn turn_completed(&mut self, completed: &frames::Turn, now: Timestamp) {
        let Some(turn) = &self.turn else { return };
        if turn.id.as_ref() != Some(&completed.id) {
            return;
        }
        let outcome = match completed.status.as_str() {
            "interrupted" => Outcome::Interrupted,
            "failed" => {
                let told = completed.error.as_ref().map(frames::TurnError::words);
                let words = told.or_else(|| turn.error.clone());
                Outcome::Failed(words.unwrap_or_else(|| "Codex gave no reason".to_owned()))
            }
            _ => Outcome::Completed,
        };
        let left_behind = match outcome {
            Outcome::Interrupted | Outcome::Cut(_) => self.watch.running_commands(),
            Outcome::Completed | Outcome::Failed(_) => vec![],
        };
        self.end_turn(outcome, now);
        if !left_behind.is_empty() {
            // Codex lets commands go on behind an interrupted turn; a person wants them stopped.
            let params = json!({ "threadId": self.thread });
            self.ask(Why::Terminals(left_behind), "thread/backgroundTerminals/list", params);
        }
        self.deliver_held();
    }

    /// The turn is over, however.
    pub(super) fn end_turn(&mut self, outcome: Outcome, now: Timestamp) {
        self.turn_shown(now);
        let Some(mut turn) = self.turn.take() else { return };
        self.not_steered(std::mem::take(&mut turn.steering), &outcome);
        self.watch.turn_ended();
        self.prompts.clear();
        for request in &turn.interrupts {
            self.scribe.answered(request, None);
        }
        self.scribe.end_run(outcome, turn.usage(), now);
    }

    /// Codex did not begin the turn.
    pub(super) fn turn_refused(&mut self, now: Timestamp) {
        if self.turn.as_ref().is_some_and(|turn| turn.id.is_none()) {
            self.end_turn(Outcome::Interrupted, now);
        }
    }

    pub(super) fn interrupt(&mut self, request: &RequestId, meant: Option<&RunId>, now: Timestamp) {
        let meant = |turn: &&mut Turn| meant.is_none_or(|run| *run == turn.run);
        let Some(turn) = self.turn.as_mut().filter(meant) else {
            let words = "Nothing to stop: this run is not active";
            self.scribe.answered(request, Some(Failure::new("agent_not_active", words)));
            return;
        };
        turn.interrupts.push(request.clone());
        turn.stop_at.get_or_insert(now.plus_ms(INTERRUPT_MS_MAX));
        if turn.id.is_some() && turn.interrupts.len() == 1 {
            self.ask_to_stop();
        }
    }

    fn ask_to_stop(&mut self) {
        let Some(id) = self.turn.as_ref().and_then(|turn| turn.id.clone()) else { return };
        let params = json!({ "threadId": self.thread, "turnId": id });
        self.ask(Why::Interrupt, "turn/interrupt", params);
    }

    /// The end of the turn is told on its own; an error means that there is none any more.
    pub(super) fn interrupt_answered(&mut self, result: Result<Value, RpcError>, now: Timestamp) {
        let is_over = result.is_err_and(|error| error.message.contains("no active turn"));
        if is_over && self.turn.as_ref().is_some_and(|turn| !turn.interrupts.is_empty()) {
            self.end_turn(Outcome::Interrupted, now);
            self.deliver_held();
        }
    }

    pub(super) fn terminals_listed(&mut self, items: &[String], result: Result<Value, RpcError>) {
        let Some(Terminals { data }) = result.ok().and_then(|result| read(&result)) else { return };
        for terminal in data.iter().filter(|terminal| items.contains(&terminal.item_id)) {
            let params = json!({ "threadId": self.thread, "processId": terminal.process_id });
            self.ask(Why::Ignored, "thread/backgroundTerminals/terminate", params);
        }
    }

    pub(super) fn turn_deadline(&mut self, now: Timestamp) {
        let Some(turn) = &mut self.turn else { return };
        if turn.stop_at.is_some_and(|at| at <= now) {
            turn.stop_at = None;
            self.scribe.notice("interrupt", "Codex did not stop when asked, so it was ended");
            self.scribe.push(Output::End);
        }
    }

    pub(super) fn is_being_stopped(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| !turn.interrupts.is_empty())
    }

    pub(super) fn tokens_used(&mut self, used: &TokensUsed) {
        let usage = &used.token_usage;
        if let Some(window) = usage.model_context_window {
            self.scribe.context(usage.last.all, window);
        }
        let Some(turn) = &mut self.turn else { return };
        if turn.id.is_some() && turn.id == used.turn_id {
            turn.before.get_or_insert_with(|| usage.total.less(&usage.last));
            turn.now = Some(usage.total);
        }
    }
}

impl Tokens {
    fn less(&self, other: &Self) -> Self {
        Self {
            all: self.all.saturating_sub(other.all),
            input: self.input.saturating_sub(other.input),
            cached: self.cached.saturating_sub(other.cached),
            output: self.output.saturating_sub(other.output),
        }
    }
}
