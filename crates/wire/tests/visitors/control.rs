//! The control dialect.

mod examples;
mod hostile;
mod prompts;
mod relay;
mod requests;
mod script;
mod sends;
mod shown;
