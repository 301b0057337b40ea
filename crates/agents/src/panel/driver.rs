//! The driver of a session that lives in a panel.
//!
//! It receives what the observer sees and the outcomes of its jobs, and converts them to reports. A
//! send counts as delivered when its job says so (the composer was emptied by it), never because a
//! row looks like it.
//!
//! Invariant: one send at a time, and none during a run. Nothing is typed into a panel that does
//! not match its profile. Every job ends once, by its outcome or its timeout.
//!
//! Not here: doing the jobs, finding panels, their identity (`proxy`).

mod asking;
mod delivery;
mod orders;
mod running;
mod telling;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use domain::content::Failure;
use domain::session::config::AgentConfig;
use domain::session::runs::{Cut, Outcome};
use domain::session::status::{CloseReason, Health};
use domain::{ModelId, RequestId, SessionId, Timestamp};

use super::health::{Verdict, Watch};
use super::notes::Notes;
use super::sight::{Sight, Taken};
use super::{Attached, Done, Job, JobNumber, News, Profile, Task};
use crate::panel::frames::Push;
use crate::{Driver, Input, Order, Output, Scribe, Setup};
use asking::Dialogs;
use delivery::{Awaited, Flight, Held};
use running::Running;
use telling::Rows;

/// How long a panel may be away before what waits for it is given up.
const AWAY_MS: u64 = 15_000;
/// How long a panel may be closed, while its window goes on, before its session is over.
const CLOSED_MS: u64 = 30 * 60_000;
/// How long nothing may be heard before the panel is looked at.
const SILENT_MS: u64 = 90_000;
/// How often the panel is looked at even if much is heard: its observer wants to be asked for.
const LOOK_EVERY_MS: u64 = 120_000;

/// How long it may take until what was told is noted.
const NOTE_MS: u64 = 500;
/// How long a panel that appeared may take to have its model.
const WARM_MS: u64 = 8_000;
/// The same where a panel takes nothing without.
const MODEL_NEEDED_MS: u64 = 60_000;
/// There, the page is still being put together when its model shows, and what is typed is lost.
const MODEL_SETTLES_MS: u64 = 3_000;

/// How a session came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Somebody launched it: a new chat is to be opened.
    Launched,
    /// Its panel was found.
    Found,
}

/// How far the panel is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Not seen (again) since then.
    Away {
        since: Timestamp,
        /// Whether somebody closed just this panel.
        is_closed: bool,
    },
    /// It is there.
    Attached,
    /// The session is over, or never was.
    Closed,
}

/// Why something is to be done.
#[derive(Debug)]
enum Purpose {
    Open,
    Look,
    Send(Box<Flight>),
    Press(asking::Press),
    Stop(Option<RequestId>),
    /// For whom, unless the session began with it.
    SetModel(ModelId, Option<RequestId>),
    ReadModels(RequestId),
    Close(RequestId),
}

impl Purpose {
    /// How long it may take.
    fn within_ms(&self) -> u64 {
        match self {
            // Somebody who types is waited for.
            Self::Send(_) => 120_000,
            Self::Look => 20_000,
            Self::Open
            | Self::Press(_)
            | Self::Stop(_)
            | Self::SetModel(..)
            | Self::ReadModels(_) => 25_000,
            Self::Close(_) => 15_000,
        }
    }
}

#[derive(Debug)]
struct Pending {
    purpose: Purpose,
    until: Timestamp,
}

/// One session in a panel.
#[derive(Debug)]
pub struct PanelDriver {
    profile: Arc<Profile>,
    session: SessionId,
    origin: Origin,
    workspace_path: Option<String>,
    model_wanted: Option<ModelId>,
    /// When its launch has to be over.
    ready_by: Option<Timestamp>,
    notes: Notes,
    scribe: Scribe,
    sight: Sight,
    watch: Watch,
    verdict: Option<Verdict>,
    phase: Phase,
    jobs: BTreeMap<JobNumber, Pending>,
    last_job: JobNumber,
    held: VecDeque<Held>,
    awaited: VecDeque<Awaited>,
    rows: Rows,
    dialogs: Dialogs,
    running: Running,
    /// As a menu last showed them.
    models: Option<Vec<String>>,
    config: Option<AgentConfig>,
    heard_at: Timestamp,
    looked_at: Timestamp,
    /// From then on the panel is ready, even if its model cannot be read.
    warm_at: Timestamp,
    /// Since when it shows its model.
    model_at: Option<Timestamp>,
    /// When anything was last thought about.
    woken_at: Timestamp,
}

