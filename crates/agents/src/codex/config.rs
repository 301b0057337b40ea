//! The configuration of a Codex thread: model, effort, and how much it may do without asking.
//!
//! A permission mode is a pair of Codex's approval policy and its sandbox. The three pairs that
//! Codex itself offers have names; any other is shown as `policy/sandbox`.
//!
//! Not here: asking Codex for a change (`settings`).

use std::collections::BTreeMap;

use domain::session::config::AgentConfig;
use domain::{ModelId, Timestamp};
use serde_json::{Value, json};

use super::frames::{Model, Opened, ThreadSettings};

/// Name, approval policy, sandbox.
const PRESETS: [(&str, &str, &str); 3] = [
    ("read-only", "on-request", "read-only"),
    ("auto", "on-request", "workspace-write"),
    ("full-access", "never", "danger-full-access"),
];
const POLICIES: [&str; 2] = ["on-request", "never"];
const SANDBOXES: [&str; 3] = ["read-only", "workspace-write", "danger-full-access"];
/// The provider whose models `model/list` lists.
const LISTED_PROVIDER: &str = "openai";

/// A permission mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mode {
    pub(super) policy: String,
    pub(super) sandbox: String,
}

impl Mode {
    /// By its name, or as `policy/sandbox`.
    pub(super) fn named(name: &str) -> Option<Self> {
        let preset = PRESETS.iter().find(|(known, ..)| *known == name);
        let (policy, sandbox) = match preset {
            Some((_, policy, sandbox)) => (*policy, *sandbox),
            None => name.split_once('/')?,
        };
        (POLICIES.contains(&policy) && SANDBOXES.contains(&sandbox))
            .then(|| Self { policy: policy.to_owned(), sandbox: sandbox.to_owned() })
    }

    pub(super) fn name(&self) -> String {
        let preset = PRESETS
            .iter()
            .find(|(_, policy, sandbox)| *policy == self.policy && *sandbox == self.sandbox);
        match preset {
            Some((name, ..)) => (*name).to_owned(),
            None => format!("{}/{}", self.policy, self.sandbox),
        }
    }
}

/// The names of the modes that are offered.
pub(super) fn mode_names() -> Vec<String> {
    PRESETS.iter().map(|(name, ..)| (*name).to_owned()).collect()
}

/// A thread's settings as Codex last told them.
#[derive(Debug, Default)]
pub(super) struct Settings {
    model: String,
    provider: String,
    effort: Option<String>,
    policy: Value,
    sandbox: Value,
    /// The person's own rules for writing in the workspace, to come back to.
    workspace_write: Option<Value>,
    pub(super) models: Vec<Model>,
}

impl Settings {
    pub(super) fn opened(&mut self, opened: &Opened) {
        self.model.clone_from(&opened.model);
        self.provider.clone_from(&opened.model_provider);
        self.effort.clone_from(&opened.reasoning_effort);
        self.policy = opened.approval_policy.clone();
        self.set_sandbox(&opened.sandbox);
    }

    pub(super) fn updated(&mut self, settings: &ThreadSettings) {
        self.model.clone_from(&settings.model);
        self.provider.clone_from(&settings.model_provider);
        self.effort.clone_from(&settings.effort);
        self.policy = settings.approval_policy.clone();
        self.set_sandbox(&settings.sandbox_policy);
    }

    pub(super) fn rerouted(&mut self, model: &str) {
        model.clone_into(&mut self.model);
    }

    fn set_sandbox(&mut self, sandbox: &Value) {
        self.sandbox = sandbox.clone();
        if sandbox_name(sandbox) == "workspace-write" {
            self.workspace_write = Some(sandbox.clone());
        }
    }

    /// Codex's list holds for its own provider only: what others have, it does not know.
    fn listed(&self) -> Option<&[Model]> {
        (self.provider == LISTED_PROVIDER && !self.models.is_empty()).then_some(&self.models)
    }

    fn known_model(&self) -> Option<&Model> {
        self.listed()?.iter().find(|model| model.name == self.model)
    }

    /// Whether a model can be switched to, as far as Codex tells.
    pub(super) fn has_model(&self, name: &str) -> bool {
        self.listed().is_none_or(|models| models.iter().any(|model| model.name == name))
    }

    /// Whether the model can think that hard, as far as Codex tells.
    pub(super) fn has_effort(&self, effort: &str) -> bool {
        self.efforts().is_none_or(|efforts| efforts.iter().any(|known| known == effort))
    }

    fn efforts(&self) -> Option<Vec<String>> {
        let model = self.known_model()?;
        let efforts = model.supported_reasoning_efforts.iter();
        Some(efforts.map(|effort| effort.reasoning_effort.clone()).collect())
    }

