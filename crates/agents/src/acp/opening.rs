//! From the handshake to a program that has the conversation.
//!
//! A conversation that has begun is loaded; otherwise a new one is opened. The messages that the
//! agent replays while it loads are not new: they are imported once, or counted to find out what
//! arrived.
//!
//! Not here: the lines themselves (`transport`).

use domain::Timestamp;
use domain::content::Failure;
use domain::session::status::Health;
use serde_json::json;

use super::frames::{Initialized, Opened};
use super::replay::Replay;
use super::transport::AUTH_REQUIRED;
use super::{Abilities, Acp, Ask, Phase, Quirks, Setting};
use crate::Output;
use crate::rpc::RpcError;

/// How long a conversation may take to be loaded again.
const RESUME_WITHIN_MS: u64 = 120_000;
/// By which some agents name their records.
const MINUTE_MS: u64 = 60_000;
/// Into the next minute, for clocks that are not quite the same.
const MINUTE_MARGIN_MS: u64 = 500;
/// A replay that goes on after its answer is over when nothing more came for this long.
const TRAIL_QUIET_MS: u64 = 1_500;
/// A program on its way.
#[derive(Debug)]
pub(super) struct Starting {
    until: Timestamp,
    /// When the conversation may be loaded, where it must not be at once.
    load_at: Option<Timestamp>,
    /// What is replayed.
    replay: Option<Replay>,
    /// When a replay that goes on after its answer is taken to be over.
    quiet_at: Option<Timestamp>,
    /// Settings that are still to be chosen.
    to_set: Vec<(Setting, String)>,
}

impl Starting {
    /// Of a program that has to be ready by then; without a time its conversation is loaded again.
    pub(super) fn new(ready_by: Option<Timestamp>, now: Timestamp) -> Self {
        Self {
            until: ready_by.unwrap_or_else(|| now.plus_ms(RESUME_WITHIN_MS)),
            load_at: None,
            replay: None,
            quiet_at: None,
            to_set: vec![],
        }
    }

    /// Whoever hears what is replayed.
    pub(super) fn replay(&mut self) -> Option<&mut Replay> {
        self.replay.as_mut()
    }

    /// Whether the replay goes on after its answer.
    pub(super) fn is_trailing(&self) -> bool {
        self.quiet_at.is_some()
    }

    pub(super) fn deadline(&self) -> Timestamp {
        [Some(self.until), self.load_at, self.quiet_at]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(self.until)
    }
}

impl Acp {
    pub(super) fn initialized(&mut self, told: Initialized, now: Timestamp) {
        if let Some(quirks) = Quirks::find(&told.agent_info.name) {
            self.quirks = quirks;
        }
        let capabilities = told.agent_capabilities;
        self.abilities = Abilities {
            can_load: capabilities.load_session,
            can_fork: capabilities.session.fork.is_some(),
            takes_images: capabilities.prompt.image,
        };
        self.login_methods = told.auth_methods.into_iter().map(|method| method.name).collect();
        let load_at = self.load_at(now);
        let Phase::Starting(starting) = &mut self.phase else { return };
        starting.load_at = load_at;
        let Some(conversation) = self.conversation() else { return self.open_new() };
        if self.abilities.can_load {
            if load_at.is_none() {
                self.load(&conversation);
            }
        } else if self.notes.is_ready {
            self.lose_context("The agent cannot resume conversations", now);
        } else {
            let words = format!("{} cannot resume conversations", self.name());
            self.give_up_start(Failure::new("launch_not_supported", words), now);
        }
    }

