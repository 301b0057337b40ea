//! `cargo xtask ide`: chat panels that nobody here wrote, in a real browser.
//!
//! VS Code's own Chat (in code-server, with a scripted agent as its extension) and opencode's web
//! page, at pinned versions in the cache folder of the person. What cannot be fetched is told,
//! never passed over in silence.
//!
//! Not here: the versions (`agents.toml`), what the tests do with them
//! (`crates/farhelm/tests/ide`).

use std::path::PathBuf;
use std::process::Command;

use crate::agents::{self, FOUND_BY, Wanted};
use crate::test::tally::{self, Tally};
use crate::{browser, shell};

/// What came of trying.
pub(crate) struct Tried {
    pub(crate) is_well: bool,
    pub(crate) tally: Tally,
    /// A sentence for each that could not be tried.
    pub(crate) skipped: Vec<String>,
}

/// `cargo xtask ide [--install | --bench]`.
pub(crate) fn run(options: &[&str]) -> Result<bool, String> {
    match options {
        [] => {}
        ["--install"] => return fetch_only(),
        ["--bench"] => return bench(),
        [unknown, ..] => return Err(format!("ide: cannot read {unknown:?}")),
    }
    let Tried { is_well, tally, skipped } = play()?;
    for sentence in &skipped {
        shell::say(&format!("SKIPPED: {sentence}"));
    }
    shell::say(&tally.to_string());
    Ok(is_well && skipped.is_empty())
}

fn fetch_only() -> Result<bool, String> {
    let (list, missing) = install()?;
    for sentence in &missing {
        shell::complain(sentence);
    }
    shell::say(&format!("tests find what is installed with {FOUND_BY}={}", list.display()));
    Ok(missing.is_empty())
}

/// What panels cost, printed.
fn bench() -> Result<bool, String> {
    let chromium = browser::find_or_fetch("what panels cost")?;
    let mut command = shell::cargo();
    command.args(["test", "--release", "--package", "farhelm", "--test", "all", "--"]);
    command.args(["--ignored", "--nocapture", "ide::figures::"]).env(browser::NAMED_BY, chromium);
    shell::succeeds(command)
}

/// Fetches what is missing and runs the tests of what is there.
pub(crate) fn play() -> Result<Tried, String> {
    let chromium = browser::find_or_fetch("panels that nobody here wrote")?;
    let (list, skipped) = install()?;
    let mut names = vec![];
    for (name, module) in
        [(agents::CODE_SERVER, "ide::code_server::"), ("opencode", "ide::opencode::")]
    {
        if !skipped.iter().any(|sentence| sentence.starts_with(name)) {
            names.push(module);
        }
    }
    if names.is_empty() {
        return Ok(Tried { is_well: true, tally: Tally::default(), skipped });
    }
    let mut command = runner(&names);
    command.env(FOUND_BY, list).env(browser::NAMED_BY, chromium);
    let (is_well, lines) = shell::watch(command)?;
    Ok(Tried { is_well, tally: tally::count(&lines), skipped })
}

/// One after the other: each has a server, a browser and a machine of its own.
fn runner(names: &[&str]) -> Command {
    let mut command = shell::cargo();
    let mut probe = shell::cargo();
    probe.args(["nextest", "--version"]);
    if shell::answers(probe) {
        command.args(["nextest", "run", "--package", "farhelm", "--test", "all"]);
        command.args(["--no-fail-fast", "--run-ignored", "only", "--test-threads", "1"]);
        command.args(["--filterset", &format!("test(/^({})/)", names.join("|"))]);
    } else {
        command.args(["test", "--package", "farhelm", "--test", "all", "--no-fail-fast", "--"]);
        command.args(["--ignored", "--test-threads", "1"]).args(names);
    }
    command
}

/// Where tests read what is installed, and a sentence for each that is not.
fn install() -> Result<(PathBuf, Vec<String>), String> {
    let mut missing = agents::install(Wanted::Only("opencode"))?.missing;
    let outcome = agents::install(Wanted::Only(agents::CODE_SERVER))?;
    missing.extend(outcome.missing);
    Ok((outcome.list, missing))
}