impl PanelDriver {
    /// A session with what its notes say.
    pub fn new(profile: Arc<Profile>, setup: Setup, origin: Origin) -> Self {
        let workspace = setup.workspace.to_string_lossy().into_owned();
        Self {
            profile,
            session: setup.session,
            origin,
            workspace_path: Some(workspace).filter(|path| !path.is_empty()),
            model_wanted: setup.model,
            ready_by: setup.ready_by,
            notes: Notes::read(&setup.notes),
            scribe: Scribe::default(),
            sight: Sight::default(),
            watch: Watch::default(),
            verdict: None,
            phase: Phase::Away { since: Timestamp(0), is_closed: false },
            jobs: BTreeMap::new(),
            last_job: 0,
            held: VecDeque::new(),
            awaited: VecDeque::new(),
            rows: Rows::default(),
            dialogs: Dialogs::default(),
            running: Running::default(),
            models: None,
            config: None,
            heard_at: Timestamp(0),
            looked_at: Timestamp(0),
            warm_at: Timestamp(0),
            model_at: None,
            woken_at: Timestamp(0),
        }
    }

    /// Something is thought about. What was told last time is on disk by now.
    fn wake(&mut self, now: Timestamp) {
        self.woken_at = now;
        if let Some(line) = self.notes.take_later() {
            self.remember(line);
        }
    }

    fn remember(&mut self, line: String) {
        self.scribe.push(Output::Remember(line));
    }

    fn ask(&mut self, task: Task, purpose: Purpose, now: Timestamp) {
        self.last_job += 1;
        let launched = self.ready_by.take_if(|_| matches!(purpose, Purpose::Open));
        let until = launched.unwrap_or_else(|| now.plus_ms(purpose.within_ms()));
        self.jobs.insert(self.last_job, Pending { purpose, until });
        self.scribe.push(Output::Panel(Job { number: self.last_job, task }));
    }

    /// What has no outcome.
    fn tell_service(&mut self, task: Task) {
        self.last_job += 1;
        self.scribe.push(Output::Panel(Job { number: self.last_job, task }));
    }

    fn is_doing(&self, is_it: impl Fn(&Purpose) -> bool) -> bool {
        self.jobs.values().any(|pending| is_it(&pending.purpose))
    }

    fn flight(&mut self) -> Option<&mut Flight> {
        self.jobs.values_mut().find_map(|pending| match &mut pending.purpose {
            Purpose::Send(flight) => Some(flight.as_mut()),
            Purpose::Open
            | Purpose::Look
            | Purpose::Press(_)
            | Purpose::Stop(_)
            | Purpose::SetModel(..)
            | Purpose::ReadModels(_)
            | Purpose::Close(_) => None,
        })
    }

    /// The whole view is wanted. Once at a time.
    fn look(&mut self, now: Timestamp) {
        if self.phase == Phase::Attached && !self.is_doing(|it| matches!(it, Purpose::Look)) {
            self.looked_at = now;
            self.ask(Task::Look, Purpose::Look, now);
        }
    }

    fn hear(&mut self, news: News, now: Timestamp) {
        match news {
            News::Attached(Attached { profile, .. }) => self.attached(profile, now),
            News::Pushed(text) => self.pushed(&text, now),
            News::Blind { reason } => {
                self.watch.blind(reason);
                self.tell_health(now);
                self.serve_held(now);
            }
            News::Gone { reason, is_closed } => self.gone(reason, is_closed, now),
            News::Done { job, outcome } => {
                if let Some(pending) = self.jobs.remove(&job) {
                    self.done(pending.purpose, outcome, now);
                }
            }
        }
    }

