//! Runs the scenarios of `crates/farhelm/tests/agents` with the installed agents.
//!
//! Invariant: only agents that are installed are asked for, so a test that fails has really
//! failed; whoever is not installed is named.
//!
//! Not here: what a scenario does, reading its results (`table`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::table::{self, Table};
use super::{FOUND_BY, Installed};
use crate::shell;
use crate::test::tally::{self, Tally};

/// The variable that names the file to which each scenario adds its line.
const REPORT_VARIABLE: &str = "FARHELM_AGENTS_REPORT";

/// What came of the scenarios.
pub(crate) struct Played {
    pub(crate) is_well: bool,
    pub(crate) tally: Tally,
    pub(crate) table: Table,
}

/// Plays every scenario with each of these agents.
pub(crate) fn play(agents: &[Installed], list: &Path) -> Result<Played, String> {
    let report = report_file()?;
    let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
    let mut command = runner(&names);
    command.env(FOUND_BY, list).env(REPORT_VARIABLE, &report);
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
fn runner(names: &[&str]) -> Command {
    let mut command = shell::cargo();
    let mut probe = shell::cargo();
    probe.args(["nextest", "--version"]);
    let has_nextest = shell::answers(probe);
    command.args(if has_nextest { &["nextest", "run"][..] } else { &["test"] });
    command.args(["--package", "farhelm", "--package", "fake_model"]);
    command.args(["--test", "all", "--no-fail-fast"]);
    if has_nextest {
        command.args(["--run-ignored", "only", "--filterset"]);
        command.arg(format!("test(/^(agents|real_agents)::({})(::|_)/)", names.join("|")));
    } else {
        let filters = names
            .iter()
            .flat_map(|name| [format!("agents::{name}::"), format!("real_agents::{name}_")]);
        command.args(["--", "--ignored"]).args(filters);
    }
    command
}
