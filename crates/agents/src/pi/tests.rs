//! The driver, fed with pi's output.

mod bench;
mod delivery;
mod life;
mod prompts;
mod runs;
