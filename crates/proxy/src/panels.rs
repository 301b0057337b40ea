//! Panels of agents in IDEs and browsers.

pub mod acting;
