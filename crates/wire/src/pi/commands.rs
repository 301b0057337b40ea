//! Commands about the current session: its state, its model, its name, an abort.
//!
//! Not here: `prompt` and related commands (`sends`), other sessions (`sessions`), history
//! (`history`).

use std::collections::BTreeMap;

use bytes::Bytes;
use domain::content::Failure;
use domain::session::config::{AgentConfig, SlashCommand};
use domain::session::controls::Control;
use domain::session::delivery::Mode;
use domain::session::{Recorded, Wish};
use domain::{ModelId, Refusal, RequestId, Timestamp};
use serde_json::{Value, json};

use super::frames::{Body, Caller};
use super::history::What;
use super::messages::model_of;
use super::responses::{self, failed, success, words};
use super::sends::WhileAtWork;
use super::{Asked, Connection, Stage};
use crate::port::Denied;
use crate::visitor::Act;

/// Bytes of a name that a client gives.
const NAME_BYTES_MAX: usize = 256;
/// What a command without a session is told.
const NO_SESSION: &str = "No session is active: use switch_session or new_session first";

/// pi's thinking levels, for agents that take one and do not list their own.
const LEVELS: [&str; 6] = ["off", "minimal", "low", "medium", "high", "xhigh"];

/// Settings whose outcome the session owes, by our own names for them.
pub(super) type Settings = BTreeMap<RequestId, (u64, Owed)>;

/// What is answered when a setting is done.
#[derive(Debug)]
pub(super) enum Owed {
    Plainly,
    /// The model that was chosen.
    Model(Value),
    /// All that there are.
    Models,
}

impl Connection {
    pub(super) fn on_command(&mut self, caller: Caller, body: Body, now: Timestamp) -> Vec<Act> {
        let command = caller.command.as_str();
        if is_steering(command) && !self.may_steer() {
            return vec![failed(&caller, &Refusal::Unauthorized.to_string())];
        }
        let is_alone = matches!(self.stage, Stage::Alone);
        if is_alone && is_about_session(command) {
            return vec![failed(&caller, NO_SESSION)];
        }
        match command {
            // What is known already.
            "get_state" => vec![answer(&caller, &self.state())],
            "get_context_usage" => vec![answer(&caller, &self.context_usage())],
            "get_available_models" if self.hides_models() => self.on_long(caller, body, now),
            "get_available_models" => vec![answer(&caller, &json!({ "models": self.models() }))],
            "get_available_thinking_levels" => {
                vec![answer(&caller, &json!({ "levels": self.levels() }))]
            }
            "get_commands" => vec![answer(&caller, &json!({ "commands": self.commands() }))],
            "abort" if !self.view.is_streaming() => vec![Act::Send(success(&caller, None))],
            "set_session_name"
            | "prompt"
            | "steer"
            | "follow_up"
            | "abort"
            | "clear_queue"
            | "get_messages"
            | "get_session_stats"
            | "get_last_assistant_text"
            | "list_sessions"
            | "switch_session"
            | "new_session"
            | "set_model"
            | "set_thinking_level" => self.on_long(caller, body, now),
            "compact"
            | "bash"
            | "abort_bash"
            | "cycle_model"
            | "cycle_thinking_level"
            | "set_steering_mode"
            | "set_follow_up_mode"
            | "set_auto_compaction"
            | "set_auto_retry"
            | "abort_retry"
            | "export_html"
            | "fork"
            | "clone"
            | "get_fork_messages"
            | "get_session_tree"
            | "navigate_tree"
            | "set_entry_label"
            | "reload_resources"
            | "get_tools"
            | "set_active_tools"
            | "list_directory" => {
                vec![failed(&caller, &self.impossible(command))]
            }
            unknown => vec![failed(&caller, &format!("Unknown command: {unknown}"))],
        }
    }

    /// Commands whose answers take a while.
    fn on_long(&mut self, caller: Caller, body: Body, now: Timestamp) -> Vec<Act> {
        if self.flights.is_full() {
            return vec![failed(&caller, "Too many requests in flight")];
        }
        self.count += 1;
        let command = caller.command.clone();
        let Some(flight) = self.flights.begin(self.count, caller, now) else { return vec![] };
        match command.as_str() {
            "prompt" => self.prompt(flight, body, now),
            "steer" => self.send(flight, body, (Some(Mode::Steer), WhileAtWork::Waits), now),
            "follow_up" => self.send(flight, body, (Some(Mode::FollowUp), WhileAtWork::Waits), now),
            "abort" => self.abort(flight),
            "clear_queue" => self.clear_queue(flight),
            "get_messages" => self.read_history(flight, What::Messages),
            "get_session_stats" => self.read_history(flight, What::Stats),
            "get_last_assistant_text" => self.read_history(flight, What::LastText),
            "list_sessions" => self.list(flight, &body),
            "switch_session" => self.switch(flight, &body),
            "new_session" => self.new_session(flight, body),
            "set_model" => self.set_model(flight, &body),
            "get_available_models" => self.set(flight, Control::ReadConfig, Owed::Models),
            "set_thinking_level" => self.set_effort(flight, &body),
            _ => self.rename(flight, &body),
        }
    }

