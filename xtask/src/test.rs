//! `cargo xtask test`: everything that has to hold, in one command.
//!
//! Invariant: the last line is `N passed, N failed`; the counts are those of tests that really
//! ran, a step that fails without naming a failed test counts as one failure, and any failure
//! makes the exit code non-zero.
//!
//! Not here: the rules that `tidy` checks, reading a runner's summary (`tally`).

pub(crate) mod tally;

use std::process::{Command, ExitCode};
use std::time::Instant;

use crate::agents::Wanted;
use crate::{agents, browser, ide, page, shell, tidy};
use tally::Tally;

/// One thing that has to hold.
struct Step {
    name: &'static str,
    needs: Vec<Need>,
    action: Action,
}

enum Action {
    /// A program whose exit code tells.
    Program(Command),
    /// A test runner: its summaries are counted.
    Runner(Command),
    /// The same with the browser that some of its tests need: without, these only say so.
    RunnerWithBrowser(Command),
    /// The rules of the house, in this process.
    Tidy,
    /// Format, types and tests of the page.
    Page,
    /// The page in a real browser.
    Journeys,
    /// The scenarios of the real agents.
    Agents(Wanted<'static>),
    /// Panels of IDEs in a real browser.
    Ide,
}

/// Something that a step cannot do without.
struct Need {
    probe: Command,
    /// What is missing and how to get it, in one line.
    missing: &'static str,
}

/// Runs every step, even after a failure: one run tells everything.
pub(crate) fn run(agents: Wanted<'static>) -> ExitCode {
    let (mut total, mut failed_steps, mut skipped) = (Tally::default(), Vec::new(), Vec::new());
    for step in steps(agents) {
        let name = step.name;
        shell::say(&format!("== {name}"));
        let started = Instant::now();
        let tally = perform(step, &mut skipped);
        let seconds = started.elapsed().as_secs_f64();
        let outcome = if tally.failed == 0 { "ok" } else { "FAILED" };
        shell::say(&format!("== {name}: {outcome} ({seconds:.1} s)"));
        if tally.failed > 0 {
            failed_steps.push(name);
        }
        total = total.plus(tally);
    }
    for sentence in &skipped {
        shell::say(&format!("SKIPPED: {sentence}"));
    }
    if !failed_steps.is_empty() {
        shell::say(&format!("failed: {}", failed_steps.join(", ")));
    }
    shell::say(&total.to_string());
    if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// In order of how soon they tell.
fn steps(agents: Wanted<'static>) -> Vec<Step> {
    vec![
        Step {
            name: "format",
            needs: vec![Need {
                probe: cargo(&["fmt", "--version"]),
                missing: "rustfmt is missing: run `rustup component add rustfmt`",
            }],
            action: Action::Program(cargo(&["fmt", "--all", "--", "--check"])),
        },
        Step {
            name: "lints",
            needs: vec![
                Need {
                    probe: cargo(&["clippy", "--version"]),
                    missing: "clippy is missing: run `rustup component add clippy`",
                },
                c_compiler(),
            ],
            action: Action::Program(cargo(&[
                "clippy",
                "--workspace",
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ])),
        },
        Step {
            name: "tests",
            needs: vec![c_compiler()],
            action: Action::RunnerWithBrowser(test_runner()),
        },
        Step {
            name: "documentation tests",
            needs: vec![],
            action: Action::Runner(cargo(&["test", "--workspace", "--doc", "--no-fail-fast"])),
        },
        Step { name: "documentation", needs: vec![], action: Action::Program(documentation()) },
        Step { name: "tidy", needs: vec![], action: Action::Tidy },
        Step { name: "page", needs: vec![node()], action: Action::Page },
        Step {
            name: "page in a browser",
            needs: vec![node(), c_compiler()],
            action: Action::Journeys,
        },
        Step { name: "real agents", needs: vec![c_compiler()], action: Action::Agents(agents) },
        Step { name: "IDEs", needs: vec![node(), c_compiler()], action: Action::Ide },
    ]
}

/// What could not be tried is added to `skipped`, in a sentence each.
fn perform(step: Step, skipped: &mut Vec<String>) -> Tally {
    for need in step.needs {
        if !shell::answers(need.probe) {
            shell::say(need.missing);
            return Tally::FAILURE;
        }
    }
    let outcome = match step.action {
        Action::Program(command) => shell::succeeds(command).map(|well| (well, Tally::default())),
        Action::Runner(command) => counted(command),
        Action::RunnerWithBrowser(mut command) => {
            match browser::find_or_fetch("the tests of panels") {
                Ok(chromium) => drop(command.env(browser::NAMED_BY, chromium)),
                Err(sentence) => skipped.push(sentence),
            }
            counted(command)
        }
        Action::Tidy => Ok((tidy::report(), Tally::default())),
        Action::Page => page::check(),
        Action::Journeys => page::journeys().map(|tried| match tried {
            Ok(outcome) => outcome,
            Err(sentence) => {
                skipped.push(sentence);
                (true, Tally::default())
            }
        }),
        Action::Agents(wanted) => play_agents(wanted, skipped),
        Action::Ide => Ok(play_ide(skipped)),
    };
    match outcome {
        Ok((true, tally)) => tally,
        Ok((false, tally)) => tally.at_least_one_failure(),
        Err(sentence) => {
            shell::say(&sentence);
            Tally::FAILURE
        }
    }
}

fn counted(command: Command) -> Result<(bool, Tally), String> {
    shell::watch(command).map(|(well, lines)| (well, tally::count(&lines)))
}

/// Agents that cannot be fetched (no network, say) fail nothing, but are never passed over in
/// silence.
fn play_agents(wanted: Wanted<'_>, skipped: &mut Vec<String>) -> Result<(bool, Tally), String> {
    let outcome = match agents::install(wanted) {
        Ok(outcome) => outcome,
        Err(sentence) => {
            skipped.push(format!("the real agents: {sentence}"));
            return Ok((true, Tally::default()));
        }
    };
    skipped.extend(outcome.missing);
    if outcome.installed.is_empty() {
        return Ok((true, Tally::default()));
    }
    let played = agents::play::play(&outcome.installed, &outcome.list)?;
    shell::say(&format!("\n{}", played.table.markdown()));
    Ok((played.is_well, played.tally))
}

/// The same for panels of IDEs.
fn play_ide(skipped: &mut Vec<String>) -> (bool, Tally) {
    let tried = match ide::play() {
        Ok(tried) => tried,
        Err(sentence) => {
            skipped.push(format!("the IDEs: {sentence}"));
            return (true, Tally::default());
        }
    };
    skipped.extend(tried.skipped);
    (tried.is_well, tried.tally)
}

fn test_runner() -> Command {
    if shell::answers(cargo(&["nextest", "--version"])) {
        cargo(&["nextest", "run", "--workspace", "--no-fail-fast"])
    } else {
        cargo(&["test", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"])
    }
}

fn documentation() -> Command {
    let mut command = cargo(&["doc", "--workspace", "--no-deps"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    command
}

fn c_compiler() -> Need {
    let mut probe = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    probe.arg("--version");
    Need { probe, missing: "a C compiler is missing (SQLite is built in): run `apt install gcc`" }
}

fn node() -> Need {
    let mut probe = Command::new("npm");
    probe.arg("--version");
    Need { probe, missing: "Node 20.19 or newer and npm are missing: the page is built with them" }
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = shell::cargo();
    command.args(arguments);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_need_fails_its_step_without_running_it() {
        let needs = vec![Need { probe: Command::new("no-such-program"), missing: "get it" }];
        let action = Action::Program(cargo(&["--version"]));
        let step = Step { name: "x", needs, action };
        assert_eq!(perform(step, &mut vec![]), Tally::FAILURE);
    }

    #[test]
    fn a_step_that_fails_without_a_summary_counts_as_one_failure() {
        let fails = || cargo(&["no-such-subcommand"]);
        for action in [Action::Program(fails()), Action::Runner(fails())] {
            let step = Step { name: "x", needs: vec![], action };
            assert_eq!(perform(step, &mut vec![]), Tally::FAILURE);
        }
    }

    #[test]
    fn a_step_that_succeeds_counts_only_tests() {
        let action = Action::Program(cargo(&["--version"]));
        let step = Step { name: "x", needs: vec![], action };
        assert_eq!(perform(step, &mut vec![]), Tally::default());
    }
}
