//! The commands, one file each.
//!
//! Not here: their flags (`arguments`).

mod attach;
mod cdp;
mod control;
mod end;
mod launch;
mod pair;
mod proxy;
mod send;
mod sessions;
mod socket;
mod steer;
mod tail;
mod token;
mod up;

use std::process::ExitCode;

use client::{Machine, Remote, Settings};

use crate::arguments::Command;
use crate::connect::NativeDial;
use crate::discovery::Finder;
use crate::doctor;
use crate::problem::Problem;

/// Runs one.
pub(crate) async fn run(command: Command) -> Result<ExitCode, Problem> {
    match command {
        Command::Up(up) => up::up(up).await,
        Command::Relay(relay) => up::relay(relay).await,
        Command::Proxy(proxy) => proxy::run(proxy).await,
        Command::Pair(pair) => pair::run(pair).await,
        Command::Token(token) => token::run(token.task).await,
        Command::Sessions(sessions) => sessions::run(sessions).await,
        Command::Send(send) => send::run(send).await,
        Command::Tail(tail) => tail::run(tail).await,
        Command::Attach(attach) => attach::attach(attach).await,
        Command::Run(run) => attach::run(run).await,
        Command::Control(control) => control::run(control).await,
        Command::Answer(answer) => steer::answer(answer).await,
        Command::Interrupt(interrupt) => steer::interrupt(interrupt).await,
        Command::Launch(launch) => launch::launch(launch).await,
        Command::Resume(resume) => launch::resume(resume).await,
        Command::Close(close) => steer::close(close).await,
        Command::Doctor(doctor) => doctor::run(doctor).await,
        Command::Cdp(cdp) => cdp::run(cdp.task).await,
    }
}

/// A native client of this process.
fn remote(finder: Finder) -> Result<Remote<NativeDial>, Problem> {
    let machine = Machine::new(Settings::full("farhelm", &new_id("cli")?));
    Ok(Remote::new(machine, NativeDial::new(finder)))
}

/// A name that nobody else makes.
fn new_id(prefix: &str) -> Result<String, Problem> {
    let failed = |error| Problem::new(format!("the system provides no random bytes: {error}"));
    let random = getrandom::u64().map_err(failed)?;
    let more = getrandom::u64().map_err(failed)?;
    Ok(format!("{prefix}_{random:016x}{more:016x}"))
}
