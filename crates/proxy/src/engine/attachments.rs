//! Downloads a send's attachments to this machine before the agent receives the send.
//!
//! **Invariant**: the sends of a session keep their order: while a send waits for its files, the
//! sends behind it wait too. Files that cannot be downloaded now are requested again for as long as
//! the send is open; files that can never be downloaded fail the send.
//!
//! Not here: downloading them (`shell::fetch`).

use agents::File;
use domain::content::{Attachment, Failure};
use domain::{SessionId, Timestamp};

use super::{Effect, Engine};
use crate::journal::{Attempt, Step};

/// The pause before files are asked for again; each further one is twice as long.
const PAUSE_FIRST_MS: u64 = 500;
/// The longest pause.
const PAUSE_MAX_MS: u64 = 30_000;

/// Files to get. Answered by [`Engine::on_fetched`], once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// For whom.
    pub attempt: Attempt,
    /// Which.
    pub files: Vec<Attachment>,
}

/// Why there are no files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchFault {
    /// The relay cannot be reached: worth another try.
    Away,
    /// Another try would end the same.
    Failed(Failure),
}

/// How far the files of an open send are.
#[derive(Debug)]
pub(super) enum Fetching {
    UnderWay { failures: u32 },
    Again { at: Timestamp, failures: u32 },
    Here(Vec<File>),
}

impl Engine {
    /// The files of a send are here, or not.
    pub fn on_fetched(
        &mut self,
        attempt: &Attempt,
        outcome: Result<Vec<File>, FetchFault>,
        now: Timestamp,
    ) -> Vec<Effect> {
        let Some(Fetching::UnderWay { failures }) = self.fetches.get(attempt) else {
            // The send is over: nobody waits for them any more.
            return self.take();
        };
        match outcome {
            Ok(files) => {
                self.fetches.insert(attempt.clone(), Fetching::Here(files));
                if self.book.inbox.step(attempt) == Some(Step::Attempting) {
                    self.inject(attempt);
                }
                self.advance(&attempt.session);
            }
            Err(FetchFault::Away) => {
                let failures = failures.saturating_add(1);
                let doubled = PAUSE_FIRST_MS.saturating_mul(1 << (failures - 1).min(16));
                let at = now.plus_ms(doubled.min(PAUSE_MAX_MS));
                self.fetches.insert(attempt.clone(), Fetching::Again { at, failures });
            }
            Err(FetchFault::Failed(failure)) => {
                self.settle(attempt, Some(failure), None, now);
                self.advance(&attempt.session);
            }
        }
        self.take()
    }

    /// Gives a session's sends to its agent in their order, up to the first that waits for files.
    pub(super) fn advance(&mut self, session: &SessionId) {
        let open = self.book.inbox.open().filter(|(attempt, ..)| attempt.session == *session);
        let open: Vec<_> = open.map(|(attempt, step, _)| (attempt.clone(), step)).collect();
        for (attempt, step) in open {
            match step {
                Step::Attempting if self.fetches.contains_key(&attempt) => return,
                Step::Attempting => {}
                Step::Received if self.has_files(&attempt) => self.attempt(&attempt),
                Step::Received => return,
            }
        }
    }

    /// Whether a send can be given to its agent. If not, its files are on their way.
    pub(super) fn has_files(&mut self, attempt: &Attempt) -> bool {
        let Some(send) = self.book.inbox.send(attempt) else { return true };
        if send.attachments.is_empty() {
            return true;
        }
        match self.fetches.get(attempt) {
            Some(Fetching::Here(_)) => true,
            Some(Fetching::UnderWay { .. } | Fetching::Again { .. }) => false,
            None => {
                self.fetch(attempt, 0);
                false
            }
        }
    }

    /// The files of a send, for its agent.
    pub(super) fn take_files(&mut self, attempt: &Attempt) -> Vec<File> {
        match self.fetches.remove(attempt) {
            Some(Fetching::Here(files)) => files,
            Some(Fetching::UnderWay { .. } | Fetching::Again { .. }) | None => vec![],
        }
    }

    /// Asks again for what could not be had, where the pause is over.
    pub(super) fn fetch_again(&mut self, now: Timestamp) {
        let mut due = vec![];
        for (attempt, fetching) in &mut self.fetches {
            if let Fetching::Again { at, failures } = fetching {
                // A clock that was set back must not put it off.
                *at = (*at).min(now.plus_ms(PAUSE_MAX_MS));
                if *at <= now {
                    due.push((attempt.clone(), *failures));
                }
            }
        }
        for (attempt, failures) in due {
            self.fetch(&attempt, failures);
        }
    }

    /// When to ask again.
    pub(super) fn fetch_due(&self) -> Option<Timestamp> {
        let at = |fetching: &Fetching| match fetching {
            Fetching::Again { at, .. } => Some(*at),
            Fetching::UnderWay { .. } | Fetching::Here(_) => None,
        };
        self.fetches.values().filter_map(at).min()
    }

    fn fetch(&mut self, attempt: &Attempt, failures: u32) {
        let Some(send) = self.book.inbox.send(attempt) else { return };
        let fetch = Fetch { attempt: attempt.clone(), files: send.attachments.clone() };
        self.fetches.insert(attempt.clone(), Fetching::UnderWay { failures });
        self.effects.push(Effect::Fetch(fetch));
    }
}
