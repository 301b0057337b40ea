//! `cargo xtask test`: every check and test, in one command.
//!
//! Everything is built once. Steps that mostly wait (a browser, real agents) then run side by
//! side, in lanes; each line of a lane begins with its name.
//!
//! Invariant: the last line is `N passed, N failed`. The counts include only tests that really
//! ran. A step that fails without naming a failed test counts as one failure, and any failure
//! makes the exit code non-zero. Skipped tests are reported, and with `--all` they are failures.
//!
//! Not here: the rules that `tidy` checks, reading a runner's summary (`tally`), its times and
//! failures (`cases`), what tests had to skip (`untried`).

mod cases;
pub(crate) mod repeat;
pub(crate) mod tally;
mod untried;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use crate::agents::play::Places;
use crate::agents::{self, Wanted};
use crate::runner::{IN_A_BROWSER, Runner, Selection};
use crate::{browser, ide, page, shell, tidy};
use tally::Tally;

/// Checks take what is left of the processor: they need nobody's answer in time.
const CHECKS_NICENESS: u8 = 10;

/// How much is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// What tells soon: no browser, no real agents, no kills.
    Quick,
    /// All but the agents that are not for every day.
    Usual,
    /// All, and what cannot be tried is a failure.
    All,
}

/// One thing that has to hold.
struct Step<'a> {
    name: &'static str,
    needs: Vec<Need>,
    action: Box<dyn FnOnce() -> Result<Outcome, String> + Send + 'a>,
}

/// Steps that are done one after the other, and the name before their lines.
type Lane<'a> = (&'static str, Vec<Step<'a>>);

/// Something that a step cannot do without.
struct Need {
    probe: Command,
    /// What is missing and how to get it, in one line.
    missing: &'static str,
}

/// What came of a step.
#[derive(Debug, Default)]
struct Outcome {
    is_well: bool,
    tally: Tally,
    /// A sentence for each thing that could not be tried.
    skipped: Vec<String>,
    /// For the end of the run.
    table: Option<String>,
}

/// The same, with its name and time.
struct Done {
    name: &'static str,
    seconds: f64,
    outcome: Outcome,
}

/// What later steps need from elsewhere.
struct Fetched {
    browser: Result<PathBuf, String>,
    agents: Result<agents::Outcome, String>,
    ides: Result<ide::Fetched, String>,
}

/// `cargo xtask test [--quick | --all]`.
pub(crate) fn run(options: &[&str]) -> Result<ExitCode, String> {
    let coverage = read(options)?;
    let begun = Instant::now();
    let untried = untried::begin(&shell::target())?;
    let mut runner = Runner::find();
    let mut times: Vec<PathBuf> = ["default", "quick", "agents", "ides", "simulation"]
        .iter()
        .filter_map(|it| runner.times(it))
        .collect();
    times.push(page::times());
    cases::forget(&times);

    let mut done = vec![perform(format()), perform(house_rules())];
    let (built, fetched) = thread::scope(|scope| {
        let fetching = (coverage != Coverage::Quick)
            .then(|| scope.spawn(|| shell::in_lane("fetch", || fetch(coverage))));
        let built = shell::in_lane("build", || perform(build(&mut runner)));
        (built, fetching.map(|thread| ended("fetch", thread)))
    });
    let is_built = built.outcome.is_well;
    done.push(built);
    let fetched = match fetched {
        Some(Ok(fetched)) => Some(fetched),
        Some(Err(lost)) => {
            done.push(lost);
            None
        }
        None => None,
    };
    let browser = fetched.as_ref().and_then(|fetched| fetched.browser.as_ref().ok());
    let shared = browser.and_then(|browser| browser::Shared::start_or_say(browser));
    let places = places(&untried, browser, shared.as_ref());
    let (lanes, rest) = lanes(coverage, is_built.then_some(&runner), fetched.as_ref(), &places);
    done.extend(side_by_side(lanes, rest));
    drop(shared);
    Ok(report(coverage, done, untried::read(&untried), &cases::read(&times), begun))
}

fn read(options: &[&str]) -> Result<Coverage, String> {
    match options {
        [] => Ok(Coverage::Usual),
        ["--quick"] => Ok(Coverage::Quick),
        ["--all"] => Ok(Coverage::All),
        _ => Err(format!("test: unknown options {:?}", options.join(" "))),
    }
}

