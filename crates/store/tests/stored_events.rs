//! What was ever stored is read for ever: one event of each kind and version.

use std::collections::BTreeSet;

use domain::fleet::{self, Fleet, launches, machines};
use domain::session::{
    self, Session, controls, delivery, prompts, queue, runs, status, transcript,
};
use serde_json::{Value, json};
use store::codec;

const SESSION_V1: &str = include_str!("../../../fixtures/ledger/session-v1.jsonl");
const FLEET_V1: &str = include_str!("../../../fixtures/ledger/fleet-v1.jsonl");

/// Names every kind of event, once for the match and once for the list. A new variant does not
/// compile without a line here, and with its line the tests fail until the fixtures hold one.
macro_rules! kinds {
    ($list:ident, $name:ident, $event:ty: $($kind:pat => $word:literal,)+) => {
        const $list: &[&str] = &[$($word),+];

        fn $name(event: &$event) -> &'static str {
            match event {
                $($kind => $word,)+
            }
        }
    };
}

kinds! { SESSION_KINDS, session_kind, session::Event:
    session::Event::Config(_) => "config",
    session::Event::Control(controls::Event::Requested { .. }) => "control.requested",
    session::Event::Control(controls::Event::Settled { .. }) => "control.settled",
    session::Event::Delivery(delivery::Event::Accepted(_)) => "delivery.accepted",
    session::Event::Delivery(delivery::Event::Delivered { .. }) => "delivery.delivered",
    session::Event::Delivery(delivery::Event::Failed { .. }) => "delivery.failed",
    session::Event::Delivery(delivery::Event::HandedOver { .. }) => "delivery.handed_over",
    session::Event::Prompt(prompts::Event::Asked(_)) => "prompt.asked",
    session::Event::Prompt(prompts::Event::Confirmed(_)) => "prompt.confirmed",
    session::Event::Prompt(prompts::Event::Reopened { .. }) => "prompt.reopened",
    session::Event::Prompt(prompts::Event::Settled { .. }) => "prompt.settled",
    session::Event::Queue(queue::Event::Edited { .. }) => "queue.edited",
    session::Event::Queue(queue::Event::Held) => "queue.held",
    session::Event::Queue(queue::Event::Moved { .. }) => "queue.moved",
    session::Event::Queue(queue::Event::Resumed) => "queue.resumed",
    session::Event::Run(runs::Event::Ended { .. }) => "run.ended",
    session::Event::Run(runs::Event::Started { .. }) => "run.started",
    session::Event::Status(status::Event::Archived(_)) => "status.archived",
    session::Event::Status(status::Event::Changed { .. }) => "status.changed",
    session::Event::Status(status::Event::Closed { .. }) => "status.closed",
    session::Event::Status(status::Event::Down { .. }) => "status.down",
    session::Event::Status(status::Event::Renamed(_)) => "status.renamed",
    session::Event::Status(status::Event::Up { .. }) => "status.up",
    session::Event::Transcript(transcript::Event::Context(_)) => "transcript.context",
    session::Event::Transcript(transcript::Event::Echoed(_)) => "transcript.echoed",
    session::Event::Transcript(transcript::Event::Message(_)) => "transcript.message",
    session::Event::Transcript(transcript::Event::Notice(_)) => "transcript.notice",
    session::Event::Transcript(transcript::Event::Plan(_)) => "transcript.plan",
    session::Event::Transcript(transcript::Event::ToolCall(_)) => "transcript.tool_call",
    session::Event::Transcript(transcript::Event::ToolUpdate(_)) => "transcript.tool_update",
}

kinds! { FLEET_KINDS, fleet_kind, fleet::Event:
    fleet::Event::Launch(launches::Event::Forgotten { .. }) => "launch.forgotten",
    fleet::Event::Launch(launches::Event::Requested(_)) => "launch.requested",
    fleet::Event::Launch(launches::Event::Settled { .. }) => "launch.settled",
    fleet::Event::Machine(machines::Event::Connected { .. }) => "machine.connected",
    fleet::Event::Machine(machines::Event::Disconnected { .. }) => "machine.disconnected",
    fleet::Event::Machine(machines::Event::Erased { .. }) => "machine.erased",
    fleet::Event::Machine(machines::Event::Offered { .. }) => "machine.offered",
    fleet::Event::Machine(machines::Event::Registered { .. }) => "machine.registered",
    fleet::Event::Machine(machines::Event::Unregistered { .. }) => "machine.unregistered",
}

#[test]
fn every_kind_of_session_event_of_version_1_is_read_and_written_alike() {
    let mut kinds = BTreeSet::new();
    for line in SESSION_V1.lines() {
        let recorded = codec::decode_event(line.as_bytes()).unwrap();
        let again: Value = serde_json::from_slice(&codec::encode_event(&recorded)).unwrap();
        let stored: Value = serde_json::from_str(line).unwrap();
        assert_eq!(again, stored);
        kinds.insert(session_kind(&recorded.event));
    }
    assert_eq!(kinds, SESSION_KINDS.iter().copied().collect());
}

