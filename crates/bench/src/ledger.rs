//! The ledger alone, in this process: groups of 256 appends over 256 streams.
//!
//! Its maintenance is part of the measurement: it runs after each commit, as in the relay when
//! nobody waits.

use std::time::Instant;

use domain::{Sequence, SessionId, Timestamp};
use store::{Append, Entry, Ledger as _, Retention, SqliteLedger};

use super::disk::Preallocated;
use super::lab::Lab;
use super::scenario::Contest;
use super::statistics::per_second;
use super::trouble::{Outcome, Trouble};

const STREAMS: u64 = 256;
const BATCHES: u64 = 800;
const BODY_BYTES: usize = 256;
/// A raw log needs to say of each event at least whose it is, its number and its time.
const HEAD_BYTES: usize = 24;

pub(crate) struct LedgerAppend<'a> {
    lab: &'a Lab,
    disk: Preallocated,
}

impl<'a> LedgerAppend<'a> {
    pub(crate) fn prepare(lab: &'a Lab) -> Outcome<Self> {
        let batch_bytes = (HEAD_BYTES + BODY_BYTES) * usize::try_from(STREAMS).unwrap_or(0);
        let disk = Preallocated::make(&lab.folder().join("floor.batches"), batch_bytes, BATCHES)?;
        Ok(Self { lab, disk })
    }
}

impl Contest for LedgerAppend<'_> {
    fn floor(&mut self) -> Outcome<Option<f64>> {
        let begun = Instant::now();
        for _ in 0..BATCHES {
            self.disk.write_durably()?;
        }
        Ok(Some(per_second(STREAMS * BATCHES, begun.elapsed())))
    }

    fn measure(&mut self) -> Outcome<f64> {
        let folder = self.lab.new_folder()?;
        let mut ledger = SqliteLedger::open(&folder.path().join("append.db"))?;
        let mut group = vec![];
        for number in 0..STREAMS {
            let stream = SessionId::from(format!("bench-{number}"));
            let epoch = ledger.acquire(&stream, "bench")?.epoch;
            let (sequence, at) = (Sequence(0), Timestamp(1_790_000_000_000));
            let entries = vec![Entry { sequence, at, body: vec![7; BODY_BYTES] }];
            group.push(Append { entries, ..Append::new(stream, epoch) });
        }
        let begun = Instant::now();
        for _ in 0..BATCHES {
            for entry in group.iter_mut().flat_map(|append| &mut append.entries) {
                entry.sequence = entry.sequence.next();
            }
            if ledger.commit(&group)?.iter().any(Result::is_err) {
                return Err(Trouble::new("the store rejected an append"));
            }
            while ledger.maintain(Timestamp(0), &Retention::default())? {}
        }
        Ok(per_second(STREAMS * BATCHES, begun.elapsed()))
    }
}
