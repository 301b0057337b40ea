//! The blob dialect.

mod commands;
mod examples;
mod hostile;
mod relay;
mod script;
mod sends;
mod sessions;
mod shown;
