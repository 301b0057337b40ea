//! The life of pi's program, from its start to its end, and again.
//!
//! A new session starts it at once; a session that was ready before starts it when it is needed.
//! Orders that need it wait meanwhile.
//!
//! Not here: its arguments (`transport`), the requests to it (`orders`).

use std::path::Path;

use domain::content::Failure;
use domain::session::config::AgentConfig;
use domain::session::runs::Outcome;
use domain::session::status::Health;
use domain::{ModelId, Timestamp};
use serde_json::{Value, json};

use super::frames::{Command, Model, Response, State};
use super::notes::{Known, Line};
use super::transport::{self, Asked};
use super::{MODES, Pi, stored};
use crate::commands::slash_commands;
use crate::{Ended, Output};

/// Whether its program runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Life {
    Asleep,
    Starting { until: Timestamp, has_gate: bool, is_importing: bool },
    Up,
}

impl Life {
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        match self {
            Self::Starting { until, .. } => Some(*until),
            Self::Asleep | Self::Up => None,
        }
    }
}

impl Pi {
    /// The session begins, or begins again.
    pub(super) fn begin(&mut self, now: Timestamp) {
        if self.notes.known.is_some() {
            self.tell_config(now);
            self.scribe.tell_status(None, now);
            return;
        }
        if !MODES.contains(&self.mode()) {
            let words = format!("Unknown permission mode. pi has: {}", MODES.join(" and "));
            let failure = Failure::new("launch_not_supported", words);
            self.scribe.push(Output::Unusable(failure));
            return;
        }
        self.wake(now);
    }

    /// Starts the program, and asks what it is.
    pub(super) fn wake(&mut self, now: Timestamp) {
        let until = self.setup.start_until(now);
        self.life = Life::Starting { until, has_gate: false, is_importing: false };
        self.requests.forget();
        let program = transport::program(&self.setup, self.notes.known.as_ref());
        self.scribe.push(Output::Spawn(program));
        self.read_config();
    }

    /// Asks how pi is configured; [`Pi::was_read`] follows.
    pub(super) fn read_config(&mut self) {
        let all = [Asked::State, Asked::Models, Asked::Efforts, Asked::Commands];
        self.reading = all.len();
        for asked in all {
            self.ask(asked, json!({}));
        }
    }

    pub(super) fn ask(&mut self, asked: Asked, command: Value) {
        let line = self.requests.ask(asked, command);
        self.scribe.push(line);
    }

    /// An answer about its configuration.
    pub(super) fn learn(&mut self, asked: &Asked, response: Response, now: Timestamp) {
        match asked {
            Asked::State => {
                let state = serde_json::from_value::<State>(response.data).unwrap_or_default();
                self.known.session = state.session_id;
                self.known.file = state.session_file.map(Into::into);
                self.known.effort = state.thinking_level;
                let takes_images = |model: &Model| model.input.iter().any(|kind| kind == "image");
                self.known.takes_images = state.model.as_ref().is_some_and(takes_images);
                let named = state.model.filter(Model::is_known);
                self.known.model = named.as_ref().map(Model::name);
            }
            Asked::Models => {
                let models = response.data.get("models").cloned().unwrap_or_default();
                let models: Vec<Model> = serde_json::from_value(models).unwrap_or_default();
                self.known.models = models.iter().map(Model::name).collect();
            }
            // Older versions cannot tell.
            Asked::Efforts => {
                let levels = response.data.get("levels").cloned();
                self.known.efforts = levels.and_then(|levels| serde_json::from_value(levels).ok());
            }
            Asked::Commands => {
                let listed = response.data.get("commands").cloned().unwrap_or_default();
                let listed: Vec<Command> = serde_json::from_value(listed).unwrap_or_default();
                let named = listed.iter().map(|it| (it.name.as_str(), it.description.as_deref()));
                self.known.commands = slash_commands(named);
            }
            Asked::Stats
            | Asked::Leaf
            | Asked::Prompt
            | Asked::SetModel(_)
            | Asked::SetEffort(_)
            | Asked::ClearQueue
            | Asked::Abort
            | Asked::IsShown
            | Asked::IsOver(_) => return,
        }
        self.reading = self.reading.saturating_sub(1);
        if self.reading == 0 {
            self.was_read(now);
        }
    }

