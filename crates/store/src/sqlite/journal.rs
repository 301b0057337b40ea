//! Commits: a group becomes one row of `journal`; and the way back, at open.
//!
//! Refusals are found before anything is written, so no savepoint is needed: what reaches the
//! row is sound, and the row is written whole or not at all.
//!
//! Not here: moving rows into segments (`fold`).

use std::path::Path;
use std::sync::Arc;

use domain::{Sequence, SessionId};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::pack::{self, Row};
use super::tail::Tail;
use super::{Known, SqliteLedger, TAIL_BYTES_MAX, TAIL_ROWS_MAX, WAL_BYTES_MAX};
use crate::{Append, AppendRefused, Fault};

/// A group larger than this takes several rows, in the same transaction.
const ROW_BYTES_MAX: usize = 16 * 1024 * 1024;

const INSERT: &str = "INSERT INTO journal (position, contents, body) VALUES (?, ?, ?)";

type Verdicts = Vec<Result<(), AppendRefused>>;
type Packed = (Vec<u8>, Arc<Vec<u8>>);

impl SqliteLedger {
    pub(super) fn write_group(&mut self, group: &[Append]) -> Result<Verdicts, Fault> {
        self.make_room()?;
        let mut before = Vec::with_capacity(group.len());
        let mut rows = Vec::new();
        let mut row = Row::default();
        let mut verdicts = Vec::with_capacity(group.len());
        for append in group {
            let admitted = self.admit(append)?;
            if let Ok(known) = admitted {
                row.push(known.number, append);
                before.push((&append.stream, known));
            }
            if row.body.len() >= ROW_BYTES_MAX {
                rows.push(std::mem::take(&mut row).finish());
            }
            verdicts.push(admitted.map(drop));
        }
        if !row.is_empty() {
            rows.push(row.finish());
        }
        if let Err(fault) = self.write_rows(&rows) {
            // Newest first, so that a stream that appended twice ends where it began.
            for (stream, known) in before.into_iter().rev() {
                self.known.insert(stream.clone(), known);
            }
            return Err(fault);
        }
        self.publish(&rows, before);
        Ok(verdicts)
    }

    /// Whether the append may go into the row. Moves the known head on; gives what was before.
    fn admit(&mut self, append: &Append) -> Result<Result<Known, AppendRefused>, Fault> {
        let known = match self.know(&append.stream) {
            Ok(Some(known)) => known,
            Ok(None) => return Ok(Err(AppendRefused::StaleEpoch { current: None })),
            Err(Fault::Corrupt { detail, .. }) => {
                return Ok(Err(AppendRefused::Corrupt { detail }));
            }
            Err(fault) => return Err(fault),
        };
        if let Some(detail) = self.tail.read().damage(&append.stream) {
            return Ok(Err(AppendRefused::Corrupt { detail: detail.into() }));
        }
        let head = match append.check(known.epoch, Sequence(known.head)) {
            Ok(head) => head,
            Err(refused) => return Ok(Err(refused)),
        };
        if let Some(held) = self.known.get_mut(&append.stream) {
            held.head = head.0;
        }
        Ok(Ok(known))
    }

    fn write_rows(&mut self, rows: &[Packed]) -> Result<(), Fault> {
        let mut position = self.position_last;
        let connection = self.connection()?;
        match rows {
            [] => return Ok(()),
            // Its own transaction, without the two statements around it.
            [(contents, body)] => {
                position += 1;
                connection.prepare_cached(INSERT)?.execute(params![position, contents, **body])?;
            }
            several => {
                let transaction =
                    connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                for (contents, body) in several {
                    position += 1;
                    transaction
                        .prepare_cached(INSERT)?
                        .execute(params![position, contents, **body])?;
                }
                transaction.commit()?;
            }
        }
        self.position_last = position;
        Ok(())
    }

    /// It is durable: from here on readers see it.
    fn publish(&mut self, rows: &[Packed], before: Vec<(&SessionId, Known)>) {
        let mut tail = self.tail.write();
        let mut appends = before.into_iter();
        let mut position = self.position_last - rows.len().cast_signed() as i64;
        for (contents, body) in rows {
            position += 1;
            let size_bytes = contents.len() + body.len();
            tail.begin_row(position, size_bytes);
            self.wal_bytes += size_bytes + 2 * 4096;
            // What was packed a moment ago can be read; were it not, the checksum would say so at
            // the next open.
            for section in pack::read_row(contents, body).unwrap_or_default() {
                if let Some((stream, known)) = appends.next() {
                    let base = (known.number, known.head);
                    tail.absorb(stream, base, position, section.content);
                }
            }
        }
    }

    /// Keeps the tail and the log bounded even when nobody calls `maintain`.
    fn make_room(&mut self) -> Result<(), Fault> {
        let (size_bytes, rows) = {
            let tail = self.tail.read();
            (tail.size_bytes, tail.rows)
        };
        if size_bytes >= TAIL_BYTES_MAX || rows >= TAIL_ROWS_MAX {
            self.fold(None)?;
        }
        if self.wal_bytes >= WAL_BYTES_MAX {
            match self.checkpoint() {
                // The log goes on growing; the commit itself meets the end of the disk if it is.
                Ok(()) | Err(Fault::Full) => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(())
    }
}

/// Reads the journal back. Gives the tail and the last position ever used.
pub(super) fn recover(connection: &Connection, path: &Path) -> Result<(Tail, i64), Fault> {
    let unreadable = |detail: String| Fault::Corrupt {
        stream: None,
        detail: format!("the newest commits in {}: {detail}", path.display()),
    };
    let mut position_last: i64 =
        connection.query_row("SELECT value FROM counters WHERE name = 'position'", [], |row| {
            row.get(0)
        })?;
    let mut tail = Tail::default();
    let mut statement =
        connection.prepare("SELECT position, contents, body FROM journal ORDER BY position")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next().map_err(|error| unreadable(error.to_string()))? {
        let position: i64 = row.get(0)?;
        let contents: Vec<u8> = row.get(1)?;
        let body = Arc::new(row.get::<_, Vec<u8>>(2)?);
        position_last = position_last.max(position);
        tail.begin_row(position, contents.len() + body.len());
        let sections = pack::read_row(&contents, &body)
            .map_err(|_| unreadable(format!("row {position} has a wrong checksum")))?;
        for section in sections {
            let base = stream_at(connection, section.stream)?;
            let Some((stream, folded, head)) = base else {
                continue;
            };
            if position > folded {
                tail.absorb(&stream, (section.stream, head), position, section.content);
            }
        }
    }
    Ok((tail, position_last))
}

fn stream_at(connection: &Connection, number: u64) -> Result<Option<(SessionId, i64, u64)>, Fault> {
    let found: Option<(String, i64, i64)> = connection
        .prepare_cached("SELECT id, folded, head FROM streams WHERE number = ?")?
        .query_row([number.cast_signed()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    Ok(found.map(|(id, folded, head)| (id.into(), folded, head.cast_unsigned())))
}
