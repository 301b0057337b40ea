//! How long a visitor's large frames take room: until everything that was asked because of them is
//! answered or recorded.
//!
//! A dialect may hold a frame back until an earlier one is answered, and then send several
//! requests at once. Such a frame keeps its room until the next request is made, and then until
//! that request is done. When no request is pending, nothing is held back.
//!
//! Not here: how much room there is (`room`).

use crate::gate::RoomTaken;
use crate::gate::room::{Full, Room};

/// Room that goes with something that was asked.
pub(super) type Carried = Vec<RoomTaken>;

#[derive(Debug, Default)]
pub(super) struct Budget {
    room: Room,
    /// What the frame or the answer in hand takes.
    in_hand: Carried,
    /// What frames take that led to nothing yet.
    held_back: Carried,
    /// What was asked and is not answered.
    asked: usize,
    /// Whether the frame in hand led to anything.
    has_asked: bool,
}

impl Budget {
    /// Takes room for a frame if there is any.
    pub(super) fn try_take(&self, frame_bytes: usize) -> Result<RoomTaken, Full> {
        self.room.try_take(frame_bytes)
    }

    /// Waits until there is room for a frame. Safe to drop before it is ready.
    pub(super) async fn take(&self, frame_bytes: usize) -> RoomTaken {
        self.room.take(frame_bytes).await
    }

    pub(super) fn begin_frame(&mut self, taken: RoomTaken) {
        self.in_hand = if taken.is_some() { vec![taken] } else { vec![] };
        self.has_asked = false;
    }

    pub(super) fn end_frame(&mut self) {
        if self.has_asked || self.asked == 0 {
            self.in_hand.clear();
        } else {
            self.held_back.append(&mut self.in_hand);
        }
    }

    /// Something is asked: what goes with it until it is answered.
    pub(super) fn ask(&mut self) -> Carried {
        self.asked += 1;
        self.has_asked = true;
        self.in_hand.append(&mut self.held_back);
        self.in_hand.clone()
    }

    /// Something that was asked is answered.
    pub(super) fn begin_answer(&mut self, carried: Carried) {
        self.asked = self.asked.saturating_sub(1);
        self.in_hand = carried;
    }

    pub(super) fn end_answer(&mut self) {
        self.in_hand.clear();
        if self.asked == 0 {
            self.held_back.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn a_frame_takes_room_until_what_it_led_to_is_answered() {
        let mut budget = Budget::default();
        let taken = budget.try_take(4 * MIB).unwrap();
        budget.begin_frame(taken);
        let first = budget.ask();
        budget.end_frame();
        assert!(budget.try_take(MIB).is_err());
        budget.begin_answer(first);
        let second = budget.ask();
        budget.end_answer();
        assert!(budget.try_take(MIB).is_err(), "the answer led to something else");
        budget.begin_answer(second);
        budget.end_answer();
        assert!(budget.try_take(4 * MIB).is_ok());
    }

    #[test]
    fn a_frame_that_is_held_back_takes_room_until_there_is_nothing_to_wait_for() {
        let mut budget = Budget::default();
        let taken = budget.try_take(MIB).unwrap();
        budget.begin_frame(taken);
        let first = budget.ask();
        budget.end_frame();
        let taken = budget.try_take(3 * MIB).unwrap();
        budget.begin_frame(taken);
        budget.end_frame();
        budget.begin_answer(first);
        let second = budget.ask();
        budget.end_answer();
        assert!(budget.try_take(MIB).is_err(), "it goes with what was asked next");
        budget.begin_answer(second);
        budget.end_answer();
        assert!(budget.try_take(4 * MIB).is_ok());
    }

    #[test]
    fn a_frame_that_leads_to_nothing_takes_no_room() {
        let mut budget = Budget::default();
        let taken = budget.try_take(4 * MIB).unwrap();
        budget.begin_frame(taken);
        budget.end_frame();
        assert!(budget.try_take(4 * MIB).is_ok());
    }
}
