//! The wall clock, and its format in the HTTP API.
//!
//! Not here: the relay's own clock, which a simulation replaces (`relay::ports`).

use std::time::{SystemTime, UNIX_EPOCH};

use domain::Timestamp;
use wire::native::shapes::Time;

/// Now.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// As the native dialect writes it: `2026-11-15T08:30:00.000Z`.
pub(crate) fn iso8601(at: Timestamp) -> String {
    Time(at).to_string()
}
