//! `cargo xtask sim`, `cargo xtask kill` and `cargo xtask fuzz`: the long forms of what
//! `cargo xtask test` does briefly. `cargo xtask bench`: how fast the release build is.
//!
//! Not here: the simulation (`crates/sim`), the process test (`crates/farhelm/tests/kill.rs`), the
//! hostile frames (`crates/wire/tests/fuzz`), coverage-guided fuzzing (`coverage`).

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::{coverage, shell};

/// Runs the simulation over a range of seeds, optimised.
pub(crate) fn simulate(options: &[&str]) -> Result<bool, String> {
    check_sim(options)?;
    let mut command = shell::cargo();
    command.args(["run", "--release", "--package", "sim", "--"]).args(options);
    shell::succeeds(command)
}

/// Builds the product and its measurement program, optimised, and runs the latter.
pub(crate) fn bench(options: &[&str]) -> Result<bool, String> {
    let mut build = shell::cargo();
    build.args(["build", "--release", "--package", "farhelm", "--package", "bench"]);
    if !shell::succeeds(build)? {
        return Ok(false);
    }
    let name = format!("bench{}", std::env::consts::EXE_SUFFIX);
    let mut command = Command::new(shell::target().join("release").join(name));
    command.args(options);
    shell::succeeds(command)
}

/// Runs the process test with that many kills.
pub(crate) fn kill(options: &[&str]) -> Result<bool, String> {
    let times = match options {
        ["--times", times] => number("--times", times)?,
        _ => return Err("kill needs --times N".to_owned()),
    };
    let mut command = shell::cargo();
    command.args(["test", "--release", "--package", "farhelm", "--test", "all"]);
    command.args(["--", "--nocapture", "kill::"]).env("FARHELM_KILL_TIMES", times.to_string());
    shell::succeeds(command)
}

/// Drives every dialect's decoder and machine with spoilt frames, for so long.
pub(crate) fn fuzz(options: &[&str]) -> Result<bool, String> {
    if let ["--coverage", seconds] = options {
        return coverage::fuzz(number("--coverage", seconds)?);
    }
    let (seconds, seed) = fuzz_options(options)?;
    // Another seed each time, unless one is to be played again; it is told either way.
    let seed = seed.unwrap_or_else(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        since.as_secs() << 20
    });
    shell::say(&format!("fuzzing for {seconds} s from seed {seed}"));
    let mut command = shell::cargo();
    command.args(["test", "--release", "--package", "wire", "--test", "all", "--"]);
    command.args(["--nocapture", "every_dialect_survives_whatever_is_said"]);
    command.env("FARHELM_FUZZ_SECONDS", seconds.to_string());
    command.env("FARHELM_FUZZ_SEED", seed.to_string());
    shell::succeeds(command)
}

fn fuzz_options(options: &[&str]) -> Result<(u64, Option<u64>), String> {
    let (mut seconds, mut seed) = (None, None);
    for pair in options.chunks(2) {
        match *pair {
            ["--seconds", raw] => seconds = Some(number("--seconds", raw)?),
            ["--seed", raw] => seed = Some(number("--seed", raw)?),
            _ => return Err(format!("fuzz: unknown option {:?}", pair.join(" "))),
        }
    }
    Ok((seconds.ok_or("fuzz needs --seconds N or --coverage SECONDS")?, seed))
}

/// The simulation reads its options itself; what is wrong with them is told before it is built.
fn check_sim(mut options: &[&str]) -> Result<(), String> {
    let mut has_seeds = false;
    loop {
        options = match *options {
            [] if has_seeds => return Ok(()),
            [] => return Err("sim needs --seeds N".to_owned()),
            ["--go-on", ref rest @ ..] => rest,
            [name @ ("--seeds" | "--from"), raw, ref rest @ ..] => {
                number(name, raw)?;
                has_seeds |= name == "--seeds";
                rest
            }
            _ => return Err(format!("sim: unknown option {:?}", options.join(" "))),
        };
    }
}

fn number(option: &str, raw: &str) -> Result<u64, String> {
    raw.parse().map_err(|_| format!("{option} needs a whole number, not {raw:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sim_takes_a_count_a_start_and_whether_to_go_on() {
        assert_eq!(check_sim(&["--seeds", "5"]), Ok(()));
        assert_eq!(check_sim(&["--from", "9", "--go-on", "--seeds", "5"]), Ok(()));
    }

    #[test]
    fn fuzz_takes_a_time_and_an_optional_seed() {
        assert_eq!(fuzz_options(&["--seconds", "5"]), Ok((5, None)));
        assert_eq!(fuzz_options(&["--seed", "9", "--seconds", "0"]), Ok((0, Some(9))));
        assert_eq!(
            fuzz_options(&["--seed", "9"]),
            Err("fuzz needs --seconds N or --coverage SECONDS".to_owned())
        );
    }

    #[test]
    fn what_is_missing_or_unknown_is_named() {
        assert_eq!(check_sim(&["--go-on"]), Err("sim needs --seeds N".to_owned()));
        assert_eq!(check_sim(&["--seed"]), Err("sim: unknown option \"--seed\"".to_owned()));
        assert_eq!(
            check_sim(&["--seeds", "x"]),
            Err("--seeds needs a whole number, not \"x\"".to_owned())
        );
        assert_eq!(kill(&["--times", "x"]), Err("--times needs a whole number, not \"x\"".into()));
    }
}
