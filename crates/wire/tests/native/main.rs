//! The native dialect against its document: examples, transcripts, round trips, hostile input.

#[cfg(test)]
mod erased;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod relay;
#[cfg(test)]
mod round_trips;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod script;
#[cfg(test)]
mod transcripts;
#[cfg(test)]
mod watching;
