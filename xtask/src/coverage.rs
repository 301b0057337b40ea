//! `cargo xtask fuzz --coverage SECONDS`: coverage-guided fuzzing.
//!
//! The targets are in `fuzz/`, a separate workspace. LLVM counts the edges and libFuzzer picks the
//! inputs; neither needs more than the compiler that builds everything else. Every target starts
//! with `fixtures/fuzz/TARGET` and what earlier runs on this machine found (`fuzz/corpus`). An
//! input that breaks something is stored in `fuzz/artifacts/TARGET`.
//!
//! Not here: what must hold (`fuzzing` modules of the crates, `crates/wire/tests/fuzz`).

use std::collections::VecDeque;
use std::fmt;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::shell;

/// What `cargo fuzz` passes, without a sanitizer: the code under test has no `unsafe`.
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";
/// Bytes of one input. Longer ones only cost time.
const INPUT_BYTES_MAX: &str = "16384";
/// Seconds that one input may take.
const INPUT_SECONDS_MAX: &str = "10";
/// Memory that a target may take.
const MEMORY_MIB_MAX: &str = "2048";
/// Lines that are kept of what a target says; they are shown if it breaks.
const LINES_MAX: usize = 500;
/// What stands above each of [`Figures`].
const HEAD: &str = "  executions   per second   edges  inputs";

/// How far a target got, as libFuzzer says it in its last line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Figures {
    executions: u64,
    per_second: u64,
    /// Edges of the program that some input reached.
    edges: u64,
    /// Inputs that are worth keeping.
    inputs: u64,
}

/// Runs every target for its share of that time.
pub(crate) fn fuzz(seconds: u64) -> Result<bool, String> {
    let root = shell::root();
    let targets = targets(&root)?;
    let host = shell::host()?;
    let built = root.join("target/fuzz").join(&host).join("release");
    let mut command = shell::cargo();
    command.args(["build", "--release", "--locked", "--manifest-path", "fuzz/Cargo.toml"]);
    command.args(["--target-dir", "target/fuzz", "--target", &host]);
    command.env("RUSTFLAGS", COVERAGE).env_remove("CARGO_ENCODED_RUSTFLAGS");
    if !shell::succeeds(command)? {
        return Ok(false);
    }
    let begun = Instant::now();
    let whole = Duration::from_secs(seconds);
    let (mut broken, mut table) = (vec![], vec![]);
    for (number, target) in targets.iter().enumerate() {
        let left = u32::try_from(targets.len() - number).unwrap_or(1);
        let share = whole.saturating_sub(begun.elapsed()) / left;
        shell::say(&format!("== fuzz {target} for {} s", share.as_secs().max(1)));
        let (is_well, figures) = run(&root, &built.join(target), target, share.as_secs().max(1))?;
        if !is_well {
            broken.push(target.as_str());
        }
        table.push(format!("{target:<16}{figures}"));
    }
    shell::say(&format!("\n{:<16}{HEAD}\n{}", "target", table.join("\n")));
    for target in &broken {
        let program = built.join(target);
        shell::complain(&format!(
            "{target} failed. The inputs are in fuzz/artifacts/{target}; to replay one:\n  \
             {} fuzz/artifacts/{target}/FILE\n\
             Once it is fixed, add the input to fixtures/fuzz/{target}: cargo xtask test replays it.",
            program.display(),
        ));
    }
    let outcome = if broken.is_empty() { "none failed".to_owned() } else { broken.join(", ") };
    shell::say(&format!("{} targets; {outcome}", targets.len()));
    Ok(broken.is_empty())
}

fn run(root: &Path, program: &Path, target: &str, seconds: u64) -> Result<(bool, Figures), String> {
    let (found, broken) = (format!("fuzz/corpus/{target}"), format!("fuzz/artifacts/{target}/"));
    for folder in [&found, &broken] {
        let made = fs::create_dir_all(root.join(folder));
        made.map_err(|error| format!("could not make {folder}: {error}"))?;
    }
    let mut command = Command::new(program);
    command.current_dir(root);
    command.args([&found, &format!("fixtures/fuzz/{target}")]);
    command.args([
        format!("-max_total_time={seconds}"),
        format!("-max_len={INPUT_BYTES_MAX}"),
        format!("-timeout={INPUT_SECONDS_MAX}"),
        format!("-rss_limit_mb={MEMORY_MIB_MAX}"),
        format!("-artifact_prefix={broken}"),
        "-dict=fuzz/json.dict".to_owned(),
        "-print_funcs=0".to_owned(),
    ]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let failed = |error: std::io::Error| format!("could not run {target}: {error}");
    let mut child = command.spawn().map_err(failed)?;
    let (mut figures, mut told) = (Figures::default(), VecDeque::new());
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).split(b'\n') {
            let line = String::from_utf8_lossy(&line.map_err(failed)?).into_owned();
            match Figures::read(&line) {
                Some(read) => figures = read,
                None => told.push_back(line),
            }
            if told.len() > LINES_MAX {
                told.pop_front();
            }
        }
    }
    let is_well = child.wait().map_err(failed)?.success();
    for line in told.iter().filter(|_| !is_well) {
        shell::complain(line);
    }
    Ok((is_well, figures))
}

