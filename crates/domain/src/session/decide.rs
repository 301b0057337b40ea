//! Which events a command to a session leads to, and which follow without a command.
//!
//! Not here: applying recorded events (`session`), each concern's own rules (its file).

use super::command::{Change, Command, Report, Wish, Word};
use super::controls::{Control, Kind};
use super::delivery::{DELIVERY_UNKNOWN, SESSION_NOT_CONNECTED, Send};
use super::status::{Activity, CloseReason, Health, Reach};
use super::transcript::Sighting;
use super::{
    Event, Policy, ReplayCursor, Session, config, controls, delivery, prompts, queue, runs, status,
    transcript,
};
use crate::content::{Author, Digest, Failure, Message, Part, Usage};
use crate::{Content, MessageId, Principal, Refusal, RequestId, RunId, Timestamp};

impl Session {
    /// What a command leads to. Changes nothing.
    pub fn decide(
        &self,
        command: &Command,
        cursor: &ReplayCursor,
        policy: Policy,
        now: Timestamp,
    ) -> Result<Vec<Event>, Refusal> {
        match command {
            Command::Person(principal, _) if !principal.may_steer() => Err(Refusal::Unauthorized),
            Command::Person(principal, wish) => self.decide_wish(principal, wish),
            Command::Proxy(word) => self.decide_word(word, cursor, policy, now),
            Command::Relay(change) => Ok(self.decide_change(change, now)),
        }
    }

    /// What follows from the state and the time alone.
    pub fn due(&self, policy: Policy, now: Timestamp) -> Vec<Event> {
        let mut events = self.overdue(policy, now);
        if events.is_empty() {
            events.extend(self.hand_over().into_iter().map(Event::Delivery));
        }
        events
    }

    /// What has come to its end by time alone.
    pub(super) fn overdue(&self, policy: Policy, now: Timestamp) -> Vec<Event> {
        let mut events: Vec<Event> =
            self.prompts.expire(now).into_iter().map(Event::Prompt).collect();
        events.extend(self.controls.expire(now).into_iter().map(Event::Control));
        let late =
            self.queue.order().iter().filter(|id| {
                self.waits_since(id).is_some_and(|since| policy.grace_ends(since) <= now)
            });
        events.extend(late.map(|id| {
            fail(id, SESSION_NOT_CONNECTED, "The session's machine was offline; nothing was sent")
        }));
        events
    }

    /// Since when a send waits for its machine, if that is what it waits for.
    pub(super) fn waits_since(&self, id: &MessageId) -> Option<Timestamp> {
        let since = self.status.down_since()?;
        Some(since.max(self.sends.accepted_at(id)?))
    }

    /// The waiting sends that may leave now. Their hand-over is recorded before they do.
    fn hand_over(&self) -> Vec<delivery::Event> {
        let Some(via) = self.status.via() else { return vec![] };
        let way = queue::Way {
            reach: self.status.queue_reach(),
            can_steer: config::can_steer(self.config.as_ref()),
            has_run: self.runs.active().is_some(),
            is_held: self.queue.is_held(),
            handed: self.sends.handed_count(),
        };
        let mode = |id: &MessageId| self.sends.waiting(id).and_then(|send| send.mode);
        let waiting = self.queue.order().iter().map(|id| (id, mode(id)));
        let leave =
            |id: &MessageId| delivery::Event::HandedOver { id: id.clone(), link: via.link.clone() };
        way.leaving(waiting).into_iter().map(leave).collect()
    }

