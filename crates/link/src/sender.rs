//! The proxy's end: an outbox of frames that the relay has not acknowledged.
//!
//! Not here: how large an outbox may grow (its owner checks [`Sender::len`] and pauses the
//! agents).

use std::collections::VecDeque;

/// A frame with its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbered<F> {
    /// From 1, rising.
    pub number: u64,
    /// The frame.
    pub frame: F,
}

/// Numbers frames and keeps them until they are acknowledged.
#[derive(Debug, Clone)]
pub struct Sender<F> {
    /// Everything up to here is on the relay's disk.
    acked: u64,
    /// The number that the next frame gets.
    next: u64,
    /// Numbered after `acked`, rising.
    outbox: VecDeque<Numbered<F>>,
}

impl<F> Default for Sender<F> {
    fn default() -> Self {
        Self { acked: 0, next: 1, outbox: VecDeque::new() }
    }
}

impl<F> Sender<F> {
    /// As a journal remembers it. Frames that `acked` covers, and any that do not rise, are left
    /// out: they are leftovers of a journal that was cut while it was being shortened.
    pub fn restore(acked: u64, frames: impl IntoIterator<Item = Numbered<F>>) -> Self {
        let mut sender = Self { acked, next: acked.saturating_add(1), outbox: VecDeque::new() };
        for numbered in frames {
            if numbered.number >= sender.next {
                sender.next = numbered.number.saturating_add(1);
                sender.outbox.push_back(numbered);
            }
        }
        sender
    }

    /// The number that the next frame will have, for frames that carry their number inside.
    pub fn next_number(&self) -> u64 {
        self.next
    }

    /// Takes a frame in and gives its number. No link comes near the highest number there is:
    /// one that a damaged journal or a lying relay names must not make the next one overflow.
    pub fn push(&mut self, frame: F) -> u64 {
        let number = self.next;
        self.next = self.next.saturating_add(1);
        self.outbox.push_back(Numbered { number, frame });
        number
    }

    /// The relay says how far it ever heard this numbering. Should that be further than this end
    /// remembers (its journal came from a backup), those numbers are never given again.
    pub fn resume(&mut self, received: u64) {
        self.next = self.next.max(received.saturating_add(1));
    }

    /// The relay has everything up to `through`. Returns whether that is news; a word about frames
    /// that were never sent covers only those that were.
    pub fn ack(&mut self, through: u64) -> bool {
        let through = through.min(self.next - 1);
        if through <= self.acked {
            return false;
        }
        self.acked = through;
        while self.outbox.front().is_some_and(|first| first.number <= through) {
            self.outbox.pop_front();
        }
        true
    }

    /// What a new connection must carry again, in order.
    pub fn unacked(&self) -> impl Iterator<Item = &Numbered<F>> {
        self.outbox.iter()
    }

    /// How far the relay has everything.
    pub fn acked(&self) -> u64 {
        self.acked
    }

    /// How many frames wait for the relay's word.
    pub fn len(&self) -> usize {
        self.outbox.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.outbox.is_empty()
    }
}
