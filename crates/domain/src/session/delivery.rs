//! Sends on their way to the agent: `accepted → handed over → delivered / failed`.
//!
//! A send is recorded before anybody is told about it, and its hand-over is recorded before it
//! leaves. A send that was never handed over may time out; a send that was handed over may not. A
//! send that was reported as failed therefore cannot reach the agent later. Each id has one
//! outcome, and a repeat gets that outcome.
//!
//! Not here: which queued send goes next (`queue`), the proxy's own inbox (`proxy`).

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::forgotten::Forgotten;
use crate::content::{Attachment, Digest, Failure};
use crate::{Content, LinkId, MessageId, Refusal, RunId, Sequence, Timestamp};

/// Settled sends that are remembered here; older ones are looked up in the ledger.
pub const SETTLED_REMEMBERED_MAX: usize = 512;
/// The code of a send whose fate a crash hid. It is never tried again by itself.
pub const DELIVERY_UNKNOWN: &str = "delivery_unknown";
/// The code of a send whose machine stayed away.
pub const SESSION_NOT_CONNECTED: &str = "session_not_connected";

/// A message that a person wants delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Send {
    /// Given by the client; a retry carries the same.
    pub id: MessageId,
    /// The words.
    pub text: Content<String>,
    /// Uploaded files that belong to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// What to do while the agent runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The name of who sent it.
    pub by: String,
    /// As the client says.
    pub created_at: Timestamp,
    /// Recognises the agent UI's echo of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
}

/// What a send does while the agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Reaches the agent at its next opportunity, where it can.
    Steer,
    /// Waits for the run to end.
    FollowUp,
}

/// Facts about sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// Durable: the person may look away.
    Accepted(Send),
    /// Leaves for the proxy; from here on time cannot fail it.
    HandedOver {
        /// Which send.
        id: MessageId,
        /// The journal that will know it; a plain v1 proxy has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        link: Option<LinkId>,
    },
    /// The agent has it.
    Delivered {
        /// Which send.
        id: MessageId,
        /// The run that it started, if the proxy says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<RunId>,
    },
    /// The agent does not have it and will not get it (or nobody can know).
    Failed {
        /// Which send.
        id: MessageId,
        /// Why.
        failure: Failure,
    },
}

/// How a send stands, with the event that told it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Which send.
    pub id: MessageId,
    /// The state.
    pub state: State,
    /// The event that told it.
    pub sequence: Sequence,
    /// When.
    pub at: Timestamp,
}

/// The states that clients hear of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// On disk at the relay.
    Accepted,
    /// With the agent.
    Delivered,
    /// Not with the agent.
    Failed(Failure),
}

impl State {
    /// Whether the same id may be tried again.
    pub fn may_retry(&self) -> bool {
        match self {
            Self::Accepted | Self::Delivered => false,
            Self::Failed(failure) => failure.code.as_str() != DELIVERY_UNKNOWN,
        }
    }
}

