//! `cargo xtask ide`: tests third-party chat panels in a real browser.
//!
//! The panels are VS Code's own Chat (in code-server, with a scripted agent as its extension) and
//! opencode's web page, at pinned versions in the person's cache folder. What cannot be fetched is
//! reported, never skipped silently.
//!
//! Not here: the versions (`agents.toml`), what the tests do with them
//! (`crates/farhelm/tests/ide`).

use std::path::PathBuf;

use crate::agents::play::Places;
use crate::agents::{self, FOUND_BY, Wanted};
use crate::runner::{Runner, Selection};
use crate::test::tally::{self, Tally};
use crate::{browser, shell};

/// What came of fetching the IDEs.
pub(crate) struct Fetched {
    /// Where tests read what is installed.
    list: PathBuf,
    /// The modules of the tests that can be run.
    modules: Vec<&'static str>,
    /// A sentence for each IDE that is missing.
    pub(crate) missing: Vec<String>,
}

/// `cargo xtask ide [--install | --bench]`.
pub(crate) fn run(options: &[&str]) -> Result<bool, String> {
    match options {
        [] => {}
        ["--install"] => return fetch_only(),
        ["--bench"] => return bench(),
        [unknown, ..] => return Err(format!("ide: unknown option {unknown:?}")),
    }
    let chromium = browser::find_or_fetch("third-party panels")?;
    let fetched = fetch()?;
    for sentence in &fetched.missing {
        shell::say(&format!("SKIPPED: {sentence}"));
    }
    let places = Places::from([(browser::NAMED_BY, chromium)]);
    let (is_well, tally) = play(&Runner::find(), &fetched, &places)?;
    shell::say(&tally.to_string());
    Ok(is_well && fetched.missing.is_empty())
}

fn fetch_only() -> Result<bool, String> {
    let Fetched { list, missing, .. } = fetch()?;
    for sentence in &missing {
        shell::complain(sentence);
    }
    shell::say(&format!("tests find the installed programs with {FOUND_BY}={}", list.display()));
    Ok(missing.is_empty())
}

/// What panels cost, printed.
fn bench() -> Result<bool, String> {
    let chromium = browser::find_or_fetch("the panel benchmark")?;
    let mut command = shell::cargo();
    command.args(["test", "--release", "--package", "farhelm", "--test", "all", "--"]);
    command.args(["--ignored", "--nocapture", "ide::figures::"]).env(browser::NAMED_BY, chromium);
    shell::succeeds(command)
}

/// Fetches what is missing.
pub(crate) fn fetch() -> Result<Fetched, String> {
    let mut missing = agents::install(Wanted::Only("opencode"))?.missing;
    let outcome = agents::install(Wanted::Only(agents::CODE_SERVER))?;
    missing.extend(outcome.missing);
    let known = [(agents::CODE_SERVER, "ide::code_server::"), ("opencode", "ide::opencode::")];
    let is_here = |name: &str| !missing.iter().any(|sentence: &String| sentence.starts_with(name));
    let modules = known.into_iter().filter(|(name, _)| is_here(name)).map(|(_, it)| it).collect();
    Ok(Fetched { list: outcome.list, modules, missing })
}

/// Runs the tests of the IDEs that are there.
pub(crate) fn play(
    runner: &Runner,
    fetched: &Fetched,
    places: &Places,
) -> Result<(bool, Tally), String> {
    if fetched.modules.is_empty() {
        return Ok((true, Tally::default()));
    }
    let mut command = runner.command(&selection(&fetched.modules));
    command.envs(places).env(FOUND_BY, &fetched.list);
    let (is_well, lines) = shell::watch(command)?;
    Ok((is_well, tally::count(&lines)))
}

/// One after the other: each has a server, a browser and a machine of its own.
fn selection(modules: &[&str]) -> Selection {
    Selection {
        profile: "ides",
        filterset: Some(format!("test(/^({})/)", modules.join("|"))),
        words: modules.iter().map(ToString::to_string).collect(),
        is_ignored_only: true,
        is_serial: true,
    }
}
