//! `cargo xtask agents`: the real agent programs that the tests run, at pinned versions.
//!
//! Invariant: they are in the person's cache folder, never in the checkout. A complete
//! installation is not fetched again, and two runs do not disturb each other.
//!
//! Not here: the versions (`agents.toml`), what the tests do with the agents
//! (`crates/farhelm/tests/agents`).

mod cache;
mod install;
mod installed;
mod pins;
mod platform;
pub(crate) mod play;
pub(crate) mod record;
mod table;

use std::path::PathBuf;
use std::time::Instant;

use crate::runner::Runner;
use crate::shell;
use cache::Cache;
use install::Workshop;
pub(crate) use installed::Installed;
use pins::{Agent, Pins};
use platform::Platform;
use play::{Places, Played};
use table::Table;

/// The variable with which tests find what was installed.
pub(crate) const FOUND_BY: &str = "FARHELM_TEST_AGENTS";

/// The IDE in which panels are tried.
pub(crate) const CODE_SERVER: &str = "code-server";

/// Where what works with which agent is written down.
const PAGE: &str = "docs/agents.md";

/// Which agents are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted<'a> {
    /// Those that every full test run uses.
    Everyday,
    /// All that are pinned.
    All,
    /// One of them.
    Only(&'a str),
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

/// `cargo xtask agents [--install] [--all | --only NAME]`.
pub(crate) fn run(options: &[&str]) -> Result<bool, String> {
    let (wanted, plays) = read(options)?;
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
    if !plays || installed.is_empty() {
        return Ok(missing.is_empty());
    }
    let Played { is_well, tally, table } =
        play::play(&Runner::find(), &installed, &list, &Places::new())?;
    shell::say(&format!("\n{}", table.markdown()));
    for scenario in table.without_row() {
        shell::say(&format!("{scenario} has no row: add one in xtask/src/agents/table.rs"));
    }
    if wanted == Wanted::All && missing.is_empty() {
        write_page(&table)?;
    }
    let seconds = started.elapsed().as_secs_f64();
    shell::say(&format!("{tally} ({seconds:.0} s)"));
    Ok(is_well && missing.is_empty())
}

/// Which agents, and whether their scenarios are played.
fn read<'a>(options: &[&'a str]) -> Result<(Wanted<'a>, bool), String> {
    let (mut wanted, mut plays) = (Wanted::Everyday, true);
    let mut rest = options.iter();
    while let Some(option) = rest.next() {
        match *option {
            "--install" => plays = false,
            "--all" => wanted = Wanted::All,
            "--only" => {
                let name = rest.next().ok_or("agents: --only needs an agent name")?;
                wanted = Wanted::Only(name);
            }
            unknown => return Err(format!("agents: unknown option {unknown:?}")),
        }
    }
    Ok((wanted, plays))
}

/// Puts the table into its page.
fn write_page(table: &Table) -> Result<(), String> {
    let path = shell::root().join(PAGE);
    let told = |error: std::io::Error| format!("{}: {error}", path.display());
    let page = std::fs::read_to_string(&path).map_err(told)?;
    let Some(page) = table.put_into(&page) else {
        return Err(format!("{PAGE} has no markers for the table"));
    };
    std::fs::write(&path, page).map_err(told)?;
    shell::say(&format!("written to {PAGE}"));
    Ok(())
}

/// Installs what is wanted and not there yet. An error means that nothing could be tried.
pub(crate) fn install(wanted: Wanted<'_>) -> Result<Outcome, String> {
    let pins = Pins::read(&shell::root().join("xtask").join("agents.toml"))?;
    if let Wanted::Only(name) = wanted
        && pins.agents.iter().all(|agent| agent.name != name)
    {
        let known: Vec<&str> = pins.agents.iter().map(|agent| agent.name.as_str()).collect();
        return Err(format!("unknown agent {name}; available: {}", known.join(", ")));
    }
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

fn is_wanted(agent: &Agent, wanted: Wanted<'_>) -> bool {
    match wanted {
        Wanted::Everyday => agent.everyday,
        Wanted::All => !agent.hosts,
        Wanted::Only(name) => agent.name == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_choose_the_agents_and_whether_they_play() {
        assert_eq!(read(&[]), Ok((Wanted::Everyday, true)));
        assert_eq!(read(&["--install", "--all"]), Ok((Wanted::All, false)));
        assert_eq!(read(&["--only", "pi"]), Ok((Wanted::Only("pi"), true)));
        assert!(read(&["--only"]).is_err());
        assert!(read(&["--some"]).is_err());
    }
}
