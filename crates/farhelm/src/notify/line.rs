//! The queue of one target: short, with its own task, and a few attempts per notification.
//!
//! **Invariant**: nobody waits for a target. A notification that finds the queue full is counted,
//! and the next one that fits reports it.
//!
//! Not here: the attempt itself (`target`).

use std::time::Duration;

use relay::Tasks;
use server::clock;
use tokio::sync::mpsc;

use super::desk::Asked;
use super::notice::Notice;
use super::target::{Miss, Target};

/// Calls that wait for one target.
const CALLS_WAITING_MAX: usize = 32;
/// How long to wait after each attempt that failed but the last.
const PAUSES: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(25)];

/// The near end of the line.
pub(super) struct Line {
    calls: mpsc::Sender<Notice>,
    /// Calls that found the queue full since the last that did not.
    missed: u64,
}

impl Line {
    /// To a target; `taken` hears of each question that it was told.
    pub(super) fn open(target: Target, taken: mpsc::Sender<Asked>, tasks: &Tasks) -> Self {
        let (calls, waiting) = mpsc::channel(CALLS_WAITING_MAX);
        tasks.spawn("notify target", work(target, waiting, taken));
        Self { calls, missed: 0 }
    }

    /// Leaves a call, or counts it.
    pub(super) fn leave(&mut self, mut notice: Notice) {
        notice.add_left_out(self.missed);
        match self.calls.try_send(notice) {
            Ok(()) => self.missed = 0,
            Err(_) => self.missed += 1,
        }
    }
}

async fn work(target: Target, mut waiting: mpsc::Receiver<Notice>, taken: mpsc::Sender<Asked>) {
    let (name, mut is_down, mut lost) = (target.name(), false, 0);
    while let Some(mut notice) = waiting.recv().await {
        notice.add_left_out(lost);
        match insist(&target, &notice).await {
            Ok(()) => {
                if is_down {
                    tracing::info!("{name} works again");
                }
                (is_down, lost) = (false, 0);
                if let Some(asked) = notice.asked() {
                    let _ = taken.try_send(asked);
                }
            }
            Err(why) => {
                lost += 1;
                if is_down {
                    tracing::debug!("could still not notify {name}: {why}");
                } else {
                    let next = "; logged once until it works again (docs/notify.md)";
                    tracing::warn!("could not notify {name}: {why}{next}");
                }
                is_down = true;
            }
        }
    }
}

async fn insist(target: &Target, notice: &Notice) -> Result<(), String> {
    for pause in PAUSES {
        match target.tell(notice, clock::now().0 / 1_000).await {
            Ok(()) => return Ok(()),
            Err(Miss::Never(why)) => return Err(why),
            Err(Miss::Later(_)) => tokio::time::sleep(pause).await,
        }
    }
    match target.tell(notice, clock::now().0 / 1_000).await {
        Ok(()) => Ok(()),
        Err(Miss::Never(why) | Miss::Later(why)) => Err(why),
    }
}
