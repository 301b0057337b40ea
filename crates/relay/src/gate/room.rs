//! Room: how much data from one peer may wait for its commit.
//!
//! Inboxes are bounded in commands; this bounds the bytes of the large ones among them. As with a
//! full inbox, a peer that sends more waits until its earlier data is recorded or refused.
//!
//! Not here: how often a peer may send (`throttle`), what the ring holds (`hub`).

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Frames up to this size take no room: the inboxes' bounds are enough for them.
const SMALL_BYTES_MAX: usize = 4 << 10;
/// The bytes of one peer's larger frames that may wait. A single larger one takes all of it.
const WAITING_BYTES_MAX: u32 = 4 << 20;

/// The room of one peer.
#[derive(Debug)]
pub(super) struct Room(Arc<Semaphore>);

/// Room that is taken until this and its clones are dropped.
pub(crate) type Taken = Option<Arc<OwnedSemaphorePermit>>;

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(WAITING_BYTES_MAX as usize)))
    }
}

impl Room {
    /// Waits until there is room for a frame. Safe to drop before it is ready.
    pub(super) async fn take(&self, frame_bytes: usize) -> Taken {
        if frame_bytes <= SMALL_BYTES_MAX {
            return None;
        }
        // Fails only when closed, which it never is.
        self.0.clone().acquire_many_owned(needed(frame_bytes)).await.ok().map(Arc::new)
    }

    /// Takes room for a frame if there is any.
    pub(super) fn try_take(&self, frame_bytes: usize) -> Result<Taken, Full> {
        if frame_bytes <= SMALL_BYTES_MAX {
            return Ok(None);
        }
        let taken = self.0.clone().try_acquire_many_owned(needed(frame_bytes));
        taken.map(|taken| Some(Arc::new(taken))).map_err(|_| Full)
    }
}

/// There is no room now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

fn needed(frame_bytes: usize) -> u32 {
    u32::try_from(frame_bytes).unwrap_or(u32::MAX).min(WAITING_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    const MIB: usize = 1 << 20;

    fn now<T>(future: impl Future<Output = T>) -> Option<T> {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(ready) => Some(ready),
            Poll::Pending => None,
        }
    }

    #[test]
    fn frames_beyond_the_room_wait_until_an_earlier_one_is_done() {
        let room = Room::default();
        let first = now(room.take(3 * MIB)).unwrap();
        assert!(now(room.take(2 * MIB)).is_none());
        drop(first);
        assert!(now(room.take(2 * MIB)).is_some());
    }

    #[test]
    fn small_frames_never_wait() {
        let room = Room::default();
        let _all = now(room.take(4 * MIB)).unwrap();
        assert!(now(room.take(SMALL_BYTES_MAX)).is_some());
    }

    #[test]
    fn a_frame_larger_than_the_room_passes_alone() {
        let room = Room::default();
        let huge = now(room.take(9 * MIB)).unwrap();
        assert!(now(room.take(MIB)).is_none());
        drop(huge);
        assert!(now(room.take(MIB)).is_some());
    }
}
