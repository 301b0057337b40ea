//! Agents that live in a panel of somebody's IDE or browser.
//!
//! A [`Profile`] says how such a panel looks; an observer script that only reads tells what it
//! shows; the driver makes reports of that and asks for jobs. Invariant: nothing here guesses.
//! What cannot be seen is told as such, and a panel that looks otherwise than its profile says is
//! never typed into.
//!
//! Not here: the browser's socket (`cdp`), doing the jobs and finding panels (`proxy`).

pub mod driver;
pub mod frames;
pub mod health;
pub mod identity;
mod job;
mod news;
mod notes;
mod pattern;
pub mod profile;
mod sight;
pub mod skeleton;
mod tellings;

pub use driver::{Origin, PanelDriver};
pub use job::{Job, JobNumber, Task};
pub use news::{Attached, Done, News};
use pattern::pattern;
pub use profile::{Profile, ProfileFault};

/// The script that reads a panel: a function expression, called in a world of its own with the
/// profile (as JSON), the name of the binding, and a name for this time.
pub const OBSERVER: &str = include_str!("panel/observer.js");
