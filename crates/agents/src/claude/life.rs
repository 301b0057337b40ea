//! The program's life: when it starts, with which conversation, and what its end means.
//!
//! A session that was ready before does not start its program by itself: the first order that needs
//! it does.
//!
//! Not here: what happens in between (`hearing`).

use std::path::PathBuf;

use domain::content::Failure;
use domain::session::controls::Control;
use domain::session::runs::Outcome;
use domain::session::status::Health;
use domain::{RequestId, Timestamp};
use serde_json::json;

use super::Claude;
use super::frames::{Account, Applied, Introduction};
use super::notes::Chosen;
use super::transport::{Conversation, Purpose, Wishes, arguments};
use crate::{Ended, Order, Outlives, Output};

/// Orders that wait for the program to start. At the bound they fail.
const WAITING_MAX: usize = 64;

/// How far the program is.
#[derive(Debug)]
pub(super) enum Life {
    /// It does not run.
    Down,
    /// An earlier conversation's file is read, to be told before it is resumed.
    Importing(PathBuf),
    /// It was read, and is being told.
    Retelling,
    /// Our conversation's file is looked for, to know whether it ever began.
    Locating(PathBuf),
    /// It runs, and has not introduced itself.
    Starting(Starting),
    /// It runs.
    Up,
    /// It was told to end.
    Ending(Why),
}

/// A program that has not introduced itself.
#[derive(Debug)]
pub(super) struct Starting {
    pub(super) until: Timestamp,
    introduction: Option<Introduction>,
    has_settings: bool,
    /// What it said went wrong.
    pub(super) errors: Vec<String>,
}

/// Why a program was told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// Nothing was asked of it for long.
    Rest,
    /// It did not stop when it was asked to.
    Deaf,
}

impl Claude {
    pub(super) fn begin(&mut self, now: Timestamp) {
        if let Some(config) = self.notes.config.clone() {
            self.scribe.config(config);
            self.scribe.tell_status(None, now);
            return;
        }
        let wants_import = self.setup.earlier.as_ref().filter(|_| !self.notes.is_imported);
        if let Some(earlier) = wants_import {
            let usual = self.session_file(&earlier.id);
            let path = earlier.file.clone().unwrap_or(usual);
            self.scribe.push(Output::Read(path.clone()));
            self.life = Life::Importing(path);
            return;
        }
        // The name is new: there cannot be a file.
        let conversation = self.conversation(false);
        self.spawn(&conversation, now);
    }

    /// An order needs the program.
    pub(super) fn wait(&mut self, order: &Order, now: Timestamp) {
        if self.waiting.len() >= WAITING_MAX {
            let words = "Too many messages are already queued while Claude Code starts. Try \
                         again in a moment";
            self.fail(order, &Failure::new("send_rejected", words));
            return;
        }
        self.waiting.push_back(order.clone());
        match &self.life {
            Life::Down => self.wake(now),
            // One that ends is waited for: what it leaves open is closed first.
            Life::Importing(_)
            | Life::Retelling
            | Life::Locating(_)
            | Life::Starting(_)
            | Life::Up
            | Life::Ending(_) => {}
        }
    }

    fn wake(&mut self, now: Timestamp) {
        if self.notes.conversation.is_some() {
            let conversation = self.conversation(true);
            self.spawn(&conversation, now);
            return;
        }
        let path = self.session_file(&self.own_id());
        self.scribe.push(Output::Read(path.clone()));
        self.life = Life::Locating(path);
    }

    /// The conversation to begin with. `is_kept`: the agent has a file of our own.
    pub(super) fn conversation(&self, is_kept: bool) -> Conversation {
        let noted = self.notes.conversation.clone();
        let own = self.own_id();
        match (noted, &self.setup.earlier) {
            (Some(id), _) => Conversation::Resumed(id),
            (None, _) if is_kept => Conversation::Resumed(own),
            (None, Some(earlier)) if earlier.fork => {
                Conversation::Forked { from: earlier.id.clone(), to: own }
            }
            (None, Some(earlier)) => Conversation::Resumed(earlier.id.clone()),
            (None, None) => Conversation::New(own),
        }
    }