    fn decide_wish(&self, principal: &Principal, wish: &Wish) -> Result<Vec<Event>, Refusal> {
        match wish {
            Wish::Send { send, earlier } => self.send(send, earlier.as_ref()),
            Wish::SendAtRest(_) if self.is_at_work() => Err(Refusal::AgentAtWork),
            Wish::SendAtRest(send) => self.send(send, None),
            Wish::Answer { request, prompt, choice, detail } => {
                let unnamed = || format!("answer:{prompt}:{}", self.head).into();
                let request = request.clone().unwrap_or_else(unnamed);
                let control = Control::Answer(prompt.clone());
                let mut events = self.control(principal, &request, control)?;
                let name = &principal.name;
                let detail = detail.as_ref();
                let answer = self.prompts.answer(prompt, choice, name, &request, detail)?;
                events.push(Event::Prompt(answer));
                Ok(events)
            }
            Wish::Control { request, control } => {
                let mut control = control.clone();
                if let Control::Interrupt { run } = &mut control {
                    *run = self.runs.active().cloned();
                }
                let holds = control.kind() == Kind::Interrupt
                    && !self.queue.order().is_empty()
                    && !self.queue.is_held();
                let mut events = self.control(principal, request, control)?;
                if holds {
                    events.push(Event::Queue(queue::Event::Held));
                }
                Ok(events)
            }
            Wish::EditQueued { id, text } => Ok(vec![Event::Queue(self.queue.edit(id, text)?)]),
            Wish::DiscardQueued { id } => {
                self.queue.place(id)?;
                let words = format!("Removed from the queue by {}", principal.name);
                Ok(vec![fail(id, "discarded", &words)])
            }
            Wish::MoveQueued { id, to } => Ok(vec![Event::Queue(self.queue.shift(id, *to)?)]),
            Wish::ResumeQueue => Ok(self.resume_queue()),
            Wish::Rename(title) => Ok(vec![Event::Status(status::Event::Renamed(title.clone()))]),
            Wish::Archive(archived) if *archived == self.status.archived => Ok(vec![]),
            Wish::Archive(archived) => Ok(vec![Event::Status(status::Event::Archived(*archived))]),
        }
    }

    /// Whether the agent works, or is about to: what was handed over begins a run.
    fn is_at_work(&self) -> bool {
        let is_starting = self.status.via().is_some() && self.sends.handed_count() > 0;
        self.runs.active().is_some() || is_starting
    }

    fn send(&self, send: &Send, earlier: Option<&delivery::Told>) -> Result<Vec<Event>, Refusal> {
        let accepted = self.sends.accept(send, earlier)?;
        if self.status.is_closed() {
            return Err(Refusal::SessionClosed);
        }
        self.queue.admit()?;
        let mut events = vec![Event::Delivery(accepted)];
        events.extend(self.resume_queue());
        Ok(events)
    }

    fn control(
        &self,
        principal: &Principal,
        request: &RequestId,
        control: Control,
    ) -> Result<Vec<Event>, Refusal> {
        let by = principal.key();
        self.controls.check_repeat(request, &by)?;
        if self.status.is_closed() {
            return Err(Refusal::SessionClosed);
        }
        if self.status.via().is_none() {
            return Err(Refusal::NoProxyConnected);
        }
        let events = self.controls.request(request, &by, control)?;
        Ok(events.into_iter().map(Event::Control).collect())
    }

    fn resume_queue(&self) -> Vec<Event> {
        if self.queue.is_held() { vec![Event::Queue(queue::Event::Resumed)] } else { vec![] }
    }

    fn decide_word(
        &self,
        word: &Word,
        cursor: &ReplayCursor,
        policy: Policy,
        now: Timestamp,
    ) -> Result<Vec<Event>, Refusal> {
        if self.status.via().is_none_or(|via| via.connection != word.connection) {
            return Err(Refusal::NotThisProxy);
        }
        if self.was_heard(word) {
            return Ok(vec![]);
        }
        self.decide_report(&word.report, cursor, policy, now)
    }

    /// A word that its proxy told before: its acknowledgement was lost on the way.
    pub(super) fn was_heard(&self, word: &Word) -> bool {
        word.position.as_ref().is_some_and(|position| {
            self.heard.get(&position.link).is_some_and(|heard| *heard >= position.number)
        })
    }

