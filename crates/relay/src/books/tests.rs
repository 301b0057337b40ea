//! After any failure, the ledger is used again.

use std::sync::Arc;

use domain::{SessionId, Timestamp};
use store::{
    Append, AppendRefused, Fault, Lease, Ledger, MemoryDisk, MemoryLedger, Reader, Retention, Vault,
};
use tokio::sync::mpsc;

use super::Writer;
use crate::metrics::Metrics;
use crate::ports::Clock;

#[derive(Debug)]
struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        Timestamp(1)
    }
}

/// Its next erasure or upkeep fails, after which it must be reopened.
struct FailsOnce {
    ledger: MemoryLedger,
    fails: bool,
    needs_reopen: bool,
}

impl FailsOnce {
    fn check(&mut self) -> Result<(), Fault> {
        if self.needs_reopen {
            return Err(Fault::NeedsReopen);
        }
        self.needs_reopen = std::mem::take(&mut self.fails);
        if self.needs_reopen { Err(Fault::Io { detail: "once".to_owned() }) } else { Ok(()) }
    }
}

impl Ledger for FailsOnce {
    fn acquire(&mut self, stream: &SessionId, owner: &str) -> Result<Lease, Fault> {
        self.ledger.acquire(stream, owner)
    }

    fn commit(&mut self, group: &[Append]) -> Result<Vec<Result<(), AppendRefused>>, Fault> {
        if self.needs_reopen { Err(Fault::NeedsReopen) } else { self.ledger.commit(group) }
    }

    fn erase(&mut self, stream: &SessionId) -> Result<(), Fault> {
        self.check()?;
        self.ledger.erase(stream)
    }

    fn maintain(&mut self, now: Timestamp, retention: &Retention) -> Result<bool, Fault> {
        self.check()?;
        self.ledger.maintain(now, retention)
    }

    fn reader(&self) -> Result<Box<dyn Reader>, Fault> {
        self.ledger.reader()
    }

    fn vault(&self) -> Result<Box<dyn Vault>, Fault> {
        self.ledger.vault()
    }

    fn reopen(&mut self) -> Result<(), Fault> {
        self.needs_reopen = false;
        self.ledger.reopen()
    }
}

#[test]
fn an_erasure_that_fails_once_is_done_all_the_same() {
    let disk = MemoryDisk::new();
    let mut writer = writer(&disk);
    let session = SessionId::from("s");
    writer.acquire(&session).unwrap();
    writer.erase(&session).unwrap();
    assert_eq!(writer.ledger.reader().unwrap().stream(&session), Ok(None));
}

#[test]
fn a_commit_after_failed_upkeep_finds_a_ledger_that_works() {
    let disk = MemoryDisk::new();
    let mut writer = writer(&disk);
    let session = SessionId::from("s");
    let epoch = writer.acquire(&session).unwrap().epoch;
    let (_jobs, queue) = mpsc::unbounded_channel();
    writer.maintain(&queue);
    let (reply, mut answer) = mpsc::unbounded_channel();
    writer.commit(&mut vec![Append::new(session, epoch)], &mut vec![(reply, 1)]);
    assert_eq!(answer.try_recv(), Ok((1, Ok(()))));
}

fn writer(disk: &MemoryDisk) -> Writer {
    let ledger = disk.open().unwrap();
    Writer {
        ledger: Box::new(FailsOnce { ledger, fails: true, needs_reopen: false }),
        owner: "test".into(),
        retention: Retention::default(),
        clock: Arc::new(Stopped),
        metrics: Arc::new(Metrics::default()),
        stopped: false,
    }
}
