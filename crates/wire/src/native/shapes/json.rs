//! JSON that passes through the relay unchanged.

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Any JSON value, kept as text. Whoever reads a frame can rely on it being sound: no lone
/// surrogates, no nesting beyond what readers take.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl Json {
    /// The JSON text of the domain; what is not JSON after all becomes a JSON string.
    pub fn from_text(text: &str) -> Self {
        let raw = RawValue::from_string(text.to_owned());
        let raw = raw.or_else(|_| serde_json::value::to_raw_value(text));
        raw.map_or_else(|_| Self(RawValue::NULL.to_owned()), Self)
    }

    /// The text.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// The text, owned.
    pub fn into_text(self) -> String {
        String::from(Box::<str>::from(self.0))
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Json {}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(from)?;
        serde_json::from_str::<serde_json::Value>(raw.get()).map_err(de::Error::custom)?;
        Ok(Self(raw))
    }
}
