//! The proxy's orders: answers to questions, control commands, idling.

use domain::content::Failure;
use domain::session::controls::Control;
use domain::session::prompts::AnswerDetail;
use domain::session::runs::Outcome;
use domain::session::status::CloseReason;
use domain::{ChoiceId, PromptId, RequestId, RunId, Timestamp};

use super::questions::outcome;
use super::{Acp, Ask, Phase, Setting};
use crate::{Order, Output};

impl Acp {
    pub(super) fn take_order(&mut self, order: &Order, now: Timestamp) {
        match order {
            Order::Deliver { .. } => {
                self.hold(order, now);
                self.go_on(now);
            }
            Order::LookUp { id, attempt } => {
                if let Some(found) = self.look_up_at_once(id, *attempt) {
                    return self.looked_up(id, *attempt, found);
                }
                self.hold(order, now);
                self.go_on(now);
            }
            Order::Answer { request, prompt, choice, detail } => {
                let Some(detail) = self.scribe.open_answer(request, detail.as_ref()) else {
                    return;
                };
                self.answer(request, prompt, choice.as_ref(), &detail, now);
            }
            Order::Control { request, control } => self.control(request, control, now),
            Order::Rest => {
                self.is_ending = true;
                self.phase = Phase::Resting;
                self.scribe.push(Output::End);
            }
        }
    }

    fn answer(
        &mut self,
        request: &RequestId,
        prompt: &PromptId,
        choice: Option<&ChoiceId>,
        detail: &AnswerDetail,
        now: Timestamp,
    ) {
        let question = self.questions.get(prompt);
        let is_there = question.is_some_and(|q| choice.is_none_or(|choice| q.has(choice)));
        let Some(question) = is_there.then(|| self.questions.take(prompt)).flatten() else {
            let failure = Failure::new("prompt_not_found", "The question is no longer open");
            return self.scribe.answered(request, Some(failure));
        };
        let line = self.rpc.answer(&question.id, outcome(choice));
        self.write(line);
        self.heard(now);
        let is_no = choice.is_none_or(|choice| question.is_no(choice));
        if let Some(tool) = question.tool.as_ref().filter(|_| is_no) {
            self.observation.deny(tool, &mut self.scribe, now);
        }
        self.scribe.prompt_answered(prompt, now);
        self.scribe.answered(request, None);
        let has_words = detail.message.as_ref().is_some_and(|words| !words.trim().is_empty());
        if has_words || detail.updated_input.is_some() {
            let words = format!(
                "{} accepts only the choice. The text you added was not sent to it",
                self.name()
            );
            self.scribe.notice("answer", words);
        }
        if detail.stop {
            self.interrupt(None, now);
        }
    }

    pub(super) fn control(&mut self, request: &RequestId, control: &Control, now: Timestamp) {
        match control {
            Control::Interrupt { run } => self.interrupt_order(request, run.as_ref(), now),
            Control::SetModel(model) => {
                self.set_order(request, control, Setting::Model, model.as_str(), now);
            }
            Control::SetMode(mode) => self.set_order(request, control, Setting::Mode, mode, now),
            Control::SetEffort(effort) => {
                self.set_order(request, control, Setting::Effort, effort, now);
            }
            Control::ReadConfig => {
                self.scribe.config(self.settings.config(&self.abilities, now));
                self.scribe.answered(request, None);
            }
            Control::Close => {
                self.scribe.end_run(Outcome::Interrupted, None, now);
                self.scribe.push(Output::End);
                self.phase = Phase::Closed;
                self.scribe.closed(CloseReason::UserRequested, Some(request.clone()));
            }
            // Answers come as orders of their own.
            Control::Answer(_) => {}
        }
    }

    fn interrupt_order(&mut self, request: &RequestId, meant: Option<&RunId>, now: Timestamp) {
        let active = self.scribe.run();
        if active.is_none() || meant.is_some_and(|meant| Some(meant) != active) {
            let failure =
                Failure::new("agent_not_active", "Nothing to stop: this run is not active");
            return self.scribe.answered(request, Some(failure));
        }
        if let Some(unsure) = self.unsure() {
            // The program is gone, so the agent has stopped already.
            unsure.outcome = Outcome::Interrupted;
            return self.scribe.answered(request, None);
        }
        self.interrupt(Some(request.clone()), now);
    }

    fn set_order(
        &mut self,
        request: &RequestId,
        control: &Control,
        setting: Setting,
        value: &str,
        now: Timestamp,
    ) {
        if !matches!(self.phase, Phase::Up) {
            let (request, control) = (request.clone(), control.clone());
            self.hold(&Order::Control { request, control }, now);
            return self.go_on(now);
        }
        let values = self.settings.values(setting);
        if !values.is_some_and(|values| values.iter().any(|known| known == value)) {
            let failure = self.not_available(setting, value);
            return self.scribe.answered(request, Some(failure));
        }
        if !self.set(setting, value, Some(request.clone())) {
            let failure = self.not_available(setting, value);
            self.scribe.answered(request, Some(failure));
        }
    }

    /// Asks the agent to use a value. False where there is no way to.
    pub(super) fn set(
        &mut self,
        setting: Setting,
        value: &str,
        request: Option<RequestId>,
    ) -> bool {
        let conversation = self.notes.conversation.clone().unwrap_or_default();
        let Some((method, params)) = self.settings.request(setting, value, &conversation) else {
            return false;
        };
        self.ask(Ask::Set(setting, value.to_owned(), request), method, params);
        true
    }

    pub(super) fn not_available(&self, setting: Setting, value: &str) -> Failure {
        let (name, word) = (self.name(), setting.word());
        let words = match self.settings.values(setting) {
            Some(values) => {
                format!("{name} has no {word} {value}. Available: {}", values.join(", "))
            }
            None => format!("{name} does not allow its {word} to be changed"),
        };
        Failure::new(setting.code(), words)
    }
}
