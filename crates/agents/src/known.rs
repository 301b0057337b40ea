//! The agents that have their own driver.

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

#[cfg(test)]
mod tests {
    use domain::Timestamp;

    use super::*;
    use crate::{Launcher, Output};

    // spec: native/proxy_launch_behavior.5
    #[test]
    fn every_driver_waits_as_long_as_its_launch_does_and_then_says_why_it_is_not_ready() {
        for agent in ["claude", "codex", "pi", "gemini"] {
            for ready_by in [Timestamp(5_000), Timestamp(90_000)] {
                let mut driver = driver_of(agent, setup());
                driver.ready_by(ready_by);
                let told = driver.start(Timestamp(1_000));
                assert!(told.iter().any(|it| matches!(it, Output::Spawn(_))), "{agent}: {told:?}");
                assert_eq!(driver.deadline(), Some(ready_by), "{agent}");
                let early = Timestamp(ready_by.0 - 1);
                assert!(failure_in(&driver.on_deadline(early)).is_none(), "{agent}");
                let failure = failure_in(&driver.on_deadline(ready_by));
                assert_eq!(failure.as_deref(), Some("launch_timeout"), "{agent}");
            }
        }
    }

    fn failure_in(told: &[Output]) -> Option<String> {
        told.iter().find_map(|output| {
            let Output::Unusable(failure) = output else { return None };
            Some(failure.code.as_str().to_owned())
        })
    }

    fn setup() -> Setup {
        Setup {
            session: "sess_1".into(),
            notes: String::new(),
            launcher: Launcher { command: "agent".to_owned(), ..Launcher::default() },
            workspace: "/w".into(),
            model: None,
            mode: None,
            earlier: None,
            ready_by: None,
            variables: std::collections::BTreeMap::new(),
        }
    }
}