    pub(super) fn spawn(&mut self, conversation: &Conversation, now: Timestamp) {
        let last = self.notes.config.as_ref();
        let mode = last.and_then(|config| config.permission_mode.as_deref());
        let asked = self.setup.model.as_ref().map(domain::ModelId::as_str);
        let wishes = Wishes {
            model: self.notes.chosen.model.as_deref().or(asked),
            mode: mode.or(self.setup.mode.as_deref()),
            effort: self.notes.chosen.effort.as_deref(),
        };
        let arguments = arguments(conversation, &wishes);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let program = self.setup.launcher.program(&arguments, self.setup.workspace.clone());
        self.scribe.push(Output::Spawn(program));
        let until = self.setup.start_until(now);
        self.life = Life::Starting(Starting {
            until,
            introduction: None,
            has_settings: false,
            errors: vec![],
        });
        self.requests.take();
        self.ask(Purpose::Initialize, &json!({"subtype": "initialize", "hooks": null}), now);
        self.ask(Purpose::Settings(None), &json!({"subtype": "get_settings"}), now);
        self.requests.wait_until(until);
    }

    /// The program introduced itself, or refused to.
    pub(super) fn introduced(&mut self, told: Result<Introduction, String>, now: Timestamp) {
        let Life::Starting(starting) = &mut self.life else { return };
        match told {
            Ok(introduction) if is_logged_out(&introduction.account) => {
                let words = "Claude Code is not logged in on this machine: run `claude` there and \
                             log in, or set ANTHROPIC_API_KEY";
                self.scribe.push(Output::End);
                self.cannot_start(&Failure::new("agent_not_open", words), now);
            }
            Ok(introduction) => {
                starting.introduction = Some(introduction);
                self.ready_if_known(now);
            }
            Err(words) => {
                self.scribe.push(Output::End);
                let words = format!("Claude Code could not be initialized: {words}");
                self.cannot_start(&Failure::new("agent_not_open", words), now);
            }
        }
    }

    /// The program told its settings; one that cannot has none.
    pub(super) fn settings_told(
        &mut self,
        applied: Option<Applied>,
        request: Option<RequestId>,
        now: Timestamp,
    ) {
        if let Some(applied) = applied {
            self.settings.model = applied.model.or(self.settings.model.take());
            self.settings.effort = applied.effort;
        }
        if let Some(request) = request {
            self.tell_config(now);
            self.scribe.answered(&request, None);
        }
        if let Life::Starting(starting) = &mut self.life {
            starting.has_settings = true;
            self.ready_if_known(now);
        }
    }

    fn ready_if_known(&mut self, now: Timestamp) {
        let Life::Starting(starting) = &mut self.life else { return };
        let Some(introduction) = starting.introduction.take_if(|_| starting.has_settings) else {
            return;
        };
        self.settings.introduce(introduction);
        self.life = Life::Up;
        let is_first = self.notes.config.is_none();
        if is_first && let Some(model) = self.setup.model.clone() {
            let chosen = Chosen { model: Some(model.as_str().to_owned()), effort: None };
            self.scribe_remember(|notes| notes.choose(chosen));
        }
        self.tell_config(now);
        if is_first {
            self.scribe.tell_status(None, now);
            self.scribe.push(Output::Ready);
        } else {
            self.scribe.health(Health::Healthy, None, now);
        }
        while let Some(order) = self.waiting.pop_front() {
            self.obey(&order, now);
        }
    }

    /// The configuration, to everybody and to the notes.
    pub(super) fn tell_config(&mut self, now: Timestamp) {
        let config = self.settings.config(&self.notes.chosen, now);
        self.scribe_remember(|notes| notes.ready(&config));
        self.scribe.config(config);
    }

    /// Remembers a line, if there is one.
    pub(super) fn scribe_remember(
        &mut self,
        line: impl FnOnce(&mut super::notes::Notes) -> Option<String>,
    ) {
        if let Some(line) = line(&mut self.notes) {
            self.scribe.push(Output::Remember(line));
        }
    }

    /// The program did not get as far as being used.
    pub(super) fn cannot_start(&mut self, failure: &Failure, now: Timestamp) {
        self.life = Life::Down;
        self.requests.take();
        if self.notes.config.is_none() {
            self.scribe.push(Output::Unusable(failure.clone()));
            return;
        }
        for order in std::mem::take(&mut self.waiting) {
            self.fail(&order, failure);
        }
        let reason = format!("{}. Send a message to try again", failure.message);
        self.scribe.health(Health::Degraded, Some(reason), now);
    }

