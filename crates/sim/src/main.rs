//! `cargo xtask sim`: many worlds, one after the other, until one is wrong.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use sim::{Options, run};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (mut seeds, mut from) = (2_000_u64, 0_u64);
    while let Some(name) = arguments.next() {
        let value = arguments.next().and_then(|value| value.parse().ok());
        match (name.as_str(), value) {
            ("--seeds", Some(value)) => seeds = value,
            ("--from", Some(value)) => from = value,
            _ => {
                say("usage: sim [--seeds N] [--from SEED]    example: sim --seeds 100000");
                return ExitCode::from(2);
            }
        }
    }
    let live = std::io::stderr().is_terminal();
    let (mut sent, mut events) = (0, 0);
    for seed in from..from.saturating_add(seeds) {
        let outcome = run(seed, Options::default());
        sent += outcome.sends;
        events += outcome.events;
        if !outcome.wrong.is_empty() {
            say(&format!("seed {seed} is wrong:"));
            outcome.trace.iter().for_each(|line| say(line));
            outcome.ledger.iter().for_each(|line| say(line));
            outcome.wrong.iter().for_each(|line| say(&format!("WRONG: {line}")));
            say(&format!("again: cargo xtask sim --from {seed} --seeds 1"));
            return ExitCode::FAILURE;
        }
        let done = seed - from + 1;
        if live && done.is_multiple_of(50) {
            let _ = write!(std::io::stderr(), "\r{done} of {seeds} seeds");
        } else if done.is_multiple_of(1_000) {
            say(&format!("{done} of {seeds} seeds"));
        }
    }
    say(&format!("{seeds} seeds, {sent} sends, {events} events: all well"));
    ExitCode::SUCCESS
}

fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
