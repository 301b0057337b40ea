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

/// What the agent got began a run or belongs to one, and every run but the newest is over.
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
    for run in begun.iter().rev().skip(1) {
        assert!(ended.contains(run), "{run} never ended");
    }
}

/// A resumed client has exactly the ledger: what is shown at all, once, in order. Some events are
/// told by two frames under one number; the first of them counts.
fn check_view(ledger: &[Recorded], person: &Seen) {
    let session = "any".into();
    let due: Vec<u64> = ledger
        .iter()
        .filter(|recorded| encode_event(&session, recorded, Form::Full).is_some())
        .map(|recorded| recorded.sequence.0)
        .collect();
    let mut shown: Vec<u64> = person.events.iter().map(|(sequence, _)| *sequence).collect();
    shown.dedup();
    assert_eq!(shown, due, "{} does not have exactly the ledger", person.name);
}
