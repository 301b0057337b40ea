//! The driver, fed with the lines that Codex prints.

#![expect(clippy::wildcard_enum_match_arm, reason = "a test looks for one kind of thing")]
#![expect(clippy::needless_pass_by_value, reason = "JSON is written where it is said")]

mod bench;
mod deliveries;
mod observed;
mod prompted;
mod starts;
