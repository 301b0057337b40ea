//! Answers to commands: each command is answered once, and in time.
//!
//! **Invariant**: a command in flight is answered with its outcome, or when its time is up. An
//! outcome after that is sent as an event, never as a second answer.
//!
//! Not here: what the commands do.

use std::collections::BTreeMap;

use bytes::Bytes;
use domain::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::frames::Caller;
use super::messages::{encode, joined};
use crate::port::Denied;
use crate::visitor::Act;

/// Commands of one connection that may wait for their answers. More are refused.
pub(super) const REQUESTS_MAX: usize = 64;
/// Clients give up after 30 s; every command is answered before.
pub(super) const ANSWER_WITHIN_MS: u64 = 25_000;

/// Commands that wait for their answers, by our own numbers for them.
#[derive(Debug, Default)]
pub(super) struct Flights(BTreeMap<u64, Flight>);

#[derive(Debug)]
struct Flight {
    caller: Caller,
    due: Timestamp,
    /// What is answered when the time is up; `None`: that it is.
    otherwise: Option<Value>,
}

impl Flights {
    /// A command waits. `None`: too many do.
    pub(super) fn begin(&mut self, number: u64, caller: Caller, now: Timestamp) -> Option<u64> {
        if self.0.len() >= REQUESTS_MAX {
            return None;
        }
        let due = now.plus_ms(ANSWER_WITHIN_MS);
        self.0.insert(number, Flight { caller, due, otherwise: None });
        Some(number)
    }

    /// What to answer when the outcome takes longer.
    pub(super) fn otherwise(&mut self, number: u64, data: Value) {
        if let Some(flight) = self.0.get_mut(&number) {
            flight.otherwise = Some(data);
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= REQUESTS_MAX
    }

    /// Whether nobody has answered it yet.
    pub(super) fn is_open(&self, number: u64) -> bool {
        self.0.contains_key(&number)
    }

    pub(super) fn succeed(&mut self, number: u64, data: Option<&Value>) -> Option<Act> {
        let flight = self.0.remove(&number)?;
        Some(Act::Send(success(&flight.caller, data)))
    }

    /// Succeeds with data that is JSON already.
    pub(super) fn succeed_raw(&mut self, number: u64, data: &[&[u8]]) -> Option<Act> {
        let flight = self.0.remove(&number)?;
        let head = success(&flight.caller, None);
        let open = head.len().saturating_sub(1);
        let mut pieces = vec![&head[..open], b",\"data\":"];
        pieces.extend_from_slice(data);
        pieces.push(b"}");
        Some(Act::Send(joined(&pieces)))
    }

    pub(super) fn fail(&mut self, number: u64, words: &str) -> Option<Act> {
        let flight = self.0.remove(&number)?;
        Some(failed(&flight.caller, words))
    }

    /// Fails, with what came of it all the same.
    pub(super) fn fail_with(&mut self, number: u64, words: &str, data: &Value) -> Option<Act> {
        let Flight { caller, .. } = self.0.remove(&number)?;
        let (id, command) = (caller.id.as_ref(), caller.command.as_str());
        let (data, error) = (Some(data), Some(words));
        let response = Response { id, kind: "response", command, success: false, data, error };
        Some(Act::Send(encode(&response)))
    }

    /// Answers what takes too long.
    pub(super) fn expire(&mut self, now: Timestamp) -> Vec<Act> {
        let late: Vec<_> =
            self.0.iter().filter(|(_, it)| it.due <= now).map(|(number, _)| *number).collect();
        let mut acts = vec![];
        for number in late {
            let Some(flight) = self.0.remove(&number) else { continue };
            acts.push(match flight.otherwise {
                Some(data) => Act::Send(success(&flight.caller, Some(&data))),
                None => failed(
                    &flight.caller,
                    "This is taking too long; the result will follow as an event",
                ),
            });
        }
        acts
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.0.values().map(|flight| flight.due).min()
    }
}

#[derive(Serialize)]
struct Response<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Value>,
    #[serde(rename = "type")]
    kind: &'static str,
    command: &'a str,
    success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

/// It was done.
pub(super) fn success(caller: &Caller, data: Option<&Value>) -> Bytes {
    let (id, command) = (caller.id.as_ref(), caller.command.as_str());
    encode(&Response { id, kind: "response", command, success: true, data, error: None })
}

/// It was not, for this reason.
pub(super) fn failed(caller: &Caller, words: &str) -> Act {
    let (id, command) = (caller.id.as_ref(), caller.command.as_str());
    let error = Some(words);
    Act::Send(encode(&Response {
        id,
        kind: "response",
        command,
        success: false,
        data: None,
        error,
    }))
}

/// Why nothing came of it, in words.
pub(super) fn words(denied: &Denied) -> String {
    match denied {
        Denied::Refused(refusal) => refusal.to_string(),
        Denied::Failed(words) | Denied::Code(_, words) => words.clone(),
    }
}
