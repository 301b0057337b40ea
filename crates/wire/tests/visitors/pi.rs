//! The pi dialect.

mod commands;
mod dialogs;
mod examples;
mod forms;
mod history;
mod hostile;
mod queue;
pub(crate) mod relay;
mod script;
mod sends;
mod sessions;
mod shown;
