//! Remembers across restarts which open questions were already notified.
//!
//! Open questions are in the ledger. That somebody was notified is in no event, because it concerns
//! only the notifier; it is kept here, as one small value beside the ledger.
//!
//! **Invariant**: a notification is noted after a target accepted it. A crash in between sends it
//! twice; it is never lost because it was noted too early.
//!
//! Not here: what is sent and when (`desk`).

use relay::Tasks;
use store::{Fault, Vault};
use tokio::sync::watch;

use super::desk::Asked;

/// Under this name it is kept.
const KEY: &str = "notify.told";

/// Notes what was told.
pub(super) struct Memory {
    newest: watch::Sender<Vec<Asked>>,
}

impl Memory {
    /// With what was noted before.
    pub(super) fn open(
        mut vault: Box<dyn Vault>,
        tasks: &Tasks,
    ) -> Result<(Self, Vec<Asked>), Fault> {
        let kept = vault.meta(KEY)?.map(|bytes| read(&bytes)).unwrap_or_default();
        let (newest, notes) = watch::channel(kept.clone());
        tasks.spawn("notify memory", write_down(vault, notes));
        Ok((Self { newest }, kept))
    }

    /// This is all of it now.
    pub(super) fn keep<'a>(&self, told: impl Iterator<Item = &'a Asked> + Clone) {
        self.newest.send_if_modified(|kept| {
            let changed = !told.clone().eq(kept.iter());
            if changed {
                *kept = told.cloned().collect();
            }
            changed
        });
    }
}

/// The newest wins: what was overtaken is never written.
async fn write_down(mut vault: Box<dyn Vault>, mut notes: watch::Receiver<Vec<Asked>>) {
    while notes.changed().await.is_ok() {
        let bytes = written(&notes.borrow_and_update());
        // The vault waits for the disk.
        let work = tokio::task::spawn_blocking(move || {
            let result = vault.set_meta(KEY, &bytes);
            (vault, result)
        });
        let Ok((back, result)) = work.await else { return };
        vault = back;
        if let Err(fault) = result {
            tracing::warn!("could not save which questions were notified: {fault}");
        }
    }
}

fn written(told: &[Asked]) -> Vec<u8> {
    let names: Vec<_> =
        told.iter().map(|(session, prompt)| (session.as_str(), prompt.as_str())).collect();
    serde_json::to_vec(&names).unwrap_or_default()
}

/// What cannot be read was told to nobody.
fn read(bytes: &[u8]) -> Vec<Asked> {
    let names: Vec<(String, String)> = serde_json::from_slice(bytes).unwrap_or_default();
    let mut told: Vec<Asked> =
        names.into_iter().map(|(session, prompt)| (session.into(), prompt.into())).collect();
    told.sort();
    told
}
