//! Work that can wait: folding, forgetting by age and size, and moving the write-ahead log into
//! the database.
//!
//! **Invariant**: a stream is only ever forgotten from its start, in whole segments, and never
//! beyond its snapshot.
//!
//! Not here: erasing a whole stream (`erase`).

use domain::Timestamp;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use super::{SqliteLedger, TAIL_FOLD_BYTES, TAIL_FOLD_ROWS, WAL_CHECKPOINT_BYTES};
use crate::{Fault, Retention};

/// Segments that one step of `maintain` forgets at most.
const FORGET_SEGMENTS_MAX: usize = 64;

impl SqliteLedger {
    pub(super) fn maintain_step(
        &mut self,
        now: Timestamp,
        retention: &Retention,
    ) -> Result<bool, Fault> {
        if self.fold_is_due(now, retention) {
            self.fold(None)?;
            return Ok(true);
        }
        if self.forget(now, retention)? {
            return Ok(true);
        }
        if self.tail.read().rows > 0 && is_large(self.connection()?, retention)? {
            // Only what is folded can be forgotten.
            self.fold(None)?;
            return Ok(true);
        }
        if self.wal_bytes >= WAL_CHECKPOINT_BYTES {
            self.checkpoint()?;
        }
        Ok(false)
    }

    fn fold_is_due(&self, now: Timestamp, retention: &Retention) -> bool {
        let tail = self.tail.read();
        let aged = retention.age_ms_max.is_some_and(|age_ms_max| {
            tail.at_oldest.is_some_and(|at| now.ms_since(Timestamp(at)) > age_ms_max)
        });
        aged || tail.size_bytes >= TAIL_FOLD_BYTES || tail.rows >= TAIL_FOLD_ROWS
    }

    /// True when something was forgotten, so that there may be more.
    fn forget(&mut self, now: Timestamp, retention: &Retention) -> Result<bool, Fault> {
        if *retention == Retention::default() {
            return Ok(false);
        }
        let transaction =
            self.connection()?.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut forgotten = 0;
        while forgotten < FORGET_SEGMENTS_MAX && forget_one(&transaction, now, retention)? {
            forgotten += 1;
        }
        transaction.commit()?;
        self.wal_bytes += forgotten * 4 * 4096;
        Ok(forgotten > 0)
    }

    /// Moves the log into the database, so that the next commit overwrites it from its start.
    /// Others need not call it: `maintain` and commits do when the log is large. Tests and
    /// simulations, whose logs never are, lose power in the middle of it.
    pub fn checkpoint(&mut self) -> Result<(), Fault> {
        let (log_pages, moved_pages): (i64, i64) =
            self.connection()?.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
                Ok((row.get(1)?, row.get(2)?))
            })?;
        // A reader in the middle of an old page holds the rest back until the next time.
        let left_pages = usize::try_from(log_pages - moved_pages).unwrap_or(0);
        self.wal_bytes = left_pages * 4096;
        Ok(())
    }
}

fn forget_one(
    transaction: &Transaction<'_>,
    now: Timestamp,
    retention: &Retention,
) -> Result<bool, Fault> {
    let oldest: Option<(i64, i64, i64, i64)> = transaction
        .prepare_cached(
            "SELECT segments.position, segments.stream, segments.last, segments.at_last
             FROM segments INDEXED BY segments_by_age
             CROSS JOIN streams ON streams.number = segments.stream
             CROSS JOIN snapshots ON snapshots.stream = segments.stream
             WHERE segments.first <= streams.first_kept AND segments.last <= snapshots.sequence
             ORDER BY segments.at_last LIMIT 1",
        )?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
        .optional()?;
    let Some((position, stream, last, at_last)) = oldest else {
        return Ok(false);
    };
    let age_ms = now.ms_since(Timestamp(at_last.cast_unsigned()));
    let aged = retention.age_ms_max.is_some_and(|age_ms_max| age_ms > age_ms_max);
    if !aged && !is_large(transaction, retention)? {
        return Ok(false);
    }
    transaction.prepare_cached("DELETE FROM segments WHERE position = ?")?.execute([position])?;
    transaction
        .prepare_cached("UPDATE streams SET first_kept = ? WHERE number = ?")?
        .execute([last + 1, stream])?;
    Ok(true)
}

/// Pages in use: those that were freed are used again before the file grows.
fn is_large(connection: &Connection, retention: &Retention) -> Result<bool, Fault> {
    let Some(size_bytes_max) = retention.size_bytes_max else {
        return Ok(false);
    };
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let pages = pragma("page_count")? - pragma("freelist_count")?;
    Ok((pages * pragma("page_size")?).cast_unsigned() > size_bytes_max)
}
