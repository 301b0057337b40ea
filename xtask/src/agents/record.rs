//! `cargo xtask record`: runs the real agents again and records what their drivers see.
//!
//! Not here: replaying the recordings (`crates/agents/tests/recorded.rs`), making one
//! (`crates/farhelm/tests/agents/record.rs`).

use super::{FOUND_BY, Outcome, Wanted, install};
use crate::shell;

/// Where the recordings are.
const FOLDER: &str = "fixtures/agents";

/// `cargo xtask record [--only NAME] [--again]`; `--again` keeps the recordings, and writes down
/// anew what is seen of them.
pub(crate) fn run(options: &[&str]) -> Result<bool, String> {
    let wanted = match options {
        [] => Some(Wanted::All),
        ["--only", name] => Some(Wanted::Only(name)),
        ["--again"] => None,
        _ => return Err(format!("record: unknown options {:?}", options.join(" "))),
    };
    let folder = shell::root().join(FOLDER);
    if let Some(wanted) = wanted {
        let Outcome { installed, missing, list } = install(wanted)?;
        for sentence in &missing {
            shell::complain(sentence);
        }
        let mut command = shell::cargo();
        command.args(["test", "--package", "farhelm", "--test", "all", "--", "--ignored"]);
        command.args(installed.iter().map(|agent| format!("agents::recordings::{}", agent.name)));
        command.env(FOUND_BY, list).env("FARHELM_RECORD_INTO", &folder);
        if !shell::succeeds(command)? || !missing.is_empty() {
            return Ok(false);
        }
    }
    let mut command = shell::cargo();
    command.args(["test", "--package", "agents", "--test", "all", "recorded"]);
    command.env("FARHELM_WRITE_SNAPSHOTS", "1");
    let is_well = shell::succeeds(command)?;
    shell::say(&format!("review the changes: git diff {FOLDER}"));
    Ok(is_well)
}

#[cfg(test)]
mod tests {
    use super::super::pins::Pins;
    use super::*;

    #[test]
    fn every_pinned_agent_has_a_recording_of_its_version() {
        let pins = Pins::read(&shell::root().join("xtask/agents.toml")).unwrap();
        for agent in pins.agents.iter().filter(|agent| !agent.hosts) {
            let name = format!("{}-{}.jsonl", agent.name, agent.version);
            assert!(
                shell::root().join(FOLDER).join(&name).is_file(),
                "{FOLDER}/{name} is missing: the version was raised, so the driver is to be \
                 tried with it: run `cargo xtask record --only {}`, look at what changed, and \
                 commit it",
                agent.name
            );
        }
    }

    #[test]
    fn every_recording_is_of_a_pinned_agent() {
        let pins = Pins::read(&shell::root().join("xtask/agents.toml")).unwrap();
        for entry in std::fs::read_dir(shell::root().join(FOLDER)).unwrap().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_pinned = |stem: &str| {
                pins.agents.iter().any(|agent| format!("{}-{}", agent.name, agent.version) == stem)
            };
            let stem = name.strip_suffix(".jsonl").or_else(|| name.strip_suffix(".txt"));
            assert!(
                stem.is_some_and(is_pinned),
                "{FOLDER}/{name} is of no pinned agent: remove it"
            );
        }
    }
}
