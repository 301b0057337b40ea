//! `cargo xtask repeat --times N [--busy] [--lanes] [--only STEP]`: the tests that wait for other
//! programs (browsers, IDEs, real agents), N times in a row.
//!
//! One pass proves little: a test that fails one time in twenty fails most CI runs. With `--busy`,
//! a loop keeps every core busy beside the tests. With `--lanes`, the steps of a round run side by
//! side in the lanes of a whole run, which takes less time.
//!
//! Not here: the tests themselves, and what a single run of them needs (`test`).

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use super::{
    Coverage, Done, Fetched, Lane, Outcome, Step, Tally, cases, fetch, ides, journeys, perform,
    places, real_agents, side_by_side, tally, untried,
};
use crate::agents::play::Places;
use crate::runner::{IN_A_BROWSER, Runner, Selection};
use crate::{browser, page, shell};

/// The steps that can be repeated, by the word that chooses one.
const STEPS: [&str; 4] = ["page", "panels", "ides", "agents"];

/// The workspace's own tests that need a browser: those that `--quick` leaves out.
const PANELS: &str = "test(/^(ide|acting)::/) | (package(cdp) & binary(all))";

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Asked<'a> {
    times: u64,
    is_busy: bool,
    /// Whether the steps of a round run side by side.
    has_lanes: bool,
    /// One of [`STEPS`]; all of them without it.
    only: Option<&'a str>,
}

/// Keeps every core busy until it is dropped.
struct Load {
    is_over: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Load {
    fn start(cores: usize) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let spin = |_| {
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        let threads = (0..cores).map(spin).collect();
        Self { is_over, threads }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Runs the rounds. `false` when any test of any round failed or could not be tried.
pub(crate) fn run(options: &[&str]) -> Result<bool, String> {
    let Asked { times, is_busy, has_lanes, only } = read(options)?;
    let target = shell::target();
    let told = untried::begin(&target)?;
    let mut runner = Runner::find();
    let fetched = fetch(Coverage::All);
    if !runner.build()? {
        return Ok(false);
    }
    let browser = fetched.browser.as_ref()?;
    let shared = browser::Shared::start_or_say(browser);
    let places = places(&told, Some(browser), shared.as_ref());
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let load = is_busy.then(|| Load::start(cores));
    let (mut total, mut broken) = (Tally::default(), Vec::new());
    for round in 1..=times {
        let begun = Instant::now();
        let files = times_of(&runner);
        cases::forget(&files);
        untried::begin(&target)?;
        let lanes = lanes(only, &runner, &fetched, &places);
        let (tally, sentences) = counted(performed(lanes, has_lanes), untried::read(&told));
        let read = cases::read(&files);
        let failed = cases::failed(&read).map(|case| case.name.clone());
        broken.extend(failed.chain(sentences).map(|what| format!("round {round}: {what}")));
        total = total.plus(tally);
        shell::say(&format!(
            "== round {round} of {times}: {tally} ({:.0} s); so far {total}",
            begun.elapsed().as_secs_f64()
        ));
    }
    drop(load);
    for name in &broken {
        shell::say(&format!("FAILED: {name}"));
    }
    shell::say(&total.to_string());
    Ok(total.failed == 0)
}

/// Where the steps leave the time of each test.
fn times_of(runner: &Runner) -> Vec<PathBuf> {
    let profiles = ["default", "agents", "ides"].iter().filter_map(|profile| runner.times(profile));
    profiles.chain([page::times()]).collect()
}

/// The steps that are wanted, in the lanes and the order in which a whole run has them.
fn lanes<'a>(
    only: Option<&str>,
    runner: &'a Runner,
    fetched: &'a Fetched,
    places: &'a Places,
) -> Vec<Lane<'a>> {
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    if wanted("panels") {
        first.push(panels(runner, places));
    }
    if wanted("agents") {
        first.push(real_agents(runner, fetched, places));
    }
    if wanted("page") {
        second.push(journeys(fetched));
    }
    if wanted("ides") {
        second.push(ides(runner, fetched, places));
    }
    vec![("tests", first), ("checks", second)]
}

fn performed(lanes: Vec<Lane<'_>>, has_lanes: bool) -> Vec<Done> {
    if has_lanes {
        return side_by_side(lanes, vec![]);
    }
    lanes.into_iter().flat_map(|(_, steps)| steps).map(perform).collect()
}

fn panels<'a>(runner: &'a Runner, places: &'a Places) -> Step<'a> {
    let mut selection = Selection::everything("default");
    selection.filterset = Some(PANELS.to_owned());
    // For cargo's own runner.
    selection.words = IN_A_BROWSER.map(str::to_owned).into();
    super::step("panels in a browser", vec![], move || {
        let mut command = runner.command(&selection);
        command.envs(places);
        let (is_well, lines) = shell::watch(command)?;
        Ok(Outcome::of(is_well, tally::count(&lines)))
    })
}

/// One round: its counts, and a sentence for each step that failed and each thing that steps or
/// tests could not try. What was not tried is a failure.
fn counted(round: Vec<Done>, untried: Vec<String>) -> (Tally, Vec<String>) {
    let (mut total, mut skipped, mut sentences) = (Tally::default(), untried, Vec::new());
    for done in round {
        total = total.plus(done.outcome.tally);
        skipped.extend(done.outcome.skipped);
        if !done.outcome.is_well {
            sentences.push(format!("{} failed", done.name));
        }
    }
    total.failed += skipped.len() as u64;
    sentences.extend(skipped.iter().map(|it| format!("skipped: {it}")));
    (total, sentences)
}

fn read<'a>(mut options: &[&'a str]) -> Result<Asked<'a>, String> {
    let (mut times, mut is_busy, mut has_lanes, mut only) = (None, false, false, None);
    loop {
        options = match *options {
            [] => break,
            ["--busy", ref rest @ ..] => {
                is_busy = true;
                rest
            }
            ["--lanes", ref rest @ ..] => {
                has_lanes = true;
                rest
            }
            ["--times", raw, ref rest @ ..] => {
                let number = raw.parse::<u64>();
                let wrong = |_| format!("--times needs a whole number, not {raw:?}");
                times = Some(number.map_err(wrong)?);
                rest
            }
            ["--only", step, ref rest @ ..] if STEPS.contains(&step) => {
                only = Some(step);
                rest
            }
            _ => return Err(format!("repeat: unknown options {:?}", options.join(" "))),
        };
    }
    let times = times.ok_or("repeat needs --times N")?;
    Ok(Asked { times, is_busy, has_lanes, only })
}

