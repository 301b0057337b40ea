//! The driver, fed with what pi says.

mod bench;
mod delivery;
mod life;
mod prompts;
mod runs;
