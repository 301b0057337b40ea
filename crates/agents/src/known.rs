//! The agents that have a driver of their own.

use crate::absent::Absent;
use crate::{Driver, Setup, claude, codex, demo};

/// What is known of an agent before it is looked for.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// Its name in `agent_type`.
    pub name: &'static str,
    /// What people call it.
    pub display_name: &'static str,
    /// The program to look for.
    pub command: &'static str,
    /// Arguments that make it speak to us, before the driver's own.
    pub args: &'static [&'static str],
    /// How a person gets it.
    pub install: &'static str,
}

/// The agents that are looked for, in the order they are offered.
pub const KNOWN: &[Known] = &[claude::KNOWN, codex::KNOWN];

/// The driver of a session. Any agent without one of its own speaks ACP.
pub fn driver_of(agent: &str, setup: Setup) -> Box<dyn Driver> {
    match agent {
        demo::AGENT => Box::new(demo::Demo::new(&setup.notes, setup.model.as_ref())),
        claude::AGENT => Box::new(claude::Claude::new(setup)),
        codex::AGENT => Box::new(codex::Codex::new(setup)),
        _ => Box::new(Absent::new(agent, setup)),
    }
}
