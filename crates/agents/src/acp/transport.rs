//! Starting the program, the handshake, and what its lines are.
//!
//! A conversation that has begun is loaded; one that has not is opened anew. What the agent
//! replays while it loads is no news: it is imported once, or counted to find out what arrived.

use domain::Timestamp;
use domain::content::Failure;
use domain::session::status::Health;
use serde_json::{Value, json};

use super::frames::{self, Initialized, Opened, Permission, Update};
use super::questions::outcome;
use super::replay::Replay;
use super::{Abilities, Acp, Ask, Observation, Phase, Quirks, Setting};
use crate::Output;
use crate::rpc::{INTERNAL_ERROR, INVALID_PARAMS, Incoming, METHOD_NOT_FOUND, RpcError, TheirId};

/// How long a new session may take: a little less than its launch waits.
const NEW_WITHIN_MS: u64 = 27_000;
/// How long a conversation may take to be loaded again.
const RESUME_WITHIN_MS: u64 = 120_000;
/// The pause before a failed `session/load` is tried again.
const RETRY_PAUSE_MS: u64 = 5_000;
/// How long a launch tries to load an earlier conversation.
const LAUNCH_RETRY_MS: u64 = 15_000;
/// A replay that goes on after its answer is over when nothing more came for this long.
const TRAIL_QUIET_MS: u64 = 1_500;
/// The protocol's code for an agent that nobody is logged in to.
const AUTH_REQUIRED: i64 = -32_000;

/// A program on its way.
#[derive(Debug)]
pub(super) struct Starting {
    until: Timestamp,
    /// Until when loading is tried again.
    retry_until: Timestamp,
    retry_at: Option<Timestamp>,
    /// What is replayed.
    replay: Option<Replay>,
    /// When a replay that goes on after its answer is taken to be over.
    quiet_at: Option<Timestamp>,
    /// Settings that are still to be chosen.
    to_set: Vec<(Setting, String)>,
}

impl Starting {
    pub(super) fn deadline(&self) -> Timestamp {
        [Some(self.until), self.retry_at, self.quiet_at]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(self.until)
    }
}

