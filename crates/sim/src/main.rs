//! `cargo xtask sim`: many worlds, one after the other, until one is wrong.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use sim::{Met, Options, run};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (mut seeds, mut from) = (2_000_u64, 0_u64);
    let mut goes_on = false;
    while let Some(name) = arguments.next() {
        if name == "--go-on" {
            goes_on = true;
            continue;
        }
        let value = arguments.next().and_then(|value| value.parse().ok());
        match (name.as_str(), value) {
            ("--seeds", Some(value)) => seeds = value,
            ("--from", Some(value)) => from = value,
            _ => {
                say("usage: sim [--seeds N] [--from SEED] [--go-on]");
                say("example: sim --seeds 100000    --go-on: list every wrong seed, briefly");
                return ExitCode::from(2);
            }
        }
    }
    let live = std::io::stderr().is_terminal();
    let (mut sent, mut events, mut met, mut wrong) = (0, 0, Met::default(), 0);
    let (begun, mut simulated) = (Instant::now(), Duration::ZERO);
    for seed in from..from.saturating_add(seeds) {
        let outcome = run(seed, Options::default());
        sent += outcome.sends;
        events += outcome.events;
        met.add(&outcome.met);
        simulated += outcome.simulated;
        if let (Some(first), true) = (outcome.wrong.first(), goes_on) {
            wrong += 1;
            say(&format!("seed {seed}: {first}"));
        } else if !outcome.wrong.is_empty() {
            say(&format!("seed {seed} is wrong:"));
            outcome.trace.iter().for_each(|line| say(line));
            outcome.ledger.iter().for_each(|line| say(line));
            outcome.shown.iter().for_each(|line| say(line));
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
    let real = begun.elapsed();
    let times = simulated.as_secs_f64() / real.as_secs_f64();
    let each = met.faults() / seeds.max(1);
    say(&format!("met: {met}"));
    say(&format!(
        "{seeds} seeds in {:.0} s ({times:.0} times as fast as real time), {each} faults in each, \
         {sent} sends, {events} events: {}",
        real.as_secs_f64(),
        if wrong == 0 { "all well".to_owned() } else { format!("{wrong} are wrong") }
    ));
    if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
