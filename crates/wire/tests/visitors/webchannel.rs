//! The webchannel dialect.

mod approvals;
mod examples;
mod hostile;
mod pairing;
mod relay;
mod script;
mod sends;
mod shown;
