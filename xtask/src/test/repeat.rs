//! `cargo xtask repeat --times N [--busy] [--only STEP]`: the tests that wait for other programs
//! (browsers, IDEs, real agents), N times in a row.
//!
//! One pass proves little: a test that fails one time in twenty fails most CI runs. With `--busy`,
//! a loop keeps every core busy beside the tests.
//!
//! Not here: the tests themselves, and what a single run of them needs (`test`).

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use super::{
    Coverage, Fetched, Outcome, Step, Tally, cases, fetch, ides, journeys, perform, places,
    real_agents, tally,
};
use crate::agents::play::Places;
use crate::runner::{Runner, Selection};
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
    let Asked { times, is_busy, only } = read(options)?;
    let untried = super::untried::begin(&shell::target())?;
    let mut runner = Runner::find();
    let fetched = fetch(Coverage::All);
    if !runner.build()? {
        return Ok(false);
    }
    let browser = fetched.browser.as_ref()?;
    let shared = browser::Shared::start(browser).ok();
    let places = places(&untried, Some(browser), shared.as_ref());
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let load = is_busy.then(|| Load::start(cores));
    let (mut total, mut broken) = (Tally::default(), Vec::new());
    for round in 1..=times {
        let begun = Instant::now();
        let files = times_of(&runner);
        cases::forget(&files);
        let (tally, sentences) = once(steps(only, &runner, &fetched, &places));
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

fn steps<'a>(
    only: Option<&str>,
    runner: &'a Runner,
    fetched: &'a Fetched,
    places: &'a Places,
) -> Vec<Step<'a>> {
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    let mut steps = Vec::new();
    if wanted("page") {
        steps.push(journeys(fetched));
    }
    if wanted("panels") {
        steps.push(panels(runner, places));
    }
    if wanted("ides") {
        steps.push(ides(runner, fetched, places));
    }
    if wanted("agents") {
        steps.push(real_agents(runner, fetched, places));
    }
    steps
}

fn panels<'a>(runner: &'a Runner, places: &'a Places) -> Step<'a> {
    let mut selection = Selection::everything("default");
    selection.filterset = Some(PANELS.to_owned());
    // For cargo's own runner.
    selection.words = ["ide::", "acting::"].map(str::to_owned).into();
    super::step("panels in a browser", vec![], move || {
        let mut command = runner.command(&selection);
        command.envs(places);
        let (is_well, lines) = shell::watch(command)?;
        Ok(Outcome::of(is_well, tally::count(&lines)))
    })
}

/// One round: its counts, and a sentence for each thing that could not be tried.
fn once(steps: Vec<Step<'_>>) -> (Tally, Vec<String>) {
    let (mut total, mut sentences) = (Tally::default(), Vec::new());
    for done in steps.into_iter().map(perform) {
        let untried = Tally { passed: 0, failed: done.outcome.skipped.len() as u64 };
        total = total.plus(done.outcome.tally).plus(untried);
        sentences.extend(done.outcome.skipped.into_iter().map(|it| format!("skipped: {it}")));
        if !done.outcome.is_well {
            sentences.push(format!("{} failed", done.name));
        }
    }
    (total, sentences)
}

fn read<'a>(mut options: &[&'a str]) -> Result<Asked<'a>, String> {
    let (mut times, mut is_busy, mut only) = (None, false, None);
    loop {
        options = match *options {
            [] => break,
            ["--busy", ref rest @ ..] => {
                is_busy = true;
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
    Ok(Asked { times, is_busy, only })
}

#[cfg(test)]
mod tests {
    use super::super::step;
    use super::*;

    #[test]
    fn repeat_takes_a_count_a_load_and_a_step() {
        let plain = Asked { times: 20, is_busy: false, only: None };
        assert_eq!(read(&["--times", "20"]), Ok(plain));
        assert_eq!(read(&["--times", "20", "--busy"]), Ok(Asked { is_busy: true, ..plain }));
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
        let (tally, sentences) = once(vec![well, skipped, broken]);
        assert_eq!(tally, Tally { passed: 2, failed: 2 });
        assert_eq!(sentences, ["skipped: no browser", "three failed"]);
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
