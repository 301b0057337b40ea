//! The blob dialect.

mod commands;
mod examples;
mod hostile;
pub(crate) mod relay;
mod script;
mod sends;
mod sessions;
mod shown;
