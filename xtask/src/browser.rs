//! The browser for every test that needs one: Debian's Chromium, installed where possible.
//!
//! Not here: what is done in it (`page`, `ide`, and the workspace's own tests).

use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use crate::shell;

/// Tells a test which browser to use, and that it may not do without.
pub(crate) const NAMED_BY: &str = "FARHELM_CHROMIUM";

/// Tells tests where the browser of the whole run listens.
pub(crate) const SHARED_BY: &str = "FARHELM_TEST_BROWSER";

/// Starts a browser and clears up after it; tests that need their own one use the same.
const KEEPER: &str = "crates/fake_panels/src/chromium.sh";
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Names under which Chromium is found.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Chromium, installed if need be. The error says what stays untried without it.
pub(crate) fn find_or_fetch(untried: &str) -> Result<PathBuf, String> {
    find().or_else(fetch).ok_or_else(|| {
        format!(
            "{untried}: Chromium was not found and could not be installed; try `apt install \
             chromium`"
        )
    })
}

fn find() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(NAMED_BY) {
        return Some(PathBuf::from(named));
    }
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let places = NAMES.iter().flat_map(|name| folders.iter().map(move |dir| dir.join(name)));
    places.into_iter().find(|place| place.is_file())
}

/// Debian's, where this account may install it.
fn fetch() -> Option<PathBuf> {
    let apt = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(words).env("DEBIAN_FRONTEND", "noninteractive");
        shell::answers(command)
    };
    shell::say("Chromium not found; trying apt-get install chromium");
    let packages = ["install", "-y", "--no-install-recommends", "chromium", "fonts-dejavu-core"];
    let installs = apt(&packages) || (apt(&["update"]) && apt(&packages));
    installs.then(find).flatten()
}

/// The browser of a whole test run: tests that can share one need not each start theirs. It ends
/// when this is dropped, or when this process ends.
pub(crate) struct Shared {
    /// `127.0.0.1:PORT`.
    pub(crate) address: String,
    lifeline: Option<ChildStdin>,
    keeper: Child,
}

impl Shared {
    /// Starts it. Where it does not start, this says why; each test then starts its own.
    pub(crate) fn start_or_say(program: &Path) -> Option<Self> {
        let say = |sentence: &String| {
            shell::say(&format!(
                "no browser for the whole run, so each test starts one: {sentence}"
            ));
        };
        Self::start(program).inspect_err(say).ok()
    }

    /// Starts it; it answers when this returns.
    fn start(program: &Path) -> Result<Self, String> {
        let told = |error: std::io::Error| format!("{}: {error}", program.display());
        let name = format!("farhelm-chromium-shared-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).map_err(told)?;
        let mut keeper = Command::new("sh")
            .arg(shell::root().join(KEEPER))
            .arg(program)
            .arg(&folder)
            .arg("0")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(told)?;
        let lifeline = keeper.stdin.take();
        let mut shared = Self { address: String::new(), lifeline, keeper };
        let (begun, file) = (Instant::now(), folder.join("data").join("DevToolsActivePort"));
        while begun.elapsed() < START_TIMEOUT {
            let written = std::fs::read_to_string(&file).ok();
            if let Some(port) = written.and_then(|text| text.lines().next()?.parse::<u16>().ok()) {
                shared.address = format!("127.0.0.1:{port}");
                return Ok(shared);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(format!("{} did not start within {START_TIMEOUT:?}", program.display()))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        let _ = self.keeper.wait();
    }
}
