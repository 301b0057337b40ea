//! Tests from outside: one program, linked once. A new file of tests is a module here.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod chromium;
mod observer;
mod tab;
mod test_panels;
