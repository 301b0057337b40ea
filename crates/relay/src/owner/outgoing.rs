//! Output that waits for a commit before it leaves an owner.
//!
//! Not here: when it may leave (`owner`).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use domain::session::{Card, Event, Order, OrderKey, delivery};
use domain::{ConnectionId, SessionId};
use store::Fault;
use tokio::sync::oneshot;
use wire::native::Denied;

use super::{Joined, Shared};
use crate::gate::RoomTaken;
use crate::hub::{Live, Passed, Published};
use crate::metrics::Metrics;
use crate::routes::Errand;

/// The code of whatever is asked of a session whose ledger cannot be read.
pub(crate) const SESSION_DAMAGED: &str = "session_damaged";
/// What people read of it.
pub(super) const DAMAGED_WORDS: &str =
    "The history of this session is damaged; restore a backup of the database to continue it";

/// What a command's asker hears.
pub(crate) type Answer = Result<Vec<Arc<Published>>, Denied>;

/// Who hears what became of a command.
pub(crate) enum Reply {
    /// Nobody asked.
    Nobody,
    /// Whoever awaits it.
    Once(oneshot::Sender<Answer>),
    /// A connection, in its own way.
    Call(Box<dyn FnOnce(Answer) + Send + Sync>),
}

impl Reply {
    pub(crate) fn deny(self, denied: Denied) {
        self.tell(Err(denied));
    }

    fn tell(self, answer: Answer) {
        match self {
            Self::Nobody => {}
            Self::Once(sender) => {
                let _ = sender.send(answer);
            }
            Self::Call(call) => call(answer),
        }
    }
}

pub(crate) enum Outgoing {
    /// What the proxy is owed, and what of it is new to this connection.
    Orders {
        connection: ConnectionId,
        owed: BTreeSet<OrderKey>,
        new: Vec<Order>,
    },
    Events(Option<Box<Card>>, Vec<Arc<Published>>),
    Passing(Arc<Passed>, RoomTaken),
    Done(Reply, Vec<Arc<Published>>),
    Denied(Reply, Denied),
    Joined(oneshot::Sender<Joined>, Joined),
}

impl Outgoing {
    /// Its commit happened. What watchers see of it joins the burst.
    pub(super) fn leave(self, session: &SessionId, shared: &Shared, burst: &mut Vec<Live>) {
        match self {
            Self::Orders { connection, new, owed: _ } => {
                if let Some(route) = shared.routes.to(&connection) {
                    for order in new {
                        route.send(Errand::Order(session.clone(), order));
                    }
                }
            }
            Self::Events(card, published) => {
                if let Some(card) = card {
                    shared.directory.show(session, *card);
                }
                for event in published {
                    count(&event, &shared.metrics);
                    shared.directory.advance(session, event.recorded.sequence);
                    burst.push(Live::Session(event));
                }
            }
            Self::Passing(passed, _taken) => {
                shared.metrics.passing.fetch_add(1, Ordering::Relaxed);
                burst.push(Live::Passing(passed));
            }
            Self::Done(reply, published) => reply.tell(Ok(published)),
            Self::Denied(reply, denied) => reply.tell(Err(denied)),
            Self::Joined(reply, joined) => {
                let _ = reply.send(joined);
            }
        }
    }

    /// Whether it holds events of a proxy that numbers its words.
    pub(super) fn has_words(&self) -> bool {
        match self {
            Self::Events(_, published) => published.iter().any(|p| p.recorded.position.is_some()),
            Self::Orders { .. }
            | Self::Passing(..)
            | Self::Done(..)
            | Self::Denied(..)
            | Self::Joined(..) => false,
        }
    }

    /// Its commit did not happen.
    pub(super) fn fail(self, why: &Denied) {
        match self {
            Self::Done(reply, _) | Self::Denied(reply, _) => reply.tell(Err(why.clone())),
            Self::Orders { .. } | Self::Events(..) | Self::Passing(..) | Self::Joined(..) => {}
        }
    }
}

fn count(event: &Published, metrics: &Metrics) {
    if let Event::Delivery(event) = &event.recorded.event {
        let counter = match event {
            delivery::Event::Accepted(_) => &metrics.sends_accepted,
            delivery::Event::Delivered { .. } => &metrics.sends_delivered,
            delivery::Event::Failed { .. } => &metrics.sends_failed,
            delivery::Event::HandedOver { .. } => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Why a fault of the store leaves a command without an effect.
pub(crate) fn denied(fault: &Fault) -> Denied {
    match fault {
        Fault::Corrupt { detail, .. } => damaged(detail),
        Fault::Locked { .. }
        | Fault::NewerVersion { .. }
        | Fault::NotALedger { .. }
        | Fault::Full
        | Fault::Io { .. }
        | Fault::NeedsReopen
        | Fault::Exists { .. } => Denied::Failed(fault.to_string()),
    }
}

/// Only this session refuses.
pub(super) fn damaged(detail: &str) -> Denied {
    Denied::Code(SESSION_DAMAGED.into(), format!("{DAMAGED_WORDS} ({detail})"))
}