    fn attached(&mut self, profile: Arc<Profile>, now: Timestamp) {
        if self.profile != profile {
            self.profile = profile;
            self.models = None;
            self.ask_anew(now);
        }
        self.phase = Phase::Attached;
        self.heard_at = now;
        self.warm_at = now.plus_ms(WARM_MS);
        self.model_at = None;
        self.sight.forget();
        self.watch.attached();
        if !self.notes.is_ready {
            let line = self.notes.note_ready();
            self.remember(line);
            self.scribe.push(Output::Ready);
            if let Some(model) = self.model_wanted.take() {
                let task = Task::SetModel(model.as_str().to_owned());
                self.ask(task, Purpose::SetModel(model, None), now);
            }
        }
        self.tell_config(now);
        self.look(now);
    }

    fn pushed(&mut self, text: &str, now: Timestamp) {
        self.heard_at = now;
        let push = match Push::read(text) {
            Ok(push) => push,
            Err(error) => {
                self.watch.blind(format!("Could not read the panel's state: {error}"));
                return self.tell_health(now);
            }
        };
        // A push can be quicker than the word that the panel is there.
        if self.phase != Phase::Attached {
            return;
        }
        let has_rows = !push.rows.is_empty() || !push.gone.is_empty();
        match self.sight.take(push) {
            Taken::Late => return,
            Taken::Gap => self.look(now),
            Taken::Whole => {}
        }
        if has_rows {
            self.running.changed_at = now;
        }
        if let Some(last) = &self.sight.last {
            self.watch.look(last, &self.profile, now);
            self.model_at = last.model.as_ref().map(|_| self.model_at.unwrap_or(now));
        }
        self.follow(now);
    }

    /// Whether there is anything to make reports of.
    fn can_follow(&self) -> bool {
        let is_readable = self.sight.last.as_ref().is_some_and(|last| last.error.is_none());
        is_readable && self.phase == Phase::Attached
    }

    /// Makes reports of what is in sight.
    fn follow(&mut self, now: Timestamp) {
        self.tell_health(now);
        let Some(last) = self.sight.last.clone().filter(|_| self.can_follow()) else {
            return self.serve_held(now);
        };
        self.note_busy(&last, now);
        self.follow_chapter(&last);
        self.follow_rows(now);
        self.follow_dialogs(&last.dialogs, now);
        self.tell_activity(&last, now);
        self.tell_config(now);
        self.end_quiet_run(now);
        self.serve_held(now);
    }

    fn gone(&mut self, reason: String, is_closed: bool, now: Timestamp) {
        if self.phase == Phase::Closed {
            return;
        }
        let is_closing = |it: &Purpose| matches!(it, Purpose::Close(_));
        if self.is_doing(is_closing) {
            return self.end_by_request(now);
        }
        self.phase = Phase::Away { since: now, is_closed };
        self.sight.forget();
        self.watch.gone(reason);
        self.tell_health(now);
    }

    /// A person's wish to close it came true.
    fn end_by_request(&mut self, now: Timestamp) {
        let closing = self.jobs.iter().find_map(|(job, pending)| match &pending.purpose {
            Purpose::Close(request) => Some((*job, request.clone())),
            Purpose::Open
            | Purpose::Look
            | Purpose::Send(_)
            | Purpose::Press(_)
            | Purpose::Stop(_)
            | Purpose::SetModel(..)
            | Purpose::ReadModels(_) => None,
        });
        let Some((job, request)) = closing else { return };
        self.jobs.remove(&job);
        self.close(CloseReason::UserRequested, Some(request), now);
    }

