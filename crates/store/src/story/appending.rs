//! Appended entries are there, in order; a refused append leaves nothing behind.
//!
//! Not here: what survives failures (`keeping`).

use domain::{MessageId, Sequence};

use super::{Backend, acquire, append, read, sequences};
use crate::{Append, AppendRefused, Ledger as _, Snapshot};

pub(crate) fn what_is_appended_is_read_back_in_pages<B: Backend>() {
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

pub(crate) fn a_page_ends_at_its_limits<B: Backend>() {
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

pub(crate) fn a_gap_or_a_repeat_is_refused<B: Backend>() {
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

pub(crate) fn a_lost_lease_is_refused_while_the_others_commit<B: Backend>() {
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

pub(crate) fn a_stream_may_append_twice_in_a_group<B: Backend>() {
    let disk = B::new();
    let mut ledger = disk.open().unwrap();
    let epoch = acquire(&mut ledger, "one");
    let group =
        [append("one", epoch, 1..=2), append("one", epoch, 9..=9), append("one", epoch, 3..=4)];
    let verdicts = ledger.commit(&group).unwrap();
    assert_eq!(verdicts, [Ok(()), Err(AppendRefused::NotDense { head: Sequence(2) }), Ok(())]);
    assert_eq!(sequences(&read(&ledger, "one", 0)), [1, 2, 3, 4]);
}

pub(crate) fn a_send_is_indexed_with_its_events<B: Backend>() {
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

pub(crate) fn a_snapshot_is_where_the_next_owner_continues<B: Backend>() {
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

pub(crate) fn a_snapshot_ahead_of_its_stream_is_refused<B: Backend>() {
    let disk = B::new();
    let mut ledger = disk.open().unwrap();
    let epoch = acquire(&mut ledger, "one");
    let snapshot = Some(Snapshot { sequence: Sequence(3), body: vec![] });
    let ahead = Append { snapshot, ..append("one", epoch, 1..=2) };
    let verdicts = ledger.commit(&[ahead]).unwrap();
    assert_eq!(verdicts, [Err(AppendRefused::SnapshotAhead { head: Sequence(2) })]);
    assert_eq!(read(&ledger, "one", 0).head, Sequence(0));
}

pub(crate) fn lists_show_the_newest_card_and_head<B: Backend>() {
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

pub(crate) fn a_reader_never_sees_a_gap_while_the_writer_works<B: Backend>() {
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
