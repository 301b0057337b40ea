//! The bytes inside journal rows and segments.
//!
//! A journal row holds a whole commit: a table of contents and one section per append. A segment
//! holds a range of one stream. Both hold entries in the same form, so that folding copies them.
//! Every section, table and segment has its own checksum, so damage is detected and located.
//!
//! Not here: SQL (`journal`, `fold`), the copy in memory (`tail`).

use std::ops::Range;
use std::sync::Arc;

use domain::{MessageId, Sequence, Timestamp};

use crate::{Append, Entry};

/// The bytes are not what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Damaged;

/// A stretch of a shared journal row.
#[derive(Debug, Clone)]
pub(super) struct Slice {
    row: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl Slice {
    pub(super) fn bytes(&self) -> &[u8] {
        self.row.get(self.range.clone()).unwrap_or_default()
    }
}

/// Entries of one append, still in their row.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) first: u64,
    pub(super) count: u64,
    /// The latest time in it.
    pub(super) at_last: u64,
    pub(super) entries: Slice,
}

impl Piece {
    /// The number of its last entry.
    pub(super) fn last(&self) -> u64 {
        // Their sum may be one more than there are numbers; `read_section` checked the rest.
        self.first + (self.count - 1)
    }
}

/// One append as it comes back from a row.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) stream: u64,
    /// `Err` when its checksum is wrong: only this stream is hurt.
    pub(super) content: Result<Content, Damaged>,
}

/// What a section holds.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) piece: Option<Piece>,
    pub(super) sends: Vec<(MessageId, Slice)>,
    pub(super) snapshot: Option<(u64, Slice)>,
    pub(super) card: Option<Slice>,
}

/// A journal row in the making.
#[derive(Debug, Default)]
pub(super) struct Row {
    contents: Vec<u8>,
    pub(super) body: Vec<u8>,
}

impl Row {
    pub(super) fn push(&mut self, stream: u64, append: &Append) {
        let start = self.body.len();
        write_section(&mut self.body, append);
        let section = self.body.get(start..).unwrap_or_default();
        write_number(&mut self.contents, stream);
        write_number(&mut self.contents, section.len() as u64);
        self.contents.extend(crc32fast::hash(section).to_le_bytes());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.contents.is_empty()
    }

    /// The table of contents with its checksum, and the sections.
    pub(super) fn finish(mut self) -> (Vec<u8>, Arc<Vec<u8>>) {
        let checksum = crc32fast::hash(&self.contents);
        self.contents.extend(checksum.to_le_bytes());
        (self.contents, Arc::new(self.body))
    }
}

fn write_section(out: &mut Vec<u8>, append: &Append) {
    write_number(out, append.entries.len() as u64);
    if let Some(first) = append.entries.first() {
        let at_last = append.entries.iter().map(|entry| entry.at.0).max().unwrap_or_default();
        let size: usize = append.entries.iter().map(entry_size).sum();
        out.reserve(size + 32);
        write_number(out, first.sequence.0);
        write_number(out, at_last);
        write_number(out, size as u64);
        for entry in &append.entries {
            write_number(out, entry.at.0);
            write_bytes(out, &entry.body);
        }
    }
    write_number(out, append.sends.len() as u64);
    for (id, state) in &append.sends {
        write_bytes(out, id.as_str().as_bytes());
        write_bytes(out, state);
    }
    match &append.snapshot {
        Some(snapshot) => {
            write_number(out, 1);
            write_number(out, snapshot.sequence.0);
            write_bytes(out, &snapshot.body);
        }
        None => write_number(out, 0),
    }
    match &append.card {
        Some(card) => {
            write_number(out, 1);
            write_bytes(out, card);
        }
        None => write_number(out, 0),
    }
}

fn entry_size(entry: &Entry) -> usize {
    number_size(entry.at.0) + number_size(entry.body.len() as u64) + entry.body.len()
}

/// The sections of a row. `Err` when the table of contents itself is damaged.
pub(super) fn read_row(contents: &[u8], body: &Arc<Vec<u8>>) -> Result<Vec<Section>, Damaged> {
    let (table, checksum) = contents.split_last_chunk::<4>().ok_or(Damaged)?;
    if crc32fast::hash(table) != u32::from_le_bytes(*checksum) {
        return Err(Damaged);
    }
    let mut table = Cursor { bytes: table, at: 0 };
    let mut sections = Vec::new();
    let mut start = 0_usize;
    while table.at < table.bytes.len() {
        let stream = table.number()?;
        let length = table.length()?;
        let checksum = table.take(4)?.first_chunk::<4>().copied().ok_or(Damaged)?;
        let end = start.checked_add(length).ok_or(Damaged)?;
        let intact = body
            .get(start..end)
            .is_some_and(|section| crc32fast::hash(section) == u32::from_le_bytes(checksum));
        let content = if intact { read_section(body, start..end) } else { Err(Damaged) };
        sections.push(Section { stream, content });
        start = end;
    }
    Ok(sections)
}

fn read_section(row: &Arc<Vec<u8>>, range: Range<usize>) -> Result<Content, Damaged> {
    let mut cursor = Cursor { bytes: row.get(..range.end).ok_or(Damaged)?, at: range.start };
    let slice = |range: Range<usize>| Slice { row: Arc::clone(row), range };
    let count = cursor.number()?;
    let mut piece = None;
    if count > 0 {
        let first = cursor.number()?;
        // The last entry has a number too.
        first.checked_add(count - 1).ok_or(Damaged)?;
        let at_last = cursor.number()?;
        let entries = slice(cursor.span()?);
        piece = Some(Piece { first, count, at_last, entries });
    }
    let mut sends = Vec::new();
    for _ in 0..cursor.number()? {
        let id = cursor.span()?;
        let id = std::str::from_utf8(row.get(id).ok_or(Damaged)?).map_err(|_| Damaged)?;
        sends.push((MessageId::from(id), slice(cursor.span()?)));
    }
    let mut snapshot = None;
    if cursor.number()? == 1 {
        snapshot = Some((cursor.number()?, slice(cursor.span()?)));
    }
    let mut card = None;
    if cursor.number()? == 1 {
        card = Some(slice(cursor.span()?));
    }
    Ok(Content { piece, sends, snapshot, card })
}

