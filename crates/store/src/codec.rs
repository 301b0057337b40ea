//! Encodes and decodes events, states and cards. Every version ever written can be read.
//!
//! Every stored event carries the version of its kind. This release writes version [`VERSION`] and
//! converts older ones when it reads them, so that the other crates know only the newest shape.
//! `fixtures/ledger` holds one event of each kind and version that was ever written.
//!
//! A stored state carries the version of its shape, [`STATE_VERSION`]. An older shape lacks what
//! was added since, and a newer one cannot be read at all; in both cases the loader replays the
//! events.
//!
//! Not here: what the events mean (`domain`), where the bytes are stored (`sqlite`, `memory`).

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod quick;

use domain::session::delivery::Told;
use domain::session::{Card, Session};
use domain::{fleet, session};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Fault;

/// The version of every kind that this release writes.
pub const VERSION: u32 = 1;

/// The version of every state that this release writes. Version 0 has no version around it;
/// version 1 knows neither tool calls at work nor erased sessions.
pub const STATE_VERSION: u32 = 2;

/// A state, as it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored<T> {
    /// What could be read of it.
    pub state: T,
    /// It is of an older version: its events may lead to more than it says.
    pub is_older: bool,
}

#[derive(Serialize)]
struct StateOut<'a, T> {
    v: u32,
    state: &'a T,
}

#[derive(Deserialize)]
struct StateIn<T> {
    state: T,
}

#[derive(Deserialize)]
struct StateVersion {
    #[serde(default)]
    v: u32,
}

#[derive(Serialize)]
struct Out<'a, T> {
    v: u32,
    #[serde(flatten)]
    recorded: &'a T,
}

/// `flatten` would buffer every value on reading; the fields are named instead.
#[derive(Deserialize)]
struct SessionIn {
    v: u32,
    n: domain::Sequence,
    at: domain::Timestamp,
    #[serde(default)]
    from: Option<domain::LinkPosition>,
    e: session::Event,
}

#[derive(Deserialize)]
struct FleetIn {
    v: u32,
    n: domain::Sequence,
    at: domain::Timestamp,
    e: fleet::Event,
}

/// A session's event as bytes.
pub fn encode_event(recorded: &session::Recorded) -> Vec<u8> {
    to_bytes(&Out { v: VERSION, recorded })
}

/// A session's event from bytes.
pub fn decode_event(body: &[u8]) -> Result<session::Recorded, Fault> {
    quick::message(body).map_or_else(|| decode_general(body), Ok)
}

fn decode_general(body: &[u8]) -> Result<session::Recorded, Fault> {
    let SessionIn { v, n, at, from, e } = from_bytes(body)?;
    check(v)?;
    Ok(session::Recorded { sequence: n, at, position: from, event: e })
}

/// A fleet's event as bytes.
pub fn encode_fleet_event(recorded: &fleet::Recorded) -> Vec<u8> {
    to_bytes(&Out { v: VERSION, recorded })
}

/// A fleet's event from bytes.
pub fn decode_fleet_event(body: &[u8]) -> Result<fleet::Recorded, Fault> {
    let FleetIn { v, n, at, e } = from_bytes(body)?;
    check(v)?;
    Ok(fleet::Recorded { sequence: n, at, event: e })
}

/// A session's whole state as bytes.
pub fn encode_session(state: &Session) -> Vec<u8> {
    to_bytes(&StateOut { v: STATE_VERSION, state })
}

/// A session's whole state from bytes.
pub fn decode_session(body: &[u8]) -> Result<Stored<Session>, Fault> {
    decode_state(body)
}

/// The fleet's whole state as bytes.
pub fn encode_fleet(state: &fleet::Fleet) -> Vec<u8> {
    to_bytes(&StateOut { v: STATE_VERSION, state })
}

/// The fleet's whole state from bytes.
pub fn decode_fleet(body: &[u8]) -> Result<Stored<fleet::Fleet>, Fault> {
    decode_state(body)
}

fn decode_state<T: DeserializeOwned>(body: &[u8]) -> Result<Stored<T>, Fault> {
    match from_bytes::<StateVersion>(body)?.v {
        0 => Ok(Stored { state: from_bytes(body)?, is_older: true }),
        version @ 1..=STATE_VERSION => {
            let StateIn { state } = from_bytes(body)?;
            Ok(Stored { state, is_older: version < STATE_VERSION })
        }
        other => {
            let detail = format!("a state of version {other}; this release reads {STATE_VERSION}");
            Err(Fault::Corrupt { stream: None, detail })
        }
    }
}

/// A card as bytes.
pub fn encode_card(card: &Card) -> Vec<u8> {
    to_bytes(card)
}

/// A card from bytes.
pub fn decode_card(body: &[u8]) -> Result<Card, Fault> {
    from_bytes(body)
}

/// How a send stands, as bytes.
pub fn encode_told(told: &Told) -> Vec<u8> {
    to_bytes(told)
}

/// How a send stands, from bytes.
pub fn decode_told(body: &[u8]) -> Result<Told, Fault> {
    from_bytes(body)
}

/// A later release may have written to this database and been replaced by this one.
fn check(version: u32) -> Result<(), Fault> {
    if version == VERSION {
        return Ok(());
    }
    let detail = format!("an event of version {version}; this release reads {VERSION}");
    Err(Fault::Corrupt { stream: None, detail })
}

#[expect(clippy::expect_used, reason = "maps have string keys and nothing else can fail")]
fn to_bytes<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("the vocabulary is JSON")
}

fn from_bytes<T: DeserializeOwned>(body: &[u8]) -> Result<T, Fault> {
    serde_json::from_slice(body)
        .map_err(|error| Fault::Corrupt { stream: None, detail: error.to_string() })
}
