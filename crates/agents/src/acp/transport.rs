//! Starts the program and parses its lines.
//!
//! Not here: the handshake (`opening`), the agent's reports of its work (`turn`).

use domain::Timestamp;
use domain::content::Failure;
use serde_json::{Value, json};

use super::frames::{self, Permission, Update};
use super::questions::outcome;
use super::{Acp, Ask, Observation, Phase, Starting};
use crate::rpc::{INTERNAL_ERROR, INVALID_PARAMS, Incoming, METHOD_NOT_FOUND, RpcError, TheirId};
use crate::{IS_SERVED, Output};

/// The protocol's code for an agent that nobody is logged in to.
pub(super) const AUTH_REQUIRED: i64 = -32_000;

impl Acp {
    pub(super) fn spawn(&mut self, now: Timestamp) {
        let is_new = !self.notes.is_ready;
        let ready_by = is_new.then(|| self.setup.start_until(now));
        self.phase = Phase::Starting(Box::new(Starting::new(ready_by, now)));
        self.rpc.reset();
        self.observation = Observation::default();
        self.files.clear();
        self.terminals.clear();
        self.replayed = None;
        self.is_ending = false;
        if self.notes.is_ready {
            self.scribe.activity("starting", "Starting the agent", now);
        }
        let program = self.setup.launcher.program(&[], self.setup.workspace.clone());
        self.scribe.push(Output::Spawn(program));
        // One that writes itself whatever it is told is not offered to have it written.
        let reads = IS_SERVED && !self.quirks.needs_own_reads;
        let writes = IS_SERVED && !self.quirks.announces_writes;
        let params = json!({
            "protocolVersion": 1,
            "clientInfo": { "name": "farhelm", "version": env!("CARGO_PKG_VERSION") },
            "clientCapabilities": {
                "fs": { "readTextFile": reads, "writeTextFile": writes },
                "terminal": IS_SERVED,
            },
        });
        self.ask(Ask::Initialize, "initialize", params);
    }

    /// A line of the program.
    pub(super) fn hear(&mut self, line: &str, now: Timestamp) {
        if matches!(self.phase, Phase::Resting | Phase::Closed) || line.trim().is_empty() {
            return;
        }
        match self.rpc.read(line) {
            Incoming::Answer { tag, result } => self.answered(tag, result, now),
            Incoming::Request { id, method, params } => self.requested(&id, &method, params, now),
            Incoming::Notification { method, mut params } => match method.as_str() {
                "session/update" => {
                    let update = params.get_mut("update").map(Value::take).unwrap_or_default();
                    self.updated(Update::read(update), now);
                }
                "$/cancel_request" => self.withdrawn(&params, now),
                // The agent's own additions, which nobody needs to understand.
                own if own.starts_with('_') => {}
                _ => self.observation.strange(line, &mut self.scribe),
            },
            // Some print what belongs to their standard error.
            Incoming::Strange(line) => self.scribe.complaint(&line, now),
        }
    }

    fn answered(&mut self, ask: Ask, result: Result<Value, RpcError>, now: Timestamp) {
        match (ask, result) {
            (Ask::Initialize, Ok(result)) => self.initialized(frames::read(result), now),
            (Ask::New | Ask::Fork, Ok(result)) => self.opened(frames::read(result), now),
            (Ask::Load, Ok(result)) => self.loaded(frames::read(result), now),
            (Ask::Load, Err(error)) => self.not_loaded(&error, now),
            (Ask::Initialize | Ask::New | Ask::Fork, Err(error)) => {
                let failure = self.failure_of(&error);
                self.give_up_start(failure, now);
            }
            (Ask::Set(setting, value, request), result) => {
                self.was_set(setting, &value, request, result, now);
            }
            (Ask::Prompt, result) => self.prompted(result, now),
        }
    }

