//! Requests of people to a session.

use domain::content::{Failure, ToolStatus};
use domain::session::controls::Control;
use domain::session::prompts::AnswerDetail;
use domain::session::runs::Outcome;
use domain::session::status::CloseReason;
use domain::{ChoiceId, PromptId, RequestId, RunId, Timestamp};
use serde_json::json;

use super::life::Why;
use super::observation::call_is;
use super::transport::{self, Purpose};
use super::{Claude, Life};
use crate::{Order, Output};

/// How long a run may take to stop before its program is ended.
const STOPS_WITHIN_MS: u64 = 10_000;

impl Claude {
    /// An order that needs the program, which is up.
    pub(super) fn obey(&mut self, order: &Order, now: Timestamp) {
        match order {
            Order::Deliver { send, attempt, files } => self.deliver(send, *attempt, files),
            Order::Control { request, control } => self.control(request, control, now),
            Order::LookUp { id, attempt } => self.look_up(id, *attempt),
            Order::Answer { request, prompt, choice, detail } => {
                let Some(detail) = self.scribe.open_answer(request, detail.as_ref()) else {
                    return;
                };
                self.answer(request, prompt, choice.as_ref(), &detail, now);
            }
            Order::Rest => self.rest(),
        }
    }

    /// Whether an order is nothing without the program.
    pub(super) fn needs_program(order: &Order) -> bool {
        match order {
            Order::Deliver { .. } => true,
            Order::Control { control, .. } => match control {
                Control::SetModel(_) | Control::SetMode(_) | Control::SetEffort(_) => true,
                Control::Interrupt { .. }
                | Control::ReadConfig
                | Control::Close
                | Control::Answer(_) => false,
            },
            Order::LookUp { .. } | Order::Answer { .. } | Order::Rest => false,
        }
    }

    fn control(&mut self, request: &RequestId, control: &Control, now: Timestamp) {
        match control {
            Control::Interrupt { run } => self.interrupt(request, run.as_ref(), now),
            Control::SetModel(model) => {
                if !self.settings.has_model(model.as_str()) {
                    let words = format!("Claude Code has no model {model}");
                    let failure = Failure::new("model_not_available", words);
                    self.scribe.answered(request, Some(failure));
                    return;
                }
                let wish = json!({"subtype": "set_model", "model": model.as_str()});
                self.ask(Purpose::SetModel(request.clone(), model.clone()), &wish, now);
            }
            Control::SetMode(mode) => {
                let wish = json!({"subtype": "set_permission_mode", "mode": mode});
                self.ask(Purpose::SetMode(request.clone(), mode.clone()), &wish, now);
            }
            Control::SetEffort(effort) => {
                if !self.settings.has_effort(effort, &self.notes.chosen) {
                    let words = format!("The model has no effort level {effort}");
                    let failure = Failure::new("control_not_supported", words);
                    self.scribe.answered(request, Some(failure));
                    return;
                }
                let settings = json!({"effortLevel": effort});
                let wish = json!({"subtype": "apply_flag_settings", "settings": settings});
                self.ask(Purpose::SetEffort(request.clone(), effort.clone()), &wish, now);
            }
            Control::ReadConfig if matches!(self.life, Life::Up) => {
                let purpose = Purpose::Settings(Some(request.clone()));
                self.ask(purpose, &json!({"subtype": "get_settings"}), now);
            }
            // The program rests: what it said last is what it will begin with.
            Control::ReadConfig => {
                if let Some(config) = self.notes.config.clone() {
                    self.scribe.config(config);
                }
                self.scribe.answered(request, None);
            }
            Control::Close => {
                self.scribe.end_run(Outcome::Interrupted, None, now);
                self.scribe.close_all(now);
                self.close(request);
            }
            // Answers come as orders of their own.
            Control::Answer(_) => {}
        }
    }

