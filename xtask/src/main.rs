//! What people run: `cargo xtask <command>`.
//!
//! Not here: what a rule of the house says (`tidy/`), what a full test run is (`test`), which
//! agents there are (`agents/`).

mod agents;
mod browser;
mod coverage;
mod ide;
mod page;
mod proof;
mod runner;
mod shell;
mod test;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <command>

  test [--quick | --all]      everything: format, lints, tests, documentation, tidy, real agents
                              (--quick: what tells soon, before a commit; --all: every agent,
                              and what cannot be tried is a failure)
  repeat --times N [--busy]   the tests that wait for browsers, IDEs and real agents, N times in
      [--lanes] [--only STEP] a row (--busy: with every core busy; --lanes: the steps of a round
                              side by side; STEP: page, panels, ides or agents)
  dev [URL]                   the page with hot reload, in front of a relay that runs
  page                        the page alone: format, types, tests, journeys in a browser
                              (--pictures: the journeys, then their pictures for the README)
  bench-web                   what a streamed word and a first view cost in a browser
  codegen                     write the page's types from the frames of crates/wire
  tidy                        the rules of the house alone
  sim --seeds N [--from S]    the simulation, over N seeds from S on (default 0); it stops at the
      [--go-on]               first that is wrong, or goes on and lists them all
  kill --times N              the process test: kill relay and proxy N times
  fuzz --seconds N [--seed S] every dialect against spoilt frames, for N seconds
  fuzz --coverage SECONDS     every decoder, led by what each input reaches, for so long in all
  agents [--all] [--only A]   the real agent programs: fetch them, play every scenario, a table
                              (--install: fetch them only)
  ide [--install] [--bench]   panels of IDEs that nobody here wrote, in a real browser
                              (--bench: what panels cost)
  record [--only A]           have the real agents talk, and keep what their drivers saw
                              (--again: keep the recordings, write anew what is seen of them)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["test", options @ ..] => test::run(options).unwrap_or_else(|sentence| complain(&sentence)),
        ["repeat", options @ ..] => from_outcome(test::repeat::run(options)),
        ["dev"] => from_outcome(page::dev(None)),
        ["dev", relay] => from_outcome(page::dev(Some(relay))),
        ["page"] => from_outcome(page::run()),
        ["page", "--pictures"] => from_outcome(page::pictures()),
        ["bench-web"] => from_outcome(page::bench()),
        ["codegen"] => from_outcome(page::codegen()),
        ["tidy"] => tidy::run(),
        ["sim", options @ ..] => from_outcome(proof::simulate(options)),
        ["kill", options @ ..] => from_outcome(proof::kill(options)),
        ["fuzz", options @ ..] => from_outcome(proof::fuzz(options)),
        ["agents", options @ ..] => from_outcome(agents::run(options)),
        ["ide", options @ ..] => from_outcome(ide::run(options)),
        ["record", options @ ..] => from_outcome(agents::record::run(options)),
        [] | ["help" | "--help" | "-h"] => {
            shell::say(USAGE);
            ExitCode::SUCCESS
        }
        [unknown, ..] => {
            shell::complain(&format!("xtask: cannot do {unknown:?} like this\n{USAGE}"));
            ExitCode::FAILURE
        }
    }
}

fn from_outcome(outcome: Result<bool, String>) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(sentence) => complain(&sentence),
    }
}

fn complain(sentence: &str) -> ExitCode {
    shell::complain(&format!("xtask: {sentence}\n{USAGE}"));
    ExitCode::FAILURE
}
