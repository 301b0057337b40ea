//! Sends on their way to the agent: `received → attempting → settled`.
//!
//! Each step is on disk before the next one is done. After a crash it is therefore known for every
//! send whether the agent cannot have it, may have it, or what its outcome was.
//!
//! Not here: asking the agent's own record about those that it may have (`engine`).

use std::collections::{BTreeMap, VecDeque};

use domain::SessionId;
use domain::content::Failure;
use domain::session::delivery::Send;

use super::Attempt;

/// Sends that may be open at once, all sessions together. At the bound new ones are refused.
pub const INBOX_OPEN_MAX: usize = 1_024;
/// Settled attempts that are remembered for a relay that offers one again.
pub const SETTLED_REMEMBERED_MAX: usize = 1_024;

/// How far an open send is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The agent cannot have it.
    Received,
    /// The agent may have it.
    Attempting,
}

/// What became of an attempt: delivered, or failed like this.
pub type Settled = Option<Failure>;

/// State derived from the journal alone.
#[derive(Debug, Clone, Default)]
pub struct Inbox {
    open: BTreeMap<Attempt, (Step, Send)>,
    settled: BTreeMap<Attempt, Settled>,
    settled_order: VecDeque<Attempt>,
}

impl Inbox {
    /// A send is there.
    pub fn receive(&mut self, attempt: Attempt, send: Send) {
        self.open.insert(attempt, (Step::Received, send));
    }

    /// It is about to be given to the agent.
    pub fn attempt(&mut self, attempt: &Attempt) {
        if let Some((step, _)) = self.open.get_mut(attempt) {
            *step = Step::Attempting;
        }
    }

    /// It is over.
    pub fn settle(&mut self, attempt: &Attempt, settled: Settled) {
        self.open.remove(attempt);
        if self.settled.insert(attempt.clone(), settled).is_some() {
            return;
        }
        self.settled_order.push_back(attempt.clone());
        if self.settled_order.len() > SETTLED_REMEMBERED_MAX
            && let Some(oldest) = self.settled_order.pop_front()
        {
            self.settled.remove(&oldest);
        }
    }

    /// A session is over: what was on its way in it is of no use any more.
    pub fn forget(&mut self, session: &SessionId) {
        self.open.retain(|attempt, _| attempt.session != *session);
    }

    /// Whether this attempt is on its way.
    pub fn is_open(&self, attempt: &Attempt) -> bool {
        self.open.contains_key(attempt)
    }

    /// How far an open attempt is.
    pub fn step(&self, attempt: &Attempt) -> Option<Step> {
        self.open.get(attempt).map(|(step, _)| *step)
    }

    /// The send of an open attempt.
    pub fn send(&self, attempt: &Attempt) -> Option<&Send> {
        self.open.get(attempt).map(|(_, send)| send)
    }

    /// What became of an attempt, if it is over and remembered.
    pub fn settled(&self, attempt: &Attempt) -> Option<&Settled> {
        self.settled.get(attempt)
    }

    /// Everything on its way, each session's in the order it was handed over.
    pub fn open(&self) -> impl Iterator<Item = (&Attempt, Step, &Send)> {
        self.open.iter().map(|(attempt, (step, send))| (attempt, *step, send))
    }

    /// Everything remembered as over, oldest first.
    pub fn all_settled(&self) -> impl Iterator<Item = (&Attempt, &Settled)> {
        let known = |attempt| self.settled.get(attempt).map(|settled| (attempt, settled));
        self.settled_order.iter().filter_map(known)
    }

    /// Whether one more is too many.
    pub fn is_full(&self) -> bool {
        self.open.len() >= INBOX_OPEN_MAX
    }
}
