//! The other end of a measurement, in a process of its own: a hidden part of this program.
//!
//! It reports its progress on stdout and ends when its stdin closes, so it cannot outlive the run
//! that started it.
//!
//! Not here: the run's handle on it (`swarm`).

mod echo;
mod repeater;
pub(crate) mod stub_agent;
mod watchers;

use std::io::Read as _;
use std::net::SocketAddr;

use clap::{Subcommand, ValueEnum};

use super::process;
use super::trouble::Outcome;

/// What a run starts beside the relay.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Part {
    /// Many clients that count the messages they hear
    #[command(hide = true)]
    Watchers { address: SocketAddr, count: usize, greeting: Greeting },
    /// A server that sends what its publisher says to many sockets
    #[command(hide = true)]
    Repeater { count: usize },
    /// An axum server that sends back every text frame
    #[command(hide = true)]
    Echo,
    /// An agent that prints at a fixed rate
    #[command(hide = true)]
    StubAgent,
}

/// How a watcher begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Greeting {
    /// As a native client, with the token that comes by stdin.
    Native,
    /// As native clients that stream one session.
    Streaming,
    /// As clients of that session of four dialects in turn.
    Mixed,
    /// Not at all: whoever is there sends frames at once.
    Plain,
}

impl Part {
    /// Does its part until stdin ends.
    pub(crate) fn run(&self) -> Outcome<()> {
        process::raise_open_files();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        match self {
            Self::Watchers { address, count, greeting } => {
                let token = first_line()?;
                end_with_stdin()?;
                let tasks = tokio::task::LocalSet::new();
                tasks.block_on(&runtime, watchers::run(*address, *count, *greeting, &token))
            }
            Self::Repeater { count } => {
                end_with_stdin()?;
                repeater::run(*count)
            }
            Self::Echo => {
                end_with_stdin()?;
                runtime.block_on(echo::run())
            }
            Self::StubAgent => stub_agent::run(),
        }
    }
}

/// The token comes by stdin: arguments can be read by others on the machine.
fn first_line() -> Outcome<String> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    Ok(line.trim().to_owned())
}

fn end_with_stdin() -> Outcome<()> {
    std::thread::Builder::new().name("stdin".to_owned()).spawn(|| {
        let mut sink = [0; 16];
        while std::io::stdin().read(&mut sink).is_ok_and(|count| count > 0) {}
        std::process::exit(0);
    })?;
    Ok(())
}
