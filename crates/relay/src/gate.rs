//! Gates: one task per open connection, between a socket and the relay.
//!
//! A gate owns its connection's state machine (`wire`) and carries messages between it and the
//! relay. Everything that is waiting is written together and flushed once. A socket that does not
//! accept its frames in time is closed; a socket that is merely slow misses events and reads them
//! again.
//!
//! Not here: what frames mean (`wire`), accepting sockets and checking credentials (`server`).

mod ahead;
mod client;
mod proxy;
mod room;
mod throttle;
mod visitor;

use std::future::Future;

use bytes::Bytes;

pub use client::{ClientGate, serve_client};
pub use proxy::{ProxyGate, serve_proxy};
pub(crate) use room::Taken as RoomTaken;
pub use throttle::{Rates, Throttles};
pub use visitor::{VisitorGate, serve_visitor};

/// What a socket brings.
#[derive(Debug)]
pub enum Incoming {
    /// A text frame.
    Text(Bytes),
    /// A binary frame.
    Binary,
    /// A frame over the limit.
    TooLarge,
    /// The end.
    Closed,
}

/// A socket.
pub trait Transport: Send {
    /// The next frame. Must be safe to drop before it is ready.
    fn receive(&mut self) -> impl Future<Output = Incoming> + Send;
    /// Writes all frames, then flushes once. `Err` when the socket is gone or too slow.
    fn send_all(&mut self, frames: &mut Vec<Bytes>) -> impl Future<Output = Result<(), ()>> + Send;
    /// Says why, and ends.
    fn close(self, code: u16, reason: &str) -> impl Future<Output = ()> + Send;
}

/// Close codes that a gate itself gives.
pub mod close {
    /// A text frame that is not JSON.
    pub const NOT_JSON: u16 = 1007;
    /// A binary frame.
    pub const BINARY: u16 = 1003;
    /// A frame over the limit.
    pub const TOO_LARGE: u16 = 1009;
    /// The relay goes down.
    pub const GOING_DOWN: u16 = 1001;
    /// Something broke here.
    pub const INTERNAL: u16 = 1011;
    /// The credential was revoked, or may not do this.
    pub const FORBIDDEN: u16 = 4003;
}
