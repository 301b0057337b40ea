//! Moves the tail into the tables: entries into segments by stream, sends, snapshots, cards.
//!
//! It uses one transaction, sorted by stream. A stream with damaged pages is left out: its rows
//! stay in the journal, it accepts no more appends, and the other streams continue.
//!
//! Not here: when to do it (`journal`, `retain`).

use std::collections::{BTreeMap, BTreeSet};

use domain::SessionId;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::SqliteLedger;
use super::pack::{Damaged, Entries, Piece};
use super::tail::{Tail, TailStream};
use crate::Fault;

/// A segment is cut when it would grow over this; a single larger entry has its own.
const SEGMENT_BYTES_MAX: usize = 64 * 1024;
/// A segment is cut when its entries lie further apart: retention forgets whole segments.
const SEGMENT_SPAN_MS_MAX: u64 = 24 * 60 * 60 * 1000;
/// The last segment is continued when it is at most this many times as long as what is added,
/// so that many small folds neither leave many small segments nor copy without end.
const SEGMENT_MERGE_RATIO: usize = 4;
/// A segment of this length is long enough to be left alone.
const SEGMENT_MERGE_BYTES_MAX: usize = 8 * 1024;

/// A stretch of one stream in the making.
#[derive(Debug)]
struct Segment {
    first: u64,
    last: u64,
    at_first: u64,
    at_last: u64,
    body: Vec<u8>,
}

impl SqliteLedger {
    /// Folds the whole tail. The stream that is being erased is dropped on the way.
    pub(super) fn fold(&mut self, erased: Option<&SessionId>) -> Result<(), Fault> {
        let position = self.position_last;
        let shared = self.tail.clone();
        let connection = self.connection.as_mut().ok_or(Fault::NeedsReopen)?;
        let tail = shared.read();
        if tail.positions.is_empty() {
            return Ok(());
        }
        // SQLite writes nothing more in a transaction that met a bad page, so whoever is hurt is
        // left out and the others are done again.
        let mut hurt = BTreeMap::new();
        loop {
            match fold_all(connection, &tail, position, erased, &hurt) {
                Ok(()) => break,
                Err(Fault::Corrupt { stream: Some(stream), detail })
                    if !hurt.contains_key(&stream) =>
                {
                    hurt.insert(stream, detail);
                }
                Err(fault) => return Err(fault),
            }
        }
        self.wal_bytes += tail.size_bytes + tail.streams.len() * 4096;
        drop(tail);
        let mut tail = shared.write();
        for (stream, detail) in hurt {
            if let Some(held) = tail.streams.get_mut(&stream) {
                held.damage = Some(detail);
            }
        }
        if let Some(stream) = erased {
            tail.streams.remove(stream);
        }
        tail.keep_damaged();
        Ok(())
    }
}

fn fold_all(
    connection: &mut Connection,
    tail: &Tail,
    position: i64,
    erased: Option<&SessionId>,
    hurt: &BTreeMap<SessionId, String>,
) -> Result<(), Fault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut kept = BTreeSet::new();
    for (stream, held) in &tail.streams {
        if Some(stream) == erased {
            continue;
        }
        if held.damage.is_some() || hurt.contains_key(stream) {
            kept.extend(&held.positions);
            continue;
        }
        fold_stream(&transaction, held, position).map_err(|fault| fault.of_stream(stream))?;
    }
    forget_rows(&transaction, tail, &kept)?;
    transaction
        .prepare_cached("UPDATE counters SET value = ? WHERE name = 'position'")?
        .execute([position])?;
    transaction.commit()?;
    Ok(())
}

fn forget_rows(
    transaction: &Transaction<'_>,
    tail: &Tail,
    kept: &BTreeSet<i64>,
) -> Result<(), Fault> {
    if kept.is_empty() {
        transaction.execute("DELETE FROM journal", [])?;
        return Ok(());
    }
    let mut statement = transaction.prepare_cached("DELETE FROM journal WHERE position = ?")?;
    for position in tail.positions.iter().filter(|position| !kept.contains(position)) {
        statement.execute([position])?;
    }
    Ok(())
}

fn fold_stream(connection: &Connection, held: &TailStream, position: i64) -> Result<(), Fault> {
    let number = held.number.cast_signed();
    fold_entries(connection, held)?;
    for (id, state) in &held.sends {
        connection
            .prepare_cached("INSERT OR REPLACE INTO sends (stream, id, state) VALUES (?, ?, ?)")?
            .execute(params![number, id.as_str(), state.bytes()])?;
    }
    if let Some((sequence, body)) = &held.snapshot {
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO snapshots (stream, sequence, checksum, body)
                 VALUES (?, ?, ?, ?)",
            )?
            .execute(params![
                number,
                sequence.cast_signed(),
                crc32fast::hash(body.bytes()),
                body.bytes()
            ])?;
    }
    connection
        .prepare_cached(
            "UPDATE streams SET head = ?2, folded = ?3, card = coalesce(?4, card)
             WHERE number = ?1",
        )?
        .execute(params![
            number,
            held.head.cast_signed(),
            position,
            held.card.as_ref().map(super::pack::Slice::bytes)
        ])?;
    Ok(())
}