    fn close(&mut self, reason: CloseReason, request: Option<RequestId>, now: Timestamp) {
        // Nothing is begun any more.
        self.phase = Phase::Closed;
        for (_, pending) in std::mem::take(&mut self.jobs) {
            let words = "The session was closed before the outcome was known";
            self.done(pending.purpose, Err(Failure::new("delivery_unknown", words)), now);
        }
        self.fail_held(&Failure::new("session_not_connected", "The session was closed"));
        self.finish_rows(now);
        let outcome = match reason {
            CloseReason::UserRequested => Outcome::Interrupted,
            CloseReason::TargetClosed | CloseReason::ProxyShutdown => {
                let why = "The chat was closed while the agent was running".to_owned();
                Outcome::Cut(Cut { why, lasted_ms: None })
            }
        };
        self.scribe.end_run(outcome, None, now);
        self.scribe.closed(reason, request);
    }

    /// What came of a job.
    fn done(&mut self, purpose: Purpose, outcome: Result<Done, Failure>, now: Timestamp) {
        match purpose {
            Purpose::Open => self.opened(outcome.err()),
            Purpose::Look => {
                if let Err(failure) = outcome
                    && self.phase == Phase::Attached
                {
                    self.watch.blind(format!("Could not read the panel: {}", failure.message));
                    self.tell_health(now);
                    self.serve_held(now);
                }
            }
            Purpose::Send(flight) => self.sent(*flight, outcome.err(), now),
            Purpose::Press(press) => self.pressed(&press, outcome.err(), now),
            Purpose::Stop(request) => self.stopped(request, outcome.err()),
            Purpose::SetModel(model, request) => {
                self.model_was_set(&model, request, outcome.err(), now);
            }
            Purpose::ReadModels(request) => self.models_were_read(&request, outcome, now),
            Purpose::Close(request) => match outcome {
                Ok(_) => self.close(CloseReason::UserRequested, Some(request), now),
                Err(failure) => self.scribe.answered(&request, Some(failure)),
            },
        }
    }

    fn opened(&mut self, failure: Option<Failure>) {
        let Some(failure) = failure else { return };
        if !self.notes.is_ready {
            self.phase = Phase::Closed;
            self.scribe.push(Output::Unusable(failure));
        }
    }

    /// Health, where it is news.
    fn tell_health(&mut self, now: Timestamp) {
        let verdict = self.watch.verdict(&self.profile, now);
        if self.verdict.as_ref() == Some(&verdict) {
            return;
        }
        let health = verdict.health;
        let reason = verdict.reason.clone();
        self.verdict = Some(verdict);
        match reason {
            Some(reason) => self.scribe.health(health, Some(reason), now),
            None => self.scribe.health(health, None, now),
        }
    }

    fn health(&self) -> Health {
        self.verdict.as_ref().map_or(Health::Disconnected, |verdict| verdict.health)
    }

    /// Jobs that take too long are over.
    fn give_up_jobs(&mut self, now: Timestamp) {
        let late: Vec<_> =
            self.jobs.iter().filter(|(_, it)| it.until <= now).map(|(job, _)| *job).collect();
        for job in late {
            let Some(pending) = self.jobs.remove(&job) else { continue };
            let failure = match &pending.purpose {
                Purpose::Send(_) => {
                    let words = "It is unknown whether the panel accepted the message. It may \
                                 have arrived";
                    Failure::new("delivery_unknown", words)
                }
                Purpose::Open => Failure::new("launch_timeout", "The panel did not open in time"),
                Purpose::Look
                | Purpose::Press(_)
                | Purpose::Stop(_)
                | Purpose::SetModel(..)
                | Purpose::ReadModels(_)
                | Purpose::Close(_) => {
                    Failure::new("control_failed", "The panel did not respond in time")
                }
            };
            self.done(pending.purpose, Err(failure), now);
        }
    }

    /// What is to be done because the panel is away for long.
    fn watch_away(&mut self, now: Timestamp) {
        let Phase::Away { since, is_closed } = self.phase else { return };
        let away_ms = now.ms_since(since);
        if away_ms >= AWAY_MS && self.scribe.run().is_some() {
            self.finish_rows(now);
            self.dialogs.forget();
            let words = "The panel disappeared while the agent was running".to_owned();
            self.end_run(Outcome::Failed(words), now);
        }
        if is_closed && away_ms >= CLOSED_MS {
            self.tell_service(Task::LetGo);
            self.close(CloseReason::TargetClosed, None, now);
        }
    }

