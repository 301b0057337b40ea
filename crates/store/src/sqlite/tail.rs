//! The newest commits, in memory: those that are in the journal but not yet in a segment.
//!
//! Readers share it and look here first, then in the database. An entry that is folded in between
//! is then found twice, never missed. Only the writer changes it, and only after the change is
//! durable.
//!
//! Not here: moving it into segments (`fold`).

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use domain::{MessageId, SessionId};

use super::pack::{Content, Damaged, Piece, Slice};

/// The tail, shared between the writer and its readers. Guards are held for a copy of a few
/// handles, never across a query, except by the writer while it folds (reading only).
#[derive(Debug, Clone, Default)]
pub(super) struct SharedTail(Arc<RwLock<Tail>>);

impl SharedTail {
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Tail> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, Tail> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
pub(super) struct Tail {
    pub(super) streams: BTreeMap<SessionId, TailStream>,
    /// What came since the last fold.
    pub(super) size_bytes: usize,
    pub(super) rows: usize,
    /// Every row of the journal, those that could not be folded included.
    pub(super) positions: Vec<i64>,
    /// Whether any stream here is damaged, so that commits need not look for each of theirs.
    pub(super) has_damage: bool,
    /// The earliest of the latest times of its pieces.
    pub(super) at_oldest: Option<u64>,
}

#[derive(Debug)]
pub(super) struct TailStream {
    pub(super) number: u64,
    pub(super) head: u64,
    /// Continue each other up to the head.
    pub(super) pieces: Vec<Piece>,
    pub(super) sends: BTreeMap<MessageId, Slice>,
    pub(super) snapshot: Option<(u64, Slice)>,
    pub(super) card: Option<Slice>,
    /// What is wrong with the stream. Its rows stay in the journal, and nothing is added.
    pub(super) damage: Option<String>,
    /// The rows that it is in.
    pub(super) positions: Vec<i64>,
}

impl TailStream {
    pub(super) fn new(number: u64, head: u64) -> Self {
        Self {
            number,
            head,
            pieces: vec![],
            sends: BTreeMap::new(),
            snapshot: None,
            card: None,
            damage: None,
            positions: vec![],
        }
    }

    fn absorb(&mut self, position: i64, content: Result<Content, Damaged>) {
        self.positions.push(position);
        if self.damage.is_some() {
            return;
        }
        let Ok(content) = content else {
            self.damage = Some("a checksum in the journal is wrong".into());
            return;
        };
        if let Some(piece) = content.piece {
            if piece.first != self.head + 1 {
                self.damage = Some(format!("the events after {} are missing", self.head));
                return;
            }
            self.head = piece.last();
            self.pieces.push(piece);
        }
        self.sends.extend(content.sends);
        self.snapshot = content.snapshot.or(self.snapshot.take());
        self.card = content.card.or(self.card.take());
    }
}

impl Tail {
    /// Notes a durable row; its sections follow by [`Tail::absorb`].
    pub(super) fn begin_row(&mut self, position: i64, size_bytes: usize) {
        self.positions.push(position);
        self.size_bytes += size_bytes;
        self.rows += 1;
    }

    /// Adds one section of the newest row. `head` is where the stream stood without the tail.
    pub(super) fn absorb(
        &mut self,
        stream: &SessionId,
        (number, head): (u64, u64),
        position: i64,
        content: Result<Content, Damaged>,
    ) {
        if let Ok(Content { piece: Some(piece), .. }) = &content {
            let oldest = self.at_oldest.map_or(piece.at_last, |at| at.min(piece.at_last));
            self.at_oldest = Some(oldest);
        }
        if let Some(held) = self.streams.get_mut(stream) {
            held.absorb(position, content);
            self.has_damage |= held.damage.is_some();
            return;
        }
        let mut added = TailStream::new(number, head);
        added.absorb(position, content);
        self.has_damage |= added.damage.is_some();
        self.streams.insert(stream.clone(), added);
    }

    pub(super) fn damage(&self, stream: &SessionId) -> Option<&str> {
        if !self.has_damage {
            return None;
        }
        self.streams.get(stream)?.damage.as_deref()
    }

    /// After a fold: only what could not be folded stays.
    pub(super) fn keep_damaged(&mut self) {
        self.streams.retain(|_, held| held.damage.is_some());
        self.has_damage = !self.streams.is_empty();
        self.positions = self.streams.values().flat_map(|held| held.positions.clone()).collect();
        self.positions.sort_unstable();
        self.positions.dedup();
        self.size_bytes = 0;
        self.rows = 0;
        self.at_oldest = None;
    }
}