    fn was_read(&mut self, now: Timestamp) {
        match &mut self.life {
            Life::Asleep => {}
            Life::Up => {
                self.remember_config();
                self.tell_config(now);
                for request in std::mem::take(&mut self.readers) {
                    self.scribe.answered(&request, None);
                }
            }
            Life::Starting { has_gate, is_importing, .. } => {
                if !*has_gate {
                    let words = "pi did not load the extension that asks for permission. This \
                                 version of pi may not support --extension";
                    self.cannot_be_used(Failure::new("agent_not_open", words), now);
                } else if self.known.model.is_none() || self.known.models.is_empty() {
                    let words = "pi has no usable model on this machine. Run pi there and log in \
                                 with /login, or set the API key of a provider";
                    self.cannot_be_used(Failure::new("agent_not_open", words), now);
                } else if self.setup.earlier.is_some() && !self.notes.is_imported {
                    *is_importing = true;
                    let earlier = self.setup.earlier.as_ref().and_then(|it| it.file.clone());
                    match self.known.file.clone().or(earlier) {
                        Some(file) => self.scribe.push(Output::Read(file)),
                        None => self.is_up(now),
                    }
                } else {
                    self.is_up(now);
                }
            }
        }
    }

    /// The gate reported.
    pub(super) fn has_gate(&mut self) {
        if let Life::Starting { has_gate, .. } = &mut self.life {
            *has_gate = true;
        }
    }

    pub(super) fn read(&mut self, path: &Path, text: Option<&str>, now: Timestamp) {
        self.look(path, text);
        if let Life::Starting { is_importing: true, .. } = &self.life {
            self.import(text, now);
        }
    }

    /// Tells an earlier conversation, once.
    fn import(&mut self, text: Option<&str>, now: Timestamp) {
        let Some(text) = text else { return self.is_up(now) };
        let (pieces, left_out) = stored::transcript(text);
        if left_out > 0 {
            let words = format!("{left_out} earlier entries of this conversation are not shown");
            self.scribe.notice("import", words);
        }
        self.scribe.retell(pieces, now);
        self.retold(now);
    }

    /// Goes on when all of it is told.
    pub(super) fn retold(&mut self, now: Timestamp) {
        let is_importing = matches!(self.life, Life::Starting { is_importing: true, .. });
        if !self.scribe.take_retold() || !is_importing {
            return;
        }
        let lines = [Line::Imported, Line::Answered].map(|line| self.notes.take(line));
        for line in lines {
            self.scribe.push(line);
        }
        self.is_up(now);
    }

    fn is_up(&mut self, now: Timestamp) {
        let is_new = self.notes.known.is_none();
        self.life = Life::Up;
        self.remember_config();
        self.tell_config(now);
        self.scribe.health(Health::Healthy, None, now);
        if is_new {
            self.scribe.tell_status(None, now);
            self.scribe.push(Output::Ready);
        }
        for request in std::mem::take(&mut self.readers) {
            self.scribe.answered(&request, None);
        }
        for order in std::mem::take(&mut self.waiting) {
            self.obey(&order, now);
        }
    }

    pub(super) fn remember_config(&mut self) {
        if self.notes.known.as_ref() != Some(&self.known) {
            let line = self.notes.take(Line::Ready(self.known.clone()));
            self.scribe.push(line);
        }
    }

