//! Reads the tail first, then the tables, in one read transaction.
//!
//! Not here: writing.

use std::path::Path;

use domain::{MessageId, Sequence, SessionId, session};
use rusqlite::{Connection, OptionalExtension};

use super::pack::{Entries, EntryRef, Piece};
use super::schema::{self, READER_CACHE_KIB};
use super::tail::SharedTail;
use crate::{Entry, Fault, Page, Reader, StreamRow, codec};

/// A stream that is erased and made again between the two looks does not fit together; looking
/// again settles it. More often than this it is damage.
const LOOKS_MAX: usize = 3;

pub(super) struct SqliteReader {
    connection: Connection,
    tail: SharedTail,
}

/// What entries are taken as.
trait Taken: Sized {
    fn take(entry: &EntryRef<'_>) -> Result<Self, Fault>;
}

impl Taken for Entry {
    fn take(entry: &EntryRef<'_>) -> Result<Self, Fault> {
        Ok(entry.to_entry())
    }
}

/// Decoded where it lies.
impl Taken for session::Recorded {
    fn take(entry: &EntryRef<'_>) -> Result<Self, Fault> {
        codec::decode_event(entry.body)
    }
}

/// What is asked of a stream, and how much of it is already taken.
struct Collector<T> {
    taken: Vec<T>,
    page: Page,
    next: u64,
    end: u64,
    limit: usize,
    left_bytes: usize,
}

impl SqliteReader {
    pub(super) fn open(path: &Path, tail: SharedTail) -> Result<Self, Fault> {
        let connection = schema::connect(path, READER_CACHE_KIB)?;
        connection.pragma_update(None, "query_only", true)?;
        Ok(Self { connection, tail })
    }