    /// An order cannot be carried out.
    fn fail(&mut self, order: &Order, failure: &Failure) {
        match order {
            Order::Deliver { send, attempt, .. } => {
                self.scribe.not_delivered(&send.id, *attempt, failure.clone());
            }
            Order::Control { request, control: Control::Close } => {
                self.close(request);
            }
            Order::Control { request, .. } | Order::Answer { request, .. } => {
                self.scribe.answered(request, Some(failure.clone()));
            }
            Order::LookUp { .. } | Order::Rest => {}
        }
    }

    /// Sends that wait for the program are taken back. Whether there were any.
    pub(super) fn stop_waiting(&mut self) -> bool {
        let words = "The run was stopped before the message reached Claude Code. Send it again";
        let failure = Failure::new("send_rejected", words);
        let (sends, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|order| matches!(order, Order::Deliver { .. }));
        self.waiting = others.into();
        for order in &sends {
            self.fail(order, &failure);
        }
        !sends.is_empty()
    }

    pub(super) fn ended(&mut self, how: &Ended, now: Timestamp) {
        match std::mem::replace(&mut self.life, Life::Down) {
            // Of a program that was ended before: the next one is on its way.
            life @ (Life::Down | Life::Importing(_) | Life::Retelling | Life::Locating(_)) => {
                self.life = life;
            }
            Life::Starting(starting) if self.has_lost_conversation(&starting) => {
                self.begin_anew(now);
            }
            Life::Starting(starting) => {
                let failure = self.why_not_started(how, &starting);
                self.cannot_start(&failure, now);
            }
            Life::Up => {
                let reason = self.reason(how);
                self.let_go(&Outcome::Failed(reason.clone()), now);
                let reason = format!("{reason}. Send a message to start it again");
                self.scribe.health(Health::Degraded, Some(reason), now);
            }
            Life::Ending(why) => {
                self.let_go(&Outcome::Interrupted, now);
                if why == Why::Deaf {
                    self.scribe.notice(
                        "agent",
                        "Claude Code did not stop when asked, so its program was ended",
                    );
                }
                if !self.waiting.is_empty() {
                    self.wake(now);
                }
            }
        }
    }

    /// Whether the agent no longer has the conversation of a session that was used.
    fn has_lost_conversation(&self, starting: &Starting) -> bool {
        let is_lost = |error: &String| error.contains("No conversation found");
        self.notes.config.is_some() && starting.errors.iter().any(is_lost)
    }

    /// The agent deletes old conversations, and one that a crash cut short was never written.
    fn begin_anew(&mut self, now: Timestamp) {
        let words = "Claude Code no longer has this conversation. Starting a new one without the \
                     earlier context";
        self.scribe.notice("conversation", words);
        let id = self.name_of(self.notes.conversations);
        self.scribe_remember(|notes| notes.conversation(&id));
        self.spawn(&Conversation::New(id), now);
    }

    /// Everything that was open in the program is over.
    fn let_go(&mut self, outcome: &Outcome, now: Timestamp) {
        self.watch.turn_ended(&mut self.scribe, now);
        self.watch.program_ended();
        self.scribe.outlives(Outlives::Nothing);
        self.questions.clear();
        for request in std::mem::take(&mut self.interrupts.requests) {
            self.scribe.answered(&request, None);
        }
        self.interrupts.until = None;
        let failure = Failure::new("agent_not_open", "Claude Code stopped before it answered");
        for purpose in self.requests.take() {
            if let Some(request) = purpose.request() {
                self.scribe.answered(request, Some(failure.clone()));
            }
        }
        self.scribe.end_run(outcome.clone(), None, now);
        self.scribe.close_all(now);
        self.search_written();
    }

    fn reason(&self, how: &Ended) -> String {
        let words = format!("Claude Code stopped: {}", how.words());
        match self.scribe.last_complaints() {
            Some(said) => format!("{words}. Its output: {said}"),
            None => words,
        }
    }

    fn why_not_started(&self, how: &Ended, starting: &Starting) -> Failure {
        if let Ended::NotStarted(failure) | Ended::Guarded(failure) = how {
            return failure.clone();
        }
        let said = match starting.errors.as_slice() {
            [] => self.scribe.last_complaints().unwrap_or_else(|| how.words()),
            errors => errors.join("\n"),
        };
        Failure::new("agent_not_open", format!("Claude Code did not start: {said}"))
    }
}

fn is_logged_out(account: &Account) -> bool {
    let none = |source: &Option<String>| source.as_deref().is_none_or(|source| source == "none");
    account.api_provider.as_deref() == Some("firstParty")
        && account.token_source.as_deref() == Some("none")
        && none(&account.api_key_source)
}
