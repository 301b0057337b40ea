//! The agents that have a driver of their own.

use crate::absent::Absent;
use crate::acp::Acp;
use crate::{Driver, Setup, claude, codex, demo, pi};

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
pub const KNOWN: &[Known] = &[
    claude::KNOWN,
    codex::KNOWN,
    Known {
        name: "gemini",
        display_name: "Gemini CLI",
        command: "gemini",
        args: &["--acp"],
        install: "Install it with: npm install -g @google/gemini-cli",
    },
    Known {
        name: "opencode",
        display_name: "opencode",
        command: "opencode",
        args: &["acp"],
        install: "Install it with: npm install -g opencode-ai",
    },
    Known {
        name: pi::AGENT,
        display_name: "pi",
        command: "pi",
        args: &[],
        install: "Install it with: npm install -g @earendil-works/pi-coding-agent",
    },
];

/// The driver of a session. Any agent without one of its own speaks ACP.
pub fn driver_of(agent: &str, setup: Setup) -> Box<dyn Driver> {
    match agent {
        demo::AGENT => Box::new(demo::Demo::new(&setup.notes, setup.model.as_ref())),
        claude::AGENT => Box::new(claude::Claude::new(setup)),
        codex::AGENT => Box::new(codex::Codex::new(setup)),
        pi::AGENT => Box::new(pi::Pi::new(setup)),
        // Nobody knows how to start it.
        _ if setup.launcher.command.is_empty() => Box::new(Absent::new(agent, setup)),
        _ => Box::new(Acp::new(agent, setup)),
    }
}
