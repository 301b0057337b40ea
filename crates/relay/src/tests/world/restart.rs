//! A relay that stops as if its process had been killed, and starts again on the same disk.

use domain::Sequence;
use store::{Append, Ledger as _, MemoryDisk, MemoryLedger};

use super::ports::{Credentials, TestClock, TestIds};
use super::{Settings, World};

/// What remains while no relay runs.
pub(in crate::tests) struct Stopped {
    pub(in crate::tests) disk: MemoryDisk,
    pub(in crate::tests) clock: TestClock,
    pub(super) door: Credentials,
    pub(super) settings: Settings,
    pub(super) ids: TestIds,
}

impl World {
    /// SIGKILL: every task ends where it stands.
    pub(in crate::tests) fn kill(self) -> Stopped {
        let (disk, clock, door) = (self.disk.clone(), self.clock.clone(), self.door.clone());
        Stopped { disk, clock, door, settings: self.settings, ids: self.ids.clone() }
    }
}

impl Stopped {
    /// An empty disk.
    pub(super) fn new(settings: Settings) -> Self {
        let (disk, clock) = (MemoryDisk::new(), TestClock::new());
        Self { disk, clock, door: Credentials::default(), settings, ids: TestIds::default() }
    }

    pub(in crate::tests) async fn start(self) -> World {
        World::on(self).await
    }

    /// The ledger, once the tasks of a killed relay have let go of it.
    pub(in crate::tests) async fn ledger(&self) -> MemoryLedger {
        loop {
            match self.disk.open() {
                Ok(ledger) => return ledger,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    }

    /// Writes to a stream what no relay would have written.
    pub(in crate::tests) async fn spoil(
        &self,
        stream: &str,
        spoil: impl FnOnce(&mut Append, Sequence),
    ) {
        let mut ledger = self.ledger().await;
        let lease = ledger.acquire(&stream.into(), "test").unwrap();
        let mut append = Append::new(stream.into(), lease.epoch);
        spoil(&mut append, lease.head);
        ledger.commit(&[append]).unwrap()[0].clone().unwrap();
    }
}