    fn may_steer(&self) -> bool {
        self.principal.as_ref().is_some_and(domain::Principal::may_steer)
    }

    fn state(&self) -> Value {
        let view = &self.view;
        let read = || view.config.as_ref().map(|config| model(&config.model));
        let mut state = json!({
            "model": self.chosen_model.clone().or_else(read),
            "thinkingLevel": view.effort(), "isStreaming": view.is_streaming(),
            "isCompacting": false, "steeringMode": "one-at-a-time",
            "followUpMode": "one-at-a-time", "sessionFile": view.path(),
            "sessionId": view.session, "autoCompactionEnabled": false,
            "messageCount": view.messages, "pendingMessageCount": view.queue.len(),
        });
        if let Some(name) = view.name() {
            state["sessionName"] = json!(name);
        }
        state
    }

    fn context_usage(&self) -> Value {
        let Some(usage) = self.usage() else { return json!({}) };
        json!({ "usage": usage })
    }

    /// How full the context is, where the agent said so.
    pub(super) fn usage(&self) -> Option<Value> {
        let context = self.view.context?;
        let (used, window) = (context.used_tokens, context.window_tokens);
        #[expect(clippy::cast_precision_loss, reason = "a share for people to look at")]
        let percent = (window > 0).then(|| used as f64 * 100.0 / window as f64);
        Some(json!({ "tokens": used, "contextWindow": window, "percent": percent }))
    }

    fn models(&self) -> Vec<Value> {
        let models = self.view.config.as_ref().and_then(|it| it.available_models.as_ref());
        models.into_iter().flatten().map(model).collect()
    }

    /// The thinking levels that can be set.
    fn levels(&self) -> Vec<String> {
        let Some(config) = &self.view.config else { return vec![] };
        match &config.available_efforts {
            Some(levels) if !levels.is_empty() => levels.clone(),
            Some(_) | None if config.can("set_effort") == Some(true) => {
                LEVELS.map(str::to_owned).to_vec()
            }
            Some(_) | None => vec![],
        }
    }

    /// Whether the agent has to be asked for its models, and may be.
    fn hides_models(&self) -> bool {
        self.may_steer() && self.view.config.as_ref().is_some_and(AgentConfig::hides_models)
    }

    /// What the agent understands after a slash.
    fn commands(&self) -> Vec<Value> {
        let commands = self.view.config.as_ref().and_then(|it| it.commands.as_ref());
        let row = |command: &SlashCommand| {
            let mut row = json!({ "name": command.name, "source": "prompt" });
            if let Some(description) = &command.description {
                row["description"] = json!(description);
            }
            row
        };
        commands.into_iter().flatten().map(row).collect()
    }

    /// Why a command of pi's is not carried out.
    fn impossible(&self, command: &str) -> String {
        let known = self.view.config.as_ref().and_then(|it| it.commands.as_ref());
        let is_known = known.into_iter().flatten().any(|it| it.name == command);
        if is_known {
            return format!("{command} is not supported; send the prompt /{command} instead");
        }
        format!("{command} is not supported through Farhelm")
    }

    /// Answered when the order is taken; the end of the run is told as an event.
    fn abort(&mut self, flight: u64) -> Vec<Act> {
        let request = self.name();
        let control = Control::Interrupt { run: None };
        let ticket = self.ticket(Asked::Plain(flight));
        let wish = Box::new(Wish::Control { request, control });
        vec![Act::Wish { session: self.view.session.clone(), wish, ticket }]
    }

    fn rename(&mut self, flight: u64, body: &Body) -> Vec<Act> {
        let name = body.name.as_deref().map(str::trim).unwrap_or_default();
        let wrong = match name.len() {
            0 => Some("Session name cannot be empty"),
            length if length > NAME_BYTES_MAX => Some("Session name is too long"),
            _ => None,
        };
        if let Some(words) = wrong {
            return self.flights.fail(flight, words).into_iter().collect();
        }
        let ticket = self.ticket(Asked::Plain(flight));
        let wish = Box::new(Wish::Rename(name.to_owned()));
        vec![Act::Wish { session: self.view.session.clone(), wish, ticket }]
    }

    pub(super) fn on_plain(
        &mut self,
        flight: u64,
        done: &Result<Vec<Recorded>, Denied>,
    ) -> Vec<Act> {
        let answer = match done {
            Ok(_) => self.flights.succeed(flight, None),
            Err(denied) => self.flights.fail(flight, &words(denied)),
        };
        answer.into_iter().collect()
    }

