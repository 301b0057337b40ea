//! One agent session: the unit that has a ledger, an owner task and a sequence.
//!
//! [`Session::decide`] returns the events that a command leads to, [`Session::apply`] applies a
//! recorded event, [`Session::due`] returns the events that follow from the state and the time
//! alone, [`Session::owed`] returns what the proxy must still receive, and [`Session::deadline`]
//! when to check again.
//!
//! Not here: many sessions, machines and launches (`fleet`); who may see a session (`relay`).

mod card;
pub mod command;
pub mod config;
pub mod controls;
mod decide;
pub mod delivery;
pub mod forgotten;
mod glance;
mod line;
pub mod prompts;
pub mod queue;
pub mod runs;
pub mod status;
#[cfg(test)]
mod tests;
pub mod transcript;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub use card::{Card, Deadlines};
pub use command::{Change, Command, Report, Wish, Word};
pub use glance::Glance;
pub use line::Line;
pub use transcript::ReplayCursor;

use crate::content::Attachment;
use crate::{
    ChoiceId, Content, LinkId, LinkPosition, MessageId, PromptId, Refusal, RequestId, Sequence,
    Timestamp,
};

/// Journals of which a session remembers how far it heard them: the current one and its
/// predecessors, should one come back from a backup.
pub const LINKS_REMEMBERED_MAX: usize = 8;

/// A fact in the ledger of a session. Recording one is also what shows it to the watchers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// About sends.
    Delivery(delivery::Event),
    /// About the order of waiting sends.
    Queue(queue::Event),
    /// About permission prompts.
    Prompt(prompts::Event),
    /// About runs.
    Run(runs::Event),
    /// About control commands.
    Control(controls::Event),
    /// The configuration, as read.
    Config(config::AgentConfig),
    /// About reachability, health and names.
    Status(status::Event),
    /// About the conversation.
    Transcript(transcript::Event),
}

/// An event with its place and time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// Dense within the session, from 1.
    #[serde(rename = "n")]
    pub sequence: Sequence,
    /// The relay's clock.
    pub at: Timestamp,
    /// The proxy frame that it came from.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "from")]
    pub position: Option<LinkPosition>,
    /// What happened.
    #[serde(rename = "e")]
    pub event: Event,
}

/// Times that a person may configure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// How long a send waits for its machine before it fails.
    pub send_grace_ms: u64,
    /// How many prompts may be open at once; one more is refused.
    pub prompts_open_max: usize,
}

impl Policy {
    /// When a send fails that has waited for its machine since then.
    fn grace_ends(self, waiting_since: Timestamp) -> Timestamp {
        waiting_since.plus_ms(self.send_grace_ms)
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self { send_grace_ms: 30_000, prompts_open_max: prompts::PROMPTS_OPEN_MAX }
    }
}

/// What the proxy must still be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Give this to the agent.
    Deliver {
        /// What.
        send: delivery::Send,
        /// Which attempt at it: a retry after a failure is another one.
        attempt: Sequence,
    },
    /// Press this button.
    Answer {
        /// Names the order.
        request: RequestId,
        /// Which prompt.
        prompt: PromptId,
        /// Which button; `None`: the prompt is over, press nothing.
        choice: Option<ChoiceId>,
        /// Whether a person chose it, or the clock.
        by_person: bool,
        /// What else the answer carries.
        detail: Option<Content<prompts::AnswerDetail>>,
    },
    /// Carry out a control command.
    Control {
        /// Names the order.
        request: RequestId,
        /// What to do.
        control: controls::Control,
    },
}

/// An order's identity: sent once per connection, however often it is owed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum OrderKey {
    /// See [`Order::Deliver`].
    Deliver(MessageId, Sequence),
    /// See [`Order::Answer`] and [`Order::Control`].
    Request(RequestId),
}

impl Order {
    /// The order's identity.
    pub fn key(&self) -> OrderKey {
        match self {
            Self::Deliver { send, attempt } => OrderKey::Deliver(send.id.clone(), *attempt),
            Self::Answer { request, .. } | Self::Control { request, .. } => {
                OrderKey::Request(request.clone())
            }
        }
    }

    /// The files that the proxy must fetch for it.
    pub fn attachments(&self) -> &[Attachment] {
        match self {
            Self::Deliver { send, .. } => &send.attachments,
            Self::Answer { .. } | Self::Control { .. } => &[],
        }
    }
}

