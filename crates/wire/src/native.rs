//! The native dialect (`docs/spec/native.md`): clients and proxies, `protocol_version` 1.
//!
//! Not here: what follows from a command (`domain`), sockets and tasks (`relay`, `server`).

pub mod client_connection;
pub mod events;
pub mod features;
pub mod frames;
pub mod proxy_connection;
pub mod proxy_frames;
mod refusals;
pub mod shapes;
#[cfg(test)]
mod typescript;

pub use client_connection::{
    Answer, Asked, ClientConnection, Denied, Limits, Listing, Output, PageOf, Purpose, Question,
    ReadJob, Throttle, Welcome, known, session_json,
};
pub use events::{Cache, Form, encode_delta, encode_event, encode_whole, event_id};
pub use features::{Feature, Features};
pub use proxy_connection::{ProxyConnection, ProxyLimits, ProxyOutput};
