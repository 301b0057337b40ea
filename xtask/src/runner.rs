//! The runner of Rust tests: cargo-nextest where it is installed, otherwise cargo's own.
//!
//! Invariant: every step selects the whole workspace and names its tests with a filter. Selecting
//! fewer packages would give dependencies other features and compile half the product again. Later
//! steps run what [`Runner::build`] built without asking cargo again.
//!
//! Not here: which tests a step wants (`test`, `ide`, `agents::play`), reading a runner's summary
//! (`test::tally`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell;

/// What cargo's own runner cannot do.
const WITHOUT_NEXTEST: &str = "cargo-nextest is missing: tests have no time limits, and the run \
    names neither its slowest tests nor, at its end, those that failed (`cargo install --locked \
    cargo-nextest`)";

/// Tests of the workspace that need a browser, by parts of their names for cargo's own runner; a
/// few unit tests of modules with the same names go with them. `.config/nextest.toml` names exactly
/// these.
pub(crate) const IN_A_BROWSER: [&str; 5] =
    ["ide::", "acting::", "chromium::", "observer::", "test_panels::"];

/// The runner, and what was built for it.
pub(crate) struct Runner {
    has_nextest: bool,
    built: Option<Built>,
}

/// Files from which nextest knows the programs of the tests, instead of asking cargo.
struct Built {
    metadata: PathBuf,
    binaries: PathBuf,
}

/// Some of the workspace's tests.
pub(crate) struct Selection {
    /// The profile in `.config/nextest.toml`.
    pub(crate) profile: &'static str,
    /// As nextest names them.
    pub(crate) filterset: Option<String>,
    /// The same for cargo's own runner: parts of names, or `--skip` and a part.
    pub(crate) words: Vec<String>,
    /// Those that a plain run leaves out.
    pub(crate) is_ignored_only: bool,
    /// One after the other.
    pub(crate) is_serial: bool,
}

impl Selection {
    /// All that a plain run has.
    pub(crate) fn everything(profile: &'static str) -> Self {
        let words = Vec::new();
        Self { profile, filterset: None, words, is_ignored_only: false, is_serial: false }
    }
}

impl Runner {
    /// Says what is missing without cargo-nextest.
    pub(crate) fn find() -> Self {
        let mut probe = shell::cargo();
        probe.args(["nextest", "--version"]);
        let has_nextest = shell::answers(probe);
        if !has_nextest {
            shell::say(WITHOUT_NEXTEST);
        }
        Self { has_nextest, built: None }
    }

    /// Builds every test and the product, once. `false` when that failed.
    pub(crate) fn build(&mut self) -> Result<bool, String> {
        if !self.has_nextest {
            let mut build = shell::cargo();
            build.args(["test", "--workspace", "--lib", "--bins", "--tests", "--no-run"]);
            return shell::succeeds(build);
        }
        let mut list = shell::cargo();
        list.args(["nextest", "list", "--workspace", "--list-type", "binaries-only"]);
        list.args(["--message-format", "json"]);
        let (is_built, binaries) = shell::output(list)?;
        if !is_built {
            return Ok(false);
        }
        let mut metadata = shell::cargo();
        metadata.args(["metadata", "--format-version", "1", "--all-features"]);
        let (is_known, metadata) = shell::output(metadata)?;
        if !is_known {
            return Ok(false);
        }
        let folder = shell::target().join("tests-built");
        let kept = |name: &str, bytes: &[u8]| {
            let path = folder.join(name);
            let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&path, bytes));
            written.map(|()| path.clone()).map_err(|error| format!("{}: {error}", path.display()))
        };
        self.built = Some(Built {
            metadata: kept("cargo-metadata.json", &metadata)?,
            binaries: kept("binaries.json", &binaries)?,
        });
        Ok(true)
    }

    /// The command that runs these.
    pub(crate) fn command(&self, selection: &Selection) -> Command {
        let mut command = shell::cargo();
        if !self.has_nextest {
            command.args(["test", "--workspace", "--lib", "--bins", "--tests"]);
            command.args(["--no-fail-fast", "--"]).args(&selection.words);
            if selection.is_ignored_only {
                command.arg("--ignored");
            }
            if selection.is_serial {
                command.args(["--test-threads", "1"]);
            }
            return command;
        }
        command.args(["nextest", "run"]);
        match &self.built {
            Some(Built { metadata, binaries }) => {
                command.arg("--cargo-metadata").arg(metadata);
                command.arg("--binaries-metadata").arg(binaries);
            }
            None => drop(command.arg("--workspace")),
        }
        command.args(["--no-fail-fast", "--profile", selection.profile]);
        if selection.is_ignored_only {
            command.args(["--run-ignored", "only"]);
        }
        if let Some(filterset) = &selection.filterset {
            command.args(["--filterset", filterset]);
        }
        command
    }

    /// Whether tests can be chosen by more than parts of their names.
    pub(crate) fn can_choose(&self) -> bool {
        self.has_nextest
    }

    /// Where the run of a profile leaves the time of each test; `None` without nextest, which
    /// keeps them in the checkout, wherever cargo builds.
    pub(crate) fn times(&self, profile: &str) -> Option<PathBuf> {
        self.has_nextest.then(|| times_in(&shell::root().join("target"), profile))
    }
}