    fn set_model(&mut self, flight: u64, body: &Body) -> Vec<Act> {
        let provider = body.provider.as_deref();
        let id = body.model_id.as_deref().unwrap_or_default();
        let known = self.view.config.as_ref().and_then(|it| it.available_models.as_ref());
        let is_meant = |model: &&ModelId| {
            let (its_provider, name) = model_of(model.as_str());
            match provider {
                Some(provider) => provider == its_provider && id == name,
                None => id == name || id == model.as_str(),
            }
        };
        let Some(found) = known.into_iter().flatten().find(is_meant).cloned() else {
            let words = format!("Model not found: {}/{id}", provider.unwrap_or_default());
            return self.flights.fail(flight, &words).into_iter().collect();
        };
        let data = model(&found);
        self.set(flight, Control::SetModel(found), Owed::Model(data))
    }

    fn set_effort(&mut self, flight: u64, body: &Body) -> Vec<Act> {
        let level = body.level.as_deref().unwrap_or_default();
        let known = self.levels();
        let words = match known.as_slice() {
            [] => Some("This agent has no thinking levels".to_owned()),
            known if known.iter().any(|it| it == level) => None,
            known => Some(format!("This model has the levels: {}", known.join(", "))),
        };
        if let Some(words) = words {
            return self.flights.fail(flight, &words).into_iter().collect();
        }
        self.set(flight, Control::SetEffort(level.to_owned()), Owed::Plainly)
    }

    /// Answered when the agent has done it.
    fn set(&mut self, flight: u64, control: Control, owed: Owed) -> Vec<Act> {
        let request = self.name();
        self.settings.insert(request.clone(), (flight, owed));
        let ticket = self.ticket(Asked::Setting(request.clone()));
        let wish = Box::new(Wish::Control { request, control });
        vec![Act::Wish { session: self.view.session.clone(), wish, ticket }]
    }

    /// The session took a setting; its outcome comes as an event. Or it did not.
    pub(super) fn on_setting(
        &mut self,
        request: &RequestId,
        done: &Result<Vec<Recorded>, Denied>,
    ) -> Vec<Act> {
        let Err(denied) = done else { return vec![] };
        let failure = Failure::new("refused", responses::words(denied));
        self.settle(request, Some(&failure)).into_iter().map(Act::Send).collect()
    }

    /// What came of one of this connection's settings, if it is one.
    pub(super) fn settle(
        &mut self,
        request: &RequestId,
        failure: Option<&Failure>,
    ) -> Option<Bytes> {
        let (flight, owed) = self.settings.remove(request)?;
        let answer = match (owed, failure) {
            // As far as the agent told them by now.
            (Owed::Models, _) => {
                self.flights.succeed(flight, Some(&json!({ "models": self.models() })))
            }
            (Owed::Model(data), None) => {
                let answer = self.flights.succeed(flight, Some(&data));
                // Until the agent tells its configuration anew.
                self.chosen_model = Some(data);
                answer
            }
            (Owed::Plainly, None) => self.flights.succeed(flight, None),
            (Owed::Plainly | Owed::Model(_), Some(failure)) => {
                self.flights.fail(flight, &failure.message)
            }
        };
        if let Act::Send(frame) = answer? { Some(frame) } else { None }
    }

    /// The session is left: its outcomes are no longer heard.
    pub(super) fn drop_controls(&mut self, words: &str) -> Vec<Act> {
        let settings = std::mem::take(&mut self.settings);
        settings.into_values().filter_map(|(flight, _)| self.flights.fail(flight, words)).collect()
    }

    /// A name for a request that no other connection has.
    fn name(&mut self) -> RequestId {
        self.count += 1;
        format!("{}:{}", self.own_name, self.count).into()
    }
}

fn answer(caller: &Caller, data: &Value) -> Act {
    Act::Send(success(caller, Some(data)))
}

/// Commands that change something.
fn is_steering(command: &str) -> bool {
    matches!(
        command,
        "prompt"
            | "steer"
            | "follow_up"
            | "abort"
            | "clear_queue"
            | "new_session"
            | "set_session_name"
            | "set_model"
            | "set_thinking_level"
    )
}

/// Commands that need an active session.
fn is_about_session(command: &str) -> bool {
    let is_reading = matches!(
        command,
        "get_state"
            | "get_messages"
            | "get_context_usage"
            | "get_session_stats"
            | "get_last_assistant_text"
            | "get_available_models"
            | "get_available_thinking_levels"
    );
    is_reading || (is_steering(command) && command != "new_session")
}

/// A model in pi's shape. What agents do not tell is empty.
fn model(id: &ModelId) -> Value {
    let (provider, name) = model_of(id.as_str());
    json!({
        "id": name, "name": name, "api": "farhelm", "provider": provider, "baseUrl": "",
        "reasoning": false, "input": ["text", "image"],
        "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0 },
        "contextWindow": 0, "maxTokens": 0,
    })
}
