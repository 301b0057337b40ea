//! The line: the messages queued for the agent, as a watcher follows them from event to event.
//!
//! **Invariant**: after the same events it shows the same queue as the session, no matter when the
//! watcher joined. All dialects use it; none has its own rule for whether a send is queued.
//!
//! Not here: the text of the sends; each dialect keeps what it shows.

use super::delivery::{self, Mode, Send};
use super::queue::{self, Reach, Way};
use super::{Event, Glance, config, runs, status};
use crate::MessageId;

/// What waits for the agent.
#[derive(Debug, Clone)]
pub struct Line {
    waiting: Vec<Waiting>,
    handed: Vec<(MessageId, Option<Mode>)>,
    is_held: bool,
    reach: Reach,
    can_steer: bool,
    run: Option<Run>,
}

#[derive(Debug, Clone)]
struct Waiting {
    id: MessageId,
    mode: Option<Mode>,
    /// Whether it leaves with the commit that accepted it.
    is_passing: bool,
}

#[derive(Debug, Clone)]
struct Run {
    cause: Option<MessageId>,
}

impl Line {
    /// The line when a watcher joins.
    pub fn of(glance: &Glance) -> Self {
        let status = &glance.card.status;
        let waiting =
            |send: &Send| Waiting { id: send.id.clone(), mode: send.mode, is_passing: false };
        Self {
            waiting: glance.waiting.iter().map(waiting).collect(),
            handed: glance.handed.iter().map(|send| (send.id.clone(), send.mode)).collect(),
            is_held: glance.is_held,
            reach: status.queue_reach(),
            can_steer: config::can_steer(glance.card.config.as_ref()),
            run: glance.run.as_ref().map(|(_, cause)| Run { cause: cause.clone() }),
        }
    }

    /// An empty line before a machine that is away.
    pub fn empty() -> Self {
        Self {
            waiting: vec![],
            handed: vec![],
            is_held: false,
            reach: Reach::Away,
            can_steer: false,
            run: None,
        }
    }

    /// The sends that wait, next first. They can be edited, moved and taken out.
    pub fn waiting(&self) -> impl Iterator<Item = &MessageId> {
        self.waiting.iter().filter(|it| !it.is_passing).map(|it| &it.id)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting().count()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a send that is accepted now waits for something. A send resumes a held queue.
    pub fn waits(&self, send: &Send) -> bool {
        let way = Way { is_held: false, ..self.way() };
        let ahead = self.waiting.iter().map(|it| (&it.id, it.mode));
        // One round tells: what leaves makes the agent busy, and steers leave before all others.
        let leaving = way.leaving(ahead.chain([(&send.id, send.mode)]));
        !leaving.contains(&&send.id)
    }

    /// The sends that left for the machine and are not yet known to be with the agent.
    pub fn handed(&self) -> impl Iterator<Item = &MessageId> {
        self.handed.iter().map(|(id, _)| id)
    }

    /// Of those, the messages that wait at the agent itself for an opportunity within its run.
    pub fn steering(&self) -> impl Iterator<Item = &MessageId> {
        let run = self.run.as_ref().filter(|_| self.can_steer && self.reach != Reach::Plain);
        let steers = self.handed.iter().filter(move |(id, mode)| {
            *mode == Some(Mode::Steer) && run.is_some_and(|run| run.cause.as_ref() != Some(id))
        });
        steers.map(|(id, _)| id)
    }

    /// Whether the agent works, or is about to: what was handed over begins a run.
    pub fn is_at_work(&self) -> bool {
        let is_starting = self.reach != Reach::Away && !self.handed.is_empty();
        self.run.is_some() || is_starting
    }

    /// Whether an interrupt holds it.
    pub fn is_held(&self) -> bool {
        self.is_held
    }

    /// How the machine is reached.
    pub fn reach(&self) -> Reach {
        self.reach
    }

    /// Takes in an event.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Delivery(event) => self.on_delivery(event),
            Event::Queue(queue::Event::Held) => self.is_held = true,
            Event::Queue(queue::Event::Resumed) => self.is_held = false,
            Event::Queue(queue::Event::Moved { id, to }) => {
                let Some(at) = self.waiting.iter().position(|it| it.id == *id) else { return };
                let moved = self.waiting.remove(at);
                self.waiting.insert((*to).min(self.waiting.len()), moved);
            }
            Event::Run(runs::Event::Started { cause, .. }) => {
                self.run = Some(Run { cause: cause.clone() });
            }
            Event::Run(runs::Event::Ended { .. }) => self.run = None,
            Event::Config(config) => self.can_steer = config::can_steer(Some(config)),
            Event::Status(status::Event::Up { via, .. }) => {
                self.reach = if via.link.is_some() { Reach::Linked } else { Reach::Plain };
            }
            Event::Status(status::Event::Down { .. } | status::Event::Closed { .. }) => {
                self.reach = Reach::Away;
            }
            Event::Status(
                status::Event::Changed { .. }
                | status::Event::Renamed(_)
                | status::Event::Archived(_),
            )
            | Event::Queue(queue::Event::Edited { .. })
            | Event::Prompt(_)
            | Event::Control(_)
            | Event::Transcript(_) => {}
        }
    }

    fn on_delivery(&mut self, event: &delivery::Event) {
        match event {
            delivery::Event::Accepted(send) => {
                let is_passing = !self.waits(send);
                let (id, mode) = (send.id.clone(), send.mode);
                self.waiting.push(Waiting { id, mode, is_passing });
            }
            delivery::Event::HandedOver { id, .. } => {
                let mode = self.waiting.iter().find(|it| it.id == *id).and_then(|it| it.mode);
                self.waiting.retain(|it| it.id != *id);
                self.handed.push((id.clone(), mode));
            }
            delivery::Event::Delivered { id, .. } | delivery::Event::Failed { id, .. } => {
                self.waiting.retain(|it| it.id != *id);
                self.handed.retain(|(handed, _)| handed != id);
            }
        }
    }

    fn way(&self) -> Way {
        Way {
            reach: self.reach,
            can_steer: self.can_steer,
            has_run: self.run.is_some(),
            is_held: self.is_held,
            handed: self.handed.len(),
        }
    }
}
