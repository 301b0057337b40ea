//! `cargo xtask sim` and `cargo xtask kill`: the long forms of what `cargo xtask test` does
//! briefly.
//!
//! Not here: the simulation (`crates/sim`), the process test (`crates/farhelm/tests/kill.rs`).

use crate::shell;

/// Runs the simulation over a range of seeds, optimised.
pub(crate) fn simulate(options: &[&str]) -> Result<bool, String> {
    let (seeds, from) = sim_options(options)?;
    let mut command = shell::cargo();
    command.args(["run", "--release", "--package", "sim", "--", "--seeds"]).arg(seeds.to_string());
    if let Some(from) = from {
        command.arg("--from").arg(from.to_string());
    }
    shell::succeeds(command)
}

/// Runs the process test with that many kills.
pub(crate) fn kill(options: &[&str]) -> Result<bool, String> {
    let times = match options {
        ["--times", times] => number("--times", times)?,
        _ => return Err("kill needs --times N".to_owned()),
    };
    let mut command = shell::cargo();
    command.args(["test", "--release", "--package", "farhelm", "--test", "kill"]);
    command.args(["--", "--nocapture"]).env("FARHELM_KILL_TIMES", times.to_string());
    shell::succeeds(command)
}

fn sim_options(options: &[&str]) -> Result<(u64, Option<u64>), String> {
    let (mut seeds, mut from) = (None, None);
    for pair in options.chunks(2) {
        match *pair {
            ["--seeds", raw] => seeds = Some(number("--seeds", raw)?),
            ["--from", raw] => from = Some(number("--from", raw)?),
            _ => return Err(format!("sim does not know {:?}", pair.join(" "))),
        }
    }
    Ok((seeds.ok_or("sim needs --seeds N")?, from))
}

fn number(option: &str, raw: &str) -> Result<u64, String> {
    raw.parse().map_err(|_| format!("{option} needs a whole number, not {raw:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sim_takes_a_count_and_an_optional_start() {
        assert_eq!(sim_options(&["--seeds", "5"]), Ok((5, None)));
        assert_eq!(sim_options(&["--from", "9", "--seeds", "5"]), Ok((5, Some(9))));
    }

    #[test]
    fn what_is_missing_or_unknown_is_named() {
        assert_eq!(sim_options(&[]), Err("sim needs --seeds N".to_owned()));
        assert_eq!(sim_options(&["--seed"]), Err("sim does not know \"--seed\"".to_owned()));
        assert_eq!(kill(&["--times", "x"]), Err("--times needs a whole number, not \"x\"".into()));
    }
}
