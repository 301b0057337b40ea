//! One test suite for every backend: what a ledger guarantees.
//!
//! Not here: tests for one backend only (`sqlite::tests`).

mod appending;
mod belongings;
mod keeping;

use domain::{Sequence, SessionId, Timestamp};

use crate::{Append, Entry, Epoch, Fault, Ledger, MemoryDisk, MemoryLedger, Page};

pub(crate) const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// A disk that a ledger can be opened on, again and again.
pub(crate) trait Backend {
    type Ledger: Ledger;
    fn new() -> Self;
    fn open(&self) -> Result<Self::Ledger, Fault>;
    /// Moves everything to where it rests in the long run.
    fn settle(ledger: &mut Self::Ledger);
    fn set_full(&self, ledger: &mut Self::Ledger, full: bool);
    /// Spoils what the stream has recorded; `mark` is in its bodies and in nobody else's.
    fn damage(&self, stream: &SessionId, mark: &[u8]);
}

pub(crate) struct Memory(MemoryDisk);

impl Backend for Memory {
    type Ledger = MemoryLedger;
    fn new() -> Self {
        Self(MemoryDisk::new())
    }
    fn open(&self) -> Result<MemoryLedger, Fault> {
        self.0.open()
    }
    fn settle(_: &mut MemoryLedger) {}
    fn set_full(&self, _: &mut MemoryLedger, full: bool) {
        self.0.set_full(full);
    }
    fn damage(&self, stream: &SessionId, _: &[u8]) {
        self.0.damage(stream);
    }
}

macro_rules! stories {
    ($($room:ident: $($name:ident),*;)*) => {
        mod memory {
            $($(#[test] fn $name() { super::$room::$name::<super::Memory>(); })*)*
        }
        mod sqlite {
            $($(#[test] fn $name() { super::$room::$name::<crate::sqlite::tests::File>(); })*)*
        }
        mod sqlite_folded_after_every_commit {
            $($(#[test] fn $name() {
                super::$room::$name::<crate::sqlite::tests::FoldedFile>();
            })*)*
        }
    };
}

stories! {
    appending:
        what_is_appended_is_read_back_in_pages,
        a_page_ends_at_its_limits,
        a_gap_or_a_repeat_is_refused,
        a_lost_lease_is_refused_while_the_others_commit,
        a_stream_may_append_twice_in_a_group,
        a_send_is_indexed_with_its_events,
        a_snapshot_is_where_the_next_owner_continues,
        a_snapshot_ahead_of_its_stream_is_refused,
        lists_show_the_newest_card_and_head,
        a_reader_never_sees_a_gap_while_the_writer_works;
    keeping:
        everything_survives_a_restart,
        a_full_disk_records_nothing_and_goes_on_when_there_is_room,
        an_erased_stream_is_gone_and_its_lease_stale,
        nothing_is_forgotten_by_default,
        old_events_are_forgotten_up_to_the_snapshot,
        a_large_store_forgets_its_oldest_events,
        damage_refuses_its_own_stream_only,
        a_second_ledger_on_the_same_disk_is_refused;
    belongings:
        credentials_are_found_until_and_after_they_are_revoked,
        uploads_and_values_are_kept;
}

pub(crate) fn entry(sequence: u64, at: u64, body: &[u8]) -> Entry {
    Entry { sequence: Sequence(sequence), at: Timestamp(at), body: body.to_vec() }
}

pub(crate) fn append(
    stream: &str,
    epoch: Epoch,
    sequences: std::ops::RangeInclusive<u64>,
) -> Append {
    let bodies =
        sequences.map(|number| entry(number, number, format!("{stream} {number}").as_bytes()));
    Append { entries: bodies.collect(), ..Append::new(stream.into(), epoch) }
}

pub(crate) fn acquire(ledger: &mut impl Ledger, stream: &str) -> Epoch {
    ledger.acquire(&stream.into(), "story").unwrap().epoch
}

pub(crate) fn read(ledger: &impl Ledger, stream: &str, after: u64) -> Page {
    let mut reader = ledger.reader().unwrap();
    reader.events(&stream.into(), Sequence(after), None, usize::MAX, usize::MAX).unwrap()
}

pub(crate) fn sequences(page: &Page) -> Vec<u64> {
    page.entries.iter().map(|entry| entry.sequence.0).collect()
}
