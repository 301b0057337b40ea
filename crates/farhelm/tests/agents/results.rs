//! What came of each scenario, for the table in `docs/agents.md`.

use std::fs::OpenOptions;
use std::io::Write as _;

use serde_json::json;

/// The file to which one line is added for each scenario.
const REPORT_VARIABLE: &str = "FARHELM_AGENTS_REPORT";

/// What a scenario found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It works.
    Works,
    /// The agent cannot do it, and its session says so.
    Cannot(&'static str),
}

/// Adds a line. `None`: the scenario failed.
pub(crate) fn note(agent: &str, version: &str, scenario: &str, verdict: Option<Verdict>) {
    let Some(path) = std::env::var_os(REPORT_VARIABLE) else { return };
    let (outcome, why) = match verdict {
        Some(Verdict::Works) => ("works", None),
        Some(Verdict::Cannot(why)) => ("cannot", Some(why)),
        None => ("failed", None),
    };
    let line = json!({"agent": agent, "version": version, "scenario": scenario,
        "outcome": outcome, "why": why});
    // One write: tests in other processes add lines too.
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}