fn times_in(target: &Path, profile: &str) -> PathBuf {
    target.join("nextest").join(profile).join("junit.xml")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &Command) -> Vec<String> {
        command.get_args().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    fn selection() -> Selection {
        Selection {
            profile: "agents",
            filterset: Some("test(/^agents::pi::/)".to_owned()),
            words: vec!["agents::pi::".to_owned()],
            is_ignored_only: true,
            is_serial: true,
        }
    }

    #[test]
    fn every_selection_is_of_the_whole_workspace() {
        for has_nextest in [true, false] {
            let runner = Runner { has_nextest, built: None };
            let words = words(&runner.command(&selection()));
            assert!(words.iter().any(|word| word == "--workspace"), "{words:?}");
            assert!(!words.iter().any(|word| word == "--package" || word == "-p"), "{words:?}");
        }
    }

    #[test]
    fn what_was_built_is_run_without_asking_cargo_to_build() {
        let built = Built { metadata: "m.json".into(), binaries: "b.json".into() };
        let runner = Runner { has_nextest: true, built: Some(built) };
        let words = words(&runner.command(&selection()));
        let expected = ["nextest", "run", "--cargo-metadata", "m.json", "--binaries-metadata"];
        assert_eq!(words[..5], expected);
        assert!(!words.iter().any(|word| word == "--workspace"), "{words:?}");
    }

    #[test]
    fn every_module_of_cdps_browser_tests_has_a_part_for_cargos_own_runner() {
        let tests = shell::root().join("crates/cdp/tests");
        let all = fs::read_to_string(tests.join("all.rs")).unwrap();
        let modules = all.lines().filter_map(|it| it.strip_prefix("mod ")?.strip_suffix(';'));
        let has_tests = |module: &&str| {
            let text = fs::read_to_string(tests.join(format!("{module}.rs"))).unwrap();
            text.contains("test]\n")
        };
        let parts: Vec<String> = modules.filter(has_tests).map(|it| format!("{it}::")).collect();
        assert!(parts.len() >= 3, "{parts:?}");
        for part in &parts {
            assert!(IN_A_BROWSER.contains(&part.as_str()), "{part}");
        }
    }

    #[test]
    fn cargos_own_runner_is_given_parts_of_names() {
        let runner = Runner { has_nextest: false, built: None };
        let words = words(&runner.command(&selection()));
        let at = words.iter().position(|word| word == "--").unwrap();
        assert_eq!(words[at + 1..], ["agents::pi::", "--ignored", "--test-threads", "1"]);
    }
}
