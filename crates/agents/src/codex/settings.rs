//! Changes a thread's settings, and reports the current ones.
//!
//! Not here: what the settings are (`config`).

use domain::content::Failure;
use domain::session::controls::Control;
use domain::{RequestId, Timestamp};
use serde_json::{Value, json};

use super::config::{Mode, mode_names};
use super::frames::ThreadSettings;
use super::notes::Note;
use super::{Codex, Why};
use crate::rpc::RpcError;

/// Which setting is to change.
#[derive(Debug, Clone)]
pub(super) enum Wish {
    Model,
    Effort,
    Mode(String),
}

impl Codex {
    /// The configuration, where it is not as it was last told.
    pub(super) fn tell_config(&mut self, now: Timestamp) {
        let config = self.settings.config(now);
        let is_told = self.notes.config.as_ref().is_some_and(|known| {
            domain::session::config::AgentConfig { read_at: now, ..known.clone() } == config
        });
        if !is_told {
            self.remember(Note::Config(Box::new(config.clone())));
            self.scribe.config(config);
        }
    }

    pub(super) fn settings_updated(&mut self, settings: &ThreadSettings, now: Timestamp) {
        self.settings.updated(settings);
        self.tell_config(now);
    }

    pub(super) fn change_setting(&mut self, request: &RequestId, control: &Control) {
        let wish = match control {
            Control::SetModel(model) if self.settings.has_model(model.as_str()) => {
                Ok((Wish::Model, json!({ "model": model.as_str() })))
            }
            Control::SetModel(model) => {
                Err(Failure::new("model_not_available", format!("Codex has no model {model}")))
            }
            Control::SetEffort(effort) if self.settings.has_effort(effort) => {
                Ok((Wish::Effort, json!({ "effort": effort })))
            }
            Control::SetEffort(effort) => {
                let words = format!("The model has no reasoning effort {effort}");
                Err(Failure::new("effort_not_available", words))
            }
            Control::SetMode(name) => Mode::named(name).map_or_else(
                || {
                    let known = mode_names().join(", ");
                    let words = format!("Codex has no permission mode {name}. Available: {known}");
                    Err(Failure::new("mode_not_available", words))
                },
                |mode| {
                    let sandbox = self.settings.sandbox_policy(&mode);
                    let params = json!({ "approvalPolicy": mode.policy, "sandboxPolicy": sandbox });
                    Ok((Wish::Mode(name.clone()), params))
                },
            ),
            // Done elsewhere: they need no running program.
            Control::Interrupt { .. }
            | Control::ReadConfig
            | Control::Close
            | Control::Answer(_) => return,
        };
        match wish {
            Err(failure) => self.scribe.answered(request, Some(failure)),
            Ok((wish, mut params)) => {
                params["threadId"] = self.thread.as_str().into();
                let why = Why::Settings(request.clone(), wish);
                self.ask(why, "thread/settings/update", params);
            }
        }
    }

    /// The settings themselves follow in a message of their own.
    pub(super) fn setting_answered(
        &mut self,
        request: &RequestId,
        wish: Wish,
        result: Result<Value, RpcError>,
    ) {
        let failure = match (wish, result) {
            (Wish::Mode(name), Ok(_)) => {
                self.remember(Note::ModeChosen(name));
                None
            }
            (Wish::Model | Wish::Effort, Ok(_)) => None,
            (wish, Err(error)) => {
                let code = match wish {
                    Wish::Model => "model_not_available",
                    Wish::Effort | Wish::Mode(_) => "control_not_supported",
                };
                Some(Failure::new(code, format!("Codex rejected the setting: {error}")))
            }
        };
        self.scribe.answered(request, failure);
    }
}