impl Acp {
    pub(super) fn spawn(&mut self, now: Timestamp) {
        let within = if self.notes.is_ready { RESUME_WITHIN_MS } else { NEW_WITHIN_MS };
        self.phase = Phase::Starting(Box::new(Starting {
            until: now.plus_ms(within),
            retry_until: now,
            retry_at: None,
            replay: None,
            quiet_at: None,
            to_set: vec![],
        }));
        self.rpc.reset();
        self.observation = Observation::default();
        self.replayed = None;
        self.is_ending = false;
        let program = self.setup.launcher.program(&[], self.setup.workspace.clone());
        self.scribe.push(Output::Spawn(program));
        // No files and no terminals of ours: the agent has the machine's own.
        let params = json!({
            "protocolVersion": 1,
            "clientInfo": { "name": "farhelm", "version": env!("CARGO_PKG_VERSION") },
            "clientCapabilities": {
                "fs": { "readTextFile": false, "writeTextFile": false },
                "terminal": false,
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
            Incoming::Request { id, method, params } => self.requested(id, &method, params, now),
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
            (Ask::New, Ok(result)) => self.opened(frames::read(result), now),
            (Ask::Load, Ok(result)) => self.loaded(frames::read(result), now),
            (Ask::Fork, Ok(result)) => self.opened(frames::read(result), now),
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

    fn initialized(&mut self, told: Initialized, now: Timestamp) {
        if let Some(quirks) = Quirks::find(&told.agent_info.name) {
            self.quirks = quirks;
        }
        let capabilities = told.agent_capabilities;
        self.abilities = Abilities {
            can_load: capabilities.load_session,
            can_fork: capabilities.session_capabilities.fork.is_some(),
            takes_images: capabilities.prompt_capabilities.image,
        };
        self.login_methods = told.auth_methods.into_iter().map(|method| method.name).collect();
        let limit_ms = if self.notes.is_ready { u64::MAX } else { LAUNCH_RETRY_MS };
        let retry_until = now.plus_ms(self.quirks.load_retry_ms.min(limit_ms));
        let Phase::Starting(starting) = &mut self.phase else { return };
        starting.retry_until = retry_until;
        let Some(conversation) = self.conversation() else { return self.open_new() };
        if self.abilities.can_load {
            self.load(&conversation);
        } else if self.notes.is_ready {
            self.lose_context("It cannot go on with an earlier conversation");
        } else {
            let words = format!("{} cannot go on with an earlier conversation", self.name());
            self.give_up_start(Failure::new("launch_not_supported", words), now);
        }
    }

    /// The conversation to go on with.
    fn conversation(&self) -> Option<String> {
        if self.notes.has_begun() {
            return self.notes.conversation.clone();
        }
        let earlier = self.setup.earlier.as_ref().filter(|_| !self.notes.is_ready);
        earlier.map(|earlier| earlier.id.clone())
    }

    fn is_importing(&self) -> bool {
        self.setup.earlier.is_some() && !self.notes.is_ready && !self.notes.is_imported()
    }

    fn open_new(&mut self) {
        let params = json!({ "cwd": self.setup.workspace, "mcpServers": [] });
        self.ask(Ask::New, "session/new", params);
    }

    fn load(&mut self, conversation: &str) {
        if let Phase::Starting(starting) = &mut self.phase {
            starting.replay = Some(Replay::default());
        }
        let cwd = &self.setup.workspace;
        let params = json!({ "sessionId": conversation, "cwd": cwd, "mcpServers": [] });
        self.ask(Ask::Load, "session/load", params);
    }

    fn not_loaded(&mut self, error: &RpcError, now: Timestamp) {
        let Phase::Starting(starting) = &mut self.phase else { return };
        let retry_at = now.plus_ms(RETRY_PAUSE_MS);
        if error.code != AUTH_REQUIRED && retry_at <= starting.retry_until {
            starting.retry_at = Some(retry_at);
            return;
        }
        if error.code == AUTH_REQUIRED || !self.notes.is_ready {
            let failure = self.failure_of(error);
            return self.give_up_start(failure, now);
        }
        self.lose_context(&format!("It says: {error}"));
    }

    /// The session goes on, but the agent does not know what was said.
    fn lose_context(&mut self, why: &str) {
        self.fail_lookups();
        let name = self.name();
        let words = format!("{name} begins anew and does not know what was said before. {why}");
        self.scribe.notice("context_lost", words);
        if let Phase::Starting(starting) = &mut self.phase {
            starting.replay = None;
        }
        self.open_new();
    }

    fn opened(&mut self, opened: Opened, now: Timestamp) {
        let Some(id) = opened.session_id.clone() else {
            let words = format!("{} opened no session", self.name());
            return self.give_up_start(Failure::new("internal", words), now);
        };
        let line = self.notes.note_conversation(id);
        self.remember(line);
        self.settings.learn(opened);
        self.choose_wanted(now);
    }

    fn loaded(&mut self, opened: Opened, now: Timestamp) {
        self.settings.learn(opened);
        let trails = self.quirks.replay_trails;
        let Phase::Starting(starting) = &mut self.phase else { return };
        if trails {
            starting.quiet_at = Some(now.plus_ms(TRAIL_QUIET_MS));
        } else {
            self.replayed_all(now);
        }
    }

    /// The whole conversation is told.
    fn replayed_all(&mut self, now: Timestamp) {
        let is_importing = self.is_importing();
        let Phase::Starting(starting) = &mut self.phase else { return };
        starting.quiet_at = None;
        let replay = starting.replay.take().unwrap_or_default();
        let texts = replay.texts();
        self.replayed = Some(texts.clone());
        if !is_importing {
            return self.choose_wanted(now);
        }
        replay.import(&mut self.scribe, now);
        let earlier = self.setup.earlier.clone();
        let is_fork = earlier.as_ref().is_some_and(|earlier| earlier.fork);
        if is_fork && !self.abilities.can_fork {
            let words = format!("{} cannot go on in a copy", self.name());
            return self.give_up_start(Failure::new("launch_not_supported", words), now);
        }
        let line = self.notes.note_imported(texts);
        self.remember(line);
        let Some(earlier) = earlier else { return };
        if is_fork {
            let cwd = &self.setup.workspace;
            let params = json!({ "sessionId": earlier.id, "cwd": cwd, "mcpServers": [] });
            self.ask(Ask::Fork, "session/fork", params);
        } else {
            let line = self.notes.note_conversation(earlier.id);
            self.remember(line);
            self.choose_wanted(now);
        }
    }

    /// Chooses what was asked for, where the agent has something else.
    fn choose_wanted(&mut self, now: Timestamp) {
        let mut to_set = vec![];
        for (setting, value) in self.wanted().all() {
            let is_there = self.settings.values(setting).map(|values| values.contains(&value));
            match is_there {
                Some(true) if self.settings.current(setting) == Some(&value) => {}
                Some(true) => to_set.push((setting, value)),
                Some(false) if !self.notes.is_ready => {
                    let failure = self.not_available(setting, &value);
                    return self.give_up_start(failure, now);
                }
                Some(false) | None => {
                    let words = format!(
                        "{} cannot be told to use the {} {value}",
                        self.name(),
                        setting.word()
                    );
                    self.scribe.notice("setting", words);
                }
            }
        }
        to_set.reverse();
        if let Phase::Starting(starting) = &mut self.phase {
            starting.to_set = to_set;
        }
        self.set_next(now);
    }

    fn set_next(&mut self, now: Timestamp) {
        let Phase::Starting(starting) = &mut self.phase else { return };
        match starting.to_set.pop() {
            Some((setting, value)) => {
                if !self.set(setting, &value, None) {
                    self.set_next(now);
                }
            }
            None => self.up(now),
        }
    }

    /// A setting that the session begins with was chosen, or not.
    pub(super) fn set_at_start(
        &mut self,
        setting: Setting,
        failure: Option<Failure>,
        now: Timestamp,
    ) {
        match failure {
            Some(failure) if !self.notes.is_ready => self.give_up_start(failure, now),
            Some(failure) => {
                let word = setting.word();
                self.scribe
                    .notice("setting", format!("The {word} is not kept: {}", failure.message));
                self.set_next(now);
            }
            None => self.set_next(now),
        }
    }

    fn up(&mut self, now: Timestamp) {
        self.phase = Phase::Up;
        self.tell_config(now);
        if self.notes.is_ready {
            self.scribe.health(Health::Healthy, None, now);
        } else {
            let line = self.notes.note_ready();
            self.remember(line);
            self.scribe.tell_status(None, now);
            self.scribe.push(Output::Ready);
        }
        self.go_on(now);
    }

    /// The program cannot be used. A session that was ready before stays, and says so.
    fn give_up_start(&mut self, failure: Failure, now: Timestamp) {
        self.scribe.push(Output::End);
        self.start_failed(failure, now);
    }

    /// The program that was started is of no use.
    pub(super) fn start_failed(&mut self, failure: Failure, now: Timestamp) {
        if !self.notes.is_ready {
            self.phase = Phase::Closed;
            self.scribe.push(Output::Unusable(failure));
            return;
        }
        self.phase = Phase::Resting;
        let words = format!("{}\nThe next message starts it again", failure.message);
        self.scribe.health(Health::Degraded, Some(words), now);
        self.fail_held(&failure);
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
            let words = format!("{name} says: {error}");
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

    /// The program takes its time.
    pub(super) fn hurry_start(&mut self, now: Timestamp) {
        let Phase::Starting(starting) = &mut self.phase else { return };
        if starting.until <= now {
            let words = format!("{} was started but did not get ready in time", self.name());
            return self.give_up_start(Failure::new("launch_timeout", words), now);
        }
        if starting.retry_at.take_if(|at| *at <= now).is_some() {
            if let Some(conversation) = self.conversation() {
                self.load(&conversation);
            }
            return;
        }
        if starting.quiet_at.is_some_and(|at| at <= now) {
            self.replayed_all(now);
        }
    }

    fn updated(&mut self, update: Update, now: Timestamp) {
        let quirks = self.quirks;
        if let Phase::Starting(starting) = &mut self.phase
            && let Some(replay) = &mut starting.replay
        {
            let is_end = matches!(update, Update::Commands(_));
            let is_trailing = starting.quiet_at.is_some();
            match update {
                Update::Commands(commands) => self.learn_commands(&commands),
                update => replay.hear(update, &quirks),
            }
            if is_trailing && is_end {
                self.replayed_all(now);
            } else if is_trailing && let Phase::Starting(starting) = &mut self.phase {
                starting.quiet_at = Some(now.plus_ms(TRAIL_QUIET_MS));
            }
            return;
        }
        self.observe(update, now);
    }

    /// They ask.
    fn requested(&mut self, id: TheirId, method: &str, params: Value, now: Timestamp) {
        let refusal = match method {
            "session/request_permission" => return self.asked(id, frames::read(params), now),
            "fs/write_text_file" if self.quirks.announces_writes => {
                let line = self.rpc.answer(&id, json!({}));
                return self.write(line);
            }
            "fs/read_text_file" | "fs/write_text_file" => {
                "Farhelm offers no files: use the machine's own"
            }
            method if method.starts_with("terminal/") => {
                "Farhelm offers no terminals: use the machine's own"
            }
            _ => "Farhelm does not know this method",
        };
        let line = self.rpc.refusal(&id, METHOD_NOT_FOUND, refusal);
        self.write(line);
    }

    fn asked(&mut self, id: TheirId, mut permission: Permission, now: Timestamp) {
        let quirks = self.quirks;
        self.evidence();
        self.heard(now);
        // Some tell of a tool call only by asking for it.
        self.observation.tool(&permission.tool_call, &quirks, &mut self.scribe, now);
        let known = self.observation.tool_name(&permission.tool_call.tool_call_id);
        permission.tool_call.name = known.or(permission.tool_call.name);
        if permission.options.is_empty() {
            let line = self.rpc.refusal(&id, INVALID_PARAMS, "There is nothing to choose from");
            return self.write(line);
        }
        // Whoever is being stopped need not ask.
        if self.turn.as_ref().is_some_and(super::Turn::is_stopping) {
            let line = self.rpc.answer(&id, outcome(None));
            return self.write(line);
        }
        let run = self.scribe.run().cloned();
        match self.questions.ask(id.clone(), &permission, run.as_ref(), &quirks, now) {
            Some(prompt) => self.scribe.ask(prompt, now),
            None => {
                let line = self.rpc.answer(&id, outcome(None));
                self.write(line);
            }
        }
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
