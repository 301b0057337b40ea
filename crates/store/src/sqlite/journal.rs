//! Commits: a group becomes one row of `journal`, and is read back when the database opens.
//!
//! Appends are refused before anything is written, so no savepoint is needed: whatever reaches the
//! row is valid, and the row is written completely or not at all.
//!
//! Not here: moving rows into segments (`fold`).

use std::path::Path;
use std::sync::Arc;

use domain::{Sequence, SessionId};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::pack::{self, Content, Row};
use super::tail::Tail;
use super::{Known, SqliteLedger, TAIL_BYTES_MAX, TAIL_ROWS_MAX, WAL_BYTES_MAX};
use crate::{Append, AppendRefused, Fault};

/// A group larger than this takes several rows, in the same transaction.
const ROW_BYTES_MAX: usize = 16 * 1024 * 1024;

const INSERT: &str = "INSERT INTO journal (position, contents, body) VALUES (?, ?, ?)";

type Verdicts = Vec<Result<(), AppendRefused>>;
type Packed = (Vec<u8>, Arc<Vec<u8>>);

/// What became of a group.
struct Written {
    rows: Vec<Packed>,
    /// What each row holds, read back from it.
    contents: Vec<Vec<Content>>,
    verdicts: Verdicts,
}

impl SqliteLedger {
    pub(super) fn write_group(&mut self, group: &[Append]) -> Result<Verdicts, Fault> {
        self.make_room()?;
        let mut before = Vec::with_capacity(group.len());
        match self.admit_and_write(group, &mut before) {
            Ok(Written { rows, contents, verdicts }) => {
                self.publish(&rows, contents, before);
                Ok(verdicts)
            }
            Err(fault) => {
                self.forget_heads(before);
                Err(fault)
            }
        }
    }

    /// Writes what may go in. What was known of each admitted stream comes into `before`.
    fn admit_and_write<'a>(
        &mut self,
        group: &'a [Append],
        before: &mut Vec<(&'a SessionId, Known)>,
    ) -> Result<Written, Fault> {
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
        let contents = read_back(&rows, before.len())?;
        self.write_rows(&rows)?;
        Ok(Written { rows, contents, verdicts })
    }

    /// Nothing was written. Newest first, so that a stream that appended twice ends where it began.
    fn forget_heads(&mut self, before: Vec<(&SessionId, Known)>) {
        for (stream, known) in before.into_iter().rev() {
            self.known.insert(stream.clone(), known);
        }
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
    fn publish(
        &mut self,
        rows: &[Packed],
        sections: Vec<Vec<Content>>,
        before: Vec<(&SessionId, Known)>,
    ) {
        let mut tail = self.tail.write();
        let mut appends = before.into_iter();
        let mut position = self.position_last - rows.len().cast_signed() as i64;
        for ((contents, body), sections) in rows.iter().zip(sections) {
            position += 1;
            let size_bytes = contents.len() + body.len();
            tail.begin_row(position, size_bytes);
            self.wal_bytes += size_bytes + 2 * 4096;
            for (content, (stream, known)) in sections.into_iter().zip(&mut appends) {
                tail.absorb(stream, (known.number, known.head), position, Ok(content));
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

/// What readers will be shown of rows that are about to be written. A row that cannot be read
/// back is not written: its events would be acknowledged, and gone.
fn read_back(rows: &[Packed], appends: usize) -> Result<Vec<Vec<Content>>, Fault> {
    let unreadable = || Fault::Corrupt {
        stream: None,
        detail: "a commit was not packed as it was meant".into(),
    };
    let mut found = 0;
    let mut read = Vec::with_capacity(rows.len());
    for (contents, body) in rows {
        let sections = pack::read_row(contents, body).map_err(|_| unreadable())?;
        let sections: Result<Vec<_>, _> = sections.into_iter().map(|it| it.content).collect();
        let sections = sections.map_err(|_| unreadable())?;
        found += sections.len();
        read.push(sections);
    }
    if found == appends { Ok(read) } else { Err(unreadable()) }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Entry, Epoch};
    use domain::Timestamp;

    fn packed() -> Packed {
        let mut row = Row::default();
        for stream in [1, 2] {
            let entry = Entry { sequence: Sequence(1), at: Timestamp(7), body: vec![7; 100] };
            row.push(
                stream,
                &Append { entries: vec![entry], ..Append::new("abc".into(), Epoch(1)) },
            );
        }
        row.finish()
    }

    #[test]
    fn a_commit_that_was_packed_well_is_read_back_whole() {
        let sections = read_back(&[packed()], 2).unwrap();
        assert!(sections[0].iter().all(|content| content.piece.is_some()));
    }

    #[test]
    fn a_commit_that_cannot_be_read_back_is_not_written() {
        let (contents, body) = packed();
        let mut spoilt = body.to_vec();
        spoilt[20] ^= 1;
        assert!(read_back(&[(contents.clone(), Arc::new(spoilt))], 2).is_err());
        let cut = contents[..contents.len() - 1].to_vec();
        assert!(read_back(&[(cut, body.clone())], 2).is_err());
        assert!(read_back(&[(contents, body)], 3).is_err(), "one append is missing");
    }
}