    fn away_deadline(&self) -> Option<Timestamp> {
        let Phase::Away { since, is_closed } = self.phase else { return None };
        let run = self.scribe.run().map(|_| since.plus_ms(AWAY_MS));
        let closed = is_closed.then(|| since.plus_ms(CLOSED_MS));
        [run, closed].into_iter().flatten().min()
    }

    fn look_deadline(&self) -> Option<Timestamp> {
        let is_looking = self.is_doing(|it| matches!(it, Purpose::Look));
        if self.phase != Phase::Attached || is_looking {
            return None;
        }
        let silent = self.heard_at.max(self.looked_at).plus_ms(SILENT_MS);
        Some(silent.min(self.looked_at.plus_ms(LOOK_EVERY_MS)))
    }
}

impl Driver for PanelDriver {
    fn ready_by(&mut self, at: Timestamp) {
        self.ready_by = Some(at);
    }

    fn start(&mut self, now: Timestamp) -> Vec<Output> {
        self.phase = Phase::Away { since: now, is_closed: false };
        self.await_echoes(now);
        if self.notes.is_ready || self.origin == Origin::Found {
            self.watch.gone("Farhelm has not found the panel yet");
            if self.notes.is_ready {
                self.tell_config(now);
                self.tell_health(now);
            }
            self.tell_service(Task::Find);
        } else {
            let workspace_path = self.workspace_path.clone();
            self.ask(Task::Open { workspace_path }, Purpose::Open, now);
        }
        self.scribe.take()
    }

    fn on_order(&mut self, order: &Order, now: Timestamp) -> Vec<Output> {
        self.wake(now);
        if self.phase != Phase::Closed {
            self.take_order(order, now);
        }
        self.scribe.take()
    }

    fn on_input(&mut self, input: Input, now: Timestamp) -> Vec<Output> {
        self.wake(now);
        match input {
            Input::Panel(news) if self.phase != Phase::Closed => self.hear(news, now),
            Input::Kept { message, outcome } => self.scribe.kept(&message, outcome),
            // There is no program.
            Input::Panel(_)
            | Input::Line(_)
            | Input::Complaint(_)
            | Input::Ended(_)
            | Input::Read { .. }
            | Input::Filed { .. }
            | Input::Held(_)
            | Input::Terminal(..) => {}
        }
        self.scribe.take()
    }

    fn on_deadline(&mut self, now: Timestamp) -> Vec<Output> {
        if self.phase == Phase::Closed {
            return self.scribe.take();
        }
        self.wake(now);
        self.scribe.on_deadline(now);
        self.give_up_jobs(now);
        self.watch_away(now);
        if self.phase == Phase::Attached {
            let is_due = |at: Option<Timestamp>| at.is_some_and(|at| at <= now);
            if is_due(self.look_deadline()) || self.watch.is_missing() {
                self.look(now);
            }
        }
        self.follow(now);
        self.scribe.take()
    }

    fn deadline(&self) -> Option<Timestamp> {
        if self.phase == Phase::Closed {
            return None;
        }
        let jobs = self.jobs.values().map(|pending| pending.until).min();
        let watch = self.watch.deadline(self.woken_at);
        let all = [
            self.scribe.deadline(),
            jobs,
            self.away_deadline(),
            self.look_deadline(),
            watch.filter(|_| !self.is_doing(|it| matches!(it, Purpose::Look))),
            self.quiet_deadline(),
            self.notes.has_later().then(|| self.woken_at.plus_ms(NOTE_MS)),
            self.held_deadline(),
            self.dialogs.deadline().filter(|_| self.can_follow()),
        ];
        all.into_iter().flatten().min()
    }

    fn conversation(&self) -> Option<&str> {
        self.sight.last.as_ref()?.conversation.as_deref()
    }

    fn shorten_notes(&self, notes: &str) -> Option<String> {
        Some(Notes::shortened(notes))
    }

    fn is_at_rest(&self) -> bool {
        // There is no program that could rest.
        false
    }
}

#[cfg(test)]
mod tests;
