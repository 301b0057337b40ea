//! The farhelm binary: relay, proxy, both, and the commands that talk to them.
//!
//! **Invariant**: the requested result goes to standard output, everything else to standard error.
//! The exit code is 0 on success, 1 on failure, and 2 if the command was not understood.
//!
//! Not here: anything that a library could do (`relay`, `server`, `proxy`, `client`).

mod arguments;
mod commands;
mod connect;
mod discovery;
mod doctor;
mod folders;
mod http;
mod logging;
mod notify;
mod output;
mod problem;
mod qr;
mod ready;
mod serve;
mod sessions;
mod settings;
mod stop;
mod view;

use std::process::ExitCode;

use crate::arguments::{Arguments, Command};
use crate::logging::Talk;
use crate::problem::Problem;
use crate::settings::Unusable;

/// Threads of a relay or proxy, at least: one that is busy must not keep the others waiting.
const WORKERS_MIN: usize = 2;

fn main() -> ExitCode {
    let arguments = match settings::read() {
        Ok(arguments) => arguments,
        Err(Unusable::Clap(error)) => {
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
        Err(Unusable::File(problem)) => return told(&problem),
    };
    match run(arguments) {
        Ok(code) => code,
        Err(problem) => told(&problem),
    }
}

fn told(problem: &Problem) -> ExitCode {
    if !problem.words().is_empty() {
        output::aside(format_args!("farhelm: {}", problem.words()));
    }
    problem.exit_code()
}

fn run(arguments: Arguments) -> Result<ExitCode, Problem> {
    let talk = match &arguments.command {
        Command::Up(_) | Command::Relay(_) | Command::Proxy(_) => Talk::Running,
        Command::Pair(_)
        | Command::Token(_)
        | Command::Sessions(_)
        | Command::Send(_)
        | Command::Tail(_)
        | Command::Attach(_)
        | Command::Run(_)
        | Command::Control(_)
        | Command::Answer(_)
        | Command::Interrupt(_)
        | Command::Launch(_)
        | Command::Resume(_)
        | Command::Close(_)
        | Command::Doctor(_)
        | Command::Cdp(_) => Talk::Quiet,
    };
    logging::begin(talk);
    let runtime = match talk {
        Talk::Running => {
            let cores = std::thread::available_parallelism().map_or(WORKERS_MIN, Into::into);
            let workers = cores.max(WORKERS_MIN);
            tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build()
        }
        Talk::Quiet => tokio::runtime::Builder::new_current_thread().enable_all().build(),
    };
    let runtime = runtime
        .map_err(|error| Problem::new(format!("could not start worker threads: {error}")))?;
    let code = runtime.block_on(commands::run(arguments.command));
    // Somebody may still be typing on standard input; that must not keep the process.
    runtime.shutdown_background();
    code
}
