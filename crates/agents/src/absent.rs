//! Stands in for an agent that this machine can no longer drive: its session stays, and every order
//! is answered with the reason.

use domain::Timestamp;
use domain::content::Failure;
use domain::session::Report;
use domain::session::controls::Control;
use domain::session::status::CloseReason;

use crate::{Driver, Input, Lookup, Order, Output, Setup};

#[derive(Debug)]
pub(crate) struct Absent {
    words: String,
}

impl Absent {
    pub(crate) fn new(agent: &str, _setup: Setup) -> Self {
        Self { words: format!("This machine has no driver for the agent {agent}") }
    }

    fn failure(&self) -> Failure {
        Failure::new("agent_not_open", self.words.clone())
    }
}

impl Driver for Absent {
    fn start(&mut self, _now: Timestamp) -> Vec<Output> {
        vec![Output::Unusable(self.failure())]
    }

    fn on_order(&mut self, order: &Order, _now: Timestamp) -> Vec<Output> {
        let report = match order {
            Order::Deliver { send, attempt, .. } => Report::SendFailed {
                id: send.id.clone(),
                attempt: Some(*attempt),
                failure: self.failure(),
            },
            Order::LookUp { id, attempt } => {
                let (id, attempt, found) = (id.clone(), *attempt, Lookup::Unknown);
                return vec![Output::LookedUp { id, attempt, found }];
            }
            Order::Control { request, control: Control::Close } => Report::Closed {
                reason: CloseReason::UserRequested,
                request: Some(request.clone()),
            },
            Order::Control { request, .. } | Order::Answer { request, .. } => {
                Report::ControlResult { request: request.clone(), failure: Some(self.failure()) }
            }
            Order::Rest => return vec![],
        };
        vec![Output::Report(report)]
    }

    fn on_input(&mut self, _input: Input, _now: Timestamp) -> Vec<Output> {
        vec![]
    }

    fn on_deadline(&mut self, _now: Timestamp) -> Vec<Output> {
        vec![]
    }

    fn deadline(&self) -> Option<Timestamp> {
        None
    }

    fn is_at_rest(&self) -> bool {
        false
    }
}
