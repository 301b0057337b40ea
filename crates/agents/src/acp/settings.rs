//! The settings of a session (model, mode, effort), in either of the protocol's two ways.
//!
//! Older agents have separate methods for models and modes; newer ones have options of any kind. If
//! an agent has both for the same setting, the option counts.

use std::collections::BTreeMap;

use domain::session::config::{AgentConfig, SlashCommand};
use domain::{ModelId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::frames::{ConfigOption, Models, Modes, Opened, OptionValue};

/// Values of one setting that are kept; more are left out.
const VALUES_MAX: usize = 512;

/// Something that can be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Setting {
    Model,
    Mode,
    Effort,
}

impl Setting {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Mode => "mode",
            Self::Effort => "effort",
        }
    }

    /// The code of a failure to choose it.
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::Model => "model_not_available",
            Self::Mode | Self::Effort => "control_not_supported",
        }
    }
}

/// How it is chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Way {
    /// A method of its own.
    Method,
    /// An option of this id.
    Option(String),
}

/// One setting: what it is, and what it could be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Choice {
    way: Way,
    current: String,
    values: Vec<String>,
}

/// What an agent can do, as far as it says so itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Abilities {
    pub(super) can_load: bool,
    pub(super) can_fork: bool,
    pub(super) takes_images: bool,
}

/// All settings as the agent last told them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Settings {
    model: Option<Choice>,
    mode: Option<Choice>,
    effort: Option<Choice>,
    /// Words after a slash, once the agent told them.
    pub(super) commands: Option<Vec<SlashCommand>>,
}

impl Settings {
    /// The agent told some of them.
    pub(super) fn learn(&mut self, opened: Opened) {
        if let Some(Models { current_model_id, available_models }) = opened.models {
            let values = available_models.into_iter().map(|model| model.model_id);
            self.model = choice(Way::Method, current_model_id, values);
        }
        if let Some(Modes { current_mode_id, available_modes }) = opened.modes {
            let values = available_modes.into_iter().map(|mode| mode.id);
            self.mode = choice(Way::Method, current_mode_id, values);
        }
        if let Some(options) = opened.config_options {
            self.learn_options(options);
        }
    }

    /// The agent told its options, all of them.
    pub(super) fn learn_options(&mut self, options: Vec<ConfigOption>) {
        // An effort that the new model does not have is gone; the others have methods too.
        self.effort = None;
        for option in options {
            let place = match option.category.as_str() {
                "model" => &mut self.model,
                "mode" => &mut self.mode,
                "thought_level" => &mut self.effort,
                _ => continue,
            };
            let values = option.options.into_iter().flat_map(flat);
            *place = choice(Way::Option(option.id), option.current_value, values);
        }
    }

    /// It is now so.
    pub(super) fn set(&mut self, setting: Setting, value: &str) {
        if let Some(choice) = self.place(setting) {
            value.clone_into(&mut choice.current);
        }
    }

    pub(super) fn current(&self, setting: Setting) -> Option<&str> {
        self.get(setting).map(|choice| choice.current.as_str())
    }

    /// What it could be; `None` where the agent does not let it be chosen.
    pub(super) fn values(&self, setting: Setting) -> Option<&[String]> {
        self.get(setting).map(|choice| choice.values.as_slice())
    }

    /// The method and its arguments that choose a value.
    pub(super) fn request(
        &self,
        setting: Setting,
        value: &str,
        session: &str,
    ) -> Option<(&'static str, Value)> {
        Some(match (&self.get(setting)?.way, setting) {
            (Way::Option(id), _) => (
                "session/set_config_option",
                json!({ "sessionId": session, "configId": id, "value": value }),
            ),
            (Way::Method, Setting::Model) => {
                ("session/set_model", json!({ "sessionId": session, "modelId": value }))
            }
            (Way::Method, Setting::Mode) => {
                ("session/set_mode", json!({ "sessionId": session, "modeId": value }))
            }
            (Way::Method, Setting::Effort) => return None,
        })
    }

    /// As everybody understands it.
    pub(super) fn config(&self, abilities: &Abilities, now: Timestamp) -> AgentConfig {
        let values = |setting| self.values(setting).map(<[String]>::to_vec);
        let current = |setting| self.current(setting).map(str::to_owned);
        let can = |ability: &str, able| (ability.to_owned(), able);
        let models = values(Setting::Model)
            .map(|models| models.into_iter().map(ModelId::from).collect::<Vec<_>>());
        AgentConfig {
            model: current(Setting::Model).unwrap_or_else(|| "unknown".to_owned()).into(),
            permission_mode: current(Setting::Mode),
            file_access_scope: None,
            available_models: models,
            available_modes: values(Setting::Mode),
            effort: current(Setting::Effort),
            available_efforts: values(Setting::Effort),
            session_file: None,
            commands: self.commands.clone(),
            capabilities: BTreeMap::from([
                can("interrupt", true),
                can("set_model", self.model.is_some()),
                can("permission_mode_change", self.mode.is_some()),
                can("set_effort", self.effort.is_some()),
                can("permission_dialogs", true),
                // A second prompt cancels the first in some of these agents.
                can("steer", false),
                can("images", abilities.takes_images),
                can("resume", abilities.can_load),
            ]),
            read_at: now,
        }
    }

    fn get(&self, setting: Setting) -> Option<&Choice> {
        match setting {
            Setting::Model => self.model.as_ref(),
            Setting::Mode => self.mode.as_ref(),
            Setting::Effort => self.effort.as_ref(),
        }
    }

    fn place(&mut self, setting: Setting) -> Option<&mut Choice> {
        match setting {
            Setting::Model => self.model.as_mut(),
            Setting::Mode => self.mode.as_mut(),
            Setting::Effort => self.effort.as_mut(),
        }
    }
}

fn choice(way: Way, current: String, values: impl Iterator<Item = String>) -> Option<Choice> {
    let values: Vec<_> = values.take(VALUES_MAX).collect();
    (!values.is_empty()).then_some(Choice { way, current, values })
}

fn flat(option: OptionValue) -> Vec<String> {
    let inner = option.options.into_iter().flat_map(flat);
    option.value.into_iter().chain(inner).collect()
}
