//! The running prompt: from the line that is written to its answer.
//!
//! The run begins when the prompt is written, so that a person can stop it before the agent
//! responds. The send counts as delivered when the agent first responds to it.

use domain::content::{Failure, Usage};
use domain::passing::Voice;
use domain::session::runs::Outcome;
use domain::session::status::Health;
use domain::{MessageId, RequestId, RunId, Sequence, Timestamp};
use serde_json::{Value, json};

use super::frames::{Chunk, Named, Opened, Prompted, Update};
use super::questions::outcome;
use super::{Acp, Held, Setting, Unsure, observation};
use crate::Output;
use crate::commands::slash_commands;
use crate::rpc::{INTERNAL_ERROR, RpcError};

/// How long the agent may be silent before it is said to be.
const SILENT_MS: u64 = 60_000;
/// How long the agent may take to stop. Then its program is ended.
const STOP_WITHIN_MS: u64 = 10_000;
/// The protocol's codes for requests that were not taken at all.
const NOT_TAKEN: std::ops::RangeInclusive<i64> = -32_700..=-32_600;

/// A prompt that runs.
#[derive(Debug)]
pub(super) struct Turn {
    id: MessageId,
    attempt: Sequence,
    run: RunId,
    is_delivered: bool,
    stop: Option<Stop>,
    heard_at: Timestamp,
    is_silent: bool,
}

#[derive(Debug)]
struct Stop {
    requests: Vec<RequestId>,
    until: Timestamp,
    is_forced: bool,
}

impl Turn {
    pub(super) fn new(id: MessageId, attempt: Sequence, run: RunId, now: Timestamp) -> Self {
        let (is_delivered, stop, is_silent) = (false, None, false);
        Self { id, attempt, run, is_delivered, stop, heard_at: now, is_silent }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stop.is_some()
    }
}

impl Acp {
    /// The agent said something about the prompt: it has it.
    pub(super) fn evidence(&mut self) {
        let Some(turn) = self.turn.as_mut().filter(|turn| !turn.is_delivered) else { return };
        turn.is_delivered = true;
        let line = self.notes.note_delivered(&turn.id, turn.attempt);
        self.scribe.push(Output::Remember(line));
        self.scribe.delivered(&turn.id, turn.attempt, Some(turn.run.clone()));
    }

    /// The agent is not silent.
    pub(super) fn heard(&mut self, now: Timestamp) {
        let Some(turn) = &mut self.turn else { return };
        turn.heard_at = now;
        if std::mem::take(&mut turn.is_silent) {
            self.scribe.health(Health::Healthy, None, now);
        }
    }

    /// What the agent tells of its work.
    pub(super) fn observe(&mut self, update: Update, now: Timestamp) {
        self.heard(now);
        let quirks = self.quirks;
        match update {
            // Our own words, told back.
            Update::User(_) => self.evidence(),
            Update::Agent(chunk) => self.agent_words(&chunk, now),
            Update::Thought(chunk) => {
                self.evidence();
                let voice = Voice::Thinking;
                self.observation.words(&chunk, voice, &quirks, &mut self.scribe, now);
            }
            Update::Tool(mut frame) => {
                self.evidence();
                // However the agent puts it, what ends now was cut off.
                let is_stopping = self.turn.as_ref().is_some_and(Turn::is_stopping);
                if is_stopping && matches!(frame.status.as_deref(), Some("completed" | "failed")) {
                    frame.status = Some("cancelled".to_owned());
                }
                self.fill_terminals(&mut frame);
                self.observation.tool(&frame, &quirks, &mut self.scribe, now);
            }
            Update::Plan(lines) => {
                self.evidence();
                self.scribe.plan(observation::plan(lines));
            }
            Update::Commands(commands) => self.learn_commands(&commands, now),
            Update::Mode(mode) => self.mode_changed(&mode, now),
            Update::Options(options) => {
                let before = self.settings.clone();
                self.settings.learn_options(options);
                self.tell_if_changed(&before, now);
            }
            Update::Usage(usage) => self.observation.usage(&usage, &mut self.scribe),
            Update::Other => {}
            Update::Unknown(what) => self.observation.strange(&what, &mut self.scribe),
        }
    }

