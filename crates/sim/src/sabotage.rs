//! A relay that is broken on purpose, to show that the simulation would notice.

use domain::{SessionId, Timestamp};
use store::{Append, AppendRefused, Fault, Lease, Ledger, MemoryLedger, Reader, Retention, Vault};

/// What is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sabotage {
    /// Nothing.
    #[default]
    None,
    /// Every so many commits, one is reported as done and is not.
    DropsCommits {
        /// One in so many.
        one_in: u64,
    },
    /// Every commit is reported as done and happens with the next one: a crash loses the last.
    AnswersEarly,
}

/// A ledger that lies about its commits.
pub(crate) struct Saboteur {
    ledger: MemoryLedger,
    sabotage: Sabotage,
    commits: u64,
    promised: Vec<Append>,
}

impl Saboteur {
    pub(crate) fn new(ledger: MemoryLedger, sabotage: Sabotage) -> Self {
        Self { ledger, sabotage, commits: 0, promised: vec![] }
    }

    fn keep_promises(&mut self) -> Result<(), Fault> {
        let promised = std::mem::take(&mut self.promised);
        if promised.is_empty() { Ok(()) } else { self.ledger.commit(&promised).map(drop) }
    }
}

impl Ledger for Saboteur {
    fn acquire(&mut self, stream: &SessionId, owner: &str) -> Result<Lease, Fault> {
        self.keep_promises()?;
        self.ledger.acquire(stream, owner)
    }

    fn commit(&mut self, group: &[Append]) -> Result<Vec<Result<(), AppendRefused>>, Fault> {
        self.commits += 1;
        match self.sabotage {
            Sabotage::DropsCommits { one_in } if self.commits.is_multiple_of(one_in) => {
                Ok(group.iter().map(|_| Ok(())).collect())
            }
            Sabotage::AnswersEarly => {
                self.keep_promises()?;
                self.promised = group.to_vec();
                Ok(group.iter().map(|_| Ok(())).collect())
            }
            Sabotage::None | Sabotage::DropsCommits { .. } => self.ledger.commit(group),
        }
    }

    fn erase(&mut self, stream: &SessionId) -> Result<(), Fault> {
        self.ledger.erase(stream)
    }

    fn maintain(&mut self, now: Timestamp, retention: &Retention) -> Result<bool, Fault> {
        self.ledger.maintain(now, retention)
    }

    fn reader(&self) -> Result<Box<dyn Reader>, Fault> {
        self.ledger.reader()
    }

    fn vault(&self) -> Result<Box<dyn Vault>, Fault> {
        self.ledger.vault()
    }

    fn reopen(&mut self) -> Result<(), Fault> {
        self.ledger.reopen()
    }
}