    pub(super) fn close(&mut self, request: &RequestId) {
        if !matches!(self.life, Life::Down) {
            self.scribe.push(Output::End);
        }
        self.scribe.closed(CloseReason::UserRequested, Some(request.clone()));
    }

    fn interrupt(&mut self, request: &RequestId, meant: Option<&RunId>, now: Timestamp) {
        let run = self.scribe.run();
        let is_meant = meant.is_none() || run.is_none() || meant == run;
        let is_busy = run.is_some() || !self.written.is_empty();
        if !matches!(self.life, Life::Up) || !is_busy || !is_meant {
            let failure =
                Failure::new("agent_not_active", "Nothing to stop: this run is not active");
            let was_waiting = is_meant && self.stop_waiting();
            self.scribe.answered(request, Some(failure).filter(|_| !was_waiting));
            return;
        }
        self.watch.stopping();
        self.interrupts.requests.push(request.clone());
        self.interrupts.until.get_or_insert(now.plus_ms(STOPS_WITHIN_MS));
        // What the agent has queued of ours would begin the next run at once.
        let wish = json!({"subtype": "interrupt", "cancel_queued": true});
        self.ask(Purpose::Interrupt, &wish, now);
    }

    pub(super) fn answer(
        &mut self,
        request: &RequestId,
        prompt: &PromptId,
        choice: Option<&ChoiceId>,
        detail: &AnswerDetail,
        now: Timestamp,
    ) {
        let refuse = |code: &str, words: String| Some(Failure::new(code, words));
        let place = self.questions.iter().position(|(id, _)| id == prompt);
        let Some(place) = place else {
            let words = "The question is no longer open".to_owned();
            self.scribe.answered(request, refuse("prompt_not_found", words));
            return;
        };
        let answer = match self.questions[place].1.answer(choice, detail) {
            Ok(answer) => answer,
            Err(unfit) => {
                self.scribe.answered(request, refuse("invalid_choice", unfit.0));
                return;
            }
        };
        let (prompt, question) = self.questions.remove(place);
        let line = transport::answer(&question.request_id, &answer.response);
        self.scribe.push(Output::Write(line));
        self.scribe.answered(request, None);
        self.scribe.prompt_answered(&prompt, now);
        let Some(call) = question.tool_call() else { return };
        let (watch, scribe) = (&mut self.watch, &mut self.scribe);
        watch.call_was_answered(call);
        match (answer.is_allowed, &answer.input) {
            (true, Some(input)) => watch.call_changed(call, question.tool(), input, scribe, now),
            (true, None) => call_is(call, ToolStatus::Running, scribe, now),
            (false, _) => watch.call_denied(call),
        }
    }

    fn rest(&mut self) {
        if self.is_resting() {
            self.scribe.push(Output::End);
            self.life = Life::Ending(Why::Rest);
        }
    }

    /// Whether the program is up and has nothing to do.
    pub(super) fn is_resting(&self) -> bool {
        matches!(self.life, Life::Up)
            && self.scribe.run().is_none()
            && self.questions.is_empty()
            && self.requests.is_empty()
            && self.waiting.is_empty()
            && self.watch.background == 0
            && !self.is_delivering()
    }

    /// What took too long.
    pub(super) fn late(&mut self, now: Timestamp) {
        if let Life::Starting(starting) = &self.life
            && starting.until <= now
        {
            self.scribe.push(Output::End);
            let words = "Claude Code started but was not ready in time";
            self.cannot_start(&Failure::new("launch_timeout", words), now);
        }
        if self.interrupts.until.take_if(|until| *until <= now).is_some() {
            self.scribe.push(Output::End);
            self.life = Life::Ending(Why::Deaf);
        }
        let failure = Failure::new("control_timeout", "Claude Code did not respond");
        for purpose in self.requests.late(now) {
            if let Some(request) = purpose.request() {
                self.scribe.answered(request, Some(failure.clone()));
            }
        }
    }
}
