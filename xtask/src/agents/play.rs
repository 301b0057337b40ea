//! Runs the scenarios of `crates/farhelm/tests/agents` with the installed agents.
//!
//! Invariant: only installed agents are tested, so a failing test is a real failure. Agents that
//! are not installed are named.
//!
//! Not here: what a scenario does, reading its results (`table`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::table::{self, Table};
use super::{FOUND_BY, Installed};
use crate::runner::{Runner, Selection};
use crate::shell;
use crate::test::tally::{self, Tally};

/// The variable that names the file to which each scenario adds its line.
const REPORT_VARIABLE: &str = "FARHELM_AGENTS_REPORT";

/// Real programs take long to start, and their tests wait for them. What runs beside them, with a
/// browser say, is more easily disturbed.
const NICENESS: u8 = 5;

/// Variables for the tests, and their values.
pub(crate) type Places = BTreeMap<&'static str, PathBuf>;

/// What came of the scenarios.
pub(crate) struct Played {
    pub(crate) is_well: bool,
    pub(crate) tally: Tally,
    pub(crate) table: Table,
}

/// Plays every scenario with each of these agents.
pub(crate) fn play(
    runner: &Runner,
    agents: &[Installed],
    list: &Path,
    places: &Places,
) -> Result<Played, String> {
    let report = report_file()?;
    let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
    let mut command = shell::behind_others(&runner.command(&selection(&names)), NICENESS);
    command.envs(places).env(FOUND_BY, list).env(REPORT_VARIABLE, &report);
    let (is_well, lines) = shell::watch(command)?;
    let told = fs::read_to_string(&report).unwrap_or_default();
    Ok(Played { is_well, tally: tally::count(&lines), table: table::read(&told) })
}

fn report_file() -> Result<PathBuf, String> {
    let folder = std::env::temp_dir();
    let path = folder.join(format!("farhelm-agents-{}.jsonl", std::process::id()));
    let told = |error: std::io::Error| format!("could not write {}: {error}", path.display());
    fs::write(&path, "").map_err(told)?;
    Ok(path)
}

/// The tests of real programs are in modules of their agents' names; those of the fake model
/// with real programs begin with them.
fn selection(names: &[&str]) -> Selection {
    let parts = |name: &&str| [format!("agents::{name}::"), format!("real_agents::{name}_")];
    Selection {
        profile: "agents",
        filterset: Some(format!("test(/^(agents|real_agents)::({})(::|_)/)", names.join("|"))),
        words: names.iter().flat_map(parts).collect(),
        is_ignored_only: true,
        is_serial: false,
    }
}
