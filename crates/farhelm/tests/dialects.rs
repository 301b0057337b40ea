//! Every dialect through the real binary and its demo agent.

mod blob;
mod control;
mod fetched;
mod pi;
mod pi_client;
mod tail;
mod together;
mod webchannel;
