//! One story for every backend: what a ledger promises, told against each of them.
//!
//! Not here: what only one backend can meet (`sqlite::tests`).

use domain::{MessageId, Role, Sequence, SessionId, Timestamp};

use crate::{
    Append, AppendRefused, Credential, CredentialKind, Entry, Epoch, Failure, Fault, Ledger,
    MemoryDisk, MemoryLedger, Page, Retention, Snapshot, Upload,
};

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
    ($($name:ident),* $(,)?) => {
        mod memory {
            $(#[test] fn $name() { super::$name::<super::Memory>(); })*
        }
        mod sqlite {
            $(#[test] fn $name() { super::$name::<crate::sqlite::tests::File>(); })*
        }
        mod sqlite_folded_after_every_commit {
            $(#[test] fn $name() { super::$name::<crate::sqlite::tests::FoldedFile>(); })*
        }
    };
}

stories!(
    what_is_appended_is_read_back_in_pages,
    a_page_ends_at_its_limits,
    a_gap_or_a_repeat_is_refused,
    a_lost_lease_is_refused_while_the_others_commit,
    a_stream_may_append_twice_in_a_group,
    a_send_is_indexed_with_its_events,
    a_snapshot_is_where_the_next_owner_continues,
    a_snapshot_ahead_of_its_stream_is_refused,
    lists_show_the_newest_card_and_head,
    everything_survives_a_restart,
    a_full_disk_records_nothing_and_goes_on_when_there_is_room,
    an_erased_stream_is_gone_and_its_lease_stale,
    nothing_is_forgotten_by_default,
    old_events_are_forgotten_up_to_the_snapshot,
    a_large_store_forgets_its_oldest_events,
    damage_refuses_its_own_stream_only,
    a_second_ledger_on_the_same_disk_is_refused,
    credentials_are_found_until_and_after_they_are_revoked,
    uploads_and_values_are_kept,
    a_reader_never_sees_a_gap_while_the_writer_works,
);

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

fn what_is_appended_is_read_back_in_pages<B: Backend>() {
    let disk = B::new();
    let mut ledger = disk.open().unwrap();
    let one = acquire(&mut ledger, "one");
    let two = acquire(&mut ledger, "two");
    ledger.commit(&[append("one", one, 1..=3), append("two", two, 1..=1)]).unwrap();
    B::settle(&mut ledger);
    ledger.commit(&[append("one", one, 4..=7)]).unwrap();
    let page = read(&ledger, "one", 0);
    assert_eq!(page.entries, append("one", one, 1..=7).entries);
    assert_eq!((page.head, page.first_kept, page.has_more), (Sequence(7), Sequence(1), false));
    assert_eq!(sequences(&read(&ledger, "one", 2)), [3, 4, 5, 6, 7]);
    assert_eq!(sequences(&read(&ledger, "one", 5)), [6, 7]);
    assert_eq!(sequences(&read(&ledger, "one", 7)), [0; 0]);
    assert_eq!(sequences(&read(&ledger, "one", 99)), [0; 0]);
    assert_eq!(sequences(&read(&ledger, "two", 0)), [1]);
    let nobody = read(&ledger, "nobody", 0);
    assert_eq!(
        (nobody.head, nobody.first_kept, nobody.entries.len()),
        (Sequence(0), Sequence(1), 0)
    );
}

fn a_page_ends_at_its_limits<B: Backend>() {
    let disk = B::new();
    let mut ledger = disk.open().unwrap();
    let epoch = acquire(&mut ledger, "one");
    ledger.commit(&[append("one", epoch, 1..=5)]).unwrap();
    B::settle(&mut ledger);
    ledger.commit(&[append("one", epoch, 6..=9)]).unwrap();
    let mut reader = ledger.reader().unwrap();
    let mut page = |after, upto: Option<u64>, limit, limit_bytes| {
        let upto = upto.map(Sequence);
        let page = reader.events(&"one".into(), Sequence(after), upto, limit, limit_bytes).unwrap();
        (sequences(&page), page.has_more)
    };
    assert_eq!(page(0, None, 2, 1000), (vec![1, 2], true));
    assert_eq!(page(4, None, 2, 1000), (vec![5, 6], true));
    assert_eq!(page(7, None, 2, 1000), (vec![8, 9], false));
    assert_eq!(page(3, Some(6), 100, 1000), (vec![4, 5, 6], false));
    assert_eq!(page(3, Some(6), 2, 1000), (vec![4, 5], true));
    assert_eq!(page(0, Some(2), 100, 1000), (vec![1, 2], false));
    // Each body is five bytes long; one is given even if it is too long.
    assert_eq!(page(0, None, 100, 15), (vec![1, 2, 3], true));
    assert_eq!(page(4, None, 100, 14), (vec![5, 6], true));
    assert_eq!(page(5, None, 100, 1), (vec![6], true));
}

fn a_gap_or_a_repeat_is_refused<B: Backend>() {
    let disk = B::new();
    let mut ledger = disk.open().unwrap();
    let epoch = acquire(&mut ledger, "one");
    ledger.commit(&[append("one", epoch, 1..=3)]).unwrap();
    for wrong in [3..=4, 5..=6, 1..=1] {
        let verdicts = ledger.commit(&[append("one", epoch, wrong)]).unwrap();
        assert_eq!(verdicts, [Err(AppendRefused::NotDense { head: Sequence(3) })]);
    }
    let mut torn = append("one", epoch, 4..=5);
    torn.entries[1].sequence = Sequence(7);
    let verdicts = ledger.commit(&[torn]).unwrap();
    assert_eq!(verdicts, [Err(AppendRefused::NotDense { head: Sequence(3) })]);
    assert_eq!(ledger.commit(&[append("one", epoch, 4..=4)]).unwrap(), [Ok(())]);
    assert_eq!(sequences(&read(&ledger, "one", 0)), [1, 2, 3, 4]);
}

fn a_lost_lease_is_refused_while_the_others_commit<B: Backend>() {
    let disk = B::new();
    let mut ledger = disk.open().unwrap();
    let old = acquire(&mut ledger, "one");
    let other = acquire(&mut ledger, "two");
    let new = acquire(&mut ledger, "one");
    assert!(new > old);
    let mut late = append("one", old, 1..=1);
    late.sends.push(("m1".into(), b"queued".to_vec()));
    let unknown = append("nobody", new, 1..=1);
    let group = [late, append("two", other, 1..=1), unknown, append("one", new, 1..=2)];
    let verdicts = ledger.commit(&group).unwrap();
    let stale = Err(AppendRefused::StaleEpoch { current: Some(new) });
    let missing = Err(AppendRefused::StaleEpoch { current: None });
    assert_eq!(verdicts, [stale.clone(), Ok(()), missing, Ok(())]);
    assert_eq!(sequences(&read(&ledger, "one", 0)), [1, 2]);
    assert_eq!(sequences(&read(&ledger, "two", 0)), [1]);
    let send = ledger.reader().unwrap().send_state(&"one".into(), &"m1".into()).unwrap();
    assert_eq!(send, None, "nothing of the refused append is recorded");
    drop(ledger);
    let mut ledger = disk.open().unwrap();
    assert_eq!(ledger.commit(&[append("one", old, 3..=3)]).unwrap(), [stale]);
    assert_eq!(ledger.commit(&[append("one", new, 3..=3)]).unwrap(), [Ok(())]);
}

fn a_stream_may_append_twice_in_a_group<B: Backend>() {
    let disk = B::new();
    let mut ledger = disk.open().unwrap();
    let epoch = acquire(&mut ledger, "one");
    let group =
        [append("one", epoch, 1..=2), append("one", epoch, 9..=9), append("one", epoch, 3..=4)];
    let verdicts = ledger.commit(&group).unwrap();
    assert_eq!(verdicts, [Ok(()), Err(AppendRefused::NotDense { head: Sequence(2) }), Ok(())]);
    assert_eq!(sequences(&read(&ledger, "one", 0)), [1, 2, 3, 4]);
}

fn a_send_is_indexed_with_its_events<B: Backend>() {
    let disk = B::new();
    let mut ledger = disk.open().unwrap();
    let one = acquire(&mut ledger, "one");
    let two = acquire(&mut ledger, "two");
    let with = |stream: &str, epoch, number, states: &[(&str, &str)]| Append {
        sends: states.iter().map(|(id, state)| ((*id).into(), state.as_bytes().to_vec())).collect(),
        ..append(stream, epoch, number..=number)
    };
    ledger
        .commit(&[
            with("one", one, 1, &[("m1", "queued"), ("m2", "queued")]),
            with("two", two, 1, &[("m1", "other")]),
        ])
        .unwrap();
    B::settle(&mut ledger);
    ledger.commit(&[with("one", one, 2, &[("m1", "delivered")])]).unwrap();
    let state = |ledger: &B::Ledger, stream: &str, id: &str| {
        ledger.reader().unwrap().send_state(&stream.into(), &MessageId::from(id)).unwrap()
    };
    for _ in 0..2 {
        assert_eq!(state(&ledger, "one", "m1").unwrap(), b"delivered");
        assert_eq!(state(&ledger, "one", "m2").unwrap(), b"queued");
        assert_eq!(state(&ledger, "two", "m1").unwrap(), b"other");
        assert_eq!(state(&ledger, "two", "m2"), None);
        assert_eq!(state(&ledger, "nobody", "m1"), None);
        drop(ledger);
        ledger = disk.open().unwrap();
    }
}

fn a_snapshot_is_where_the_next_owner_continues<B: Backend>() {
    let disk = B::new();
    let mut ledger = disk.open().unwrap();
    let lease = ledger.acquire(&"one".into(), "story").unwrap();
    assert_eq!((lease.head, lease.snapshot), (Sequence(0), None));
    let snapshot = |sequence, body: &[u8]| {
        Some(Snapshot { sequence: Sequence(sequence), body: body.to_vec() })
    };
    let first = Append { snapshot: snapshot(2, b"old"), ..append("one", lease.epoch, 1..=3) };
    ledger.commit(&[first]).unwrap();
    B::settle(&mut ledger);
    let second = Append { snapshot: snapshot(4, b"new"), ..append("one", lease.epoch, 4..=5) };
    ledger.commit(&[second]).unwrap();
    ledger.commit(&[append("one", lease.epoch, 6..=6)]).unwrap();
    for _ in 0..2 {
        let lease = ledger.acquire(&"one".into(), "story").unwrap();
        assert_eq!((lease.head, lease.snapshot), (Sequence(6), snapshot(4, b"new")));
        drop(ledger);
        ledger = disk.open().unwrap();
    }
}

fn a_snapshot_ahead_of_its_stream_is_refused<B: Backend>() {
    let disk = B::new();
    let mut ledger = disk.open().unwrap();
    let epoch = acquire(&mut ledger, "one");
    let snapshot = Some(Snapshot { sequence: Sequence(3), body: vec![] });
    let ahead = Append { snapshot, ..append("one", epoch, 1..=2) };
    let verdicts = ledger.commit(&[ahead]).unwrap();
    assert_eq!(verdicts, [Err(AppendRefused::SnapshotAhead { head: Sequence(2) })]);
    assert_eq!(read(&ledger, "one", 0).head, Sequence(0));
}

fn lists_show_the_newest_card_and_head<B: Backend>() {
    let disk = B::new();
    let mut ledger = disk.open().unwrap();
    let one = acquire(&mut ledger, "one");
    let two = acquire(&mut ledger, "two");
    acquire(&mut ledger, "empty");
    let card = |text: &str| Some(text.as_bytes().to_vec());
    ledger
        .commit(&[
            Append { card: card("a"), ..append("one", one, 1..=2) },
            Append { card: card("b"), ..append("two", two, 1..=1) },
        ])
        .unwrap();
    B::settle(&mut ledger);
    ledger
        .commit(&[
            append("two", two, 2..=3),
            Append { card: card("c"), ..Append::new("one".into(), one) },
        ])
        .unwrap();
    let mut reader = ledger.reader().unwrap();
    let listed: Vec<_> = reader
        .streams()
        .unwrap()
        .into_iter()
        .map(|row| (row.id.to_string(), row.head.0, row.card))
        .collect();
    assert_eq!(
        listed,
        [("empty".into(), 0, None), ("one".into(), 2, card("c")), ("two".into(), 3, card("b"))]
    );
    let row = reader.stream(&"one".into()).unwrap().unwrap();
    assert_eq!((row.head, row.card), (Sequence(2), card("c")));
    assert_eq!(reader.stream(&"nobody".into()).unwrap(), None);
}

fn everything_survives_a_restart<B: Backend>() {
    let disk = B::new();
    let mut head = 0;
    for round in 0..4 {
        let mut ledger = disk.open().unwrap();
        let lease = ledger.acquire(&"one".into(), "story").unwrap();
        assert_eq!(lease.head, Sequence(head));
        for _ in 0..3 {
            ledger.commit(&[append("one", lease.epoch, head + 1..=head + 2)]).unwrap();
            head += 2;
        }
        if round % 2 == 1 {
            B::settle(&mut ledger);
        }
        ledger.reopen().unwrap();
        let page = read(&ledger, "one", 0);
        assert_eq!(page.entries, append("one", lease.epoch, 1..=head).entries);
    }
}

fn a_full_disk_records_nothing_and_goes_on_when_there_is_room<B: Backend>() {
    const TRIES_MAX: u64 = 1000;
    let disk = B::new();
    let mut ledger = disk.open().unwrap();
    let one = acquire(&mut ledger, "one");
    let two = acquire(&mut ledger, "two");
    disk.set_full(&mut ledger, true);
    let group = |number: u64| {
        let mut big = Append::new("one".into(), one);
        big.entries.push(entry(number, number, &[7; 9000]));
        big.sends.push((format!("m{number}").into(), b"queued".to_vec()));
        [big, append("two", two, number..=number)]
    };
    let refused = (1..TRIES_MAX).find(|number| match ledger.commit(&group(*number)) {
        Ok(verdicts) => {
            assert_eq!(verdicts, [Ok(()), Ok(())]);
            false
        }
        Err(fault) => {
            assert_eq!(fault, Fault::Full);
            true
        }
    });
    let refused = refused.expect("the disk is full at some time");
    assert_eq!(read(&ledger, "one", 0).head, Sequence(refused - 1));
    assert_eq!(read(&ledger, "two", 0).head, Sequence(refused - 1));
    let send = |ledger: &B::Ledger| {
        ledger.reader().unwrap().send_state(&"one".into(), &format!("m{refused}").into()).unwrap()
    };
    assert_eq!(send(&ledger), None);
    disk.set_full(&mut ledger, false);
    assert_eq!(ledger.commit(&group(refused)).unwrap(), [Ok(()), Ok(())]);
    assert_eq!(send(&ledger).unwrap(), b"queued");
    drop(ledger);
    let ledger = disk.open().unwrap();
    assert_eq!(sequences(&read(&ledger, "one", 0)), (1..=refused).collect::<Vec<_>>());
}

fn an_erased_stream_is_gone_and_its_lease_stale<B: Backend>() {
    let disk = B::new();
    let mut ledger = disk.open().unwrap();
    let one = acquire(&mut ledger, "one");
    let two = acquire(&mut ledger, "two");
    let full = |number| Append {
        sends: vec![("m1".into(), b"queued".to_vec())],
        snapshot: Some(Snapshot { sequence: Sequence(1), body: b"state".to_vec() }),
        card: Some(b"card".to_vec()),
        ..append("one", one, number..=number)
    };
    ledger.commit(&[full(1), append("two", two, 1..=1)]).unwrap();
    B::settle(&mut ledger);
    ledger.commit(&[full(2), append("two", two, 2..=2)]).unwrap();
    ledger.erase(&"one".into()).unwrap();
    ledger.erase(&"nobody".into()).unwrap();
    for _ in 0..2 {
        assert_eq!(read(&ledger, "one", 0).head, Sequence(0));
        let mut reader = ledger.reader().unwrap();
        assert_eq!(reader.send_state(&"one".into(), &"m1".into()).unwrap(), None);
        assert_eq!(reader.streams().unwrap().len(), 1);
        drop(reader);
        assert_eq!(sequences(&read(&ledger, "two", 0)), [1, 2]);
        let verdicts = ledger.commit(&[full(3)]).unwrap();
        assert_eq!(verdicts, [Err(AppendRefused::StaleEpoch { current: None })]);
        drop(ledger);
        ledger = disk.open().unwrap();
    }
    let lease = ledger.acquire(&"one".into(), "story").unwrap();
    assert_eq!((lease.head, lease.snapshot), (Sequence(0), None));
    assert!(lease.epoch > one, "an old lease stays stale on a stream of the same name");
    ledger.commit(&[append("one", lease.epoch, 1..=1)]).unwrap();
    assert_eq!(sequences(&read(&ledger, "one", 0)), [1]);
}

fn maintain_all(ledger: &mut impl Ledger, now: u64, retention: Retention) {
    const STEPS_MAX: usize = 10_000;
    let finished = (0..STEPS_MAX).any(|_| !ledger.maintain(Timestamp(now), &retention).unwrap());
    assert!(finished, "maintenance comes to an end");
}

fn nothing_is_forgotten_by_default<B: Backend>() {
    let disk = B::new();
    let mut ledger = disk.open().unwrap();
    let epoch = acquire(&mut ledger, "one");
    let snapshot = Some(Snapshot { sequence: Sequence(3), body: vec![] });
    ledger.commit(&[Append { snapshot, ..append("one", epoch, 1..=3) }]).unwrap();
    B::settle(&mut ledger);
    maintain_all(&mut ledger, u64::MAX, Retention::default());
    let page = read(&ledger, "one", 0);
    assert_eq!((page.entries.len(), page.first_kept), (3, Sequence(1)));
}

fn old_events_are_forgotten_up_to_the_snapshot<B: Backend>() {
    let disk = B::new();
    let mut ledger = disk.open().unwrap();
    let covered = acquire(&mut ledger, "covered");
    let partly = acquire(&mut ledger, "partly");
    let never = acquire(&mut ledger, "never");
    // One event every second day: old and young ones never share a segment.
    for number in 1..=10 {
        let on_day = |stream: &str, epoch| Append {
            entries: vec![entry(number, number * 2 * DAY_MS, b"x")],
            ..Append::new(stream.into(), epoch)
        };
        let snapshot = |sequence| Some(Snapshot { sequence: Sequence(sequence), body: vec![] });
        let group = [
            Append { snapshot: snapshot(number), ..on_day("covered", covered) },
            Append { snapshot: snapshot(number.min(3)), ..on_day("partly", partly) },
            on_day("never", never),
        ];
        assert_eq!(ledger.commit(&group).unwrap(), [Ok(()), Ok(()), Ok(())]);
    }
    let retention = Retention { age_ms_max: Some(9 * DAY_MS), ..Retention::default() };
    maintain_all(&mut ledger, 20 * DAY_MS, retention);
    for _ in 0..2 {
        let first = |stream| {
            let page = read(&ledger, stream, 0);
            assert_eq!(page.head, Sequence(10));
            let kept: Vec<_> = (page.first_kept.0..=10).collect();
            assert_eq!(sequences(&page), kept, "{stream}");
            page.first_kept.0
        };
        assert_eq!((first("covered"), first("partly"), first("never")), (6, 4, 1));
        drop(ledger);
        ledger = disk.open().unwrap();
    }
    assert_eq!(sequences(&read(&ledger, "covered", 7)), [8, 9, 10]);
    let lease = ledger.acquire(&"covered".into(), "story").unwrap();
    assert_eq!(lease.snapshot.unwrap().sequence, Sequence(10));
    assert_eq!(ledger.commit(&[append("covered", lease.epoch, 11..=11)]).unwrap(), [Ok(())]);
}

fn a_large_store_forgets_its_oldest_events<B: Backend>() {
    let disk = B::new();
    let mut ledger = disk.open().unwrap();
    let epoch = acquire(&mut ledger, "one");
    for number in 1..=64 {
        let mut large = Append::new("one".into(), epoch);
        large.entries.push(entry(number, number, &vec![7; 65_000]));
        large.snapshot = Some(Snapshot { sequence: Sequence(number), body: vec![] });
        ledger.commit(&[large]).unwrap();
    }
    let retention = Retention { size_bytes_max: Some(1024 * 1024), ..Retention::default() };
    maintain_all(&mut ledger, 100, retention);
    let page = read(&ledger, "one", 0);
    assert_eq!(page.head, Sequence(64));
    assert!((40..=60).contains(&page.first_kept.0), "{}", page.first_kept);
    assert_eq!(sequences(&page), (page.first_kept.0..=64).collect::<Vec<_>>());
}

fn damage_refuses_its_own_stream_only<B: Backend>() {
    let disk = B::new();
    let mut ledger = disk.open().unwrap();
    let mut group = Vec::new();
    for (stream, fill) in [("one", b'1'), ("two", b'2'), ("three", b'3')] {
        let epoch = acquire(&mut ledger, stream);
        let entries = (1..=20).map(|number| entry(number, 1, &[fill; 1000])).collect();
        group.push(Append { entries, ..Append::new(stream.into(), epoch) });
    }
    ledger.commit(&group).unwrap();
    drop(ledger);
    disk.damage(&"two".into(), &[b'2'; 600]);
    let mut ledger = disk.open().unwrap();
    let mut reader = ledger.reader().unwrap();
    let fault = reader.events(&"two".into(), Sequence(0), None, 100, usize::MAX).unwrap_err();
    assert!(matches!(&fault, Fault::Corrupt { stream: Some(hurt), .. } if hurt.as_str() == "two"));
    drop(reader);
    for stream in ["one", "three"] {
        let lease = ledger.acquire(&stream.into(), "story").unwrap();
        assert_eq!(lease.head, Sequence(20));
        assert_eq!(ledger.commit(&[append(stream, lease.epoch, 21..=22)]).unwrap(), [Ok(())]);
        assert_eq!(read(&ledger, stream, 0).entries.len(), 22);
    }
    B::settle(&mut ledger);
    assert_eq!(read(&ledger, "one", 0).entries.len(), 22);
}

fn a_second_ledger_on_the_same_disk_is_refused<B: Backend>() {
    let disk = B::new();
    let ledger = disk.open().unwrap();
    assert!(matches!(disk.open(), Err(Fault::Locked { .. })));
    drop(ledger);
    assert!(disk.open().is_ok());
}

fn credential(id: &str, fill: u8, at: u64) -> Credential {
    Credential {
        id: id.into(),
        kind: CredentialKind::Device,
        role: Role::Operator,
        name: format!("the phone {id}"),
        secret_hash: [fill; 32],
        created_at: Timestamp(at),
        last_used_at: None,
        revoked_at: None,
    }
}

fn credentials_are_found_until_and_after_they_are_revoked<B: Backend>() {
    let disk = B::new();
    let mut ledger = disk.open().unwrap();
    let mut vault = ledger.vault().unwrap();
    vault.insert_credential(&credential("c1", 1, 20)).unwrap();
    vault.insert_credential(&credential("c2", 2, 10)).unwrap();
    for taken in [credential("c1", 3, 30), credential("c3", 1, 30)] {
        assert!(matches!(vault.insert_credential(&taken), Err(Fault::Exists { .. })));
    }
    assert_eq!(vault.credential_by_hash(&[1; 32]).unwrap(), Some(credential("c1", 1, 20)));
    assert_eq!(vault.credential_by_hash(&[9; 32]).unwrap(), None);
    vault.touch_credential(&"c1".into(), Timestamp(40)).unwrap();
    assert!(vault.revoke_credential(&"c1".into(), Timestamp(50)).unwrap());
    assert!(!vault.revoke_credential(&"c1".into(), Timestamp(60)).unwrap());
    assert!(!vault.revoke_credential(&"c9".into(), Timestamp(60)).unwrap());
    // Beside the writer.
    let epoch = acquire(&mut ledger, "one");
    ledger.commit(&[append("one", epoch, 1..=1)]).unwrap();
    drop((vault, ledger));
    let ledger = disk.open().unwrap();
    let mut vault = ledger.vault().unwrap();
    let revoked = Credential {
        last_used_at: Some(Timestamp(40)),
        revoked_at: Some(Timestamp(50)),
        ..credential("c1", 1, 20)
    };
    assert_eq!(vault.credentials().unwrap(), [credential("c2", 2, 10), revoked.clone()]);
    assert_eq!(vault.credential_by_hash(&[1; 32]).unwrap(), Some(revoked));
}

fn uploads_and_values_are_kept<B: Backend>() {
    let disk = B::new();
    let ledger = disk.open().unwrap();
    let mut vault = ledger.vault().unwrap();
    let upload = Upload {
        id: "u1".into(),
        name: "plan.pdf".into(),
        size_bytes: 1 << 40,
        sha256: [5; 32],
        media_type: "application/pdf".into(),
        created_at: Timestamp(7),
        by: "c1".into(),
    };
    vault.insert_upload(&upload).unwrap();
    assert!(matches!(vault.insert_upload(&upload), Err(Fault::Exists { .. })));
    assert_eq!(vault.upload(&"u1".into()).unwrap(), Some(upload.clone()));
    assert_eq!(vault.uploads().unwrap(), [upload]);
    assert!(vault.remove_upload(&"u1".into()).unwrap());
    assert!(!vault.remove_upload(&"u1".into()).unwrap());
    assert_eq!(vault.upload(&"u1".into()).unwrap(), None);
    vault.set_meta("key", b"old").unwrap();
    vault.set_meta("key", b"new").unwrap();
    assert_eq!(vault.meta("key").unwrap().unwrap(), b"new");
    assert_eq!(vault.meta("other").unwrap(), None);
}

fn a_reader_never_sees_a_gap_while_the_writer_works<B: Backend>() {
    const ROUNDS: u64 = 300;
    let disk = B::new();
    let mut ledger = disk.open().unwrap();
    let epoch = acquire(&mut ledger, "one");
    let mut reader = ledger.reader().unwrap();
    let watcher = std::thread::spawn(move || {
        let mut cursor = 0;
        while cursor < ROUNDS * 2 {
            let page = reader.events(&"one".into(), Sequence(cursor / 2), None, 50, 4000).unwrap();
            let expected: Vec<_> = (cursor / 2 + 1..).take(page.entries.len()).collect();
            assert_eq!(sequences(&page), expected);
            assert!(page.has_more || cursor / 2 + page.entries.len() as u64 == page.head.0);
            cursor = page.head.0;
        }
    });
    for round in 0..ROUNDS {
        ledger.commit(&[append("one", epoch, round * 2 + 1..=round * 2 + 2)]).unwrap();
        if round % 7 == 0 {
            B::settle(&mut ledger);
        }
    }
    watcher.join().unwrap();
}

#[test]
fn a_commit_that_failed_is_told_by_reopening() {
    let disk = MemoryDisk::new();
    let mut ledger = disk.open().unwrap();
    let epoch = acquire(&mut ledger, "one");
    for (failure, head) in [(Failure::BeforeCommit, 0), (Failure::AfterCommit, 1)] {
        disk.fail_next(failure);
        let failed = ledger.commit(&[append("one", epoch, 1..=1)]);
        assert!(matches!(failed, Err(Fault::Io { .. })));
        assert_eq!(ledger.commit(&[append("one", epoch, 1..=1)]), Err(Fault::NeedsReopen));
        ledger.reopen().unwrap();
        assert_eq!(read(&ledger, "one", 0).head, Sequence(head));
    }
    disk.fail_next(Failure::Full);
    assert_eq!(ledger.commit(&[append("one", epoch, 2..=2)]), Err(Fault::Full));
    assert_eq!(ledger.commit(&[append("one", epoch, 2..=2)]).unwrap(), [Ok(())]);
}