/// What a command led to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "the overdue events are recorded even when the command is refused"]
pub struct Performed {
    /// What the passing of time had led to before the command, whatever became of the command:
    /// the session may have slept through its deadlines, and a late command must not overtake
    /// them. A send that waited too long fails even if its machine is back now.
    pub overdue: Vec<Recorded>,
    /// What the command itself led to.
    pub outcome: Result<Vec<Recorded>, Refusal>,
}

/// State derived from recorded events alone: replaying the ledger rebuilds it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    head: Sequence,
    status: status::Status,
    sends: delivery::Sends,
    queue: queue::Queue,
    prompts: prompts::Prompts,
    runs: runs::Runs,
    controls: controls::Controls,
    config: Option<config::AgentConfig>,
    transcript: transcript::Transcript,
    /// How far each journal was heard.
    heard: BTreeMap<LinkId, u64>,
}

impl Session {
    /// Records what is overdue, then decides a command and records what it leads to and what
    /// then follows by itself.
    ///
    /// The events are numbered and already applied here; they must be committed before anybody
    /// hears of them, and this value dropped if they cannot be.
    pub fn perform(
        &mut self,
        command: &Command,
        cursor: &mut ReplayCursor,
        policy: Policy,
        now: Timestamp,
    ) -> Performed {
        let mut overdue = vec![];
        self.record(self.overdue(policy, now), None, now, &mut overdue);
        let connection = self.status.via().map(|via| via.connection.clone());
        let repeated = self.repeated_place(command, cursor);
        let outcome = self.carry_out(command, cursor, policy, now);
        if let Ok(recorded) = &outcome {
            let says = |fact: &Recorded| {
                matches!(fact.event, Event::Transcript(transcript::Event::Message(_)))
            };
            if let Some(place) = repeated {
                cursor.place = place + 1;
            } else if recorded.iter().any(says) {
                cursor.place = self.transcript.end();
            } else if self
                .status
                .via()
                .is_some_and(|via| Some(&via.connection) != connection.as_ref())
            {
                // A new connection may tell everything again.
                *cursor = ReplayCursor::default();
            }
        }
        Performed { overdue, outcome }
    }

    fn carry_out(
        &mut self,
        command: &Command,
        cursor: &ReplayCursor,
        policy: Policy,
        now: Timestamp,
    ) -> Result<Vec<Recorded>, Refusal> {
        let events = self.decide(command, cursor, policy, now)?;
        let position = match command {
            Command::Proxy(word) => word.position.clone(),
            Command::Person(..) | Command::Relay(_) => None,
        };
        let mut recorded = vec![];
        self.record(events, position.as_ref(), now, &mut recorded);
        // What follows may itself have followers: a failed send frees the next one's way.
        loop {
            let due = self.due(policy, now);
            if due.is_empty() {
                return Ok(recorded);
            }
            self.record(due, None, now, &mut recorded);
        }
    }

    /// Takes in one recorded event. Cannot fail: what is recorded has happened.
    pub fn apply(&mut self, recorded: &Recorded) {
        let (sequence, at) = (recorded.sequence, recorded.at);
        self.head = sequence;
        if let Some(LinkPosition { link, number }) = &recorded.position {
            let heard = self.heard.entry(link.clone()).or_default();
            *heard = (*heard).max(*number);
            if self.heard.len() > LINKS_REMEMBERED_MAX {
                let current = self.status.link().cloned();
                let stale = self.heard.keys().find(|k| Some(*k) != current.as_ref() && *k != link);
                if let Some(stale) = stale.cloned() {
                    self.heard.remove(&stale);
                }
            }
        }
        match &recorded.event {
            Event::Delivery(event) => self.apply_delivery(event, sequence, at),
            Event::Queue(event) => {
                if let queue::Event::Edited { id, text } = event {
                    self.sends.replace_text(id, text);
                }
                self.queue.apply(event);
            }
            Event::Prompt(event) => self.prompts.apply(event),
            Event::Run(event) => self.runs.apply(event, at),
            Event::Control(event) => self.controls.apply(event, at),
            Event::Config(config) => self.config = Some(config.clone()),
            Event::Status(event) => {
                match event {
                    status::Event::Down { since, .. } => self.runs.lose(since.unwrap_or(at)),
                    status::Event::Changed { activity: Some(_), .. } => self.runs.find(),
                    status::Event::Changed { activity: None, .. }
                    | status::Event::Up { .. }
                    | status::Event::Closed { .. }
                    | status::Event::Renamed(_)
                    | status::Event::Archived(_) => {}
                }
                self.status.apply(event, at);
            }
            Event::Transcript(event) => {
                self.runs.find();
                self.transcript.apply(event);
            }
        }
    }