    /// When the conversation may be loaded, where it must not be now.
    fn load_at(&self, now: Timestamp) -> Option<Timestamp> {
        let opened_at = self.notes.opened_at.filter(|_| self.quirks.names_by_the_minute)?;
        let next_minute = Timestamp((opened_at.0 / MINUTE_MS + 1) * MINUTE_MS);
        Some(next_minute.plus_ms(MINUTE_MARGIN_MS)).filter(|at| now < *at)
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

    pub(super) fn not_loaded(&mut self, error: &RpcError, now: Timestamp) {
        if error.code == AUTH_REQUIRED || !self.notes.is_ready {
            let failure = self.failure_of(error);
            return self.give_up_start(failure, now);
        }
        self.lose_context(&format!("It reported: {error}"), now);
    }

    /// The session goes on, but the agent does not know what was said.
    fn lose_context(&mut self, why: &str, now: Timestamp) {
        self.fail_lookups(now);
        let name = self.name();
        let keeping = self.quirks.keeping.map(|words| format!(". {words}")).unwrap_or_default();
        let words = format!(
            "{name} started a new conversation and does not know the earlier messages. \
             {why}{keeping}"
        );
        self.scribe.notice("context_lost", words);
        if let Phase::Starting(starting) = &mut self.phase {
            starting.replay = None;
        }
        self.open_new();
    }

    pub(super) fn opened(&mut self, opened: Opened, now: Timestamp) {
        let Some(id) = opened.session_id.clone() else {
            let words = format!("{} did not open a session", self.name());
            return self.give_up_start(Failure::new("internal", words), now);
        };
        let line = self.notes.note_conversation(id, Some(now));
        self.remember(line);
        self.settings.learn(opened);
        self.choose_wanted(now);
    }

    pub(super) fn loaded(&mut self, opened: Opened, now: Timestamp) {
        self.settings.learn(opened);
        let trails = self.quirks.replay_trails;
        let Phase::Starting(starting) = &mut self.phase else { return };
        if trails {
            starting.quiet_at = Some(now.plus_ms(TRAIL_QUIET_MS));
        } else {
            self.replayed_all(now);
        }
    }

    /// More was replayed after the answer, or its end.
    pub(super) fn trailed(&mut self, is_end: bool, now: Timestamp) {
        if is_end {
            return self.replayed_all(now);
        }
        if let Phase::Starting(starting) = &mut self.phase {
            starting.quiet_at = Some(now.plus_ms(TRAIL_QUIET_MS));
        }
    }

    /// The whole conversation is told.
    fn replayed_all(&mut self, now: Timestamp) {
        let is_importing = self.is_importing();
        let Phase::Starting(starting) = &mut self.phase else { return };
        starting.quiet_at = None;
        let replay = starting.replay.take().unwrap_or_default();
        let texts = replay.texts();
        self.replayed = Some(texts);
        if !is_importing {
            return self.choose_wanted(now);
        }
        replay.import(&mut self.scribe, now);
        self.retold(now);
    }

    /// Goes on when all of it is told.
    pub(super) fn retold(&mut self, now: Timestamp) {
        if !self.scribe.take_retold() || !matches!(self.phase, Phase::Starting(_)) {
            return;
        }
        let texts = self.replayed.clone().unwrap_or_default();
        let earlier = self.setup.earlier.clone();
        let is_fork = earlier.as_ref().is_some_and(|earlier| earlier.fork);
        if is_fork && !self.abilities.can_fork {
            let words = format!("{} cannot fork a conversation", self.name());
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
            let line = self.notes.note_conversation(earlier.id, None);
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
                        "{} does not allow Farhelm to set the {} to {value}",
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
                self.scribe.notice(
                    "setting",
                    format!("Could not restore the {word}: {}", failure.message),
                );
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
            self.scribe.activity("idle", "Idle", now);
        } else {
            let line = self.notes.note_ready();
            self.remember(line);
            self.scribe.tell_status(None, now);
            self.scribe.push(Output::Ready);
        }
        self.go_on(now);
    }

    /// The program cannot be used. A session that was ready before stays, and says so.
    pub(super) fn give_up_start(&mut self, failure: Failure, now: Timestamp) {
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
        self.scribe.activity("idle", "Idle", now);
        let words = format!("{}\nSend a message to start it again", failure.message);
        self.scribe.health(Health::Degraded, Some(words), now);
        self.fail_held(&failure, now);
    }

    /// The program takes its time.
    pub(super) fn hurry_start(&mut self, now: Timestamp) {
        let Phase::Starting(starting) = &mut self.phase else { return };
        if starting.until <= now {
            let words = format!("{} started but was not ready in time", self.name());
            return self.give_up_start(Failure::new("launch_timeout", words), now);
        }
        if starting.load_at.take_if(|at| *at <= now).is_some() {
            if let Some(conversation) = self.conversation() {
                self.load(&conversation);
            }
            return;
        }
        if starting.quiet_at.is_some_and(|at| at <= now) {
            self.replayed_all(now);
        }
    }
}
