//! What was ever stored is read for ever: one event of each kind and version.
#![expect(clippy::unwrap_used, reason = "what a test stands on may fail it")]

use std::collections::BTreeSet;

use domain::fleet::Fleet;
use domain::session::Session;
use serde_json::Value;
use store::codec;

const SESSION_V1: &str = include_str!("../../../fixtures/ledger/session-v1.jsonl");
const FLEET_V1: &str = include_str!("../../../fixtures/ledger/fleet-v1.jsonl");

/// A new kind of event belongs here and into the fixtures, in the version that first wrote it.
const SESSION_KINDS: [&str; 30] = [
    "config",
    "control.requested",
    "control.settled",
    "delivery.accepted",
    "delivery.delivered",
    "delivery.failed",
    "delivery.handed_over",
    "prompt.asked",
    "prompt.confirmed",
    "prompt.reopened",
    "prompt.settled",
    "queue.edited",
    "queue.held",
    "queue.moved",
    "queue.resumed",
    "run.ended",
    "run.started",
    "status.archived",
    "status.changed",
    "status.closed",
    "status.down",
    "status.renamed",
    "status.up",
    "transcript.context",
    "transcript.echoed",
    "transcript.message",
    "transcript.notice",
    "transcript.plan",
    "transcript.tool_call",
    "transcript.tool_update",
];

#[test]
fn every_kind_of_session_event_of_version_1_is_read_and_written_alike() {
    let mut kinds = BTreeSet::new();
    for line in SESSION_V1.lines() {
        let recorded = codec::decode_event(line.as_bytes()).unwrap();
        let again: Value = serde_json::from_slice(&codec::encode_event(&recorded)).unwrap();
        let stored: Value = serde_json::from_str(line).unwrap();
        assert_eq!(again, stored);
        kinds.insert(kind(&stored["e"]));
    }
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), SESSION_KINDS);
}

#[test]
fn every_kind_of_fleet_event_of_version_1_is_read_and_written_alike() {
    for line in FLEET_V1.lines() {
        let recorded = codec::decode_fleet_event(line.as_bytes()).unwrap();
        let again: Value = serde_json::from_slice(&codec::encode_fleet_event(&recorded)).unwrap();
        assert_eq!(again, serde_json::from_str::<Value>(line).unwrap());
    }
}

#[test]
fn an_event_of_a_later_version_is_refused_in_words() {
    let later = SESSION_V1.lines().next().unwrap().replacen("\"v\":1", "\"v\":2", 1);
    let refused = codec::decode_event(later.as_bytes()).unwrap_err().to_string();
    assert!(refused.contains("version 2"), "{refused}");
}

/// The states that the events of version 1 lead to, in every version that a state was stored in.
/// A shape that changes needs another [`codec::STATE_VERSION`] and another fixture.
const SESSION_STATES: [&str; 2] = [
    include_str!("../../../fixtures/ledger/session-state-v0.json"),
    include_str!("../../../fixtures/ledger/session-state-v1.json"),
];
const FLEET_STATES: [&str; 2] = [
    include_str!("../../../fixtures/ledger/fleet-state-v0.json"),
    include_str!("../../../fixtures/ledger/fleet-state-v1.json"),
];

#[test]
fn a_session_stored_in_any_version_is_what_its_events_lead_to() {
    let mut session = Session::default();
    for line in SESSION_V1.lines() {
        session.apply(&codec::decode_event(line.as_bytes()).unwrap());
    }
    for stored in SESSION_STATES {
        assert_eq!(codec::decode_session(stored.as_bytes()).unwrap(), session);
    }
    let written: Value = serde_json::from_slice(&codec::encode_session(&session)).unwrap();
    let newest = SESSION_STATES.last().unwrap();
    assert_eq!(written, serde_json::from_str::<Value>(newest).unwrap());
    assert_eq!(written["v"], codec::STATE_VERSION);
}

#[test]
fn a_fleet_stored_in_any_version_is_what_its_events_lead_to() {
    let mut fleet = Fleet::default();
    for line in FLEET_V1.lines() {
        fleet.apply(&codec::decode_fleet_event(line.as_bytes()).unwrap());
    }
    let written: Value = serde_json::from_slice(&codec::encode_fleet(&fleet)).unwrap();
    for stored in FLEET_STATES {
        let read = codec::decode_fleet(stored.as_bytes()).unwrap();
        let again: Value = serde_json::from_slice(&codec::encode_fleet(&read)).unwrap();
        assert_eq!(again, written);
    }
    let newest = FLEET_STATES.last().unwrap();
    assert_eq!(written, serde_json::from_str::<Value>(newest).unwrap());
    assert_eq!(written["v"], codec::STATE_VERSION);
}

#[test]
fn a_state_of_a_later_version_is_refused_whatever_it_looks_like() {
    let later = SESSION_STATES[1].replacen("\"v\":1", "\"v\":2", 1);
    assert_ne!(later, SESSION_STATES[1]);
    let refused = codec::decode_session(later.as_bytes()).unwrap_err().to_string();
    assert!(refused.contains("version 2"), "{refused}");
}

fn kind(event: &Value) -> String {
    let (concern, what) = event.as_object().unwrap().iter().next().unwrap();
    if concern == "config" {
        return concern.clone();
    }
    let named = what.as_str().map(str::to_owned);
    let what = named.or_else(|| what.as_object()?.keys().next().cloned()).unwrap();
    format!("{concern}.{what}")
}