/// From the network, while the processor builds.
fn fetch(coverage: Coverage) -> Fetched {
    let wanted = if coverage == Coverage::All { Wanted::All } else { Wanted::Everyday };
    Fetched {
        browser: browser::find_or_fetch("browser tests"),
        agents: agents::install(wanted).map_err(|sentence| format!("real agents: {sentence}")),
        ides: ide::fetch().map_err(|sentence| format!("IDEs: {sentence}")),
    }
}

/// What tests are told in their environment.
fn places(untried: &Path, browser: Option<&PathBuf>, shared: Option<&browser::Shared>) -> Places {
    let mut places = Places::from([(untried::NAMED_BY, untried.to_owned())]);
    if let Some(browser) = browser {
        places.insert(browser::NAMED_BY, browser.clone());
    }
    if let Some(shared) = shared {
        places.insert(browser::SHARED_BY, PathBuf::from(&shared.address));
    }
    places
}

/// What is done side by side, each lane in its order; then the rest, by whichever lane is free.
/// Without a build, only what needs none.
///
/// Two lanes: more of them are quicker, but then browsers and agents wait so long for a processor
/// that their tests meet what no person would.
fn lanes<'a>(
    coverage: Coverage,
    runner: Option<&'a Runner>,
    fetched: Option<&'a Fetched>,
    places: &'a Places,
) -> (Vec<Lane<'a>>, Vec<Step<'a>>) {
    let (mut first, mut second, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    if let Some(runner) = runner {
        let profile = if coverage == Coverage::Quick { "quick" } else { "default" };
        first.push(tests(runner, profile, places));
        if let Some(fetched) = fetched {
            first.push(real_agents(runner, fetched, places));
            second.extend([journeys(fetched), ides(runner, fetched, places)]);
        }
    }
    second.extend([lints(), checked_page()]);
    if coverage != Coverage::Quick {
        rest.extend([documentation(), fuzz_targets()]);
        rest.extend(runner.filter(|runner| runner.can_choose()).map(simulation));
    }
    (vec![("tests", first), ("checks", second)], rest)
}

fn side_by_side<'a>(lanes: Vec<Lane<'a>>, rest: Vec<Step<'a>>) -> Vec<Done> {
    let rest = Mutex::new(VecDeque::from(rest));
    let next = || rest.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    thread::scope(|scope| {
        let start = |(name, steps): Lane<'a>| {
            let work = move || {
                let more = std::iter::from_fn(next);
                steps.into_iter().chain(more).map(perform).collect::<Vec<Done>>()
            };
            (name, scope.spawn(move || shell::in_lane(name, work)))
        };
        // All of them start before one is waited for.
        let threads: Vec<_> = lanes.into_iter().map(start).collect();
        let steps = |(name, thread)| ended(name, thread).unwrap_or_else(|lost| vec![lost]);
        threads.into_iter().flat_map(steps).collect()
    })
}

/// What came of work on a thread of its own. A panic there is a step that failed: the work is
/// missing, and what would have used it is not tried.
fn ended<T>(name: &'static str, thread: thread::ScopedJoinHandle<'_, T>) -> Result<T, Done> {
    thread.join().map_err(|_| Done { name, seconds: 0.0, outcome: Outcome::failure() })
}