    fn decide_report(
        &self,
        report: &Report,
        cursor: &ReplayCursor,
        policy: Policy,
        now: Timestamp,
    ) -> Result<Vec<Event>, Refusal> {
        Ok(match report {
            Report::Status { health, activity, reason } => {
                self.changed(*health, activity.as_ref(), reason.as_ref())
            }
            Report::Message { message, has_own_id, echo } => {
                self.message(message, *has_own_id, *echo, cursor)
            }
            Report::ToolCall(call) => said(transcript::Event::ToolCall(call.clone())),
            Report::ToolUpdate(update) => said(transcript::Event::ToolUpdate(update.clone())),
            Report::Plan(plan) => said(transcript::Event::Plan(plan.clone())),
            Report::Notice(notice) => said(transcript::Event::Notice(notice.clone())),
            Report::Context(context) => said(transcript::Event::Context(*context)),
            Report::RunStarted { run, cause } => self.start_run(run, cause.as_ref()),
            Report::RunEnded { run, outcome, usage } => {
                let is_cut = matches!(outcome, runs::Outcome::Cut(_));
                self.end_run(run, outcome, usage.as_ref(), is_cut)
            }
            Report::SendDelivered { id, attempt, run } => {
                let Some(send) = self.sends.handed(id, *attempt) else { return Ok(vec![]) };
                self.delivered(send, run.as_ref(), now)
            }
            Report::SendFailed { id, attempt, failure } => {
                let Some(send) = self.sends.handed(id, *attempt) else { return Ok(vec![]) };
                let (id, failure) = (send.id.clone(), failure.clone());
                vec![Event::Delivery(delivery::Event::Failed { id, failure })]
            }
            Report::Asked(prompt) => self
                .prompts
                .ask(prompt, policy.prompts_open_max)?
                .into_iter()
                .map(Event::Prompt)
                .collect(),
            Report::PromptGone(id) => match self.prompts.owed_request(id) {
                // Answered already: the answer is what made it go.
                Some(request) => self.control_result(request, None),
                None => self.prompts.withdraw(id).map(Event::Prompt).into_iter().collect(),
            },
            Report::ControlResult { request, failure } => {
                self.control_result(request, failure.as_ref())
            }
            Report::Config(config) => self.configured(config),
            Report::Resumed { prompts, run } => {
                let gone = self.prompts.withdraw_all_but(prompts);
                let mut events: Vec<_> = gone.into_iter().map(Event::Prompt).collect();
                let is_lost = self.runs.active().is_some() && self.runs.active() != run.as_ref();
                if is_lost {
                    let why = "The machine reconnected without this run";
                    events.extend(self.lose_agent(why, None));
                }
                events
            }
            Report::Closed { reason, request } => self.closed(*reason, request.as_ref(), Some(now)),
        })
    }

    /// What only repeats what is known is no event; words alone do not make it one.
    fn changed(
        &self,
        health: Health,
        activity: Option<&Activity>,
        reason: Option<&String>,
    ) -> Vec<Event> {
        let told = activity.map(|a| (&a.kind, &a.label));
        let known = self.status.activity.as_ref().map(|a| (&a.kind, &a.label));
        if health == self.status.health && (told.is_none() || told == known) {
            return vec![];
        }
        let (activity, reason) = (activity.cloned(), reason.cloned());
        vec![Event::Status(status::Event::Changed { health, activity, reason })]
    }

    /// What a message is, seen against what is known.
    pub(super) fn sight(
        &self,
        message: &Message,
        has_own_id: bool,
        echo: Option<Digest>,
        cursor: &ReplayCursor,
    ) -> Sighting {
        // A proxy with a journal knows a send by its id; what it names otherwise was typed there.
        let echo = echo.filter(|_| !has_own_id || self.status.link().is_none());
        let sighting = self.transcript.sight(message, has_own_id, echo, cursor);
        // A window may show a send before its proxy reports the delivery.
        let is_early = sighting == Sighting::New && message.author == Author::User;
        let awaits = |digest| self.sends.handed_alike(digest) > self.transcript.early(digest);
        if is_early && echo.is_some_and(awaits) { Sighting::Echo } else { sighting }
    }

    fn message(
        &self,
        message: &Message,
        has_own_id: bool,
        echo: Option<Digest>,
        cursor: &ReplayCursor,
    ) -> Vec<Event> {
        match (self.sight(message, has_own_id, echo, cursor), echo) {
            (Sighting::New, _) => said(transcript::Event::Message(message.clone())),
            (Sighting::Echo, Some(digest)) => said(transcript::Event::Echoed(digest)),
            (Sighting::Echo, None) | (Sighting::Repeat, _) => vec![],
        }
    }

    /// The agent has it: the send becomes part of the conversation.
    fn delivered(&self, send: &Send, run: Option<&RunId>, now: Timestamp) -> Vec<Event> {
        let parts = match &send.text {
            Content::Open(text) => {
                let text = (!text.is_empty()).then(|| Part::Text(text.clone()));
                let files = send.attachments.iter().map(|file| {
                    let image = file.media_type.as_ref().is_some_and(|t| t.starts_with("image/"));
                    if image { Part::Image(file.clone()) } else { Part::File(file.clone()) }
                });
                Content::Open(text.into_iter().chain(files).collect())
            }
            Content::Sealed(sealed) => Content::Sealed(sealed.clone()),
        };
        let message = Message {
            id: send.id.clone(),
            author: Author::User,
            parts,
            created_at: now,
            run: run.cloned(),
            parent: None,
            digest: send.digest,
        };
        let begun = run.map_or_else(Vec::new, |run| self.start_run(run, Some(&send.id)));
        // Whoever sent it takes the next end of a run for its answer: an old run ends first.
        let (starts, mut events): (Vec<_>, Vec<_>) = begun
            .into_iter()
            .partition(|event| matches!(event, Event::Run(runs::Event::Started { .. })));
        let (id, run) = (send.id.clone(), run.cloned());
        events.push(Event::Delivery(delivery::Event::Delivered { id, run }));
        if !self.transcript.knows(&send.id) {
            events.extend(said(transcript::Event::Message(message)));
        }
        events.extend(starts);
        events
    }

