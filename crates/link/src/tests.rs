//! Both ends together, and against a relay that commits in any order.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use crate::{IN_FLIGHT_MAX, Numbered, Receiver, Sender, Taken};

/// What may happen next.
#[derive(Debug, Clone)]
enum Step {
    /// The proxy has something to say about this session.
    Say(u8),
    /// The connection carries some frames to the relay.
    Carry(usize),
    /// The relay commits one of the frames on their way to its disk.
    Commit(usize),
    /// The relay's acknowledgement reaches the proxy.
    Ack,
    /// The connection breaks; a new one begins.
    Reconnect,
    /// The proxy starts again from its journal.
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u8..3).prop_map(Step::Say),
        4 => (1usize..5).prop_map(Step::Carry),
        4 => (0usize..8).prop_map(Step::Commit),
        2 => Just(Step::Ack),
        1 => Just(Step::Reconnect),
        1 => Just(Step::Restart),
    ]
}

/// A relay that recognises repeats as sessions do: by the highest number heard for each.
#[derive(Default)]
struct World {
    sender: Sender<(u8, u64)>,
    said: BTreeMap<u8, Vec<u64>>,
    wire: VecDeque<Numbered<(u8, u64)>>,
    receiver: Receiver,
    flying: Vec<Numbered<(u8, u64)>>,
    heard: BTreeMap<u8, u64>,
    committed: BTreeMap<u8, Vec<u64>>,
    count: u64,
}

impl World {
    fn step(&mut self, step: &Step) {
        match step {
            Step::Say(session) => {
                self.count += 1;
                self.said.entry(*session).or_default().push(self.count);
                let frame = (*session, self.count);
                let number = self.sender.push(frame);
                self.wire.push_back(Numbered { number, frame });
            }
            Step::Carry(many) => {
                for _ in 0..*many {
                    let Some(numbered) = self.wire.pop_front() else { return };
                    assert_eq!(self.receiver.take(numbered.number), Taken::Fresh);
                    self.flying.push(numbered);
                }
            }
            Step::Commit(which) => self.commit(*which),
            Step::Ack => {
                if let Some(through) = self.receiver.take_ack() {
                    self.sender.ack(through);
                }
            }
            Step::Reconnect => self.reconnect(),
            Step::Restart => {
                let journal: Vec<_> = self.sender.unacked().cloned().collect();
                self.sender = Sender::restore(self.sender.acked(), journal);
                self.reconnect();
            }
        }
    }

    /// One session's frames commit in order; different sessions in any.
    fn commit(&mut self, which: usize) {
        if self.flying.is_empty() {
            return;
        }
        let (session, _) = self.flying[which % self.flying.len()].frame;
        let first = self.flying.iter().position(|f| f.frame.0 == session).unwrap();
        let numbered = self.flying.remove(first);
        let heard = self.heard.entry(session).or_default();
        if numbered.number > *heard {
            *heard = numbered.number;
            self.committed.entry(session).or_default().push(numbered.frame.1);
        }
        self.receiver.done(numbered.number);
    }

    /// What was on the wire is gone; what the relay had taken in still commits.
    fn reconnect(&mut self) {
        while !self.flying.is_empty() {
            self.commit(0);
        }
        self.receiver = Receiver::default();
        self.wire = self.sender.unacked().cloned().collect();
    }
}

proptest! {
    #[test]
    fn no_interleaving_loses_or_doubles_a_frame(steps in prop::collection::vec(step(), 0..200)) {
        let mut world = World::default();
        for step in &steps {
            world.step(step);
        }
        // In the end everything is carried, committed and acknowledged.
        world.step(&Step::Reconnect);
        world.step(&Step::Carry(usize::MAX));
        while !world.flying.is_empty() {
            world.step(&Step::Commit(0));
        }
        world.step(&Step::Ack);
        prop_assert_eq!(&world.committed, &world.said);
        prop_assert!(world.sender.is_empty());
    }

    #[test]
    fn the_acknowledgement_never_runs_ahead_of_the_disk(order in Just((1u64..40).collect::<Vec<_>>()).prop_shuffle()) {
        let mut receiver = Receiver::default();
        for number in 1..40 {
            receiver.take(number);
        }
        let mut done = vec![];
        for number in order {
            receiver.done(number);
            done.push(number);
            if let Some(through) = receiver.take_ack() {
                prop_assert!((1..=through).all(|n| done.contains(&n)));
                prop_assert!(!done.contains(&(through + 1)));
            }
        }
        prop_assert_eq!(receiver.watermark(), Some(39));
    }
}

#[test]
fn an_acknowledgement_is_told_once() {
    let mut receiver = Receiver::default();
    receiver.take(7);
    assert_eq!(receiver.take_ack(), None);
    receiver.done(7);
    assert_eq!(receiver.take_ack(), Some(7));
    assert_eq!(receiver.take_ack(), None);
}

#[test]
fn a_number_that_does_not_rise_is_stale() {
    let mut receiver = Receiver::default();
    assert_eq!(receiver.take(0), Taken::Stale);
    assert_eq!(receiver.take(3), Taken::Fresh);
    assert_eq!(receiver.take(3), Taken::Stale);
    assert_eq!(receiver.take(2), Taken::Stale);
    assert_eq!(receiver.take(9), Taken::Fresh);
}

#[test]
fn at_the_bound_the_receiver_is_full_until_something_is_done() {
    let mut receiver = Receiver::default();
    for number in 1..=IN_FLIGHT_MAX as u64 {
        assert!(!receiver.is_full());
        receiver.take(number);
    }
    assert!(receiver.is_full());
    receiver.done(5);
    assert!(!receiver.is_full());
}

#[test]
fn an_old_journal_never_gives_a_number_twice() {
    let mut sender = Sender::restore(4, [Numbered { number: 5, frame: 'a' }]);
    sender.resume(11);
    assert_eq!(sender.push('b'), 12);
    let waiting: Vec<_> = sender.unacked().map(|n| (n.number, n.frame)).collect();
    assert_eq!(waiting, [(5, 'a'), (12, 'b')]);
}

#[test]
fn the_highest_number_there_is_does_not_make_the_next_one_overflow() {
    let mut sender = Sender::default();
    sender.resume(u64::MAX);
    assert_eq!(sender.push('a'), u64::MAX);
    let mut sender = Sender::restore(7, [Numbered { number: u64::MAX, frame: 'a' }]);
    sender.push('b');
    assert_eq!((sender.acked(), sender.len()), (7, 2));
}

#[test]
fn leftovers_of_a_shortened_journal_are_left_out() {
    let frames = [2, 3, 5, 4].map(|number| Numbered { number, frame: () });
    let sender = Sender::restore(2, frames);
    let numbers: Vec<_> = sender.unacked().map(|n| n.number).collect();
    assert_eq!(numbers, [3, 5]);
    assert_eq!(sender.next_number(), 6);
}

#[test]
fn an_acknowledgement_of_what_was_never_sent_covers_only_what_was() {
    let mut sender = Sender::default();
    sender.push(());
    assert!(sender.ack(99));
    assert_eq!(sender.acked(), 1);
    assert_eq!(sender.push(()), 2);
}
