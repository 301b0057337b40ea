//! Conversations, from the tests of `wire`.

#[path = "../../crates/wire/tests/fuzz/chance.rs"]
pub(crate) mod chance;
#[path = "../../crates/wire/tests/fuzz/dialects.rs"]
pub(crate) mod dialects;
#[path = "../../crates/wire/tests/fuzz/lines.rs"]
pub(crate) mod lines;
#[path = "../../crates/wire/tests/fuzz/native.rs"]
pub(crate) mod native;
#[path = "../../crates/wire/tests/fuzz/sealing.rs"]
pub(crate) mod sealing;
#[path = "../../crates/wire/tests/fuzz/verbs.rs"]
pub(crate) mod verbs;
#[path = "../../crates/wire/tests/fuzz/visiting.rs"]
pub(crate) mod visiting;
#[path = "../../crates/wire/tests/fuzz/world.rs"]
pub(crate) mod world;
