//! Models, modes and effort: the available values and the current ones.
//!
//! Invariant: only values that the agent itself reported are offered.

use std::collections::BTreeMap;

use domain::session::config::{AgentConfig, SlashCommand};
use domain::{ModelId, Timestamp};

use super::frames::{Introduction, Model};
use super::notes::Chosen;
use crate::commands::slash_commands;

/// Modes that every session can be switched to.
const MODES: [&str; 3] = ["default", "acceptEdits", "plan"];
/// The mode that asks nothing; only for sessions that were begun in it.
const BYPASS: &str = "bypassPermissions";

/// What the agent told of its settings.
#[derive(Debug, Default)]
pub(super) struct Settings {
    models: Vec<Model>,
    /// In full, as the agent names it.
    pub(super) model: Option<String>,
    pub(super) mode: Option<String>,
    pub(super) effort: Option<String>,
    may_bypass: bool,
    commands: Vec<SlashCommand>,
}

impl Settings {
    /// Before the program ran: as it was asked for.
    pub(super) fn new(mode: Option<&str>) -> Self {
        Self { may_bypass: mode == Some(BYPASS), ..Self::default() }
    }

    /// The program introduced itself.
    pub(super) fn introduce(&mut self, introduction: Introduction) {
        self.models = introduction.models;
        let named = introduction.commands.iter();
        let named = named.map(|it| (it.name.as_str(), it.description.as_deref()));
        self.commands = slash_commands(named);
        self.mode = introduction.current_permission_mode.or(self.mode.take());
    }

    /// Whether there is such a model.
    pub(super) fn has_model(&self, value: &str) -> bool {
        self.models.iter().any(|model| model.value == value)
    }

    /// What a model's short name stands for.
    pub(super) fn resolved(&self, value: &str) -> String {
        let model = self.models.iter().find(|model| model.value == value);
        model.and_then(|model| model.resolved.clone()).unwrap_or_else(|| value.to_owned())
    }

    /// Whether the current model can think this hard.
    pub(super) fn has_effort(&self, effort: &str, chosen: &Chosen) -> bool {
        self.efforts(&self.shown_model(chosen)).iter().any(|known| known == effort)
    }

    fn efforts(&self, value: &str) -> &[String] {
        let model = self.models.iter().find(|model| model.value == value);
        model.map(|model| model.supported_effort_levels.as_slice()).unwrap_or_default()
    }

    /// The model by the name it is offered under.
    fn shown_model(&self, chosen: &Chosen) -> String {
        let chosen = chosen.model.as_deref();
        let Some(model) = self.model.as_deref() else {
            return chosen.unwrap_or("unknown").to_owned();
        };
        if let Some(chosen) = chosen
            && (chosen == model || self.resolved(chosen) == model)
        {
            return chosen.to_owned();
        }
        let by_name = self.models.iter().find(|known| known.value == model);
        let by_meaning =
            || self.models.iter().find(|known| known.resolved.as_deref() == Some(model));
        by_name.or_else(by_meaning).map_or_else(|| model.to_owned(), |known| known.value.clone())
    }

    /// All of it, as everybody understands it.
    pub(super) fn config(&self, chosen: &Chosen, now: Timestamp) -> AgentConfig {
        let model = self.shown_model(chosen);
        let efforts = self.efforts(&model).to_vec();
        let mut offered: Vec<String> = MODES.map(str::to_owned).to_vec();
        offered.extend(self.may_bypass.then(|| BYPASS.to_owned()));
        let other = self.mode.clone().filter(|mode| !offered.contains(mode));
        offered.extend(other);
        let can = |ability: &str, able| (ability.to_owned(), able);
        AgentConfig {
            model: model.as_str().into(),
            permission_mode: self.mode.clone(),
            file_access_scope: None,
            available_models: Some(
                self.models.iter().map(|model| ModelId::from(model.value.as_str())).collect(),
            ),
            available_modes: Some(offered),
            effort: self.effort.clone().filter(|_| !efforts.is_empty()),
            capabilities: BTreeMap::from([
                can("interrupt", true),
                can("set_model", true),
                can("permission_mode_change", true),
                can("permission_dialogs", true),
                can("set_effort", !efforts.is_empty()),
                can("steer", true),
                can("images", true),
                can("resume", true),
            ]),
            available_efforts: Some(efforts).filter(|efforts| !efforts.is_empty()),
            session_file: None,
            commands: Some(self.commands.clone()),
            read_at: now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        let model = |value: &str, resolved: &str| Model {
            value: value.into(),
            resolved: Some(resolved.into()),
            supported_effort_levels: vec!["low".into(), "high".into()],
        };
        let models =
            vec![model("default", "opus-5"), model("opus", "opus-5"), model("haiku", "haiku-5")];
        Settings { models, model: Some("opus-5".into()), ..Settings::default() }
    }

    #[test]
    fn a_model_is_shown_by_the_name_it_was_chosen_by() {
        let mut settings = settings();
        let opus = Chosen { model: Some("opus".into()), effort: None };
        assert_eq!(settings.config(&Chosen::default(), Timestamp(1)).model.as_str(), "default");
        assert_eq!(settings.config(&opus, Timestamp(1)).model.as_str(), "opus");
        settings.model = Some("haiku-5".into());
        assert_eq!(settings.config(&opus, Timestamp(1)).model.as_str(), "haiku");
        settings.model = Some("other".into());
        let config = settings.config(&opus, Timestamp(1));
        assert_eq!(config.model.as_str(), "other");
        assert_eq!(config.can("set_effort"), Some(false));
    }

    #[test]
    fn asking_nothing_is_offered_only_to_those_who_began_so() {
        let modes = |settings: Settings| {
            settings.config(&Chosen::default(), Timestamp(1)).available_modes.unwrap()
        };
        assert_eq!(modes(Settings::default()), MODES);
        assert!(modes(Settings::new(Some(BYPASS))).contains(&BYPASS.to_owned()));
    }
}
