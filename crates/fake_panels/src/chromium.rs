//! A real browser for a test: Debian's Chromium without a window, in its own home.
//!
//! A test run has one for all tests (`cargo xtask test` starts it and names its address). Each test
//! works in its own browser context there, and leaves those of others alone. A test that ends its
//! browser, needs other arguments, or keeps it busy starts one for itself.
//!
//! **Invariant:** it listens on 127.0.0.1 only, and ends with the process that started it, however
//! that ends: it hangs on a pipe that the system closes.
//!
//! Not here: what it shows (`server`), speaking with it (`cdp`).

use std::io;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::untried::untried;

/// Names the browser where none of the usual names is in the `PATH`.
pub const CHROMIUM_VARIABLE: &str = "FARHELM_CHROMIUM";

/// Where the browser of the whole run listens, where there is one: `127.0.0.1:PORT`.
const SHARED_VARIABLE: &str = "FARHELM_TEST_BROWSER";

/// Names under which it is found.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/// A machine that is busy with other tests starts it slowly.
const START_TIMEOUT: Duration = Duration::from_secs(60);
const START_STEP: Duration = Duration::from_millis(20);

/// Starts the browser and clears up after it.
const KEEPER: &str = include_str!("chromium.sh");

/// A running browser. One that was started here ends when this is dropped.
pub struct Chromium {
    port: u16,
    /// None for the browser of the whole run.
    _kept: Option<Kept>,
}

/// What a browser hangs on.
struct Kept {
    lifeline: Option<ChildStdin>,
    keeper: Child,
}

impl Chromium {
    /// The browser of the whole run; where there is none, one for all tests of this program, which
    /// ends with it. The error says what to do, and a test that cannot have it should say so (see
    /// [`Chromium::shared_or_told`]).
    pub fn shared() -> Result<&'static Self, String> {
        static SHARED: OnceLock<Result<Chromium, String>> = OnceLock::new();
        let find = || Self::of_the_run().map_or_else(Self::start, Ok);
        SHARED.get_or_init(find).as_ref().map_err(Clone::clone)
    }

    /// The browser of the whole run. One that does not answer, because it crashed, fails only the
    /// tests that it had: those after them start their own.
    fn of_the_run() -> Option<Self> {
        let address = std::env::var(SHARED_VARIABLE).ok()?;
        let port = address.strip_prefix("127.0.0.1:")?.parse().ok()?;
        answers(port).then_some(Self { port, _kept: None })
    }

    /// The same for the beginning of a test: `None` has been told on standard error.
    ///
    /// # Panics
    /// When `FARHELM_CHROMIUM` names a browser and it does not start: then it has to.
    pub fn shared_or_told(test: &str) -> Option<&'static Self> {
        match Self::shared() {
            Ok(chromium) => Some(chromium),
            Err(sentence) => {
                assert!(std::env::var_os(CHROMIUM_VARIABLE).is_none(), "{sentence}");
                untried(test, &sentence);
                None
            }
        }
    }

    /// The browser itself, for whoever starts it in another way.
    pub fn program() -> Option<PathBuf> {
        find()
    }

    /// Starts one; it answers when this returns.
    pub fn start() -> Result<Self, String> {
        Self::start_with(&[])
    }

    /// Starts one with further arguments.
    pub fn start_with(arguments: &[&str]) -> Result<Self, String> {
        Self::start_at(0, arguments)
    }

    /// The same, with its debug port here; 0 picks a free one.
    pub fn start_at(port: u16, arguments: &[&str]) -> Result<Self, String> {
        let program = find().ok_or_else(|| {
            format!(
                "no Chromium was found: `apt install chromium`, or name it in {CHROMIUM_VARIABLE}"
            )
        })?;
        let told = |error: io::Error| format!("{}: {error}", program.display());
        let folder = tempfile::Builder::new().prefix("farhelm-chromium-").tempdir();
        // The keeper clears it away, also when this process is killed.
        let folder = folder.map_err(told)?.keep();
        let data = folder.join("data");
        let mut keeper = Command::new("sh")
            .args(["-c", KEEPER, "keeper"])
            .arg(&program)
            .arg(&folder)
            .arg(port.to_string())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(told)?;
        let lifeline = keeper.stdin.take();
        let mut chromium = Self { port: 0, _kept: Some(Kept { lifeline, keeper }) };
        let begun = Instant::now();
        let file = data.join("DevToolsActivePort");
        while begun.elapsed() < START_TIMEOUT {
            let written = std::fs::read_to_string(&file).ok();
            let written = written.and_then(|text| text.lines().next()?.parse().ok());
            // A port that was chosen is not written down.
            let chosen = || (port != 0 && answers(port)).then_some(port);
            if let Some(port) = written.or_else(chosen) {
                chromium.port = port;
                return Ok(chromium);
            }
            std::thread::sleep(START_STEP);
        }
        let log = std::fs::read_to_string(folder.join("browser.log")).unwrap_or_default();
        let last: Vec<&str> = log.lines().rev().take(5).collect();
        Err(format!("Chromium did not start within {START_TIMEOUT:?}: {}", last.join(" / ")))
    }

    /// Its debug port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where to connect to: `127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Ends it at once, as a crash would. The browser of the whole run stays.
    pub fn kill(self) {}
}

impl Drop for Kept {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        let _ = self.keeper.wait();
    }
}

fn answers(port: u16) -> bool {
    std::net::TcpStream::connect((std::net::Ipv4Addr::LOCALHOST, port)).is_ok()
}

fn find() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(CHROMIUM_VARIABLE) {
        return Some(PathBuf::from(named));
    }
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut places = NAMES.iter().flat_map(|name| folders.iter().map(move |dir| dir.join(name)));
    places.find(|place| place.is_file())
}