    fn agent_words(&mut self, chunk: &Chunk, now: Timestamp) {
        let quirks = self.quirks;
        let text = chunk.content.text.as_deref().unwrap_or("");
        if let Some(mode) = quirks.mode_mark.and_then(|mark| text.strip_prefix(mark)) {
            let mode = mode.trim().to_owned();
            return self.mode_changed(&mode, now);
        }
        if quirks.notice_marks.iter().any(|mark| text.starts_with(mark)) {
            return self.scribe.notice("agent", text.trim());
        }
        self.evidence();
        self.observation.words(chunk, Voice::Text, &quirks, &mut self.scribe, now);
    }

    fn mode_changed(&mut self, mode: &str, now: Timestamp) {
        let before = self.settings.clone();
        self.settings.set(Setting::Mode, mode);
        self.tell_if_changed(&before, now);
    }

    fn tell_if_changed(&mut self, before: &super::Settings, now: Timestamp) {
        // While the program starts, everything is told at its end.
        if self.settings != *before && matches!(self.phase, super::Phase::Up) {
            self.tell_config(now);
        }
    }

    /// Words after a slash that the agent understands, told when they are new.
    pub(super) fn learn_commands(&mut self, commands: &[Named], now: Timestamp) {
        let before = self.settings.clone();
        let listed = commands.iter().map(|it| (it.name.as_str(), it.description.as_deref()));
        self.settings.commands = Some(slash_commands(listed));
        self.tell_if_changed(&before, now);
    }

    /// The answer to the prompt: the run is over.
    pub(super) fn prompted(&mut self, result: Result<Value, RpcError>, now: Timestamp) {
        let Some(turn) = &self.turn else { return };
        let is_refused = !turn.is_delivered && !turn.is_stopping();
        let was_stopped = turn.is_stopping();
        self.heard(now);
        let (outcome, usage) = match result {
            Ok(result) => {
                self.evidence();
                let prompted: Prompted = super::frames::read(result);
                let usage = self.usage_of(&prompted);
                (self.outcome_of(&prompted, was_stopped), usage)
            }
            Err(error) => {
                let failure = self.failure_of(&error);
                let is_not_taken = NOT_TAKEN.contains(&error.code) && error.code != INTERNAL_ERROR;
                if is_refused && is_not_taken {
                    self.not_taken(&failure);
                }
                self.evidence();
                let failed = Outcome::Failed(failure.message);
                (if was_stopped { Outcome::Interrupted } else { failed }, None)
            }
        };
        self.end_turn(outcome, usage, now);
        self.go_on(now);
    }

    /// The agent refused the prompt itself: it certainly does not have it.
    fn not_taken(&mut self, failure: &Failure) {
        let Some(turn) = &mut self.turn else { return };
        turn.is_delivered = true;
        let failure = Failure::new("send_rejected", failure.message.clone());
        self.scribe.not_delivered(&turn.id, turn.attempt, failure);
    }

    fn outcome_of(&mut self, prompted: &Prompted, was_stopped: bool) -> Outcome {
        if was_stopped {
            return Outcome::Interrupted;
        }
        match prompted.stop_reason.as_str() {
            "cancelled" => Outcome::Interrupted,
            "refusal" => Outcome::Failed(format!("{} refused to answer", self.name())),
            "max_tokens" => {
                self.scribe.notice("limit", "The answer reached the token limit");
                Outcome::Completed
            }
            "max_turn_requests" => {
                self.scribe.notice("limit", "The agent reached its limit of model requests");
                Outcome::Completed
            }
            _ => Outcome::Completed,
        }
    }

    fn usage_of(&self, prompted: &Prompted) -> Option<Usage> {
        let quota = &prompted.meta.quota.token_count;
        let tokens = prompted.usage.as_ref();
        let usage = Usage {
            input_tokens: tokens.and_then(|t| t.input).or(quota.input_tokens),
            output_tokens: tokens.and_then(|t| t.output).or(quota.output_tokens),
            cached_tokens: tokens.and_then(|t| t.cached_read),
            cost_micro_usd: self.observation.cost_micro_usd(),
        };
        (usage != Usage::default()).then_some(usage)
    }

