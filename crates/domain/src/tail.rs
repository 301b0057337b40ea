//! `Tail`: joins the ledger and the live events without gaps and without repeats.
//!
//! A tail has a cursor: the last event it showed. A live event that follows the cursor is shown,
//! an older one is a repeat, and a newer one means that something was missed. Everything up to a
//! newer event is then read from the ledger. Nothing is buffered meanwhile, so a tail costs the
//! same whether it is one event behind or a million.
//!
//! Not here: reading the ledger (`store`), the queue that overflows (`relay`).

use crate::Sequence;

/// The place of one watcher in one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail {
    cursor: Sequence,
    /// Known to be in the ledger and not shown yet.
    behind: Option<Sequence>,
}

/// What to do with a live event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Live {
    /// It is the next one.
    Show,
    /// It was shown, or will be read from the ledger.
    Skip,
    /// It is not the next one: read the ledger after the cursor.
    Read,
}

impl Tail {
    /// A watcher that has seen everything up to `cursor`.
    pub fn new(cursor: Sequence) -> Self {
        Self { cursor, behind: None }
    }

    /// A watcher that must read up to `head` before it is live. Live already if it is there.
    pub fn joining(cursor: Sequence, head: Sequence) -> Self {
        Self { cursor, behind: (head > cursor).then_some(head) }
    }

    /// The last event that was shown.
    pub fn cursor(&self) -> Sequence {
        self.cursor
    }

    /// Whether the ledger must be read before live events are shown.
    pub fn is_behind(&self) -> bool {
        self.behind.is_some()
    }

    /// A live event arrives.
    pub fn on_live(&mut self, sequence: Sequence) -> Live {
        if sequence <= self.cursor {
            return Live::Skip;
        }
        if let Some(behind) = self.behind.as_mut() {
            *behind = sequence.max(*behind);
            return Live::Skip;
        }
        if sequence == self.cursor.next() {
            self.cursor = sequence;
            return Live::Show;
        }
        self.behind = Some(sequence);
        Live::Read
    }

    /// Live events were missed; the ledger's head is `head`. Returns whether to read.
    pub fn on_lag(&mut self, head: Sequence) -> bool {
        if head > self.cursor {
            self.behind = Some(self.behind.map_or(head, |behind| behind.max(head)));
        }
        self.is_behind()
    }

    /// An event was read from the ledger. Returns whether to show it.
    pub fn on_read(&mut self, sequence: Sequence) -> bool {
        if sequence <= self.cursor {
            return false;
        }
        self.cursor = sequence;
        if self.behind.is_some_and(|behind| behind <= sequence) {
            self.behind = None;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_events_are_shown_once_and_in_order() {
        let mut tail = Tail::new(Sequence(4));
        assert_eq!(tail.on_live(Sequence(4)), Live::Skip);
        assert_eq!(tail.on_live(Sequence(5)), Live::Show);
        assert_eq!(tail.on_live(Sequence(5)), Live::Skip);
        assert_eq!(tail.on_live(Sequence(6)), Live::Show);
    }

    #[test]
    fn a_gap_is_read_up_to_the_newest_event_known() {
        let mut tail = Tail::new(Sequence(1));
        assert_eq!(tail.on_live(Sequence(3)), Live::Read);
        assert_eq!(tail.on_live(Sequence(4)), Live::Skip);
        for n in 2..=4 {
            assert!(tail.is_behind());
            assert!(tail.on_read(Sequence(n)));
        }
        assert!(!tail.is_behind());
        assert_eq!(tail.on_live(Sequence(4)), Live::Skip);
        assert_eq!(tail.on_live(Sequence(5)), Live::Show);
    }

    #[test]
    fn a_watcher_that_joins_behind_reads_first() {
        let mut tail = Tail::joining(Sequence(0), Sequence(2));
        assert_eq!(tail.on_live(Sequence(3)), Live::Skip);
        assert!(tail.on_read(Sequence(1)));
        assert!(tail.on_read(Sequence(2)));
        assert!(tail.is_behind(), "3 went by while it was reading");
        assert!(tail.on_read(Sequence(3)));
        assert!(!tail.is_behind());
    }

    /// Every interleaving of a short history, reads of any size and lags: each event once.
    // spec: native/history_delta.3
    #[test]
    fn whatever_the_interleaving_each_event_is_shown_once() {
        for plan in 0..4_u32.pow(8) {
            let (mut tail, mut shown, mut head) = (Tail::new(Sequence(0)), vec![], 0);
            for step in 0..8 {
                match plan / 4_u32.pow(step) % 4 {
                    0 => {
                        head += 1;
                        if tail.on_live(Sequence(head)) == Live::Show {
                            shown.push(head);
                        }
                    }
                    // Recorded, but lost on its way to this watcher.
                    1 => head += 1,
                    2 => {
                        let next = tail.cursor().next();
                        if tail.is_behind() && next.0 <= head && tail.on_read(next) {
                            shown.push(next.0);
                        }
                    }
                    _ => {
                        tail.on_lag(Sequence(head));
                    }
                }
            }
            tail.on_lag(Sequence(head));
            while tail.is_behind() {
                let next = tail.cursor().next();
                assert!(tail.on_read(next));
                shown.push(next.0);
            }
            assert_eq!(shown, (1..=head).collect::<Vec<_>>(), "plan {plan}");
        }
    }
}
