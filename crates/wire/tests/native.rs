//! The native dialect against its document: examples, transcripts, round trips, hostile input.

mod erased;
mod examples;
mod hostile;
mod relay;
mod round_trips;
mod rules;
mod script;
mod transcripts;
mod unreadable;
mod watching;