/// Prints what came of the run.
fn report(
    coverage: Coverage,
    done: Vec<Done>,
    untried: Vec<String>,
    cases: &[cases::Case],
    begun: Instant,
) -> ExitCode {
    let (mut total, mut failed, mut skipped) = (Tally::default(), Vec::new(), untried);
    shell::say("\n== seconds per step");
    for step in done {
        let Done { name, seconds, outcome } = step;
        let word = if outcome.is_well { "" } else { "  FAILED" };
        shell::say(&format!("{seconds:>8.1} s  {name}{word}"));
        if let Some(table) = outcome.table {
            shell::say(&format!("\n{table}"));
        }
        if !outcome.is_well {
            failed.push(name);
        }
        total = total.plus(outcome.tally);
        skipped.extend(outcome.skipped);
    }
    shell::say(&format!("{:>8.1} s  total", begun.elapsed().as_secs_f64()));
    shell::say("\n== slowest tests");
    for case in cases::slowest(cases) {
        shell::say(&case.to_string());
    }
    shell::say("");
    for case in cases::failed(cases) {
        shell::say(&format!("FAILED: {}", case.name));
    }
    for sentence in &skipped {
        shell::say(&format!("SKIPPED: {sentence}"));
    }
    total = total.plus(of_skipped(coverage, &skipped));
    if coverage == Coverage::All && !skipped.is_empty() {
        failed.push("skipped tests");
    }
    if !failed.is_empty() {
        shell::say(&format!("failed: {}", failed.join(", ")));
    }
    shell::say(&total.to_string());
    if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Where everything is to be tried, each thing that was not is a failure.
fn of_skipped(coverage: Coverage, skipped: &[String]) -> Tally {
    match coverage {
        Coverage::Quick | Coverage::Usual => Tally::default(),
        Coverage::All => Tally { passed: 0, failed: skipped.len() as u64 },
    }
}

fn perform(step: Step<'_>) -> Done {
    let name = step.name;
    shell::say(&format!("== {name}"));
    let started = Instant::now();
    let outcome = outcome(step);
    let seconds = started.elapsed().as_secs_f64();
    let word = if outcome.is_well { "ok" } else { "FAILED" };
    shell::say(&format!("== {name}: {word} ({seconds:.1} s)"));
    Done { name, seconds, outcome }
}

fn outcome(step: Step<'_>) -> Outcome {
    for need in step.needs {
        if !shell::answers(need.probe) {
            shell::say(need.missing);
            return Outcome::failure();
        }
    }
    match (step.action)() {
        Ok(outcome) if outcome.is_well && outcome.tally.failed == 0 => outcome,
        Ok(outcome) => {
            let tally = outcome.tally.at_least_one_failure();
            Outcome { is_well: false, tally, ..outcome }
        }
        Err(sentence) => {
            shell::say(&sentence);
            Outcome::failure()
        }
    }
}

impl Outcome {
    fn of(is_well: bool, tally: Tally) -> Self {
        Self { is_well, tally, ..Self::default() }
    }

    /// Something failed that is not a test.
    fn failure() -> Self {
        Self::of(false, Tally::FAILURE)
    }

    fn skipped(sentence: &str) -> Self {
        Self { is_well: true, skipped: vec![sentence.to_owned()], ..Self::default() }
    }
}

fn step<'a>(
    name: &'static str,
    needs: Vec<Need>,
    action: impl FnOnce() -> Result<Outcome, String> + Send + 'a,
) -> Step<'a> {
    Step { name, needs, action: Box::new(action) }
}

/// A program whose exit code tells.
fn program(command: Command) -> Result<Outcome, String> {
    shell::succeeds(command).map(|is_well| Outcome::of(is_well, Tally::default()))
}

fn format() -> Step<'static> {
    let missing = "rustfmt is missing: run `rustup component add rustfmt`";
    let needs = vec![Need { probe: cargo(&["fmt", "--version"]), missing }];
    step("format", needs, || program(cargo(&["fmt", "--all", "--", "--check"])))
}

fn house_rules() -> Step<'static> {
    step("tidy", vec![], || Ok(Outcome::of(tidy::report(), Tally::default())))
}

fn build(runner: &mut Runner) -> Step<'_> {
    let action = || runner.build().map(|is_well| Outcome::of(is_well, Tally::default()));
    step("build", vec![c_compiler(), node()], action)
}

fn lints() -> Step<'static> {
    let missing = "clippy is missing: run `rustup component add clippy`";
    let needs = vec![Need { probe: cargo(&["clippy", "--version"]), missing }, c_compiler()];
    let words = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    step("lints", needs, move || program(shell::behind_others(&cargo(&words), CHECKS_NICENESS)))
}

fn documentation() -> Step<'static> {
    // With an example among them, dependencies have the features that they have for the lints, and
    // are not checked a second time.
    let mut command = cargo(&["doc", "--workspace", "--no-deps", "--lib", "--examples"]);
    command.args(["--bin", "farhelm", "--bin", "xtask"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    step("documentation", vec![], move || program(shell::behind_others(&command, CHECKS_NICENESS)))
}

/// A workspace of its own, which nothing else here builds. In the same folder, so that
/// dependencies are not checked a second time; without its engine, which is C++.
fn fuzz_targets() -> Step<'static> {
    let mut command = cargo(&["clippy", "--locked", "--manifest-path", "fuzz/Cargo.toml"]);
    command.args(["--no-default-features", "--target-dir"]).arg(shell::target());
    command.args(["--", "-D", "warnings"]);
    step("fuzz targets", vec![], move || program(shell::behind_others(&command, CHECKS_NICENESS)))
}

