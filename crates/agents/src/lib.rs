//! Drivers: what is known about each agent program, as pure values.
//!
//! A [`Driver`] is told orders and the time, and answers with what it observed. It holds no
//! process, socket, file or clock; the proxy carries its words to and from the world.
//!
//! Not here: running programs and keeping journals (`proxy`), frames to the relay (`wire`).

pub mod demo;
mod driver;

pub use driver::{Driver, File, Lookup, Order, Output};
