//! What survives restarts, full disks and damage, and what is forgotten or erased.
//!
//! Not here: who may append what (`appending`).

use domain::{Sequence, Timestamp};

use super::{Backend, DAY_MS, acquire, append, entry, read, sequences};
use crate::{Append, AppendRefused, Failure, Fault, Ledger, MemoryDisk, Retention, Snapshot};

pub(crate) fn everything_survives_a_restart<B: Backend>() {
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

pub(crate) fn a_full_disk_records_nothing_and_goes_on_when_there_is_room<B: Backend>() {
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

pub(crate) fn an_erased_stream_is_gone_and_its_lease_stale<B: Backend>() {
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

pub(crate) fn nothing_is_forgotten_by_default<B: Backend>() {
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

pub(crate) fn old_events_are_forgotten_up_to_the_snapshot<B: Backend>() {
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

pub(crate) fn a_large_store_forgets_its_oldest_events<B: Backend>() {
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

pub(crate) fn damage_refuses_its_own_stream_only<B: Backend>() {
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

pub(crate) fn a_second_ledger_on_the_same_disk_is_refused<B: Backend>() {
    let disk = B::new();
    let ledger = disk.open().unwrap();
    assert!(matches!(disk.open(), Err(Fault::Locked { .. })));
    drop(ledger);
    assert!(disk.open().is_ok());
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
