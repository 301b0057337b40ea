//! The interface between every dialect's connection and its shell.
//!
//! Not here: any dialect's frames, or what only one of them needs.

use std::sync::Arc;

use domain::session::{Card, Recorded};
use domain::{FailureCode, Refusal, Sequence, SessionId, Timestamp};

/// Limits and times that a person may configure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a send's content.
    pub max_content_bytes: usize,
    /// How often a peer is asked to send a heartbeat.
    pub heartbeat_interval_ms: u64,
    /// After how long without a frame a connection is stale.
    pub heartbeat_timeout_ms: u64,
    /// How long a peer may take to say hello.
    pub hello_timeout_ms: u64,
    /// Requests for the history of one session that may wait for each other. More are answered
    /// `rate_limited`.
    pub history_requests_waiting: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_content_bytes: 100 * 1024,
            heartbeat_interval_ms: 10_000,
            heartbeat_timeout_ms: 30_000,
            hello_timeout_ms: 10_000,
            history_requests_waiting: 16,
        }
    }
}

/// Rates, shared by all connections of a credential and client id.
pub trait Throttle {
    /// One more frame. Whether it may be taken.
    fn frame(&mut self, now: Timestamp) -> bool;
    /// One more send. Whether it may be taken.
    fn send(&mut self, now: Timestamp) -> bool;
}

/// A page of the ledger.
#[derive(Debug)]
pub struct PageOf {
    /// In order.
    pub events: Vec<Recorded>,
    /// The last event of the session.
    pub head: Sequence,
    /// The first event that retention left.
    pub first_kept: Sequence,
    /// Whether there are more after these.
    pub has_more: bool,
}

/// A session in a list.
#[derive(Debug, Clone)]
pub struct Listing {
    /// Which.
    pub id: SessionId,
    /// Its last event.
    pub head: Sequence,
    /// What lists show of it.
    pub card: Arc<Card>,
}

/// Why nothing came of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denied {
    /// The domain said no.
    Refused(Refusal),
    /// The store could not.
    Failed(String),
    /// The shell said no, with this code and these words.
    Code(FailureCode, String),
}
