//! What was ever stored is read for ever: one event of each kind and version.
#![expect(clippy::unwrap_used, reason = "what a test stands on may fail it")]

use std::collections::BTreeSet;

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

fn kind(event: &Value) -> String {
    let (concern, what) = event.as_object().unwrap().iter().next().unwrap();
    if concern == "config" {
        return concern.clone();
    }
    let named = what.as_str().map(str::to_owned);
    let what = named.or_else(|| what.as_object()?.keys().next().cloned()).unwrap();
    format!("{concern}.{what}")
}