impl Figures {
    /// From a line of status: `#9 DONE cov: 5 ft: 7 corp: 3/14b exec/s: 2 rss: 30Mb`.
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let executions = words.next()?.strip_prefix('#')?.parse().ok()?;
        let mut figures = Self { executions, ..Self::default() };
        while let Some(word) = words.next() {
            let number = match word {
                "cov:" => &mut figures.edges,
                "corp:" => &mut figures.inputs,
                "exec/s:" => &mut figures.per_second,
                _ => continue,
            };
            *number = words.next()?.split('/').next()?.parse().ok()?;
        }
        Some(figures)
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { executions, per_second, edges, inputs } = self;
        write!(f, "{executions:>12} {per_second:>12} {edges:>7} {inputs:>7}")
    }
}

/// The targets, each with inputs to begin with: without these nothing replays what was found.
fn targets(root: &Path) -> Result<Vec<String>, String> {
    let folder = root.join("fuzz/fuzz_targets");
    let entries = fs::read_dir(&folder)
        .map_err(|error| format!("could not read {}: {error}", folder.display()))?;
    let names = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        name.strip_suffix(".rs").map(str::to_owned)
    });
    let mut names: Vec<_> = names.collect();
    names.sort();
    for name in &names {
        if !root.join("fixtures/fuzz").join(name).is_dir() {
            return Err(format!("fixtures/fuzz/{name} is missing: each target needs inputs there"));
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of all inputs, and of each. Everybody who fetches the project has them.
    const INPUTS_BYTES_MAX: u64 = 250 * 1024;
    const KEPT_INPUT_BYTES_MAX: u64 = 4 * 1024;

    /// Where names of targets stand beside what plays their inputs.
    const KNOWN_IN: [&str; 2] = ["fuzz/src/lib.rs", "crates/wire/tests/fuzz/lines.rs"];

    /// Tests that `cargo xtask test` runs and that replay `fixtures/fuzz`. The first has its targets
    /// from `lines.rs`.
    const REPLAYED_IN: [&str; 5] = [
        "crates/wire/tests/fuzz/lines.rs",
        "crates/store/src/codec/fuzzing.rs",
        "crates/client/src/fuzzing.rs",
        "crates/agents/src/panel/profile/fuzzing.rs",
        "crates/proxy/src/journal/fuzzing.rs",
    ];

    fn text(path: &str) -> String {
        fs::read_to_string(shell::root().join(path)).unwrap_or_else(|_| panic!("{path} is missing"))
    }

    #[test]
    fn the_last_line_of_status_says_how_far_a_target_got() {
        let line = "#4096\tDONE   cov: 512 ft: 900 corp: 61/14Kb lim: 163 exec/s: 2048 rss: 64Mb";
        let figures = Figures { executions: 4096, per_second: 2048, edges: 512, inputs: 61 };
        assert_eq!(Figures::read(line), Some(figures));
        assert_eq!(Figures::read("thread '<unnamed>' panicked at lib.rs:1:1:"), None);
    }

    #[test]
    fn every_target_has_inputs_and_a_program_of_its_name() {
        let root = shell::root();
        let manifest = fs::read_to_string(root.join("fuzz/Cargo.toml")).unwrap();
        let targets = targets(&root).unwrap();
        assert!(targets.len() >= 10, "{targets:?}");
        for target in &targets {
            assert!(manifest.contains(&format!("name = \"{target}\"")), "{target}");
        }
        assert_eq!(manifest.matches("[[bin]]").count(), targets.len());
        let folders = fs::read_dir(root.join("fixtures/fuzz")).unwrap().count();
        assert_eq!(folders, targets.len(), "inputs without a target");
    }

    /// No step compiles these programs, because their engine is C++, and a wrong name would panic
    /// only in a long run.
    #[test]
    fn every_program_plays_the_target_that_it_is_named_for() {
        let known = KNOWN_IN.map(text).concat();
        for target in targets(&shell::root()).unwrap() {
            let expected = format!(
                "#![no_main]\nlibfuzzer_sys::fuzz_target!(|bytes: &[u8]| \
                 fuzz::run(\"{target}\", bytes));\n"
            );
            assert_eq!(text(&format!("fuzz/fuzz_targets/{target}.rs")), expected);
            assert!(
                known.contains(&format!("(\"{target}\", ")),
                "{target} is unknown to fuzz::run"
            );
        }
    }

    #[test]
    fn the_inputs_of_every_target_are_replayed_by_a_test() {
        let replayed = REPLAYED_IN.map(text).concat();
        let fuzz = text("crates/wire/tests/fuzz.rs");
        assert!(fuzz.contains("in lines::TARGETS"), "wire no longer replays its targets");
        for target in targets(&shell::root()).unwrap() {
            let is_named = [format!("(\"{target}\", "), format!("fixtures/fuzz/{target}\"")];
            assert!(is_named.iter().any(|it| replayed.contains(it)), "no test replays {target}");
        }
    }

    #[test]
    fn the_inputs_are_small() {
        let root = shell::root().join("fixtures/fuzz");
        let mut whole = 0;
        for target in targets(&shell::root()).unwrap() {
            for input in fs::read_dir(root.join(&target)).unwrap() {
                let input = input.unwrap();
                let bytes = input.metadata().unwrap().len();
                let name = input.file_name();
                assert!(bytes < KEPT_INPUT_BYTES_MAX, "{target}/{}: {bytes}", name.display());
                whole += bytes;
            }
        }
        assert!(whole < INPUTS_BYTES_MAX, "fixtures/fuzz: {whole} bytes");
    }
}
