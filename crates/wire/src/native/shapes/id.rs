//! Ids from peers: bounded and never empty.

use std::borrow::Cow;

use domain::SessionId;
use serde::Deserialize;
use serde::de::{self, Deserializer};

/// Bytes of an id that a peer makes up. Longer ones are `invalid_message`.
pub const ID_BYTES_MAX: usize = 256;

/// An id that must be there.
pub fn required<'de, D: Deserializer<'de>, T: From<String>>(from: D) -> Result<T, D::Error> {
    check(Cow::<str>::deserialize(from)?)
}

/// An id that may be absent or null.
pub fn optional<'de, D: Deserializer<'de>, T: From<String>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    Option::<Cow<str>>::deserialize(from)?.map(check).transpose()
}

/// A session id that may be absent or null; one that is there must look like one.
pub fn session<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SessionId>, D::Error> {
    let Some(raw) = Option::<Cow<str>>::deserialize(from)? else { return Ok(None) };
    let parsed = SessionId::parse(&raw);
    parsed
        .map(Some)
        .ok_or_else(|| de::Error::custom("session_id must be 3 to 64 characters of [A-Za-z0-9_-]"))
}

/// A session id that must be there.
pub fn session_required<'de, D: Deserializer<'de>>(from: D) -> Result<SessionId, D::Error> {
    session(from)?.ok_or_else(|| de::Error::custom("session_id is missing"))
}

fn check<T: From<String>, E: de::Error>(raw: Cow<'_, str>) -> Result<T, E> {
    if raw.is_empty() || raw.len() > ID_BYTES_MAX {
        return Err(E::custom(format_args!("an id must have 1 to {ID_BYTES_MAX} bytes")));
    }
    Ok(T::from(raw.into_owned()))
}
