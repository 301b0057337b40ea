//! The frames between a proxy and its relay, written and read at both ends.
//!
//! | direction | file |
//! |---|---|
//! | both | `greeting`: hello, ack, heartbeat, `link_ack`, errors |
//! | both | `catalog`: what the machine can start and resume |
//! | proxy → relay | `reports`: about one session · `sessions`: about the machine |
//! | relay → proxy | `orders` |
//!
//! `extensions` lists the fields that are not part of version 1.
//!
//! A frame that a proxy wants recorded carries `link_number` when the proxy has the feature
//! `link`.
//!
//! Not here: the rules of a connection (`proxy_connection`), the proxy's journal (`proxy`).

mod catalog;
mod extensions;
mod greeting;
mod orders;
mod reports;
mod sessions;

pub use catalog::{
    encode_catalog, encode_conversations, encode_resumable_list, read_catalog, read_conversations,
};
pub(super) use extensions::without_extensions;
pub use greeting::{Ack, Hello, Refused, ack, error, heartbeat, heartbeat_ack, hello, link_ack};
pub use orders::{
    FromRelay, LaunchOrder, command_name, encode_launch, encode_order, read_from_relay,
};
pub use reports::{encode_delta, encode_report, read_delta, read_report};
pub use sessions::{
    encode_launch_failed, encode_launched, encode_snapshot, read_launch_failed, read_launched,
    read_snapshot,
};

use domain::SessionId;
use serde::{Deserialize, Serialize};

use super::shapes::{Malformed, read_body};

/// Features that a proxy can name and the relay speaks.
pub const FEATURES: [&str; 11] = [
    "link",
    "deltas",
    "tools",
    "runs",
    "queue",
    "prompt_detail",
    "modes",
    "context",
    "plan",
    "catalog",
    "resume",
];

/// A body with its number in the proxy's journal.
#[derive(Serialize)]
struct Numbered<'a, T> {
    #[serde(flatten)]
    body: &'a T,
    #[serde(skip_serializing_if = "Option::is_none")]
    link_number: Option<u64>,
}

/// The number that a frame carries, if any.
pub fn link_number(text: &str) -> Result<Option<u64>, Malformed> {
    #[derive(Deserialize)]
    struct Number {
        #[serde(default)]
        link_number: Option<u64>,
    }
    Ok(read_body::<Number>(text)?.link_number)
}

/// What a frame in a journal is about: enough to know what it answers without reading it whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The frame's type.
    pub kind: String,
    /// The session it is about.
    pub session: Option<SessionId>,
    /// The request it answers.
    pub request: Option<domain::RequestId>,
}

/// Reads what a frame is about.
pub fn subject(text: &str) -> Result<Subject, Malformed> {
    let envelope = super::shapes::Envelope::read(text)?;
    let (session, request) = (envelope.session_id, envelope.request_id);
    Ok(Subject { kind: envelope.kind.into_owned(), session, request })
}

#[cfg(test)]
mod tests;
