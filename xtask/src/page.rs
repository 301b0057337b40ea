//! The page: its dev server, its types, its checks and its journeys.
//!
//! Not here: building it into the binary (`crates/server/build.rs`).

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::runner::Runner;
use crate::test::tally::{self, Tally};
use crate::{browser, shell};

/// `cargo xtask dev [URL]`: the page with hot reload, in front of a relay that runs.
pub(crate) fn dev(relay: Option<&str>) -> Result<bool, String> {
    installed()?;
    let mut vite = node(&["node_modules/vite/bin/vite.js", "--open", "false"]);
    if let Some(relay) = relay {
        vite.env("FARHELM_URL", relay);
    }
    shell::say("The page connects to the relay at FARHELM_URL (default http://127.0.0.1:4780).");
    shell::succeeds(vite)
}

/// `cargo xtask codegen`: writes the page's types from the frames.
pub(crate) fn codegen() -> Result<bool, String> {
    let mut test = shell::cargo();
    test.args(["test", "--quiet", "--package", "wire", "--lib", "typescript"]);
    test.env("FARHELM_WRITE_TYPES", "1");
    shell::succeeds(test)
}

/// `cargo xtask page`: everything that has to hold of the page alone.
pub(crate) fn run() -> Result<bool, String> {
    let (checked, _) = check()?;
    let (walked, _) = in_browser(Walk::Journeys)?;
    Ok(checked && walked)
}

/// `cargo xtask page --pictures`: the journeys, and then their pictures for the README.
pub(crate) fn pictures() -> Result<bool, String> {
    let (walked, _) = in_browser(Walk::Journeys)?;
    if !walked {
        return Ok(false);
    }
    let (from, to) = (shots().join("readme"), shell::root().join("docs/pictures"));
    let trouble = |error: std::io::Error| format!("could not copy the pictures: {error}");
    for entry in std::fs::read_dir(&from).map_err(trouble)? {
        let entry = entry.map_err(trouble)?;
        std::fs::copy(entry.path(), to.join(entry.file_name())).map_err(trouble)?;
        shell::say(&format!("docs/pictures/{}", entry.file_name().to_string_lossy()));
    }
    Ok(true)
}

/// Where the journeys leave what they saw.
fn shots() -> PathBuf {
    shell::target().join("page-shots")
}

/// Format, lints, types and tests of the page.
pub(crate) fn check() -> Result<(bool, Tally), String> {
    installed()?;
    let mut well =
        shell::succeeds(node(&["node_modules/prettier/bin/prettier.cjs", "--check", "."]))?;
    well &= shell::succeeds(node(&["node_modules/eslint/bin/eslint.js", "."]))?;
    let types = ["node_modules/svelte-check/bin/svelte-check", "--fail-on-warnings"];
    well &= shell::succeeds(node(&types))?;
    let (passes, tally) = run_tests(&[])?;
    Ok((well && passes, tally))
}

/// `cargo xtask bench-web`: what a streamed word and a first view cost, in a real browser.
pub(crate) fn bench() -> Result<bool, String> {
    let (well, _) = in_browser(Walk::Bench)?;
    Ok(well)
}

/// The real binary in a real browser, the binary being built already.
pub(crate) fn journeys(browser: &Path) -> Result<(bool, Tally), String> {
    installed()?;
    walk(browser, Walk::Journeys)
}

/// Where the journeys leave the time of each.
pub(crate) fn times() -> PathBuf {
    shell::target().join("nextest").join("journeys.xml")
}

/// What is done in the browser.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Walk {
    Journeys,
    Bench,
}

/// The same after the binary was built. `Err` says why it cannot be tried here.
fn in_browser(what: Walk) -> Result<(bool, Tally), String> {
    installed()?;
    let browser = browser::find_or_fetch("page journeys")?;
    // With every test, as the runner builds: the product alone would have other features, and be
    // compiled a second time.
    if !Runner::find().build()? {
        return Ok((false, Tally::FAILURE));
    }
    walk(&browser, what)
}

fn walk(browser: &Path, what: Walk) -> Result<(bool, Tally), String> {
    let mut places = vec![
        ("FARHELM_BINARY", shell::target().join("debug/farhelm")),
        ("FARHELM_SHOTS", shots()),
        (browser::NAMED_BY, browser.to_owned()),
        ("FARHELM_TIMES", times()),
    ];
    if what == Walk::Bench {
        places.push(("FARHELM_BENCH", PathBuf::from("1")));
    }
    run_tests(&places)
}

/// The journeys where places are named, else the tests that need none.
fn run_tests(places: &[(&str, PathBuf)]) -> Result<(bool, Tally), String> {
    let mut words = vec!["node_modules/vitest/vitest.mjs", "run"];
    if !places.is_empty() {
        words.extend(["--config", "vitest.journeys.config.ts"]);
    }
    let mut vitest = node(&words);
    vitest.env("NO_COLOR", "1").envs(places.iter().cloned());
    let (passes, lines) = shell::watch(vitest)?;
    Ok((passes, tally::count(&lines)))
}

fn node(words: &[&str]) -> Command {
    let mut command = Command::new("node");
    command.args(words).current_dir(shell::root().join("web"));
    command
}

/// What the lock file names is there. The stamp is also that of the server's build script, which
/// may be at the same: whoever holds the lock file's lock fetches.
fn installed() -> Result<(), String> {
    let web = shell::root().join("web");
    let path = web.join("package-lock.json");
    let told = |error: std::io::Error| format!("{}: {error}", path.display());
    let held = std::fs::File::open(&path).map_err(told)?;
    held.lock().map_err(told)?;
    let lock = std::fs::read_to_string(&path).map_err(told)?;
    let stamp = web.join("node_modules/.farhelm-installed");
    if std::fs::read_to_string(&stamp).is_ok_and(|kept| kept == lock) {
        return Ok(());
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--no-audit", "--no-fund", "--loglevel", "error"]).current_dir(&web);
    if !shell::succeeds(npm)? {
        return Err("npm could not fetch the page's dependencies (is the network up?)".into());
    }
    std::fs::write(&stamp, lock).map_err(|error| format!("{}: {error}", stamp.display()))
}