    fn end_turn(&mut self, outcome: Outcome, usage: Option<Usage>, now: Timestamp) {
        let Some(turn) = self.turn.take() else { return };
        for request in turn.stop.into_iter().flat_map(|stop| stop.requests) {
            self.scribe.answered(&request, None);
        }
        for (prompt, question) in self.questions.take_all() {
            let line = self.rpc.answer(&question.id, super::questions::outcome(None));
            self.write(line);
            self.scribe.prompt_gone(&prompt, now);
        }
        self.scribe.end_run(outcome, usage, now);
        self.observation.end_run();
    }

    /// The program ended under the run. Tells whether a person wanted that.
    pub(super) fn cut_turn(&mut self, reason: &str, now: Timestamp) -> bool {
        let Some(turn) = &self.turn else { return false };
        let was_stopped = turn.is_stopping();
        let failed = Outcome::Failed(reason.to_owned());
        let outcome = if was_stopped { Outcome::Interrupted } else { failed };
        if turn.is_delivered {
            self.end_turn(outcome, None, now);
        } else {
            self.suspend_turn(outcome, now);
        }
        was_stopped
    }

    /// Nothing of the run goes on, but it ends only when it is known whether its send arrived.
    fn suspend_turn(&mut self, outcome: Outcome, now: Timestamp) {
        let Some(turn) = self.turn.take() else { return };
        for request in turn.stop.into_iter().flat_map(|stop| stop.requests) {
            self.scribe.answered(&request, None);
        }
        self.scribe.close_all(now);
        self.observation.end_run();
        let (id, attempt) = (turn.id, turn.attempt);
        self.held.push_front(Held::Check(Unsure { id, attempt, outcome }));
    }

    /// A person wants the run to stop.
    pub(super) fn interrupt(&mut self, request: Option<RequestId>, now: Timestamp) {
        let Some(turn) = &mut self.turn else { return };
        if let Some(stop) = &mut turn.stop {
            stop.requests.extend(request);
            return;
        }
        let until = now.plus_ms(STOP_WITHIN_MS);
        let requests = request.into_iter().collect();
        turn.stop = Some(Stop { requests, until, is_forced: false });
        let conversation = self.notes.conversation.clone().unwrap_or_default();
        let line = self.rpc.notification("session/cancel", json!({ "sessionId": conversation }));
        self.write(line);
        for (prompt, question) in self.questions.take_all() {
            let line = self.rpc.answer(&question.id, outcome(None));
            self.write(line);
            self.scribe.prompt_gone(&prompt, now);
            if let Some(tool) = question.tool {
                self.observation.deny(&tool, &mut self.scribe, now);
            }
        }
    }

    pub(super) fn turn_deadline(&self) -> Option<Timestamp> {
        let turn = self.turn.as_ref()?;
        if let Some(stop) = &turn.stop {
            return (!stop.is_forced).then_some(stop.until);
        }
        let may_be_silent = turn.is_silent
            || !self.questions.is_empty()
            || self.observation.any_tool_at_work()
            || self.terminals.any_at_work();
        (!may_be_silent).then(|| turn.heard_at.plus_ms(SILENT_MS))
    }

    /// The agent is silent, or does not stop.
    pub(super) fn watch_turn(&mut self, now: Timestamp) {
        if self.turn_deadline().is_none_or(|at| now < at) {
            return;
        }
        let Some(turn) = &mut self.turn else { return };
        if let Some(stop) = &mut turn.stop {
            // A person must always be able to stop it.
            stop.is_forced = true;
            self.scribe.push(Output::End);
            return;
        }
        turn.is_silent = true;
        let words = "The model provider is not responding; the agent may be retrying. Stop the \
                     run to cancel";
        self.scribe.health(Health::Degraded, Some(words.to_owned()), now);
    }

    /// The agent's answer to a changed setting.
    pub(super) fn was_set(
        &mut self,
        setting: Setting,
        value: &str,
        request: Option<RequestId>,
        result: Result<Value, RpcError>,
        now: Timestamp,
    ) {
        let failure = match result {
            Ok(result) => {
                self.settings.set(setting, value);
                self.settings.learn(super::frames::read::<Opened>(result));
                None
            }
            Err(error) => {
                Some(Failure::new(setting.code(), format!("{} reported: {error}", self.name())))
            }
        };
        let Some(request) = request else { return self.set_at_start(setting, failure, now) };
        if failure.is_none() {
            let line = self.notes.note_wanted(setting, value);
            self.remember(line);
            self.tell_config(now);
        }
        self.scribe.answered(&request, failure);
    }
}
