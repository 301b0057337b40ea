//! Starts the program, does the handshake, and opens the thread.
//!
//! Invariant: every start ends by its deadline, usable or not, and on failure tells the person what
//! to do.
//!
//! Not here: the content of an earlier conversation (`history`).

use domain::Timestamp;
use domain::content::Failure;
use domain::session::status::Health;
use serde_json::{Map, Value, json};

use super::config::Mode;
use super::frames::{Account, Models, Opened, read};
use super::notes::Note;
use super::{Codex, Phase, Record, Todo, Why};
use crate::rpc::RpcError;
use crate::{Earlier, Output};

/// Models asked for at once: more than a person would look through.
const MODELS_MAX: u32 = 100;
/// How Codex says that it has no record of a thread.
const NO_RECORD: &str = "no rollout found";
/// How it speaks of a record that it had begun when it was killed.
const EMPTY_RECORD: [&str; 2] = ["rollout", "is empty"];

/// How far a start is.
#[derive(Debug)]
pub(super) struct Opening {
    since: Timestamp,
    until: Timestamp,
    thread: Which,
    is_open: bool,
    has_models: bool,
    is_imported: bool,
}

impl Opening {
    pub(super) fn until(&self) -> Timestamp {
        self.until
    }
}

/// Which thread is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    /// The one that the notes name.
    Own,
    /// The conversation that the session was launched with.
    Earlier,
    New,
}

impl Codex {
    /// Starts the program unless it runs.
    pub(super) fn wake(&mut self, now: Timestamp) {
        if !matches!(self.phase, Phase::Asleep) {
            return;
        }
        let is_first = self.notes.thread.is_none();
        if let Some(mode) = self.setup.mode.as_deref().filter(|_| is_first)
            && Mode::named(mode).is_none()
        {
            let known = super::config::mode_names().join(", ");
            let words = format!("Codex has no permission mode {mode}. Available: {known}");
            self.scribe.push(Output::Unusable(Failure::new("mode_not_available", words)));
            self.phase = Phase::Closed;
            return;
        }
        let thread = match (&self.notes.thread, &self.setup.earlier) {
            (Some(_), _) => Which::Own,
            (None, Some(_)) => Which::Earlier,
            (None, None) => Which::New,
        };
        self.phase = Phase::Starting(Opening {
            since: now,
            until: self.setup.start_until(now),
            thread,
            is_open: false,
            has_models: false,
            is_imported: true,
        });
        self.rpc.reset();
        let program = self.setup.launcher.program(&["app-server"], self.setup.workspace.clone());
        self.scribe.push(Output::Spawn(program));
        let params = json!({
            "clientInfo": {
                "name": "farhelm",
                "title": "Farhelm",
                "version": env!("CARGO_PKG_VERSION"),
            },
            "capabilities": { "experimentalApi": true },
        });
        self.ask(Why::Initialize, "initialize", params);
    }

    pub(super) fn opening_answered(
        &mut self,
        why: &Why,
        result: Result<Value, RpcError>,
        now: Timestamp,
    ) {
        match (why, result) {
            (Why::Initialize, Ok(_)) => {
                let greeting = self.rpc.notification("initialized", Value::Null);
                self.write(greeting);
                self.ask(Why::Account, "account/read", json!({}));
            }
            (Why::Account, Ok(account)) if needs_login(&account) => {
                let words = "Codex is not logged in on this machine: run `codex login` there";
                self.opening_failed(Failure::new("agent_not_open", words), now);
            }
            // An older server that cannot tell is found out by the first message.
            (Why::Account, Ok(_) | Err(_)) => {
                self.ask(Why::Models, "model/list", json!({ "limit": MODELS_MAX }));
                self.open();
            }
            (Why::Models, models) => {
                if let Some(models) = models.ok().and_then(|models| read::<Models>(&models)) {
                    self.settings.models = models.data;
                }
                match &mut self.phase {
                    Phase::Starting(opening) => opening.has_models = true,
                    Phase::Asleep | Phase::Up | Phase::Closed => self.tell_config(now),
                }
                self.go_up(now);
            }
            (Why::Open, Ok(opened)) => {
                if let Some(opened) = read::<Opened>(&opened) {
                    self.opened(&opened, now);
                } else {
                    let words = "Codex opened the conversation, but Farhelm could not read its \
                                 response";
                    self.opening_failed(Failure::new("agent_not_open", words), now);
                }
            }
            (Why::Open, Err(error)) => self.not_opened(&error, now),
            (_, Err(error)) => {
                let words = format!("Codex could not start: {error}");
                self.opening_failed(Failure::new("agent_not_open", words), now);
            }
            (_, Ok(_)) => {}
        }
    }

