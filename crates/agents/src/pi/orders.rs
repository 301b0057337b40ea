//! Orders from the proxy to pi.
//!
//! Not here: sends (`delivery`), answers (`dialogs`).

use domain::content::Failure;
use domain::session::controls::Control;
use domain::session::runs::Outcome;
use domain::session::status::CloseReason;
use domain::{ModelId, RequestId, RunId, Timestamp};
use serde_json::json;

use super::frames::Response;
use super::life::Life;
use super::notes::Line;
use super::transport::Asked;
use super::{Interrupt, MODES, Pi, WAITING_MAX};
use crate::{Order, Output};

/// How long pi may take to stop. After that its program is ended.
const STOP_WITHIN_MS: u64 = 10_000;

impl Pi {
    pub(super) fn obey(&mut self, order: &Order, now: Timestamp) {
        if self.life != Life::Up && needs_program(order) {
            self.keep(order, now);
            return;
        }
        match order {
            Order::Deliver { send, attempt, files } => self.deliver(send, *attempt, files, now),
            Order::LookUp { id, attempt } => self.look_up(id, *attempt),
            Order::Answer { request, prompt, choice, detail } => {
                let Some(detail) = self.scribe.open_answer(request, detail.as_ref()) else {
                    return;
                };
                self.answer(request, prompt, choice.as_ref(), &detail, now);
            }
            Order::Control { request, control } => self.control(request, control, now),
            Order::Rest => {
                if self.life == Life::Up {
                    self.life = Life::Asleep;
                    self.requests.forget();
                    self.scribe.push(Output::End);
                }
            }
        }
    }

    /// Keeps an order until the program is there.
    fn keep(&mut self, order: &Order, now: Timestamp) {
        if self.waiting.len() >= WAITING_MAX {
            let words = "Too many messages are already queued while pi starts. Try again in a \
                         moment";
            self.fail(order, &Failure::new("send_rejected", words));
            return;
        }
        self.waiting.push_back(order.clone());
        if self.life == Life::Asleep {
            self.wake(now);
        }
    }

    pub(super) fn fail_waiting(&mut self, failure: &Failure) {
        for order in std::mem::take(&mut self.waiting) {
            self.fail(&order, failure);
        }
        for request in std::mem::take(&mut self.readers) {
            self.scribe.answered(&request, Some(failure.clone()));
        }
    }

    fn fail(&mut self, order: &Order, failure: &Failure) {
        match order {
            Order::Deliver { send, attempt, .. } => {
                self.scribe.not_delivered(&send.id, *attempt, failure.clone());
            }
            Order::Answer { request, .. } | Order::Control { request, .. } => {
                self.scribe.answered(request, Some(failure.clone()));
            }
            Order::LookUp { .. } | Order::Rest => {}
        }
    }

    fn control(&mut self, request: &RequestId, control: &Control, now: Timestamp) {
        match control {
            Control::Interrupt { run } => self.interrupt(Some(request), run.as_ref(), now),
            Control::SetModel(model) => self.set_model(request, model),
            Control::SetEffort(effort) => {
                let efforts = self.known.efforts.as_ref();
                if efforts.is_some_and(|efforts| !efforts.contains(effort)) {
                    let words = format!("This model has no thinking level {effort}");
                    let failure = Failure::new("control_not_supported", words);
                    self.scribe.answered(request, Some(failure));
                    return;
                }
                self.ask(Asked::SetEffort(request.clone()), json!({"level": effort}));
            }
            Control::SetMode(mode) => self.set_mode(request, mode, now),
            Control::ReadConfig if self.life == Life::Up => {
                self.readers.push(request.clone());
                self.read_config();
            }
            Control::ReadConfig => {
                self.tell_config(now);
                self.scribe.answered(request, None);
            }
            Control::Close => {
                self.scribe.end_run(Outcome::Interrupted, None, now);
                self.scribe.push(Output::End);
                self.is_closed = true;
                self.scribe.closed(CloseReason::UserRequested, Some(request.clone()));
            }
            // Answers come as orders of their own.
            Control::Answer(_) => {}
        }
    }

