//! Frames on their way to the connection.
//!
//! Invariant: the host's thread never waits here, and frames keep their order. What the connection
//! cannot take yet is queued; a connection whose queue is too long is dropped. Nothing is lost with
//! it: the outbox sends it again on the next one.
//!
//! Not here: writing to the socket, and dropping a connection that takes nothing for long
//! (`shell`).

use std::collections::VecDeque;

use bytes::Bytes;
use tokio::sync::mpsc::{self, error::TrySendError};

/// Bytes that may wait for a connection: as much as a full outbox, and what passes beside it.
const WAITING_BYTES_MAX: usize = 2 * crate::engine::OUTBOX_BYTES_MAX;

/// The frames of one connection.
#[derive(Debug)]
pub(super) struct Outgoing {
    connection: mpsc::Sender<Bytes>,
    waiting: VecDeque<Bytes>,
    waiting_bytes: usize,
}

/// More waits for a connection than may.
#[derive(Debug)]
pub(super) struct TooSlow;

impl Outgoing {
    pub(super) fn new(connection: mpsc::Sender<Bytes>) -> Self {
        Self { connection, waiting: VecDeque::new(), waiting_bytes: 0 }
    }

    /// Hands over what the connection takes now, and keeps the rest.
    pub(super) fn send(&mut self, frames: Vec<Bytes>) -> Result<(), TooSlow> {
        self.waiting_bytes += frames.iter().map(Bytes::len).sum::<usize>();
        self.waiting.extend(frames);
        while let Some(frame) = self.waiting.pop_front() {
            let bytes = frame.len();
            match self.connection.try_send(frame) {
                Ok(()) => self.waiting_bytes -= bytes,
                Err(TrySendError::Full(frame)) => {
                    self.waiting.push_front(frame);
                    break;
                }
                // A connection that is gone says so by its own event.
                Err(TrySendError::Closed(_)) => {
                    self.waiting.clear();
                    self.waiting_bytes = 0;
                }
            }
        }
        if self.waiting_bytes > WAITING_BYTES_MAX { Err(TooSlow) } else { Ok(()) }
    }

    /// Comes when there is room for a frame that waits, and never while none does.
    pub(super) async fn room(&self) {
        if self.waiting.is_empty() || self.connection.reserve().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn frames_that_have_to_wait_are_handed_over_in_their_order() {
        let (connection, mut taken) = mpsc::channel(2);
        let mut outgoing = Outgoing::new(connection);
        let frames = (0..5).map(|n: u8| Bytes::copy_from_slice(&[n]));
        outgoing.send(frames.collect()).unwrap();
        assert!(outgoing.room().now_or_never().is_none(), "there is no room");
        for n in 0..5 {
            assert_eq!(taken.recv().await.unwrap()[..], [n]);
            outgoing.send(vec![]).unwrap();
        }
        assert!(outgoing.room().now_or_never().is_none(), "nothing waits");
    }

    #[tokio::test]
    async fn a_connection_for_which_too_much_waits_is_given_up() {
        let (connection, _taken) = mpsc::channel(1);
        let mut outgoing = Outgoing::new(connection);
        let frame = Bytes::from(vec![0; WAITING_BYTES_MAX / 2 + 1]);
        outgoing.send(vec![frame.clone(), frame.clone()]).unwrap();
        assert!(outgoing.send(vec![frame]).is_err());
    }
}
