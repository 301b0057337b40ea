//! The control dialect.

mod examples;
mod hostile;
mod prompts;
pub(crate) mod relay;
mod requests;
mod script;
mod sends;
mod shown;
