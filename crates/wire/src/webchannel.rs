//! The webchannel dialect (`docs/spec/webchannel.md`).

use domain::passing::Passing;
use domain::session::Recorded;
use domain::{ConnectionId, Principal, Timestamp};

use crate::port::{Limits, Throttle};
use crate::visitor::{Act, Answer, Encoded, Followed, Visitor};

/// One client's connection.
#[derive(Debug)]
pub struct Connection {
    principal: Option<Principal>,
}

impl Connection {
    /// A socket opened. `query` is what its address said behind the question mark.
    pub fn new(
        _connection: ConnectionId,
        principal: Option<Principal>,
        _query: &str,
        _limits: Limits,
        _now: Timestamp,
    ) -> Self {
        Self { principal }
    }
}

impl Visitor for Connection {
    fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    fn on_open(&mut self, _now: Timestamp) -> Vec<Act> {
        vec![Act::Close { code: 1011, reason: "this dialect is not spoken yet" }]
    }

    fn on_text(&mut self, _text: &str, _throttle: &mut dyn Throttle, _now: Timestamp) -> Vec<Act> {
        vec![]
    }

    fn on_answer(&mut self, _ticket: u64, _answer: Answer, _now: Timestamp) -> Vec<Act> {
        vec![]
    }

    fn on_event(&mut self, _recorded: &Recorded, _encoded: &Encoded, _acts: &mut Vec<Act>) {}

    fn on_passing(&mut self, _passing: &Passing, _encoded: &Encoded, _acts: &mut Vec<Act>) {}

    fn on_caught_up(&mut self, _followed: Followed, _now: Timestamp) -> Vec<Act> {
        vec![]
    }

    fn on_tick(&mut self, _now: Timestamp) -> Vec<Act> {
        vec![]
    }

    fn deadline(&self) -> Option<Timestamp> {
        None
    }
}