    /// `None` when the two looks do not fit together.
    fn look<T: Taken>(
        &mut self,
        stream: &SessionId,
        after: Sequence,
        upto: Option<Sequence>,
        (limit, limit_bytes): (usize, usize),
    ) -> Result<Option<(Vec<T>, Page)>, Fault> {
        let (tail_head, pieces) = self.newest(stream, after, upto)?;
        let transaction = self.connection.transaction()?;
        let found: Option<(i64, i64, i64)> = transaction
            .prepare_cached("SELECT number, head, first_kept FROM streams WHERE id = ?")?
            .query_row([stream.as_str()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        let Some((number, head, first_kept)) = found else {
            let nothing = Page { first_kept: Sequence(1), ..Page::default() };
            return Ok(tail_head.is_none().then_some((vec![], nothing)));
        };
        let head = tail_head.map_or(Sequence(head.cast_unsigned()), Sequence);
        let first_kept = Sequence(first_kept.cast_unsigned());
        let mut collector = Collector {
            taken: vec![],
            next: after.next().max(first_kept).0,
            end: upto.map_or(head, |upto| upto.min(head)).0,
            limit,
            left_bytes: limit_bytes,
            page: Page { head, first_kept, ..Page::default() },
        };
        let folded_end = pieces.first().map_or(collector.end, |piece| piece.first - 1);
        if collector.next <= folded_end.min(collector.end) {
            collect_segments(&transaction, stream, number, folded_end, &mut collector)?;
        }
        for piece in &pieces {
            collector.add(stream, piece.entries.bytes(), piece.first)?;
        }
        let complete = collector.next > collector.end || collector.page.has_more;
        Ok(complete.then_some((collector.taken, collector.page)))
    }

    fn collect<T: Taken>(
        &mut self,
        stream: &SessionId,
        after: Sequence,
        upto: Option<Sequence>,
        limits: (usize, usize),
    ) -> Result<(Vec<T>, Page), Fault> {
        for _ in 0..LOOKS_MAX {
            let found = self.look(stream, after, upto, limits);
            if let Some(found) = found.map_err(|fault| fault.of_stream(stream))? {
                return Ok(found);
            }
        }
        Err(Fault::corrupt(stream, "events are missing"))
    }

    fn newest(
        &self,
        stream: &SessionId,
        after: Sequence,
        upto: Option<Sequence>,
    ) -> Result<(Option<u64>, Vec<Piece>), Fault> {
        let tail = self.tail.read();
        let Some(held) = tail.streams.get(stream) else {
            return Ok((None, vec![]));
        };
        if let Some(detail) = &held.damage {
            return Err(Fault::corrupt(stream, detail.as_str()));
        }
        let from = held.pieces.partition_point(|piece| piece.last() <= after.0);
        let wanted = held.pieces.iter().skip(from);
        let wanted = wanted.take_while(|piece| upto.is_none_or(|upto| piece.first <= upto.0));
        Ok((Some(held.head), wanted.cloned().collect()))
    }
}

impl<T: Taken> Collector<T> {
    /// Takes what is asked from packed entries that begin at `first`.
    fn add(&mut self, stream: &SessionId, packed: &[u8], first: u64) -> Result<(), Fault> {
        let unreadable = |_| Fault::corrupt(stream, "an entry cannot be read");
        let mut entries = Entries::new(packed, first);
        while let Some(entry) = entries.next().map_err(unreadable)? {
            if entry.sequence < self.next {
                continue;
            }
            if entry.sequence > self.end || entry.sequence != self.next || self.page.has_more {
                break;
            }
            let too_long = entry.body.len() > self.left_bytes && !self.taken.is_empty();
            if self.taken.len() >= self.limit || too_long {
                self.page.has_more = true;
                break;
            }
            self.left_bytes = self.left_bytes.saturating_sub(entry.body.len());
            self.taken.push(T::take(&entry)?);
            self.next += 1;
        }
        Ok(())
    }
}

fn collect_segments<T: Taken>(
    connection: &Connection,
    stream: &SessionId,
    number: i64,
    end: u64,
    collector: &mut Collector<T>,
) -> Result<(), Fault> {
    let mut statement = connection.prepare_cached(
        "SELECT first, checksum, body FROM segments
         WHERE stream = ? AND last >= ? ORDER BY last",
    )?;
    let mut rows = statement.query([number, collector.next.cast_signed()])?;
    while collector.next <= end.min(collector.end) && !collector.page.has_more {
        let Some(row) = rows.next()? else {
            break;
        };
        let first: i64 = row.get(0)?;
        let body = row.get_ref(2)?.as_blob().map_err(|error| Fault::Corrupt {
            stream: Some(stream.clone()),
            detail: error.to_string(),
        })?;
        if crc32fast::hash(body) != row.get::<_, u32>(1)? {
            return Err(Fault::corrupt(stream, "the checksum of a segment is wrong"));
        }
        collector.add(stream, body, first.cast_unsigned())?;
    }
    Ok(())
}

impl Reader for SqliteReader {
    fn events(
        &mut self,
        stream: &SessionId,
        after: Sequence,
        upto: Option<Sequence>,
        limit: usize,
        limit_bytes: usize,
    ) -> Result<Page, Fault> {
        let (entries, page) = self.collect(stream, after, upto, (limit, limit_bytes))?;
        Ok(Page { entries, ..page })
    }

    fn recorded(
        &mut self,
        stream: &SessionId,
        after: Sequence,
        upto: Option<Sequence>,
        limit: usize,
        limit_bytes: usize,
    ) -> Result<(Vec<session::Recorded>, Page), Fault> {
        self.collect(stream, after, upto, (limit, limit_bytes))
    }

    fn send_state(&mut self, stream: &SessionId, id: &MessageId) -> Result<Option<Vec<u8>>, Fault> {
        if let Some(held) = self.tail.read().streams.get(stream) {
            if let Some(detail) = &held.damage {
                return Err(Fault::corrupt(stream, detail.as_str()));
            }
            if let Some(state) = held.sends.get(id) {
                return Ok(Some(state.bytes().to_vec()));
            }
        }
        let look = || {
            self.connection
                .prepare_cached(
                    "SELECT state FROM sends
                     WHERE stream = (SELECT number FROM streams WHERE id = ?) AND id = ?",
                )?
                .query_row([stream.as_str(), id.as_str()], |row| row.get(0))
                .optional()
        };
        look().map_err(|error| Fault::from(error).of_stream(stream))
    }

    fn stream(&mut self, stream: &SessionId) -> Result<Option<StreamRow>, Fault> {
        let newest =
            self.tail.read().streams.get(stream).map(|held| (held.head, held.card.clone()));
        let look = || {
            self.connection
                .prepare_cached("SELECT id, head, card FROM streams WHERE id = ?")?
                .query_row([stream.as_str()], read_stream)
                .optional()
        };
        let mut found = look().map_err(|error| Fault::from(error).of_stream(stream))?;
        if let (Some(row), Some((head, card))) = (&mut found, newest) {
            row.head = Sequence(head);
            row.card = card.map(|card| card.bytes().to_vec()).or(row.card.take());
        }
        Ok(found)
    }

    fn streams(&mut self) -> Result<Vec<StreamRow>, Fault> {
        let newest: Vec<_> = {
            let tail = self.tail.read();
            let held = tail.streams.iter();
            held.map(|(id, held)| (id.clone(), held.head, held.card.clone())).collect()
        };
        let mut newest = newest.into_iter().peekable();
        let mut statement =
            self.connection.prepare_cached("SELECT id, head, card FROM streams ORDER BY id")?;
        let mut all = statement.query_map([], read_stream)?.collect::<Result<Vec<_>, _>>()?;
        // Both are in the order of the ids.
        for row in &mut all {
            while newest.next_if(|(id, ..)| *id < row.id).is_some() {}
            if let Some((_, head, card)) = newest.next_if(|(id, ..)| *id == row.id) {
                row.head = Sequence(head);
                row.card = card.map(|card| card.bytes().to_vec()).or(row.card.take());
            }
        }
        Ok(all)
    }
}

fn read_stream(row: &rusqlite::Row<'_>) -> rusqlite::Result<StreamRow> {
    Ok(StreamRow {
        id: row.get::<_, String>(0)?.into(),
        head: Sequence(row.get::<_, i64>(1)?.cast_unsigned()),
        card: row.get(2)?,
    })
}
