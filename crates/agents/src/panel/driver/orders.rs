//! The proxy's orders: control commands, and the available choices.

use std::collections::BTreeMap;

use domain::content::Failure;
use domain::session::config::AgentConfig;
use domain::session::controls::Control;
use domain::session::status::{CloseReason, Health};
use domain::{ModelId, RequestId, RunId, Timestamp};

use super::{PanelDriver, Phase, Purpose};
use crate::Order;
use crate::panel::{Done, Task};

/// Models of a menu that are kept; more are left out.
const MODELS_MAX: usize = 256;

impl PanelDriver {
    pub(super) fn take_order(&mut self, order: &Order, now: Timestamp) {
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
            // There is no program that could rest.
            Order::Rest => {}
        }
    }

    fn control(&mut self, request: &RequestId, control: &Control, now: Timestamp) {
        match control {
            Control::Interrupt { run } => self.interrupt(request, run.as_ref(), now),
            Control::SetModel(model) => self.set_model(request, model, now),
            Control::ReadConfig => self.read_config(request, now),
            Control::SetMode(_) | Control::SetEffort(_) => {
                let name = &self.profile.display_name;
                let words = format!("{name} allows this to be changed only in its own window");
                let failure = Failure::new("control_not_supported", words);
                self.scribe.answered(request, Some(failure));
            }
            Control::Close if self.phase == Phase::Attached => {
                self.ask(Task::Close, Purpose::Close(request.clone()), now);
            }
            Control::Close => self.close(CloseReason::UserRequested, Some(request.clone()), now),
            // Answers come as orders of their own.
            Control::Answer(_) => {}
        }
    }

    /// Why nothing can be done in the panel now.
    fn obstacle(&self) -> Option<Failure> {
        let reason = self.verdict.as_ref().and_then(|verdict| verdict.reason.clone());
        let reason = reason.unwrap_or_else(|| "Farhelm has not found the panel yet".to_owned());
        match self.health() {
            _ if self.phase != Phase::Attached => Some(Failure::new("agent_not_open", reason)),
            Health::AgentUiChanged | Health::ScrapingFailed => {
                Some(Failure::new("selector_failure", reason))
            }
            Health::Healthy | Health::Degraded | Health::Disconnected => None,
        }
    }

    fn interrupt(&mut self, request: &RequestId, meant: Option<&RunId>, now: Timestamp) {
        let failure = if self.profile.stop.is_none() {
            let words = format!("{} has no stop button", self.profile.display_name);
            Some(Failure::new("control_not_supported", words))
        } else if let Some(obstacle) = self.obstacle() {
            Some(obstacle)
        } else {
            let active = self.scribe.run();
            let is_other = meant.is_some_and(|meant| active != Some(meant));
            (active.is_none() || is_other).then(|| {
                Failure::new("agent_not_active", "Nothing to stop: this run is not active")
            })
        };
        match failure {
            Some(failure) => self.scribe.answered(request, Some(failure)),
            None => self.ask(Task::Stop, Purpose::Stop(Some(request.clone())), now),
        }
    }

    fn can_choose_model(&self) -> bool {
        self.profile.model.as_ref().is_some_and(|model| model.option.is_some())
    }

    fn set_model(&mut self, request: &RequestId, model: &ModelId, now: Timestamp) {
        let failure = if self.can_choose_model() {
            let busy = || Failure::new("control_failed", "The agent is running. Stop it first");
            let is_busy =
                self.running.is_busy || self.is_doing(|it| matches!(it, Purpose::Send(_)));
            self.obstacle().or_else(|| is_busy.then(busy))
        } else {
            let words = format!("{} does not offer a choice of models", self.profile.display_name);
            Some(Failure::new("control_not_supported", words))
        };
        if failure.is_some() {
            return self.scribe.answered(request, failure);
        }
        let task = Task::SetModel(model.as_str().to_owned());
        self.ask(task, Purpose::SetModel(model.clone(), Some(request.clone())), now);
    }

    pub(super) fn model_was_set(
        &mut self,
        model: &ModelId,
        request: Option<RequestId>,
        failure: Option<Failure>,
        now: Timestamp,
    ) {
        match (request, failure) {
            (Some(request), failure) => self.scribe.answered(&request, failure),
            (None, Some(failure)) => {
                let words = format!("Could not switch to the model {model}: {}", failure.message);
                self.scribe.notice("model", words);
            }
            (None, None) => {}
        }
        // What it is now the panel itself says.
        self.look(now);
    }

    /// The models are read from the open menu, which flashes: only when nobody is disturbed, and
    /// once.
    fn read_config(&mut self, request: &RequestId, now: Timestamp) {
        let composer = self.sight.last.as_ref().and_then(|last| last.composer.as_ref());
        // Many panels have the focus all the time; whether somebody types the hand sees.
        let is_undisturbed = composer.is_some_and(|it| it.is_empty);
        let is_free = !self.running.is_busy && self.scribe.run().is_none() && self.jobs.is_empty();
        let can = self.can_choose_model() && self.models.is_none() && self.obstacle().is_none();
        if can && is_undisturbed && is_free {
            return self.ask(Task::ReadModels, Purpose::ReadModels(request.clone()), now);
        }
        self.config = None;
        self.tell_config(now);
        self.scribe.answered(request, None);
    }

    pub(super) fn models_were_read(
        &mut self,
        request: &RequestId,
        outcome: Result<Done, Failure>,
        now: Timestamp,
    ) {
        match outcome {
            Ok(Done::Models(mut models)) => {
                models.truncate(MODELS_MAX);
                self.models = Some(models);
            }
            Ok(Done::Plainly) => {}
            Err(failure) => {
                let words = format!("Could not read the list of models: {}", failure.message);
                self.scribe.notice("model", words);
            }
        }
        self.config = None;
        self.tell_config(now);
        self.scribe.answered(request, None);
    }

    /// The configuration, where it is news.
    pub(super) fn tell_config(&mut self, now: Timestamp) {
        let config = self.read_as_config(now);
        let is_same =
            |told: &AgentConfig| AgentConfig { read_at: config.read_at, ..told.clone() } == config;
        if self.config.as_ref().is_some_and(is_same) {
            return;
        }
        self.config = Some(config.clone());
        self.scribe.config(config);
    }

    fn read_as_config(&self, now: Timestamp) -> AgentConfig {
        let seen = self.sight.last.as_ref().and_then(|last| last.model.clone());
        // While nothing is seen, what was seen last stands.
        let before = self.config.as_ref().map(|config| config.model.clone());
        let model = seen.map(ModelId::from).or(before).unwrap_or_else(|| "unknown".into());
        let models = self.models.clone();
        let can = |ability: &str, able| (ability.to_owned(), able);
        AgentConfig {
            model,
            permission_mode: None,
            file_access_scope: None,
            available_models: models.map(|all| all.into_iter().map(ModelId::from).collect()),
            available_modes: None,
            effort: None,
            available_efforts: None,
            commands: None,
            session_file: None,
            capabilities: BTreeMap::from([
                can("interrupt", self.profile.stop.is_some()),
                can("set_model", self.can_choose_model()),
                can("permission_mode_change", false),
                can("set_effort", false),
                can("permission_dialogs", self.profile.prompt.is_some()),
                can("steer", false),
                can("images", self.profile.composer.takes_images),
                can("resume", false),
            ]),
            read_at: now,
        }
    }
}