    /// A run that was never told to end is cut off by the next one. Its agent lives: tools that
    /// are at work, in the background for example, go on.
    fn start_run(&self, run: &RunId, cause: Option<&MessageId>) -> Vec<Event> {
        let Some(started) = self.runs.start(run, cause) else { return vec![] };
        let why = "Another run began before the end of this one was reported";
        let mut events = self.cut_run(why, None);
        events.push(Event::Run(started));
        events
    }

    /// The agent is gone, and with it everything that was at work, in a run or not.
    fn lose_agent(&self, why: &str, seen_at: Option<Timestamp>) -> Vec<Event> {
        let mut events: Vec<_> = self.transcript.cancel_tools().map(Event::Transcript).collect();
        events.extend(self.cut_run(why, seen_at));
        events
    }

    /// Ends what is going on although nothing told its end. Where somebody wanted it stopped, that
    /// is why it is over; else `why` says it, for a person. `seen_at` is when it certainly went on.
    fn cut_run(&self, why: &str, seen_at: Option<Timestamp>) -> Vec<Event> {
        let Some(run) = self.runs.active() else { return vec![] };
        let lasted_ms = self.runs.lasted_ms(seen_at);
        let cut = || runs::Outcome::Cut(runs::Cut { why: why.to_owned(), lasted_ms });
        let was_stopped = self.controls.has_interrupt(run);
        let outcome = if was_stopped { runs::Outcome::Interrupted } else { cut() };
        self.end_run(run, &outcome, None, false)
    }

    /// Interrupts are bound to the run that they were meant for. Tools that are at work go on,
    /// unless their agent is gone.
    fn end_run(
        &self,
        run: &RunId,
        outcome: &runs::Outcome,
        usage: Option<&Usage>,
        agent_is_gone: bool,
    ) -> Vec<Event> {
        let Some(ended) = self.runs.end(run, outcome, usage) else { return vec![] };
        let mut events = vec![];
        if agent_is_gone {
            events.extend(self.transcript.cancel_tools().map(Event::Transcript));
        }
        events.push(Event::Run(ended));
        let stopped = matches!(outcome, runs::Outcome::Interrupted | runs::Outcome::Cut(_));
        let voided = self.controls.void_interrupts(run, stopped);
        events.extend(voided.into_iter().map(Event::Control));
        events
    }

    fn control_result(&self, request: &RequestId, failure: Option<&Failure>) -> Vec<Event> {
        let tried = self.prompts.tried(request, failure).map(Event::Prompt);
        let mut events: Vec<_> = tried.into_iter().collect();
        let interrupt_failed = failure.is_some()
            && self.controls.pending(request).is_some_and(|p| p.control.kind() == Kind::Interrupt);
        let settled = self.controls.settle(request, failure.cloned());
        events.extend(settled.map(Event::Control));
        if interrupt_failed {
            events.extend(self.resume_queue());
        }
        events
    }

    fn configured(&self, config: &config::AgentConfig) -> Vec<Event> {
        let mut events = vec![Event::Config(config.clone())];
        events.extend(
            self.controls.settle_all(Kind::ReadConfig, None).into_iter().map(Event::Control),
        );
        let confirmed = self.controls.owed().filter(
            |(_, control)| matches!(control, Control::SetModel(model) if *model == config.model),
        );
        let confirmed = confirmed.filter_map(|(request, _)| self.controls.settle(request, None));
        events.extend(confirmed.map(Event::Control));
        events
    }

