//! `farhelm bench`: each figure next to its floor, measured in the same run.
//!
//! **Invariant**: floor and scenario alternate, at least five rounds each; the results are their
//! medians. **Invariant**: when it returns, also after Ctrl-C, every process that it started has
//! ended and every file that it made is gone.
//!
//! Not here: what is measured (the crates), the discussion of the figures (docs/benchmarks.md).

mod agents;
mod clients;
mod cold_start;
mod deltas;
mod dialects;
mod disk;
mod fanout;
mod figures;
mod fill;
mod helper;
mod idle;
mod lab;
mod ledger;
mod machine;
mod process;
mod replay;
mod scenario;
mod send_accept;
mod senders;
mod statistics;
mod stub_proxy;
mod swarm;
mod trouble;
mod webchannel;
mod websocket;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use self::figures::Report;
use self::helper::Part;
use self::lab::Lab;
use self::machine::Machine;
use self::scenario::Scenario;
use self::trouble::{Outcome, Trouble};
use crate::output;
use crate::problem::Problem;

/// Fewer rounds say nothing.
const ROUNDS_MIN: u32 = 5;

/// Measure this build, compared with what this machine can do
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Example:\n  farhelm bench send_accept fanout_1000 --json",
    args_conflicts_with_subcommands = true,
    override_usage = "farhelm bench [OPTIONS] [NAME]..."
)]
pub(crate) struct Bench {
    /// Scenarios to measure [default: all]
    #[arg(value_name = "NAME", value_enum)]
    pub(crate) names: Vec<Scenario>,
    /// Print JSON
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) json: bool,
    /// Print a table for docs/benchmarks.md
    #[arg(long)]
    pub(crate) markdown: bool,
    /// Rounds of floor and scenario
    #[arg(long, value_name = "N", default_value_t = ROUNDS_MIN,
          value_parser = clap::value_parser!(u32).range(i64::from(ROUNDS_MIN)..))]
    pub(crate) rounds: u32,
    /// Size of the large database, in bytes
    #[arg(long, value_name = "N", default_value_t = 1_000_000_000)]
    pub(crate) big_bytes: u64,
    /// Folder to measure in, on the disk that matters [default: the temporary folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Another build to measure
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) program: Option<PathBuf>,
    #[command(subcommand)]
    part: Option<Part>,
}

/// Measures and prints. Progress is told on stderr.
pub(crate) fn run(bench: &Bench) -> Result<ExitCode, Problem> {
    // On a thread of its own: it waits for disks and processes, and has runtimes of its own.
    let text = std::thread::scope(|scope| {
        let work = scope.spawn(|| match &bench.part {
            Some(part) => part.run().map(|()| String::new()),
            None => measure(bench),
        });
        work.join().unwrap_or_else(|_| Err(Trouble::new("the measurement crashed")))
    });
    output::raw(&text.map_err(Problem::new)?)?;
    Ok(ExitCode::SUCCESS)
}

fn measure(bench: &Bench) -> Outcome<String> {
    process::raise_open_files();
    let names: Vec<_> = bench.names.iter().flat_map(Scenario::scenarios).copied().collect();
    let names = if names.is_empty() { Scenario::ALL.to_vec() } else { names };
    let lab = Lab::open(bench)?;
    let machine = Machine::look(lab.folder());
    lab.say(&format!("measuring in {}; {}", lab.folder().display(), process::RAISED_LIMITS));
    if machine.is_in_memory() {
        lab.say(
            "warning: this folder is in memory, so nothing in it is durable; choose another with \
             --folder",
        );
    }
    let mut scenarios = vec![];
    for name in names {
        scenarios.push(scenario::run(name, &lab)?);
    }
    let report = Report { machine, limits: process::RAISED_LIMITS, scenarios };
    if bench.json {
        return report.json();
    }
    Ok(if bench.markdown { report.markdown() } else { report.table() })
}
