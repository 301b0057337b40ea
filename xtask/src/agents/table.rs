//! What works with which agent, as reported by the scenarios: a table for the terminal and for
//! `docs/agents.md`.
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
    ("plain_streaming", "streams text"),
    ("tool_approved", "approve a tool"),
    ("tool_denied", "deny a tool"),
    ("always_allow", "always allow"),
    ("edited_input", "edit a tool's input"),
    ("interrupt_streaming", "interrupt while it writes"),
    ("interrupt_prompt", "interrupt while it asks"),
    ("interrupt_tool", "interrupt while a tool runs"),
    ("model_switch", "switch the model"),
    ("mode_switch", "switch the mode"),
    ("queue", "queue a follow-up"),
    ("steer", "steer during a run"),
    ("picture_sent", "a picture reaches the model"),
    ("limit_told", "reports rate limits"),
    ("compaction", "reports compaction"),
    ("background_subagent", "runs a subagent in the background"),
    ("plan", "shows its to-do list"),
    ("file_written", "shows a written file as a change"),
    ("long_output", "shows the rest of a long output"),
    ("all_dialects", "serves clients of all dialects at once"),
    ("resume_after_kill", "continues after the proxy was killed"),
    ("killed_while_streaming", "continues after the proxy was killed during a run"),
    ("transcript_import", "resume an earlier conversation"),
    ("picture_imported", "shows pictures of an earlier conversation"),
    ("api_error", "the model's service fails"),
    ("agent_killed", "the agent is killed"),
    ("memory_guard", "is stopped when it takes too much memory"),
    ("killed_at_received", "delivered once: killed when received"),
    ("killed_at_attempting", "delivered once: killed before the write"),
    ("killed_at_written", "delivered once: killed after the write"),
    ("killed_at_heard", "delivered once: killed at the evidence"),
    ("killed_at_settled", "delivered once: killed when settled"),
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
        assert!(text.contains("| switch the mode | not run | not run |\n"), "{text}");
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