#[test]
fn every_kind_of_fleet_event_of_version_1_is_read_and_written_alike() {
    let mut kinds = BTreeSet::new();
    for line in FLEET_V1.lines() {
        let recorded = codec::decode_fleet_event(line.as_bytes()).unwrap();
        let again: Value = serde_json::from_slice(&codec::encode_fleet_event(&recorded)).unwrap();
        assert_eq!(again, serde_json::from_str::<Value>(line).unwrap());
        kinds.insert(fleet_kind(&recorded.event));
    }
    assert_eq!(kinds, FLEET_KINDS.iter().copied().collect());
}

#[test]
fn an_event_of_a_later_version_is_refused_in_words() {
    let later = SESSION_V1.lines().next().unwrap().replacen("\"v\":1", "\"v\":2", 1);
    let refused = codec::decode_event(later.as_bytes()).unwrap_err().to_string();
    assert!(refused.contains("version 2"), "{refused}");
}

/// A stored state of each version that was ever written, and the checksum of its bytes. None is
/// ever written anew: databases out there hold them as they are. A shape that changes, and one that
/// only grows, needs another [`codec::STATE_VERSION`] and another fixture, which holds what is new.
const SESSION_STATES: [(&str, u32); 3] = [
    (include_str!("../../../fixtures/ledger/session-state-v0.json"), 0xce9d_85b5),
    (include_str!("../../../fixtures/ledger/session-state-v1.json"), 0x3195_003e),
    (include_str!("../../../fixtures/ledger/session-state-v2.json"), 0x71f9_b3d6),
];
const FLEET_STATES: [(&str, u32); 3] = [
    (include_str!("../../../fixtures/ledger/fleet-state-v0.json"), 0x5f3f_db49),
    (include_str!("../../../fixtures/ledger/fleet-state-v1.json"), 0x3551_6802),
    (include_str!("../../../fixtures/ledger/fleet-state-v2.json"), 0xdd97_c89a),
];

#[test]
fn a_state_that_was_ever_stored_is_never_written_anew() {
    for (version, (stored, checksum)) in SESSION_STATES.iter().enumerate() {
        let found = crc32fast::hash(stored.as_bytes());
        assert_eq!(found, *checksum, "session-state-v{version}.json: add a version instead");
    }
    for (version, (stored, checksum)) in FLEET_STATES.iter().enumerate() {
        let found = crc32fast::hash(stored.as_bytes());
        assert_eq!(found, *checksum, "fleet-state-v{version}.json: add a version instead");
    }
}

#[test]
fn a_session_stored_in_any_version_is_what_its_events_lead_to() {
    let mut session = Session::default();
    let mut events = SESSION_V1.lines().map(|line| codec::decode_event(line.as_bytes()).unwrap());
    for (version, (bytes, _)) in (0..).zip(SESSION_STATES) {
        let stored = codec::decode_session(bytes.as_bytes()).unwrap();
        while session.head() < stored.state.head() {
            session.apply(&events.next().unwrap());
        }
        assert_eq!(stored.state, session);
        assert_eq!(stored.is_older, version < codec::STATE_VERSION);
    }
    // The newest holds whatever an event can lead to.
    assert_eq!(events.next(), None);
    let written: Value = serde_json::from_slice(&codec::encode_session(&session)).unwrap();
    let (newest, _) = SESSION_STATES.last().unwrap();
    assert_eq!(written, serde_json::from_str::<Value>(newest).unwrap());
    assert_eq!(written["v"], codec::STATE_VERSION);
    assert_eq!(written["state"]["transcript"]["tools"], json!(["t2"]));
}

#[test]
fn a_fleet_stored_in_any_version_is_what_its_events_lead_to() {
    let mut fleet = Fleet::default();
    let mut events =
        FLEET_V1.lines().map(|line| codec::decode_fleet_event(line.as_bytes()).unwrap());
    let written =
        |fleet: &Fleet| -> Value { serde_json::from_slice(&codec::encode_fleet(fleet)).unwrap() };
    for (version, (bytes, _)) in (0..).zip(FLEET_STATES) {
        let stored = codec::decode_fleet(bytes.as_bytes()).unwrap();
        while fleet.head() < stored.state.head() {
            fleet.apply(&events.next().unwrap());
        }
        assert_eq!(written(&stored.state), written(&fleet));
        assert_eq!(stored.is_older, version < codec::STATE_VERSION);
    }
    assert_eq!(events.next(), None);
    let (written, (newest, _)) = (written(&fleet), FLEET_STATES.last().unwrap());
    assert_eq!(written, serde_json::from_str::<Value>(newest).unwrap());
    assert_eq!(written["v"], codec::STATE_VERSION);
    assert_eq!(written["state"]["machines"]["erased"], json!(["sess_3"]));
}

#[test]
fn a_state_of_a_later_version_is_refused_whatever_it_looks_like() {
    let (newest, _) = SESSION_STATES[2];
    let later = newest.replacen("\"v\":2", "\"v\":3", 1);
    assert_ne!(later, newest);
    let refused = codec::decode_session(later.as_bytes()).unwrap_err().to_string();
    assert!(refused.contains("version 3"), "{refused}");
}