    /// By its whole name, or by its own where only one provider has it.
    fn set_model(&mut self, request: &RequestId, model: &ModelId) {
        let wanted = model.as_str();
        let mut of_id = self.known.models.iter().filter(|name| {
            name.as_str() == wanted || name.split_once('/').is_some_and(|(_, id)| id == wanted)
        });
        let exact = self.known.models.iter().find(|name| name.as_str() == wanted);
        let found = exact.or_else(|| of_id.next().filter(|_| of_id.next().is_none()));
        let Some((provider, id)) = found.and_then(|name| name.split_once('/')) else {
            let words = format!("pi has no model {wanted} on this machine");
            self.scribe.answered(request, Some(Failure::new("model_not_available", words)));
            return;
        };
        let command = json!({"provider": provider, "modelId": id});
        self.ask(Asked::SetModel(request.clone()), command);
    }

    /// pi took a setting, or not.
    pub(super) fn was_set(&mut self, request: &RequestId, response: Response) {
        let failure = (!response.success).then(|| {
            let words = response.error.unwrap_or_else(|| "pi rejected the setting".to_owned());
            Failure::new("control_not_supported", words)
        });
        let is_done = failure.is_none();
        self.scribe.answered(request, failure);
        if is_done {
            self.read_config();
        }
    }

    fn set_mode(&mut self, request: &RequestId, mode: &str, now: Timestamp) {
        if !MODES.contains(&mode) {
            let words = format!("Unknown permission mode. pi has: {}", MODES.join(" and "));
            let failure = Failure::new("control_not_supported", words);
            self.scribe.answered(request, Some(failure));
            return;
        }
        let line = self.notes.take(Line::Mode(mode.to_owned()));
        self.scribe.push(line);
        self.scribe.answered(request, None);
        self.tell_config(now);
    }

    /// Stops the run in pi.
    pub(super) fn interrupt(
        &mut self,
        request: Option<&RequestId>,
        meant: Option<&RunId>,
        now: Timestamp,
    ) {
        let active = self.scribe.run();
        if active.is_none() || (meant.is_some() && meant != active) {
            if let Some(request) = request {
                let failure =
                    Failure::new("agent_not_active", "Nothing to stop: this run is not active");
                self.scribe.answered(request, Some(failure));
            }
            return;
        }
        if let Some(interrupt) = &mut self.interrupt {
            interrupt.requests.extend(request.cloned());
            return;
        }
        let requests = request.cloned().into_iter().collect();
        let until = now.plus_ms(STOP_WITHIN_MS);
        self.interrupt = Some(Interrupt { requests, until, is_ending: false });
        // pi would go on with what is in its queue.
        self.clear_queue();
        self.ask(Asked::Abort, json!({}));
        self.cancel_dialogs(now);
    }

    /// A run that does not stop by itself is stopped with its program.
    pub(super) fn insist(&mut self, now: Timestamp) {
        let Some(interrupt) = self.interrupt.as_mut().filter(|it| !it.is_ending) else { return };
        if interrupt.until <= now {
            interrupt.is_ending = true;
            self.scribe.notice("interrupt", "pi did not stop when asked, so its program was ended");
            self.scribe.push(Output::End);
        }
    }
}

/// Whether an order is of no use without the program.
fn needs_program(order: &Order) -> bool {
    match order {
        Order::Deliver { .. } => true,
        Order::Control { control, .. } => match control {
            Control::SetModel(_) | Control::SetEffort(_) => true,
            Control::Interrupt { .. }
            | Control::SetMode(_)
            | Control::ReadConfig
            | Control::Close
            | Control::Answer(_) => false,
        },
        Order::LookUp { .. } | Order::Answer { .. } | Order::Rest => false,
    }
}
