//! `cargo xtask agents`: the real agent programs that the tests run, at pinned versions.
//!
//! Invariant: they live in a cache folder of the person, never in the checkout; what is there and
//! complete is not fetched again; two runs do not disturb each other.
//!
//! Not here: the versions (`agents.toml`), what the tests do with the agents.

mod cache;
mod install;
mod installed;
mod pins;
mod platform;

use std::path::PathBuf;
use std::time::Instant;

use crate::shell;
use cache::Cache;
use install::Workshop;
pub(crate) use installed::Installed;
use pins::{Agent, Pins};
use platform::Platform;

/// The variable with which tests find what was installed.
pub(crate) const FOUND_BY: &str = "FARHELM_TEST_AGENTS";

/// Which agents are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Those that every full test run uses.
    Everyday,
    /// All that are pinned.
    All,
}

/// What an installation came to.
pub(crate) struct Outcome {
    /// Usable now, whether fetched today or earlier.
    pub(crate) installed: Vec<Installed>,
    /// A sentence for each that is missing.
    pub(crate) missing: Vec<String>,
    /// Where tests read what is installed.
    pub(crate) list: PathBuf,
}

/// `cargo xtask agents --install [--all]`.
pub(crate) fn run(options: &[&str]) -> Result<bool, String> {
    let mut wanted = Wanted::Everyday;
    let mut installs = false;
    for option in options {
        match *option {
            "--install" => installs = true,
            "--all" => wanted = Wanted::All,
            unknown => return Err(format!("agents: cannot read {unknown:?}")),
        }
    }
    if !installs {
        return Err("agents: say --install".to_owned());
    }
    let started = Instant::now();
    let Outcome { installed, missing, list } = install(wanted)?;
    for agent in &installed {
        shell::say(&format!("{} {}: {}", agent.name, agent.version, agent.program.display()));
    }
    for sentence in &missing {
        shell::complain(sentence);
    }
    let seconds = started.elapsed().as_secs_f64();
    shell::say(&format!(
        "{} agents, {} missing ({seconds:.1} s). Tests find them with {FOUND_BY}={}",
        installed.len(),
        missing.len(),
        list.display()
    ));
    Ok(missing.is_empty())
}

/// Installs what is wanted and not there yet. An error means that nothing could be tried.
pub(crate) fn install(wanted: Wanted) -> Result<Outcome, String> {
    let pins = Pins::read(&shell::root().join("xtask").join("agents.toml"))?;
    let cache = Cache::open()?;
    let _lock = cache.lock()?;
    let workshop = Workshop { cache: &cache, platform: Platform::here()?, before: &pins.before };
    let mut missing = Vec::new();
    // Asked for at most once, and only by an agent that needs it.
    let mut node = None;
    for agent in pins.agents.iter().filter(|agent| is_wanted(agent, wanted)) {
        if let Err(sentence) = workshop.agent(agent, &pins.node, &mut node) {
            missing.push(sentence);
        }
    }
    // Also what an earlier run fetched: a run without --all takes nothing away.
    let there = |agent: &Agent| workshop.finished(agent);
    let installed: Vec<Installed> = pins.agents.iter().filter_map(there).collect();
    let list = cache.list();
    installed::write(&list, &installed)?;
    let installed = installed
        .into_iter()
        .filter(|one| pins.agents.iter().any(|a| a.name == one.name && is_wanted(a, wanted)))
        .collect();
    Ok(Outcome { installed, missing, list })
}

fn is_wanted(agent: &Agent, wanted: Wanted) -> bool {
    match wanted {
        Wanted::Everyday => agent.everyday,
        Wanted::All => true,
    }
}