    /// What the proxy must still be told, in the order to tell it.
    pub fn owed(&self) -> Vec<Order> {
        self.owed_beyond(&BTreeSet::new()).1
    }

    /// The keys of everything owed, and of that what is not among `told`.
    pub fn owed_beyond(&self, told: &BTreeSet<OrderKey>) -> (BTreeSet<OrderKey>, Vec<Order>) {
        let (mut keys, mut new) = (BTreeSet::new(), vec![]);
        let mut owe = |key: OrderKey, order: &dyn Fn() -> Order| {
            if !told.contains(&key) {
                new.push(order());
            }
            keys.insert(key);
        };
        for owed in self.prompts.owed() {
            owe(OrderKey::Request(owed.request.clone()), &|| Order::Answer {
                request: owed.request.clone(),
                prompt: owed.prompt.id.clone(),
                choice: owed.choice.clone(),
                by_person: owed.by_person,
                detail: owed.detail.clone(),
            });
        }
        for (request, control) in self.controls.owed() {
            owe(OrderKey::Request(request.clone()), &|| Order::Control {
                request: request.clone(),
                control: control.clone(),
            });
        }
        for (attempt, send) in self.sends.owed() {
            owe(OrderKey::Deliver(send.id.clone(), attempt), &|| Order::Deliver {
                send: send.clone(),
                attempt,
            });
        }
        (keys, new)
    }

    /// When to say [`Change::Tick`] next.
    pub fn deadline(&self, policy: Policy) -> Option<Timestamp> {
        self.deadlines().next(policy)
    }

    /// What of this session ends by time alone.
    pub fn deadlines(&self) -> Deadlines {
        let waiting = self.queue.order().iter().filter_map(|id| self.waits_since(id)).min();
        let expiries = [self.prompts.deadline(), self.controls.deadline()];
        Deadlines { waiting_since: waiting, expires_at: expiries.into_iter().flatten().min() }
    }

    /// The last event's number.
    pub fn head(&self) -> Sequence {
        self.head
    }

    /// Reachability, health and names.
    pub fn status(&self) -> &status::Status {
        &self.status
    }

    /// Whether the ledger must be asked about this send's past before it is decided.
    pub fn may_have_forgotten(&self, id: &MessageId) -> bool {
        self.sends.may_have_forgotten(id)
    }

    /// How a send stands, if it is remembered here.
    pub fn told(&self, id: &MessageId) -> Option<delivery::Told> {
        self.sends.told(id)
    }

    fn record(
        &mut self,
        events: Vec<Event>,
        position: Option<&LinkPosition>,
        now: Timestamp,
        recorded: &mut Vec<Recorded>,
    ) {
        for event in events {
            let (sequence, position) = (self.head.next(), position.cloned());
            let fact = Recorded { sequence, at: now, position, event };
            self.apply(&fact);
            recorded.push(fact);
        }
    }

    fn apply_delivery(&mut self, event: &delivery::Event, sequence: Sequence, at: Timestamp) {
        match event {
            delivery::Event::Accepted(send) => self.queue.join(&send.id),
            delivery::Event::HandedOver { id, .. } => self.queue.leave(id),
            delivery::Event::Failed { id, .. } => {
                self.queue.leave(id);
                if let Some(digest) = self.sends.handed(id, None).and_then(|send| send.digest) {
                    self.transcript.forget_early(digest);
                }
            }
            delivery::Event::Delivered { id, .. } => {
                self.queue.leave(id);
                if let Some(digest) = self.sends.handed(id, None).and_then(|send| send.digest) {
                    self.transcript.await_echo(digest);
                }
            }
        }
        self.sends.apply(event, sequence, at);
    }

    /// The place of a message that is re-sent: the next one is matched from behind it. A report
    /// that was received before is none: its message was matched then.
    fn repeated_place(&self, command: &Command, cursor: &ReplayCursor) -> Option<u64> {
        let Command::Proxy(word) = command else { return None };
        let Report::Message { message, has_own_id, echo } = &word.report else { return None };
        let sighting = self.sight(message, *has_own_id, *echo, cursor);
        let is_repeat = sighting == transcript::Sighting::Repeat;
        if !is_repeat || self.was_heard(word) || self.transcript.knows(&message.id) {
            return None;
        }
        self.transcript.place(message, *echo, cursor)
    }
}