/// Walks packed entries.
pub(super) struct Entries<'a> {
    cursor: Cursor<'a>,
    next: u64,
}

/// One packed entry, not yet copied.
pub(super) struct EntryRef<'a> {
    pub(super) sequence: u64,
    pub(super) at: u64,
    pub(super) body: &'a [u8],
}

impl EntryRef<'_> {
    pub(super) fn to_entry(&self) -> Entry {
        Entry {
            sequence: Sequence(self.sequence),
            at: Timestamp(self.at),
            body: self.body.to_vec(),
        }
    }
}

impl<'a> Entries<'a> {
    pub(super) fn new(packed: &'a [u8], first: u64) -> Self {
        Self { cursor: Cursor { bytes: packed, at: 0 }, next: first }
    }

    /// Where the next entry begins.
    pub(super) fn offset(&self) -> usize {
        self.cursor.at
    }

    pub(super) fn next(&mut self) -> Result<Option<EntryRef<'a>>, Damaged> {
        if self.cursor.at >= self.cursor.bytes.len() {
            return Ok(None);
        }
        let at = self.cursor.number()?;
        let span = self.cursor.span()?;
        let body = self.cursor.bytes.get(span).ok_or(Damaged)?;
        let sequence = self.next;
        self.next = sequence.saturating_add(1);
        Ok(Some(EntryRef { sequence, at, body }))
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn number(&mut self) -> Result<u64, Damaged> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.at).ok_or(Damaged)?;
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Damaged)
    }

    fn length(&mut self) -> Result<usize, Damaged> {
        usize::try_from(self.number()?).map_err(|_| Damaged)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Damaged> {
        let end = self.at.checked_add(length).ok_or(Damaged)?;
        let taken = self.bytes.get(self.at..end).ok_or(Damaged)?;
        self.at = end;
        Ok(taken)
    }

    /// A length and that many bytes; gives where they lie.
    fn span(&mut self) -> Result<Range<usize>, Damaged> {
        let length = self.length()?;
        self.take(length)?;
        Ok(self.at - length..self.at)
    }
}

fn write_number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

fn number_size(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    write_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Epoch, Snapshot};

    fn append() -> Append {
        let entries = (1..=3_u64).map(|number| Entry {
            sequence: Sequence(number),
            at: Timestamp(1 << (number * 7)),
            body: vec![7; 130 * usize::try_from(number).unwrap()],
        });
        Append {
            entries: entries.collect(),
            sends: vec![("m1".into(), b"queued".to_vec())],
            snapshot: Some(Snapshot { sequence: Sequence(2), body: vec![] }),
            card: Some(b"card".to_vec()),
            ..Append::new("abc".into(), Epoch(1))
        }
    }

    #[test]
    fn a_row_gives_back_what_was_put_in() {
        let mut row = Row::default();
        row.push(300, &append());
        row.push(7, &Append::new("bcd".into(), Epoch(1)));
        let (contents, body) = row.finish();
        let sections = read_row(&contents, &body).unwrap();
        assert_eq!(sections.iter().map(|it| it.stream).collect::<Vec<_>>(), [300, 7]);
        let content = sections[0].content.as_ref().unwrap();
        let piece = content.piece.as_ref().unwrap();
        assert_eq!((piece.first, piece.last(), piece.at_last), (1, 3, 1 << 21));
        let mut entries = Entries::new(piece.entries.bytes(), piece.first);
        let mut found = vec![];
        while let Some(entry) = entries.next().unwrap() {
            found.push(entry.to_entry());
        }
        assert_eq!(found, append().entries);
        assert_eq!(content.sends[0].1.bytes(), b"queued");
        assert_eq!(content.snapshot.as_ref().unwrap().0, 2);
        assert_eq!(content.card.as_ref().unwrap().bytes(), b"card");
        assert!(sections[1].content.as_ref().unwrap().piece.is_none());
    }

    #[test]
    fn an_entry_may_have_the_last_number_that_there_is() {
        let mut row = Row::default();
        let entries = vec![Entry { sequence: Sequence(u64::MAX), at: Timestamp(1), body: vec![7] }];
        row.push(1, &Append { entries, ..Append::new("abc".into(), Epoch(1)) });
        let (contents, body) = row.finish();
        let sections = read_row(&contents, &body).unwrap();
        let piece = sections[0].content.as_ref().unwrap().piece.as_ref().unwrap();
        assert_eq!((piece.first, piece.last()), (u64::MAX, u64::MAX));
    }

    #[test]
    fn a_wrong_byte_hurts_its_own_section_only() {
        let mut row = Row::default();
        row.push(1, &append());
        row.push(2, &append());
        let (contents, body) = row.finish();
        let mut broken = body.to_vec();
        broken[40] ^= 1;
        let sections = read_row(&contents, &Arc::new(broken)).unwrap();
        assert!(sections[0].content.is_err());
        assert!(sections[1].content.is_ok());
        let mut contents = contents;
        contents[0] ^= 1;
        assert!(read_row(&contents, &body).is_err());
    }
}