    /// Why the agent refused, and what a person can do.
    pub(super) fn failure_of(&self, error: &RpcError) -> Failure {
        let name = self.name();
        let error = &plain(error);
        let says_so = error.message.to_lowercase();
        let wants_login = error.code == AUTH_REQUIRED
            || error.code == 401
            || says_so.contains("authentication required")
            || says_so.contains("api key not valid")
            || says_so.contains("unauthorized");
        if !wants_login {
            let words = format!("{name} reported: {error}");
            return Failure::new(
                if error.code == INTERNAL_ERROR { "internal" } else { "agent_error" },
                words,
            );
        }
        let how = match self.quirks.login {
            Some(how) => how.to_owned(),
            None if self.login_methods.is_empty() => {
                format!("Start {name} in a terminal on that machine and log in")
            }
            None => format!("Log in on that machine: {}", self.login_methods.join(", ")),
        };
        Failure::new("agent_not_open", format!("{name} is not logged in. {how}. ({error})"))
    }

    fn updated(&mut self, update: Update, now: Timestamp) {
        let quirks = self.quirks;
        let is_trailing = match &self.phase {
            Phase::Starting(starting) => starting.is_trailing(),
            Phase::Resting | Phase::Up | Phase::Closed => false,
        };
        if let Phase::Starting(starting) = &mut self.phase
            && let Some(replay) = starting.replay()
        {
            let is_end = if let Update::Commands(commands) = &update {
                self.learn_commands(commands, now);
                true
            } else {
                replay.hear(update, &quirks);
                false
            };
            if is_trailing {
                self.trailed(is_end, now);
            }
            return;
        }
        self.observe(update, now);
    }

    /// They ask.
    fn requested(&mut self, id: &TheirId, method: &str, params: Value, now: Timestamp) {
        let refusal = match method {
            "session/request_permission" => return self.asked(id, frames::read(params), now),
            "fs/write_text_file" if IS_SERVED || self.quirks.announces_writes => {
                return self.asked_to_write(id, params);
            }
            "fs/read_text_file" if IS_SERVED => return self.asked_to_read(id, params),
            method if IS_SERVED && self.asked_of_terminal(id, method, params) => return,
            _ => "Farhelm does not know this method, or does not support it on this machine",
        };
        let line = self.rpc.refusal(id, METHOD_NOT_FOUND, refusal);
        self.write(line);
    }

    fn asked(&mut self, id: &TheirId, mut permission: Permission, now: Timestamp) {
        let quirks = self.quirks;
        self.evidence();
        self.heard(now);
        self.fill_terminals(&mut permission.tool_call);
        // Some tell of a tool call only by asking for it.
        self.observation.tool(&permission.tool_call, &quirks, &mut self.scribe, now);
        let known = self.observation.tool_name(&permission.tool_call.id);
        permission.tool_call.name = known.or(permission.tool_call.name);
        if permission.options.is_empty() {
            let line = self.rpc.refusal(id, INVALID_PARAMS, "The request has no options");
            return self.write(line);
        }
        // Whoever is being stopped need not ask.
        if self.turn.as_ref().is_some_and(super::Turn::is_stopping) {
            let line = self.rpc.answer(id, outcome(None));
            return self.write(line);
        }
        let run = self.scribe.run().cloned();
        let asked = self.questions.ask(id.clone(), &permission, run.as_ref(), &quirks, now);
        if let Some(prompt) = asked {
            return self.scribe.ask(prompt, now);
        }
        // More questions than anybody can survey.
        let line = self.rpc.answer(id, outcome(None));
        self.write(line);
    }

    /// They no longer ask.
    fn withdrawn(&mut self, params: &Value, now: Timestamp) {
        let id = params.get("requestId").or_else(|| params.get("id")).and_then(TheirId::of);
        let Some(prompt) = id.and_then(|id| self.questions.prompt_of(&id)) else { return };
        if let Some(question) = self.questions.take(&prompt) {
            let line = self.rpc.answer(&question.id, outcome(None));
            self.write(line);
        }
        self.scribe.prompt_gone(&prompt, now);
    }
}

/// Some pass on what their provider says as it came.
fn plain(error: &RpcError) -> RpcError {
    let inside = serde_json::from_str::<Value>(&error.message).ok();
    let words = inside.as_ref().and_then(|inside| inside["error"]["message"].as_str());
    let message = words.unwrap_or(&error.message).to_owned();
    RpcError { message, ..error.clone() }
}