    /// What `thread/settings/update` wants for a mode.
    pub(super) fn sandbox_policy(&self, mode: &Mode) -> Value {
        match mode.sandbox.as_str() {
            "read-only" => json!({ "type": "readOnly" }),
            "workspace-write" => self.workspace_write.clone().unwrap_or_else(|| {
                json!({
                    "type": "workspaceWrite",
                    "writableRoots": [],
                    "networkAccess": false,
                    "excludeTmpdirEnvVar": false,
                    "excludeSlashTmp": false,
                })
            }),
            _ => json!({ "type": "dangerFullAccess" }),
        }
    }

    /// As everybody understands it.
    pub(super) fn config(&self, now: Timestamp) -> AgentConfig {
        let sandbox = sandbox_name(&self.sandbox);
        let mode = Mode { policy: policy_name(&self.policy), sandbox: sandbox.clone() };
        let visible = |model: &&Model| !model.hidden || model.name == self.model;
        let models = self.listed().map(|models| {
            models.iter().filter(visible).map(|model| ModelId::from(model.name.as_str())).collect()
        });
        let own_effort = || self.known_model()?.default_reasoning_effort.clone();
        let modalities = self.known_model().and_then(|model| model.input_modalities.as_ref());
        let takes_images = modalities.is_none_or(|known| known.iter().any(|kind| kind == "image"));
        let can = |ability: &str, able| (ability.to_owned(), able);
        AgentConfig {
            model: self.model.as_str().into(),
            permission_mode: Some(mode.name()),
            file_access_scope: Some(sandbox),
            available_models: models,
            available_modes: Some(mode_names()),
            effort: self.effort.clone().or_else(own_effort),
            available_efforts: self.efforts(),
            session_file: None,
            commands: None,
            capabilities: BTreeMap::from([
                can("interrupt", true),
                can("set_model", true),
                can("set_effort", true),
                can("permission_mode_change", true),
                can("permission_dialogs", true),
                can("steer", true),
                can("images", takes_images),
                can("resume", true),
            ]),
            read_at: now,
        }
    }
}

fn policy_name(policy: &Value) -> String {
    match policy.as_str() {
        Some(name) => name.to_owned(),
        None if policy.is_object() => "granular".to_owned(),
        None => "unknown".to_owned(),
    }
}

fn sandbox_name(sandbox: &Value) -> String {
    let name = match sandbox.get("type").and_then(Value::as_str) {
        Some("readOnly") => "read-only",
        Some("workspaceWrite") => "workspace-write",
        Some("dangerFullAccess") => "danger-full-access",
        Some("externalSandbox") => "external-sandbox",
        Some(_) | None => "unknown",
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_known_by_its_name_or_as_a_pair() {
        for name in mode_names() {
            assert_eq!(Mode::named(&name).unwrap().name(), name);
        }
        assert_eq!(Mode::named("never/workspace-write").unwrap().name(), "never/workspace-write");
        assert_eq!(Mode::named("on-request/read-only").unwrap().name(), "read-only");
        assert_eq!(Mode::named("yolo"), None);
        assert_eq!(Mode::named("never/nowhere"), None);
    }

    #[test]
    fn the_list_of_models_counts_only_for_the_provider_it_lists() {
        let models = r#"{"model":"gpt","inputModalities":["text"],
            "supportedReasoningEfforts":[{"reasoningEffort":"low"}],"defaultReasoningEffort":"low"}"#;
        let mut settings = Settings {
            model: "gpt".into(),
            provider: "openai".into(),
            models: vec![serde_json::from_str(models).unwrap()],
            ..Settings::default()
        };
        let config = settings.config(Timestamp(1));
        assert_eq!(config.available_models, Some(vec!["gpt".into()]));
        assert_eq!((config.effort.as_deref(), config.can("images")), (Some("low"), Some(false)));
        assert!(!settings.has_model("other") && !settings.has_effort("high"));
        settings.provider = "mine".into();
        assert_eq!(settings.config(Timestamp(1)).available_models, None);
        assert!(settings.has_model("other") && settings.has_effort("high"));
    }

    #[test]
    fn the_persons_own_rules_for_the_workspace_are_come_back_to() {
        let own = json!({ "type": "workspaceWrite", "networkAccess": true });
        let mut settings = Settings::default();
        settings.set_sandbox(&own);
        settings.set_sandbox(&json!({ "type": "readOnly" }));
        assert_eq!(settings.sandbox_policy(&Mode::named("auto").unwrap()), own);
    }
}
