//! How many tests ran and how they ended, read from the output of test runners.
//!
//! Three summaries are known: the built-in runner's `test result: ok. 3 passed; 0 failed; …`, one
//! per program; nextest's `Summary [ 0.1s] 4 tests run: 3 passed, 1 failed, …`, one for all; and
//! vitest's `Tests  1 failed | 3 passed (4)`, also one for all. Output of the tests themselves
//! that merely looks similar begins differently.

use std::fmt;

/// Test counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Tally {
    /// Something failed that is not a test.
    pub(crate) const FAILURE: Self = Self { passed: 0, failed: 1 };

    pub(crate) fn plus(self, other: Self) -> Self {
        Self { passed: self.passed + other.passed, failed: self.failed + other.failed }
    }

    /// For a runner that failed: it may have died before it could count.
    pub(crate) fn at_least_one_failure(self) -> Self {
        Self { failed: self.failed.max(1), ..self }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// Sums the summaries among these lines.
pub(crate) fn count(lines: &[String]) -> Tally {
    lines.iter().filter_map(|line| summary(line)).fold(Tally::default(), Tally::plus)
}

fn summary(line: &str) -> Option<Tally> {
    // Not trimmed: nextest shows a failed test's own summary again, indented.
    let counts = match line.strip_prefix("test result: ") {
        Some(counts) => counts.split_once(". ")?.1,
        None => match line.trim_start().strip_prefix("Tests  ") {
            Some(counts) => counts,
            None => line.trim_start().strip_prefix("Summary [")?.split_once(" run: ")?.1,
        },
    };
    let mut tally = Tally::default();
    for count in counts.split([';', ',', '|']) {
        let mut words = count.split_whitespace();
        let (Some(Ok(number)), Some(word)) = (words.next().map(str::parse::<u64>), words.next())
        else {
            continue;
        };
        match word {
            "passed" => tally.passed += number,
            // nextest: `2 timed out`, `1 exec failed`.
            "failed" | "timed" | "exec" => tally.failed += number,
            _ => {}
        }
    }
    Some(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_runner_is_summed_over_its_programs() {
        let tally = counted(&[
            "running 3 tests",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
        ]);
        assert_eq!(tally, Tally { passed: 4, failed: 2 });
    }

    #[test]
    fn vitest_is_read_by_the_line_of_its_tests() {
        let lines = [" Test Files  1 failed (2)", "      Tests  1 failed | 74 passed (75)"];
        assert_eq!(counted(&lines), Tally { passed: 74, failed: 1 });
    }

    #[test]
    fn nextest_is_read_with_its_slow_and_timed_out_tests() {
        let line = "     Summary [  12.345s] 9/10 tests run: 6 passed (1 slow), 1 failed, 2 timed out, 3 skipped";
        assert_eq!(counted(&[line]), Tally { passed: 6, failed: 3 });
    }

    #[test]
    fn a_failed_test_that_nextest_shows_again_counts_once() {
        let tally = counted(&[
            "    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 36 filtered out",
            "     Summary [   0.301s] 37 tests run: 36 passed, 1 failed, 0 skipped",
        ]);
        assert_eq!(tally, Tally { passed: 36, failed: 1 });
    }

    #[test]
    fn other_lines_do_not_count() {
        let lines =
            ["5 passed, 1 failed", "test passed ... ok", "note: test result: ok. 9 passed;"];
        assert_eq!(counted(&lines), Tally::default());
    }

    #[test]
    fn a_runner_that_died_counts_as_a_failure() {
        assert_eq!(Tally { passed: 7, failed: 0 }.at_least_one_failure().failed, 1);
        assert_eq!(Tally { passed: 7, failed: 3 }.at_least_one_failure().failed, 3);
    }

    #[test]
    fn the_last_line_is_plain() {
        assert_eq!(Tally { passed: 12, failed: 0 }.to_string(), "12 passed, 0 failed");
    }

    fn counted(lines: &[&str]) -> Tally {
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        count(&lines)
    }
}
