//! Measures a build of Farhelm: each figure beside its floor, measured in the same run.
//! `cargo xtask bench` builds both programs and runs this one.
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

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use self::figures::Report;
use self::helper::Part;
use self::lab::Lab;
use self::machine::Machine;
use self::scenario::Scenario;
use self::trouble::Outcome;

/// Fewer rounds say nothing.
const ROUNDS_MIN: u32 = 5;

/// Measure a build of Farhelm against the limits of this machine
#[derive(Debug, Clone, Parser)]
#[command(
    name = "bench",
    bin_name = "cargo xtask bench",
    version,
    after_help = "Example:\n  cargo xtask bench send_accept fanout_1000 --json",
    args_conflicts_with_subcommands = true,
    override_usage = "cargo xtask bench [OPTIONS] [NAME]..."
)]
struct Bench {
    /// Scenarios to measure [default: all]
    #[arg(value_name = "NAME", value_enum)]
    names: Vec<Scenario>,
    /// Print JSON
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print a table for docs/benchmarks.md
    #[arg(long)]
    markdown: bool,
    /// How many times to alternate between floor and scenario
    #[arg(long, value_name = "N", default_value_t = ROUNDS_MIN,
          value_parser = clap::value_parser!(u32).range(i64::from(ROUNDS_MIN)..))]
    rounds: u32,
    /// Size of the large database
    #[arg(long, value_name = "N", default_value_t = 1_000_000_000)]
    big_bytes: u64,
    /// Folder to measure in, on the disk that matters [default: the temporary folder]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Build to measure [default: the farhelm program beside this one]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    #[command(subcommand)]
    part: Option<Part>,
}

fn main() -> ExitCode {
    let bench = Bench::parse();
    let done = match &bench.part {
        Some(part) => part.run(),
        None => measure(&bench).and_then(|report| {
            let mut out = std::io::stdout().lock();
            Ok(out.write_all(report.as_bytes()).and_then(|()| out.flush())?)
        }),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            let _ = writeln!(std::io::stderr().lock(), "bench: {trouble}");
            ExitCode::FAILURE
        }
    }
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