/// State derived from recorded events alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sends {
    /// Accepted and not settled.
    open: BTreeMap<MessageId, Open>,
    /// How the most recent ones ended.
    settled: BTreeMap<MessageId, Told>,
    /// The same, oldest first.
    settled_order: VecDeque<MessageId>,
    /// The older ones, as far as they can be told.
    #[serde(default)]
    forgotten: Forgotten,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Open {
    send: Send,
    sequence: Sequence,
    at: Timestamp,
    handed: Option<Handed>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Handed {
    order: Sequence,
    link: Option<LinkId>,
}

impl Sends {
    /// A person sends. `earlier` is what the ledger knows of this id when this state forgot it.
    pub fn accept(&self, send: &Send, earlier: Option<&Told>) -> Result<Event, Refusal> {
        match self.told(&send.id).or_else(|| earlier.cloned()) {
            Some(told) if !told.state.may_retry() => Err(Refusal::SendRepeated(Box::new(told))),
            _ => Ok(Event::Accepted(send.clone())),
        }
    }

    /// Whether an id that [`Sends::told`] does not know may still be in the ledger.
    pub fn may_have_forgotten(&self, id: &MessageId) -> bool {
        self.told(id).is_none() && self.forgotten.may_hold(id)
    }

    /// How a send stands, if it is remembered here.
    pub fn told(&self, id: &MessageId) -> Option<Told> {
        let open = self.open.get(id).map(|open| Told {
            id: id.clone(),
            state: State::Accepted,
            sequence: open.sequence,
            at: open.at,
        });
        open.or_else(|| self.settled.get(id).cloned())
    }

    /// A send that is with the proxy, if it is this attempt at it. A result about any other is a
    /// repeat and changes nothing. A plain v1 proxy cannot name the attempt.
    pub fn handed(&self, id: &MessageId, attempt: Option<Sequence>) -> Option<&Send> {
        let open = self.open.get(id).filter(|open| open.handed.is_some())?;
        attempt.is_none_or(|attempt| attempt == open.sequence).then_some(&open.send)
    }

    /// A send that was accepted and not yet handed over.
    pub fn waiting(&self, id: &MessageId) -> Option<&Send> {
        self.open.get(id).filter(|open| open.handed.is_none()).map(|open| &open.send)
    }

    /// When a waiting send was accepted.
    pub fn accepted_at(&self, id: &MessageId) -> Option<Timestamp> {
        self.open.get(id).map(|open| open.at)
    }

    /// How many are with the proxy and not settled.
    pub fn handed_count(&self) -> usize {
        self.open.values().filter(|open| open.handed.is_some()).count()
    }

    /// How many of those that are with the proxy have this digest.
    pub fn handed_alike(&self, digest: Digest) -> usize {
        let alike = |open: &&Open| open.handed.is_some() && open.send.digest == Some(digest);
        self.open.values().filter(alike).count()
    }

    /// With a proxy, each with the event that accepted it, in the order they were handed over.
    pub fn owed(&self) -> Vec<(Sequence, &Send)> {
        let handed = self.open.values().filter_map(|open| Some((open.handed.as_ref()?, open)));
        let mut handed: Vec<_> = handed.collect();
        handed.sort_by_key(|(handed, _)| handed.order);
        handed.into_iter().map(|(_, open)| (open.sequence, &open.send)).collect()
    }

    /// Handed to a journal that is not `link`: nobody alive knows what became of these. A plain
    /// proxy keeps its own record, which a journal does not know either.
    pub fn handed_to_another(&self, link: Option<&LinkId>) -> Vec<MessageId> {
        self.open
            .iter()
            .filter(|(_, open)| {
                open.handed.as_ref().is_some_and(|handed| handed.link.as_ref() != link)
            })
            .map(|(id, _)| id.clone())
            .collect()
    }

    /// Every open send, with whether it was handed over, oldest first.
    pub fn open(&self) -> Vec<(MessageId, bool)> {
        let mut open: Vec<_> = self.open.iter().collect();
        open.sort_by_key(|(_, open)| open.sequence);
        open.into_iter().map(|(id, open)| (id.clone(), open.handed.is_some())).collect()
    }

    /// Cannot fail: what is recorded has happened.
    pub fn apply(&mut self, event: &Event, sequence: Sequence, at: Timestamp) {
        match event {
            Event::Accepted(send) => {
                if self.settled.remove(&send.id).is_some() {
                    self.settled_order.retain(|id| *id != send.id);
                }
                let open = Open { send: send.clone(), sequence, at, handed: None };
                self.open.insert(send.id.clone(), open);
            }
            Event::HandedOver { id, link } => {
                if let Some(open) = self.open.get_mut(id) {
                    open.handed = Some(Handed { order: sequence, link: link.clone() });
                }
            }
            Event::Delivered { id, .. } => self.end(id, State::Delivered, sequence, at),
            Event::Failed { id, failure } => {
                self.end(id, State::Failed(failure.clone()), sequence, at);
            }
        }
    }

    /// A waiting send's words were changed by its queue.
    pub fn replace_text(&mut self, id: &MessageId, text: &Content<String>) {
        if let Some(open) = self.open.get_mut(id) {
            open.send.text = text.clone();
            open.send.digest = None;
        }
    }

    fn end(&mut self, id: &MessageId, state: State, sequence: Sequence, at: Timestamp) {
        self.open.remove(id);
        self.settled.insert(id.clone(), Told { id: id.clone(), state, sequence, at });
        self.settled_order.push_back(id.clone());
        if self.settled_order.len() > SETTLED_REMEMBERED_MAX
            && let Some(oldest) = self.settled_order.pop_front()
        {
            self.settled.remove(&oldest);
            self.forgotten.add(&oldest);
        }
    }
}
