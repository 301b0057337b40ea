//! `farhelm bench`: what it is asked, and the shape of what it prints.
//!
//! Not here yet: the scenarios themselves.

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use crate::arguments::DataFolder;
use crate::problem::Problem;

/// Measure, beside the floor of this machine
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  farhelm bench send_accept --json")]
pub(crate) struct Bench {
    /// Which scenarios [default: all]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) data: DataFolder,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `--json` prints.
#[cfg_attr(not(test), expect(dead_code, reason = "the scenarios that fill it are written next"))]
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Where it was measured.
    pub(crate) machine: serde_json::Value,
    /// What.
    pub(crate) scenarios: Vec<Scenario>,
}

/// One figure beside its floor.
#[derive(Debug, Serialize)]
pub(crate) struct Scenario {
    /// One of [`NAMES`].
    pub(crate) name: String,
    /// As measured.
    pub(crate) value: f64,
    /// Of the value and the floor.
    pub(crate) unit: String,
    /// What this machine can do at all, measured in the same run.
    pub(crate) floor: Option<f64>,
    /// Value by floor.
    pub(crate) ratio: Option<f64>,
    /// What the ratio, or the value where there is no floor, should reach.
    pub(crate) target: f64,
    /// Whether it does.
    pub(crate) met: bool,
}

/// Every scenario.
pub(crate) const NAMES: [&str; 9] = [
    "send_accept",
    "senders_64",
    "ledger_append",
    "fanout_1000",
    "delta_hop",
    "replay_100k",
    "idle_connection",
    "cold_start_new",
    "cold_start_1gb",
];

/// Runs the named scenarios.
pub(crate) fn run(bench: &Bench) -> Result<ExitCode, Problem> {
    if let Some(unknown) = bench.names.iter().find(|name| !NAMES.contains(&name.as_str())) {
        let known = NAMES.join(", ");
        return Err(Problem::usage(format!("no scenario is called {unknown}; there are {known}")));
    }
    Err(Problem::new("this build has no benchmarks yet"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_the_fields_that_scripts_rely_on() {
        let scenario = Scenario {
            name: NAMES[0].to_owned(),
            value: 0.5,
            unit: "ms".to_owned(),
            floor: Some(0.25),
            ratio: Some(2.0),
            target: 3.0,
            met: true,
        };
        let report = Report { machine: serde_json::json!({}), scenarios: vec![scenario] };
        let told = serde_json::to_value(report).unwrap();
        assert_eq!(
            told["scenarios"][0],
            serde_json::json!({ "name": "send_accept", "value": 0.5, "unit": "ms", "floor": 0.25,
                "ratio": 2.0, "target": 3.0, "met": true })
        );
    }
}
