//! Erases a stream permanently.
//!
//! Not here: forgetting old events of a stream that stays (`retain`).

use domain::SessionId;
use rusqlite::{OptionalExtension, TransactionBehavior};

use super::SqliteLedger;
use crate::Fault;

impl SqliteLedger {
    /// Pages are overwritten with zeros, and the log that still holds their contents is emptied.
    pub(super) fn erase_stream(&mut self, stream: &SessionId) -> Result<(), Fault> {
        self.connection()?.pragma_update(None, "secure_delete", true)?;
        let erased = self.erase_rows(stream);
        self.known.remove(stream);
        self.connection()?.pragma_update(None, "secure_delete", false)?;
        erased?;
        self.checkpoint()
    }

    fn erase_rows(&mut self, stream: &SessionId) -> Result<(), Fault> {
        self.fold(Some(stream))?;
        let transaction =
            self.connection()?.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let number: Option<i64> = transaction
            .query_row("SELECT number FROM streams WHERE id = ?", [stream.as_str()], |row| {
                row.get(0)
            })
            .optional()?;
        for table in ["segments", "sends", "snapshots"] {
            transaction.execute(&format!("DELETE FROM {table} WHERE stream = ?"), [number])?;
        }
        transaction.execute("DELETE FROM streams WHERE number = ?", [number])?;
        transaction.commit()?;
        Ok(())
    }
}
