//! Properties of packed rows that hold for any bytes with correct checksums. Damage is detected
//! earlier; a row written by another release or another program is not.

use std::sync::Arc;

use super::pack::{Content, Entries, Row, Section, read_row};
use crate::{Append, Entry, Epoch, Snapshot};
use domain::Sequence;

/// A row of one section made of these bytes, and a row whose table of contents is made of them.
///
/// # Panics
///
/// Where that does not hold.
pub fn row(bytes: &[u8]) {
    let mut table = vec![];
    number(&mut table, 1);
    number(&mut table, bytes.len() as u64);
    table.extend(crc32fast::hash(bytes).to_le_bytes());
    check(table, bytes);
    let (first, rest) = bytes.split_first().unwrap_or((&0, &[]));
    let (table, body) = rest.split_at(usize::from(*first).min(rest.len()));
    check(table.to_vec(), body);
}

fn check(mut table: Vec<u8>, body: &[u8]) {
    let checksum = crc32fast::hash(&table);
    table.extend(checksum.to_le_bytes());
    let body = Arc::new(body.to_vec());
    let Ok(sections) = read_row(&table, &body) else { return };
    assert!(sections.len() <= table.len());
    for section in &sections {
        let Some(append) = append(section) else { continue };
        let mut again = Row::default();
        again.push(section.stream, &append);
        let (table, body) = again.finish();
        let Ok(read) = read_row(&table, &body) else { panic!("what was written is not read") };
        let appends: Vec<_> = read.iter().map(self::append).collect();
        assert_eq!(appends, [Some(append)]);
    }
}

/// What a section says, whole; `None` where it is not what a release writes.
fn append(section: &Section) -> Option<Append> {
    let Ok(Content { piece, sends, snapshot, card }) = &section.content else { return None };
    let mut append = Append::new("any".into(), Epoch(0));
    if let Some(piece) = piece {
        assert!(piece.last() >= piece.first);
        let mut entries = Entries::new(piece.entries.bytes(), piece.first);
        while let Some(entry) = entries.next().ok()? {
            append.entries.push(entry.to_entry());
        }
        let count = append.entries.len() as u64;
        let at_last = append.entries.iter().map(|entry: &Entry| entry.at.0).max();
        if (count, at_last) != (piece.count, Some(piece.at_last)) {
            return None;
        }
    }
    let sends = sends.iter().map(|(id, state)| (id.clone(), state.bytes().to_vec()));
    append.sends = sends.collect();
    append.snapshot = snapshot.as_ref().map(|(sequence, body)| Snapshot {
        sequence: Sequence(*sequence),
        body: body.bytes().to_vec(),
    });
    append.card = card.as_ref().map(|card| card.bytes().to_vec());
    Some(append)
}

fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}
