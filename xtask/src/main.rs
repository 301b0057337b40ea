//! The command line: `cargo xtask <command>`.
//!
//! Not here: the repository rules (`tidy/`), what a full test run is (`test`), which agents there
//! are (`agents/`).

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

  test [--quick | --all]      run everything: format, lints, tests, documentation, tidy, real
                              agents (--quick: only fast checks, before a commit; --all: every
                              agent, and whatever is skipped counts as a failure)
  repeat --times N [--busy]   run the tests that need browsers, IDEs or real agents N times
      [--lanes] [--only STEP] (--busy: while every core is kept busy; --lanes: the steps of a
                              round side by side; STEP: page, panels, ides or agents)
  dev [URL]                   serve the page with hot reload, in front of a running relay
  page                        check only the page: format, lints, types, tests, journeys in a browser
                              (--pictures: run the journeys, then copy their README pictures)
  bench [NAME…] [--json]      measure the release build against the limits of this machine
                              (--help: all options)
  bench-web                   measure a streamed word and a first view in a browser
  codegen                     write the page's types from the frames of crates/wire
  tidy                        check only the repository rules
  sim --seeds N [--from S]    run the simulation over N seeds, starting at S (default 0); stop at
      [--go-on]               the first failure (--go-on: continue and list all failures)
  kill --times N              run the process test: kill relay and proxy N times
  fuzz --seconds N [--seed S] send malformed frames to every dialect for N seconds
  fuzz --coverage SECONDS     fuzz every decoder, guided by coverage, for SECONDS in total
  agents [--all] [--only A]   fetch the real agents, play every scenario, print a table
                              (--install: only fetch them)
  ide [--install] [--bench]   test third-party IDE panels in a real browser
                              (--bench: measure what panels cost)
  record [--only A]           run the real agents and record what their drivers see
                              (--again: keep the recordings, rewrite their snapshots)";

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
        ["bench", options @ ..] => from_outcome(proof::bench(options)),
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
            shell::complain(&format!("xtask: cannot run {unknown:?}\n{USAGE}"));
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