    fn open(&mut self) {
        let Phase::Starting(Opening { thread, .. }) = self.phase else { return };
        let mut params = Map::new();
        let known = self.notes.config.as_ref();
        let model = known.map(|config| &config.model).or(self.setup.model.as_ref());
        if let Some(model) = model {
            params.insert("model".into(), model.as_str().into());
        }
        if let Some(effort) = known.and_then(|config| config.effort.as_deref()) {
            params.insert("config".into(), json!({ "model_reasoning_effort": effort }));
        }
        let mode = self.notes.mode.as_deref().or(self.setup.mode.as_deref());
        if let Some(mode) = mode.and_then(Mode::named) {
            params.insert("approvalPolicy".into(), mode.policy.into());
            params.insert("sandbox".into(), mode.sandbox.into());
        }
        let method = match (thread, &self.notes.thread, &self.setup.earlier) {
            (Which::Own, Some(own), _) => {
                params.insert("threadId".into(), own.as_str().into());
                "thread/resume"
            }
            (Which::Earlier, _, Some(Earlier { id, fork, .. })) => {
                params.insert("threadId".into(), id.as_str().into());
                if *fork { "thread/fork" } else { "thread/resume" }
            }
            (Which::Own | Which::Earlier | Which::New, ..) => "thread/start",
        };
        if method == "thread/start" {
            let workspace = self.setup.workspace.to_string_lossy();
            params.insert("cwd".into(), workspace.into_owned().into());
        } else {
            params.insert("excludeTurns".into(), true.into());
        }
        self.ask(Why::Open, method, params.into());
    }

    fn opened(&mut self, opened: &Opened, now: Timestamp) {
        let Phase::Starting(opening) = &mut self.phase else { return };
        opening.is_open = true;
        self.record = match opening.thread {
            Which::Own | Which::Earlier => Record::Kept,
            Which::New if self.notes.is_reached => Record::Lost,
            Which::New => Record::Empty,
        };
        self.thread.clone_from(&opened.thread.id);
        self.settings.opened(opened);
        let is_import = opening.thread == Which::Earlier && self.notes.thread.is_none();
        if is_import {
            opening.is_imported = false;
            self.import_history();
        } else {
            self.go_up(now);
        }
    }

    fn not_opened(&mut self, error: &RpcError, now: Timestamp) {
        let Phase::Starting(opening) = &mut self.phase else { return };
        let has_no_record = error.message.contains(NO_RECORD)
            || EMPTY_RECORD.iter().all(|words| error.message.contains(words));
        // Codex writes nothing down before the first message, and that one it may lose when it is
        // killed: the thread is begun again.
        if opening.thread == Which::Own && has_no_record {
            let is_copy = self.setup.earlier.is_some() && !self.notes.is_reached;
            opening.thread = if is_copy { Which::Earlier } else { Which::New };
            if self.notes.is_reached {
                let words = "Codex has no record of the earlier messages and started a new \
                             conversation";
                self.scribe.notice("history", words);
            }
            self.open();
            return;
        }
        let words = if has_no_record {
            "Codex no longer has this conversation on this machine. Start a new session".to_owned()
        } else {
            format!("Codex could not open the conversation: {error}")
        };
        self.opening_failed(Failure::new("agent_not_open", words), now);
    }