#[cfg(test)]
mod tests {
    use super::super::step;
    use super::*;

    #[test]
    fn repeat_takes_a_count_a_load_lanes_and_a_step() {
        let plain = Asked { times: 20, is_busy: false, has_lanes: false, only: None };
        assert_eq!(read(&["--times", "20"]), Ok(plain));
        assert_eq!(read(&["--times", "20", "--busy"]), Ok(Asked { is_busy: true, ..plain }));
        let lanes = Asked { has_lanes: true, ..plain };
        assert_eq!(read(&["--lanes", "--times", "20"]), Ok(lanes));
        for step in STEPS {
            let asked = Asked { only: Some(step), ..plain };
            assert_eq!(read(&["--only", step, "--times", "20"]), Ok(asked));
        }
        assert!(read(&[]).unwrap_err().contains("--times"));
        assert!(read(&["--times", "x"]).unwrap_err().contains("\"x\""));
        assert!(read(&["--times", "2", "--only", "tests"]).unwrap_err().contains("tests"));
    }

    #[test]
    fn a_round_counts_what_failed_and_what_could_not_be_tried() {
        let well = step("one", vec![], || {
            Ok(Outcome {
                tally: Tally { passed: 2, failed: 0 },
                is_well: true,
                ..Outcome::default()
            })
        });
        let skipped = step("two", vec![], || Ok(Outcome::skipped("no browser")));
        let broken = step("three", vec![], || Err("it never started".to_owned()));
        let round =
            performed(vec![("tests", vec![well, skipped]), ("checks", vec![broken])], false);
        let (tally, sentences) = counted(round, vec!["a test: no Node".to_owned()]);
        assert_eq!(tally, Tally { passed: 2, failed: 3 });
        let expected = ["three failed", "skipped: a test: no Node", "skipped: no browser"];
        assert_eq!(sentences, expected);
    }

    #[test]
    fn real_agents_have_another_lane_than_the_page_and_ides() {
        let runner = Runner::find();
        let missing = || "not here".to_owned();
        let fetched =
            Fetched { browser: Err(missing()), agents: Err(missing()), ides: Err(missing()) };
        let places = Places::new();
        let named = |only| -> Vec<Vec<&'static str>> {
            let lanes = lanes(only, &runner, &fetched, &places);
            lanes.iter().map(|(_, steps)| steps.iter().map(|step| step.name).collect()).collect()
        };
        let all = [["panels in a browser", "real agents"], ["page in a browser", "IDEs"]];
        assert_eq!(named(None), all);
        assert_eq!(named(Some("ides")), [vec![], vec!["IDEs"]]);
    }

    #[test]
    fn lanes_run_beside_each_other_where_that_is_wanted() {
        let (tell, told) = std::sync::mpsc::channel();
        let waits = step("waits", vec![], move || {
            told.recv().map_err(|error| error.to_string())?;
            Ok(Outcome::of(true, Tally { passed: 1, failed: 0 }))
        });
        let tells = step("tells", vec![], move || {
            tell.send(()).map_err(|error| error.to_string())?;
            Ok(Outcome::of(true, Tally { passed: 1, failed: 0 }))
        });
        let round = performed(vec![("tests", vec![waits]), ("checks", vec![tells])], true);
        assert_eq!(counted(round, vec![]), (Tally { passed: 2, failed: 0 }, vec![]));
    }

    #[test]
    fn the_load_ends_when_it_is_dropped() {
        let load = Load::start(2);
        let is_over = Arc::clone(&load.is_over);
        drop(load);
        // Its threads were joined: only this handle is left.
        assert_eq!(Arc::strong_count(&is_over), 1);
    }
}
