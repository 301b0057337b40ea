//! Test support: panels that are none. Pages with the landmarks of each agent's panel, made of
//! real editors, served on two loopback origins, and a real browser to show them in.
//!
//! Invariant: nothing here reaches beyond this machine but `npm ci` for the editors, and
//! everything ends with the value that started it.
//!
//! Not here: speaking with the browser (`cdp`), what is done in the panels (`proxy`).

mod chromium;

pub use chromium::{CHROMIUM_VARIABLE, Chromium};