fn fold_entries(connection: &Connection, held: &TailStream) -> Result<(), Fault> {
    let Some(first) = held.pieces.first() else {
        return Ok(());
    };
    let size_bytes: usize = held.pieces.iter().map(|piece| piece.entries.bytes().len()).sum();
    let mut segment = continue_last(connection, held.number, first, size_bytes)?;
    for piece in &held.pieces {
        add_piece(connection, held.number, &mut segment, piece)?;
    }
    segment.map_or(Ok(()), |segment| insert(connection, held.number, &segment))
}

/// Takes the last segment out, to write it again with more in it, if that is worth it.
fn continue_last(
    connection: &Connection,
    number: u64,
    piece: &Piece,
    size_bytes: usize,
) -> Result<Option<Segment>, Fault> {
    let number = number.cast_signed();
    let last = piece.first.cast_signed() - 1;
    let found: Option<(i64, usize)> = connection
        .prepare_cached(
            "SELECT position, length(body) FROM segments WHERE stream = ? AND last = ?",
        )?
        .query_row([number, last], |row| {
            Ok((row.get(0)?, usize::try_from(row.get::<_, i64>(1)?).unwrap_or(usize::MAX)))
        })
        .optional()?;
    let Some((position, length)) = found else {
        return Ok(None);
    };
    if length / SEGMENT_MERGE_RATIO > size_bytes || length >= SEGMENT_MERGE_BYTES_MAX {
        return Ok(None);
    }
    let (segment, checksum) = connection
        .prepare_cached(
            "SELECT first, at_first, at_last, checksum, body FROM segments WHERE position = ?",
        )?
        .query_row([position], |row| {
            let segment = Segment {
                first: row.get::<_, i64>(0)?.cast_unsigned(),
                last: last.cast_unsigned(),
                at_first: row.get::<_, i64>(1)?.cast_unsigned(),
                at_last: row.get::<_, i64>(2)?.cast_unsigned(),
                body: row.get(4)?,
            };
            Ok((segment, row.get::<_, u32>(3)?))
        })?;
    // A damaged one is not written again under a fresh checksum.
    if crc32fast::hash(&segment.body) != checksum {
        let detail = "the checksum of its last segment is wrong".into();
        return Err(Fault::Corrupt { stream: None, detail });
    }
    connection.prepare_cached("DELETE FROM segments WHERE position = ?")?.execute([position])?;
    Ok(Some(segment))
}

fn add_piece(
    connection: &Connection,
    number: u64,
    segment: &mut Option<Segment>,
    piece: &Piece,
) -> Result<(), Fault> {
    let packed = piece.entries.bytes();
    if packed.len() <= SEGMENT_BYTES_MAX {
        return add(
            connection,
            number,
            segment,
            (piece.first, piece.last(), piece.at_last),
            packed,
        );
    }
    let unreadable = |_: Damaged| Fault::Corrupt {
        stream: None,
        detail: "an entry of the journal cannot be read".into(),
    };
    let mut entries = Entries::new(packed, piece.first);
    let mut start = 0;
    while let Some(entry) = entries.next().map_err(unreadable)? {
        let bytes = packed.get(start..entries.offset()).unwrap_or_default();
        add(connection, number, segment, (entry.sequence, entry.sequence, entry.at), bytes)?;
        start = entries.offset();
    }
    Ok(())
}

fn add(
    connection: &Connection,
    number: u64,
    segment: &mut Option<Segment>,
    (first, last, at_last): (u64, u64, u64),
    packed: &[u8],
) -> Result<(), Fault> {
    if let Some(open) = segment {
        let fits = open.body.len() + packed.len() <= SEGMENT_BYTES_MAX;
        if fits && at_last.saturating_sub(open.at_first) <= SEGMENT_SPAN_MS_MAX {
            open.body.extend_from_slice(packed);
            open.last = last;
            open.at_last = open.at_last.max(at_last);
            return Ok(());
        }
        insert(connection, number, open)?;
    }
    *segment = Some(Segment { first, last, at_first: at_last, at_last, body: packed.to_vec() });
    Ok(())
}

fn insert(connection: &Connection, number: u64, segment: &Segment) -> Result<(), Fault> {
    connection
        .prepare_cached(
            "INSERT INTO segments (stream, first, last, at_first, at_last, checksum, body)
             VALUES (?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            number.cast_signed(),
            segment.first.cast_signed(),
            segment.last.cast_signed(),
            segment.at_first.cast_signed(),
            segment.at_last.cast_signed(),
            crc32fast::hash(&segment.body),
            segment.body
        ])?;
    Ok(())
}