    /// Everything that can no longer happen is told so. `seen_at` is when it certainly could.
    fn closed(
        &self,
        reason: CloseReason,
        request: Option<&RequestId>,
        seen_at: Option<Timestamp>,
    ) -> Vec<Event> {
        if self.status.is_closed() {
            return vec![];
        }
        let mut events: Vec<_> = self
            .sends
            .open()
            .iter()
            .map(|(id, handed)| match handed {
                true => fail(id, DELIVERY_UNKNOWN, "The session closed; delivery is unconfirmed"),
                false => fail(id, SESSION_NOT_CONNECTED, "The session was closed"),
            })
            .collect();
        let owed =
            self.prompts.owed().map(|owed| prompts::Event::Confirmed(owed.prompt.id.clone()));
        events.extend(owed.chain(self.prompts.withdraw_all_but(&[])).map(Event::Prompt));
        events.extend(self.lose_agent("The session was closed", seen_at));
        let gone = Failure::new(SESSION_NOT_CONNECTED, "The session was closed");
        let voided = self.runs.active();
        for kind in [
            Kind::Interrupt,
            Kind::SetModel,
            Kind::SetMode,
            Kind::SetEffort,
            Kind::ReadConfig,
            Kind::Answer,
        ] {
            let settled = self.controls.settle_all(kind, Some(&gone));
            // Interrupts of the run that was cut are settled with it.
            let rest = settled.into_iter().filter(|event| !self.is_interrupt_of(event, voided));
            events.extend(rest.map(Event::Control));
        }
        events.extend(self.controls.settle_all(Kind::Close, None).into_iter().map(Event::Control));
        let request = request.cloned();
        events.push(Event::Status(status::Event::Closed { reason, request }));
        events
    }

    fn is_interrupt_of(&self, event: &controls::Event, run: Option<&RunId>) -> bool {
        let controls::Event::Settled { request, .. } = event else { return false };
        let pending = self.controls.pending(request).map(|pending| &pending.control);
        matches!(pending, Some(Control::Interrupt { run: Some(of) }) if Some(of) == run)
    }

    fn decide_change(&self, change: &Change, now: Timestamp) -> Vec<Event> {
        match change {
            Change::Up { via, meta, health, activity } => {
                if self.status.via() == Some(via) && self.status.meta == **meta {
                    return self.changed(*health, activity.as_ref(), None);
                }
                // Our own proxy names a session that is over until it knows that we know. A plain v1
                // proxy has a session by its id, and may have opened it again.
                if self.status.is_closed() && via.link.is_some() {
                    return vec![];
                }
                let lost = self.sends.handed_to_another(via.link.as_ref());
                let mut events: Vec<_> = lost
                    .iter()
                    .map(|id| {
                        let words = "The machine lost track of this message; it may have arrived";
                        fail(id, DELIVERY_UNKNOWN, words)
                    })
                    .collect();
                // The end of a run would be told by the journal that told its start.
                if self.status.link() != via.link.as_ref() {
                    let why = "The machine reconnected without its record of this run";
                    events.extend(self.lose_agent(why, None));
                }
                let (via, meta, activity) = (via.clone(), meta.clone(), activity.clone());
                events.push(Event::Status(status::Event::Up {
                    via,
                    meta,
                    health: *health,
                    activity,
                }));
                events
            }
            Change::Down { connection, reason } => match &self.status.reach {
                Reach::Up(via) if connection.as_ref().is_none_or(|c| *c == via.connection) => {
                    vec![Event::Status(status::Event::Down { reason: *reason, since: None })]
                }
                Reach::Up(_) | Reach::New | Reach::Down { .. } | Reach::Closed => vec![],
            },
            Change::Restarted { alive_at } => match &self.status.reach {
                Reach::Up(_) => {
                    let reason = status::DownReason::ProxyDisconnected;
                    let since = Some(now.min(*alive_at));
                    vec![Event::Status(status::Event::Down { reason, since })]
                }
                Reach::New | Reach::Down { .. } | Reach::Closed => vec![],
            },
            Change::Over => match &self.status.reach {
                Reach::Up(_) => vec![],
                Reach::New | Reach::Down { .. } | Reach::Closed => {
                    self.closed(CloseReason::UserRequested, None, None)
                }
            },
            Change::Tick => vec![],
        }
    }
}

fn said(event: transcript::Event) -> Vec<Event> {
    vec![Event::Transcript(event)]
}

fn fail(id: &MessageId, code: &str, words: &str) -> Event {
    let failure = Failure::new(code, words);
    Event::Delivery(delivery::Event::Failed { id: id.clone(), failure })
}
