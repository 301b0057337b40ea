//! Agents that live in a panel of an IDE or a browser.
//!
//! A [`Profile`] describes such a panel. A read-only observer script reports what the panel shows;
//! the driver converts that to reports and requests jobs. Invariant: nothing here guesses. Anything
//! that cannot be seen is reported as such, and Farhelm never types into a panel that does not
//! match its profile.
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
