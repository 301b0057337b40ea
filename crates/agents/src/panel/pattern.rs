//! The patterns that profiles use.

use regex::{Regex, RegexBuilder};

/// Bytes that a compiled pattern may take.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// A pattern, compiled; `None` for one that is none, which a profile that was read does not have.
pub(super) fn pattern(text: &str) -> Option<Regex> {
    RegexBuilder::new(text).size_limit(PATTERN_BYTES_MAX).build().ok()
}
