//! What must be true after all the killing.

use std::collections::{BTreeMap, BTreeSet};

use domain::session::delivery::{self, DELIVERY_UNKNOWN, State};
use domain::session::{Event, Recorded, runs, transcript};
use wire::native::{Form, encode_event};

use crate::kill::clients::Seen;

pub(crate) fn check(ledger: &[Recorded], received: &[String], people: &[Seen]) {
    for (index, recorded) in ledger.iter().enumerate() {
        assert_eq!(recorded.sequence.0, index as u64 + 1, "the ledger has a gap");
    }
    check_messages(ledger);
    check_runs(ledger);
    let fates = fates(ledger);
    check_agent(&fates, received);
    for person in people {
        for id in &person.sent {
            let fate = fates.get(id).unwrap_or_else(|| panic!("{id} is not in the ledger"));
            assert_ne!(*fate, State::Accepted, "{id} came to nothing");
        }
        check_view(ledger, person);
    }
}

fn fates(ledger: &[Recorded]) -> BTreeMap<String, State> {
    let mut fates = BTreeMap::new();
    for recorded in ledger {
        let Event::Delivery(event) = &recorded.event else { continue };
        let (id, state) = match event {
            delivery::Event::Accepted(send) => (&send.id, State::Accepted),
            delivery::Event::HandedOver { .. } => continue,
            delivery::Event::Delivered { id, .. } => (id, State::Delivered),
            delivery::Event::Failed { id, failure } => (id, State::Failed(failure.clone())),
        };
        fates.insert(id.to_string(), state);
    }
    fates
}

fn check_agent(fates: &BTreeMap<String, State>, received: &[String]) {
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for id in received {
        *times.entry(id).or_default() += 1;
    }
    for (id, count) in &times {
        assert_eq!(*count, 1, "{id} reached the agent more than once");
        assert!(fates.contains_key(*id), "the agent has {id}, the ledger does not");
    }
    for (id, fate) in fates {
        let reached = times.contains_key(id.as_str());
        match fate {
            State::Delivered => assert!(reached, "{id} is told as delivered and never arrived"),
            State::Failed(failure) if failure.code.as_str() != DELIVERY_UNKNOWN => {
                assert!(!reached, "{id} is told as failed ({}) and arrived", failure.code);
            }
            State::Failed(_) | State::Accepted => {}
        }
    }
}

fn check_messages(ledger: &[Recorded]) {
    let mut known = BTreeSet::new();
    for recorded in ledger {
        if let Event::Transcript(transcript::Event::Message(message)) = &recorded.event {
            assert!(known.insert(&message.id), "message {} is recorded twice", message.id);
        }
    }
}

/// What the agent got began a run or belongs to one, and every run is over: nobody sends any more.
fn check_runs(ledger: &[Recorded]) {
    let (mut begun, mut ended) = (vec![], BTreeSet::new());
    for recorded in ledger {
        match &recorded.event {
            Event::Delivery(delivery::Event::Delivered { id, run }) => {
                assert!(run.is_some(), "{id} was delivered and has no run");
            }
            Event::Run(runs::Event::Started { run, .. }) => begun.push(run),
            Event::Run(runs::Event::Ended { run, .. }) => {
                ended.insert(run);
            }
            Event::Delivery(
                delivery::Event::Accepted(_)
                | delivery::Event::HandedOver { .. }
                | delivery::Event::Failed { .. },
            )
            | Event::Transcript(_)
            | Event::Queue(_)
            | Event::Prompt(_)
            | Event::Control(_)
            | Event::Config(_)
            | Event::Status(_) => {}
        }
    }
    for run in begun {
        assert!(ended.contains(run), "{run} never ended");
    }
}

/// A resumed client has exactly the ledger: what is shown at all, once, in order, and each event
/// by one frame.
fn check_view(ledger: &[Recorded], person: &Seen) {
    let session = "any".into();
    let due: Vec<u64> = ledger
        .iter()
        .filter(|recorded| encode_event(&session, recorded, Form::Full).is_some())
        .map(|recorded| recorded.sequence.0)
        .collect();
    let shown: Vec<u64> = person.events.iter().map(|(sequence, _)| *sequence).collect();
    assert_eq!(shown, due, "{} does not have exactly the ledger", person.name);
}

#[cfg(test)]
mod tests {
    use domain::{Sequence, Timestamp};

    use super::*;

    fn recorded(number: u64, event: runs::Event) -> Recorded {
        let (sequence, at) = (Sequence(number), Timestamp(number));
        Recorded { sequence, at, position: None, event: Event::Run(event) }
    }

    fn started(number: u64, run: &str) -> Recorded {
        recorded(number, runs::Event::Started { run: run.into(), cause: None })
    }

    fn ended(number: u64, run: &str) -> Recorded {
        let outcome = runs::Outcome::Completed;
        recorded(number, runs::Event::Ended { run: run.into(), outcome, usage: None })
    }

    #[test]
    fn a_newest_run_that_was_left_open_does_not_pass() {
        let mut ledger = vec![started(1, "r1"), ended(2, "r1"), started(3, "r2")];
        assert!(std::panic::catch_unwind(|| check_runs(&ledger)).is_err());
        ledger.push(ended(4, "r2"));
        check_runs(&ledger);
    }

    #[test]
    fn an_event_that_was_shown_by_two_frames_does_not_pass() {
        let ledger = [started(1, "r1"), ended(2, "r1")];
        let seen = |sequences: &[u64]| Seen {
            events: sequences.iter().map(|sequence| (*sequence, String::new())).collect(),
            ..Seen::default()
        };
        check_view(&ledger, &seen(&[1, 2]));
        for wrong in [&[1, 1, 2][..], &[1], &[2, 1]] {
            let seen = seen(wrong);
            assert!(std::panic::catch_unwind(|| check_view(&ledger, &seen)).is_err(), "{wrong:?}");
        }
    }
}