    /// The earlier conversation is told.
    pub(super) fn imported(&mut self, now: Timestamp) {
        if let Phase::Starting(opening) = &mut self.phase {
            opening.is_imported = true;
        }
        self.go_up(now);
    }

    /// Goes up once everything is there.
    fn go_up(&mut self, now: Timestamp) {
        let Phase::Starting(opening) = &self.phase else { return };
        if !(opening.is_open && opening.has_models && opening.is_imported) {
            return;
        }
        self.phase = Phase::Up;
        let is_first = self.notes.thread.is_none();
        if self.notes.thread.as_ref() != Some(&self.thread) {
            self.remember(Note::Ready { thread: self.thread.clone() });
        }
        if let Some(mode) = self.setup.mode.clone().filter(|_| is_first) {
            self.remember(Note::ModeChosen(mode));
        }
        self.tell_config(now);
        if is_first {
            self.scribe.tell_status(None, now);
            self.scribe.push(Output::Ready);
        } else {
            self.scribe.health(Health::Healthy, None, now);
        }
        for todo in std::mem::take(&mut self.waiting) {
            self.perform(todo);
        }
    }

    pub(super) fn opening_deadline(&mut self, now: Timestamp) {
        let Phase::Starting(opening) = &mut self.phase else { return };
        if now < opening.until {
            return;
        }
        if opening.is_open && opening.is_imported {
            // Only the list of models is missing, and that can come later.
            opening.has_models = true;
            self.go_up(now);
            return;
        }
        let seconds = opening.until.ms_since(opening.since) / 1_000;
        let mut words = format!("Codex did not respond within {seconds} seconds");
        if let Some(complaints) = self.scribe.last_complaints() {
            words = format!("{words}. Its output:\n{complaints}");
        }
        self.opening_failed(Failure::new("launch_timeout", words), now);
    }

    /// The program is of no use.
    fn opening_failed(&mut self, failure: Failure, now: Timestamp) {
        self.scribe.push(Output::End);
        self.not_up(failure, now);
    }

    /// The program is no more, or never was.
    pub(super) fn not_up(&mut self, failure: Failure, now: Timestamp) {
        self.rpc.reset();
        if self.notes.thread.is_none() {
            self.phase = Phase::Closed;
            self.scribe.push(Output::Unusable(failure));
            return;
        }
        self.phase = Phase::Asleep;
        self.give_up(&failure);
        let reason = format!("{}. Send a message to start Codex again", failure.message);
        self.scribe.health(Health::Degraded, Some(reason), now);
    }

    /// A request to a program that is no more.
    pub(super) fn unanswered(&mut self, why: Why, failure: &Failure) {
        match why {
            Why::Start(sent) | Why::Steer(sent) => self.refuse(Todo::Doubt(sent), failure),
            Why::LookUp(search) | Why::LookUpWhole(search) => self.search_failed(&search),
            Why::Settings(request, _) => self.scribe.answered(&request, Some(failure.clone())),
            Why::Initialize
            | Why::Account
            | Why::Models
            | Why::Open
            | Why::Import
            | Why::ImportWhole
            | Why::Interrupt
            | Why::Terminals(_)
            | Why::Ignored => {}
        }
    }

    /// Nothing that waits will be done.
    pub(super) fn give_up(&mut self, failure: &Failure) {
        for todo in std::mem::take(&mut self.waiting) {
            self.refuse(todo, failure);
        }
        for why in self.rpc.reset() {
            self.unanswered(why, failure);
        }
        for sent in std::mem::take(&mut self.held) {
            self.scribe.not_delivered(&sent.id, sent.attempt, failure.clone());
        }
    }
}

fn needs_login(account: &Value) -> bool {
    read::<Account>(account)
        .is_some_and(|account| account.requires_openai_auth && account.account.is_null())
}