fn checked_page() -> Step<'static> {
    step("page", vec![node()], || page::check().map(|(is_well, tally)| Outcome::of(is_well, tally)))
}

fn tests<'a>(runner: &'a Runner, profile: &'static str, places: &'a Places) -> Step<'a> {
    let mut selection = Selection::everything(profile);
    if profile == "quick" {
        // For cargo's own runner; nextest has its profile.
        let parts = IN_A_BROWSER.into_iter().chain(["kill::", "hostile::", "seeds::"]);
        let skip = |part: &str| ["--skip".to_owned(), part.to_owned()];
        selection.words = parts.flat_map(skip).collect();
    } else {
        selection.filterset = Some("not package(sim)".to_owned());
    }
    step("tests", vec![], move || {
        let mut command = runner.command(&selection);
        command.envs(places);
        let (is_well, lines) = shell::watch(command)?;
        Ok(Outcome::of(is_well, tally::count(&lines)))
    })
}

/// It only computes, in its own time, so it may take what is left of the processor.
fn simulation(runner: &Runner) -> Step<'_> {
    step("simulation", vec![], || {
        let command = runner.command(&Selection::everything("simulation"));
        let (is_well, lines) = shell::watch(shell::behind_others(&command, CHECKS_NICENESS))?;
        Ok(Outcome::of(is_well, tally::count(&lines)))
    })
}

fn journeys(fetched: &Fetched) -> Step<'_> {
    step("page in a browser", vec![node()], || match &fetched.browser {
        Ok(browser) => page::journeys(browser).map(|(well, tally)| Outcome::of(well, tally)),
        Err(sentence) => Ok(Outcome::skipped(&format!("page journeys: {sentence}"))),
    })
}

/// Agents that cannot be fetched (no network, say) are told.
fn real_agents<'a>(runner: &'a Runner, fetched: &'a Fetched, places: &'a Places) -> Step<'a> {
    step("real agents", vec![], || {
        let found = match &fetched.agents {
            Ok(found) => found,
            Err(sentence) => return Ok(Outcome::skipped(sentence)),
        };
        let skipped = found.missing.clone();
        if found.installed.is_empty() {
            return Ok(Outcome { is_well: true, skipped, ..Outcome::default() });
        }
        let played = agents::play::play(runner, &found.installed, &found.list, places)?;
        let table = Some(played.table.markdown());
        Ok(Outcome { is_well: played.is_well, tally: played.tally, skipped, table })
    })
}

/// The same for panels of IDEs.
fn ides<'a>(runner: &'a Runner, fetched: &'a Fetched, places: &'a Places) -> Step<'a> {
    step("IDEs", vec![], || {
        let found = match (&fetched.ides, &fetched.browser) {
            (Ok(found), Ok(_)) => found,
            (Err(sentence), _) | (_, Err(sentence)) => return Ok(Outcome::skipped(sentence)),
        };
        let (is_well, tally) = ide::play(runner, found, places)?;
        Ok(Outcome { is_well, tally, skipped: found.missing.clone(), table: None })
    })
}

fn c_compiler() -> Need {
    let mut probe = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    probe.arg("--version");
    Need { probe, missing: "a C compiler is missing (SQLite needs one): run `apt install gcc`" }
}

