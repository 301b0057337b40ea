//! The table of what works with which agent, built from the report of the scenarios: for the
//! terminal and for `docs/agents.md`.
//!
//! Not here: running the scenarios (`play`).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;

/// What stands around the table in the page.
const BEGIN: &str = "<!-- The table is written by `cargo xtask agents --all`. -->";
const END: &str = "<!-- End of the table. -->";

/// One line of the report.
#[derive(Debug, Deserialize)]
struct Line {
    agent: String,
    version: String,
    scenario: String,
    outcome: Outcome,
    why: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Works,
    Cannot,
    Failed,
}

/// Everything that was told.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// The agents with their versions, in the order of their names.
    agents: BTreeMap<String, String>,
    /// Scenarios in the order in which they are explained here.
    cells: BTreeMap<(String, String), (Outcome, Option<String>)>,
}

/// The rows, and what each is called for people.
const ROWS: [(&str, &str); 32] = [
    ("plain_streaming", "streams its answer"),
    ("tool_approved", "tool call allowed"),
    ("tool_denied", "tool call denied"),
    ("always_allow", "always allow"),
    ("edited_input", "edit a tool call before allowing it"),
    ("interrupt_streaming", "stop it while it answers"),
    ("interrupt_prompt", "stop it while it asks a question"),
    ("interrupt_tool", "stop it while a tool runs"),
    ("model_switch", "switch the model"),
    ("mode_switch", "switch the permission mode"),
    ("queue", "queue a follow-up"),
    ("steer", "steer during a run"),
    ("picture_sent", "send a picture to the model"),
    ("limit_told", "reports rate limits"),
    ("compaction", "reports compaction"),
    ("background_subagent", "runs a subagent in the background"),
    ("plan", "shows its to-do list"),
    ("file_written", "shows file changes as diffs"),
    ("long_output", "full text of a long tool output"),
    ("all_dialects", "clients of all dialects at once"),
    ("resume_after_kill", "continues after the proxy is killed"),
    ("killed_while_streaming", "continues after the proxy is killed during a run"),
    ("transcript_import", "resumes an earlier conversation"),
    ("picture_imported", "shows pictures of an earlier conversation"),
    ("api_error", "the model provider fails"),
    ("agent_killed", "the agent is killed"),
    ("memory_guard", "stopped when it uses too much memory"),
    ("killed_at_received", "once only: proxy killed after receiving"),
    ("killed_at_attempting", "once only: proxy killed before the write"),
    ("killed_at_written", "once only: proxy killed after the write"),
    ("killed_at_heard", "once only: proxy killed on confirmation"),
    ("killed_at_settled", "once only: proxy killed after settling"),
];

/// Reads a report. A scenario that ran twice counts as it ended last.
pub(crate) fn read(report: &str) -> Table {
    let mut table = Table::default();
    for line in report.lines() {
        let Ok(line) = serde_json::from_str::<Line>(line) else { continue };
        table.agents.insert(line.agent.clone(), line.version);
        table.cells.insert((line.agent, line.scenario), (line.outcome, line.why));
    }
    table
}

impl Table {
    /// As Markdown, which can be read in a terminal too.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::from("| |");
        for (agent, version) in &self.agents {
            let _ = write!(text, " {agent} {version} |");
        }
        text.push_str("\n|---|");
        text.push_str(&"---|".repeat(self.agents.len()));
        text.push('\n');
        let mut notes: Vec<&str> = vec![];
        for (scenario, name) in ROWS {
            let _ = write!(text, "| {name} |");
            for agent in self.agents.keys() {
                let cell = self.cells.get(&(agent.clone(), scenario.to_owned()));
                let _ = write!(text, " {} |", word(cell, &mut notes));
            }
            text.push('\n');
        }
        for (place, note) in notes.iter().enumerate() {
            let _ = write!(text, "\n{}. {note}", place + 1);
        }
        if !notes.is_empty() {
            text.push('\n');
        }
        text
    }

    /// Scenarios that ran and have no row: somebody added one.
    pub(crate) fn without_row(&self) -> Vec<String> {
        let is_known = |scenario: &str| ROWS.iter().any(|(known, _)| *known == scenario);
        let mut unknown: Vec<String> =
            self.cells.keys().map(|(_, s)| s.clone()).filter(|s| !is_known(s)).collect();
        unknown.sort();
        unknown.dedup();
        unknown
    }

    /// The page with this table in place of the one that it had; `None` where it has none.
    pub(crate) fn put_into(&self, page: &str) -> Option<String> {
        let (before, rest) = page.split_once(BEGIN)?;
        let (_, after) = rest.split_once(END)?;
        Some(format!("{before}{BEGIN}\n{}\n{END}{after}", self.markdown()))
    }
}

fn word<'a>(cell: Option<&'a (Outcome, Option<String>)>, notes: &mut Vec<&'a str>) -> String {
    match cell {
        None => "not run".to_owned(),
        Some((Outcome::Works, _)) => "yes".to_owned(),
        Some((Outcome::Failed, _)) => "**fails**".to_owned(),
        Some((Outcome::Cannot, why)) => {
            let why = why.as_deref().unwrap_or_default();
            let known = notes.iter().position(|note| *note == why);
            let place = known.unwrap_or_else(|| {
                notes.push(why);
                notes.len() - 1
            });
            format!("no ({})", place + 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"{"agent":"b","version":"2","scenario":"queue","outcome":"works"}
{"agent":"a","version":"1","scenario":"queue","outcome":"failed"}
{"agent":"a","version":"1","scenario":"steer","outcome":"cannot","why":"it has no ears"}
not a line
{"agent":"b","version":"2","scenario":"steer","outcome":"cannot","why":"it has no ears"}"#;

    #[test]
    fn every_outcome_has_its_word_and_a_reason_is_told_once() {
        let text = read(REPORT).markdown();
        assert!(text.starts_with("| | a 1 | b 2 |\n|---|---|---|\n"), "{text}");
        assert!(text.contains("| queue a follow-up | **fails** | yes |\n"), "{text}");
        assert!(text.contains("| steer during a run | no (1) | no (1) |\n"), "{text}");
        assert!(text.contains("| switch the permission mode | not run | not run |\n"), "{text}");
        assert!(text.ends_with("\n1. it has no ears\n"), "{text}");
    }

    #[test]
    fn only_the_table_of_a_page_is_replaced() {
        let page = format!("above\n{BEGIN}\nstale words\n{END}\nbelow");
        let put = read(REPORT).put_into(&page).unwrap();
        assert!(put.starts_with("above\n") && put.ends_with(&format!("\n{END}\nbelow")), "{put}");
        assert!(!put.contains("stale words") && put.contains("| a 1 |"), "{put}");
        assert_eq!(read(REPORT).put_into("no table"), None);
    }

    #[test]
    fn a_scenario_without_a_row_is_named() {
        let line = r#"{"agent":"a","version":"1","scenario":"dance","outcome":"works"}"#;
        assert_eq!(read(line).without_row(), ["dance"]);
        assert!(read(REPORT).without_row().is_empty());
    }
}