    /// The configuration as it is known.
    pub(super) fn tell_config(&mut self, now: Timestamp) {
        let Known { file, model, models, effort, efforts, takes_images, commands, .. } =
            self.known.clone();
        let can = [
            ("interrupt", true),
            ("set_model", models.len() > 1),
            ("permission_mode_change", true),
            ("permission_dialogs", true),
            ("steer", true),
            ("images", takes_images),
            ("set_effort", efforts.as_ref().is_none_or(|efforts| efforts.len() > 1)),
            ("resume", true),
        ];
        self.scribe.config(AgentConfig {
            model: model.as_deref().unwrap_or("unknown").into(),
            permission_mode: Some(self.mode().to_owned()),
            file_access_scope: None,
            available_models: Some(
                models.iter().map(|name| ModelId::from(name.as_str())).collect(),
            ),
            available_modes: Some(MODES.map(str::to_owned).to_vec()),
            effort,
            available_efforts: efforts,
            commands: Some(commands),
            session_file: file.map(|file| file.to_string_lossy().into_owned()),
            capabilities: can.map(|(name, able)| (name.to_owned(), able)).into(),
            read_at: now,
        });
    }

    /// It started, and is of no use.
    fn cannot_be_used(&mut self, failure: Failure, now: Timestamp) {
        self.scribe.push(Output::End);
        self.did_not_start(failure, now);
    }

    pub(super) fn give_up_start(&mut self, now: Timestamp) {
        if self.life.deadline().is_some_and(|until| until <= now) {
            let words = self.with_complaints("pi started but did not respond in time".to_owned());
            self.cannot_be_used(Failure::new("launch_timeout", words), now);
        }
    }

    fn did_not_start(&mut self, failure: Failure, now: Timestamp) {
        self.life = Life::Asleep;
        self.requests.forget();
        self.reading = 0;
        if self.notes.known.is_none() {
            self.scribe.push(Output::Unusable(failure));
            return;
        }
        self.fail_waiting(&failure);
        let reason = format!("{}. Send a message to try again", failure.message);
        self.scribe.health(Health::Degraded, Some(reason), now);
    }

    /// The program is no more.
    pub(super) fn ended(&mut self, ended: &Ended, now: Timestamp) {
        match self.life {
            // It was ended by us, or could not be used.
            Life::Asleep => {}
            Life::Starting { .. } => {
                let failure = match ended {
                    Ended::NotStarted(failure) | Ended::Guarded(failure) => failure.clone(),
                    Ended::Exited(_) | Ended::Killed(_) => {
                        let words = format!("pi did not start: {}", ended.words());
                        Failure::new("agent_not_open", self.with_complaints(words))
                    }
                };
                self.did_not_start(failure, now);
            }
            Life::Up => self.died(ended, now),
        }
    }

    fn died(&mut self, ended: &Ended, now: Timestamp) {
        self.life = Life::Asleep;
        self.reading = 0;
        self.watch.run_is_over();
        self.dialogs.clear();
        let words = self.with_complaints(format!("pi stopped: {}", ended.words()));
        let failure = Failure::new("agent_not_open", words.clone());
        for asked in self.requests.forget() {
            if let Asked::SetModel(request) | Asked::SetEffort(request) = asked {
                self.scribe.answered(&request, Some(failure.clone()));
            }
        }
        let usage = self.watch.take_usage();
        if let Some(interrupt) = self.interrupt.take() {
            self.scribe.end_run(Outcome::Interrupted, usage, now);
            for request in interrupt.requests {
                self.scribe.answered(&request, None);
            }
        } else {
            self.scribe.end_run(Outcome::Failed(words.clone()), usage, now);
        }
        self.lost_deliveries(&failure);
        self.fail_waiting(&failure);
        let reason = format!("{words}. Send a message to start it again");
        self.scribe.health(Health::Degraded, Some(reason), now);
    }

    fn with_complaints(&self, mut words: String) -> String {
        if let Some(complaints) = self.scribe.last_complaints() {
            words.push_str(". Its output: ");
            words.push_str(&complaints);
        }
        words
    }
}