fn node() -> Need {
    let mut probe = Command::new("npm");
    probe.arg("--version");
    Need { probe, missing: "Node 20.19 or newer and npm are missing: the page needs them" }
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = shell::cargo();
    command.args(arguments);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing() -> Result<Outcome, String> {
        program(cargo(&["no-such-subcommand"]))
    }

    #[test]
    fn a_missing_need_fails_its_step_without_running_it() {
        let needs = vec![Need { probe: Command::new("no-such-program"), missing: "get it" }];
        let done = perform(step("x", needs, || panic!("it ran")));
        assert!(!done.outcome.is_well);
        assert_eq!(done.outcome.tally, Tally::FAILURE);
    }

    #[test]
    fn a_step_that_fails_without_a_summary_counts_as_one_failure() {
        for action in [failing, || Err("it never started".to_owned())] {
            assert_eq!(perform(step("x", vec![], action)).outcome.tally, Tally::FAILURE);
        }
    }

    #[test]
    fn a_step_that_succeeds_counts_only_tests() {
        let done = perform(step("x", vec![], || program(cargo(&["--version"]))));
        assert!(done.outcome.is_well);
        assert_eq!(done.outcome.tally, Tally::default());
    }

    #[test]
    fn lanes_run_beside_each_other_and_all_their_steps_are_told() {
        let (tell, told) = std::sync::mpsc::channel();
        let waits = step("waits", vec![], move || {
            told.recv().map_err(|error| error.to_string())?;
            Ok(Outcome::of(true, Tally { passed: 2, failed: 0 }))
        });
        let fails = step("fails", vec![], failing);
        // The first lane ends only because the second is at work beside it.
        let tells = step("tells", vec![], move || {
            tell.send(()).map_err(|error| error.to_string())?;
            Ok(Outcome::of(true, Tally { passed: 1, failed: 0 }))
        });
        let done = side_by_side(vec![("one", vec![waits]), ("other", vec![fails, tells])], vec![]);
        let names: Vec<&str> = done.iter().map(|done| done.name).collect();
        assert_eq!(names, ["waits", "fails", "tells"]);
        let total = done.iter().fold(Tally::default(), |sum, done| sum.plus(done.outcome.tally));
        assert_eq!(total, Tally { passed: 3, failed: 1 });
    }

    #[test]
    fn a_lane_that_falls_over_is_a_failure_and_the_others_go_on() {
        let falls = step("falls", vec![], || panic!("on purpose"));
        let stands = step("stands", vec![], || Ok(Outcome::of(true, Tally::default())));
        let done = side_by_side(vec![("one", vec![falls]), ("other", vec![stands])], vec![]);
        let well: Vec<bool> = done.iter().map(|done| done.outcome.is_well).collect();
        assert_eq!(well, [false, true]);
    }

    #[test]
    fn fetching_that_panics_is_a_step_that_failed() {
        let fetched = thread::scope(|scope| {
            let thread = scope.spawn(|| -> Fetched { panic!("on purpose") });
            ended("fetch", thread)
        });
        let Err(lost) = fetched else { panic!("nothing was fetched") };
        assert_eq!((lost.name, lost.outcome.is_well), ("fetch", false));
        assert_eq!(lost.outcome.tally, Tally::FAILURE);
    }

    #[test]
    fn what_was_not_tried_is_a_failure_only_where_everything_is_to_be_tried() {
        let skipped = ["a: b".to_owned()];
        for coverage in [Coverage::Quick, Coverage::Usual] {
            assert_eq!(of_skipped(coverage, &skipped), Tally::default());
        }
        assert_eq!(of_skipped(Coverage::All, &skipped), Tally::FAILURE);
        assert_eq!(of_skipped(Coverage::All, &[]), Tally::default());
    }

    #[test]
    fn options_choose_how_much_is_tried() {
        assert_eq!(read(&[]), Ok(Coverage::Usual));
        assert_eq!(read(&["--quick"]), Ok(Coverage::Quick));
        assert_eq!(read(&["--all"]), Ok(Coverage::All));
        for wrong in [&["--everything"][..], &["--quick", "--all"]] {
            assert!(read(wrong).unwrap_err().contains(wrong[0]));
        }
    }

    #[test]
    fn the_rest_is_done_by_the_lane_that_is_free() {
        let (tell, told) = std::sync::mpsc::channel();
        let waits = step("waits", vec![], move || {
            told.recv().map_err(|error| error.to_string())?;
            Ok(Outcome::of(true, Tally { passed: 1, failed: 0 }))
        });
        // Were it done after what waits, nobody would ever tell it to go on.
        let tells = step("tells", vec![], move || {
            tell.send(()).map_err(|error| error.to_string())?;
            Ok(Outcome::of(true, Tally { passed: 1, failed: 0 }))
        });
        let done = side_by_side(vec![("one", vec![waits]), ("other", vec![])], vec![tells]);
        assert_eq!(done.iter().map(|it| it.outcome.tally.passed).sum::<u64>(), 2);
    }

    #[test]
    fn without_a_build_only_what_needs_none_is_done() {
        let places = Places::new();
        let (lanes, rest) = lanes(Coverage::Usual, None, None, &places);
        let steps = lanes.iter().flat_map(|(_, steps)| steps).chain(&rest).map(|step| step.name);
        assert_eq!(steps.collect::<Vec<_>>(), ["lints", "page", "documentation", "fuzz targets"]);
    }
}
