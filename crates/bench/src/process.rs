//! The relay under measurement: this program, as its own process.

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::lab::{Lab, Program};
use super::trouble::{During as _, Outcome, Trouble};

/// Said in every output: the measured relay has these beyond its defaults.
pub(crate) const RAISED_LIMITS: &str =
    "rate limits raised to 100,000,000 sends / 10 s and frames / min, heartbeat timeout to 10 min";
const RAISED: [&str; 6] = [
    "--sends-per-10s",
    "100000000",
    "--frames-per-minute",
    "100000000",
    "--heartbeat-timeout-ms",
    "600000",
];

/// The system keeps its own bound, which may be lower.
const OPEN_FILES: u64 = 65_536;
const START_WITHIN: Duration = Duration::from_secs(30);
const STOP_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_micros(100);
/// Of what a relay that did not start said, the end.
const LAST_WORDS_BYTES: usize = 2000;

/// A relay that serves, or is about to.
pub(crate) struct Relay {
    program: Program,
    ready_file: PathBuf,
    log: PathBuf,
}

/// What the ready file says.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Ready {
    url: String,
    pub(crate) token: String,
    pub(crate) proxy_token: String,
}

impl Ready {
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn address(&self) -> Outcome<SocketAddr> {
        let host = self.url.split_once("://").map_or(self.url.as_str(), |(_, host)| host);
        host.trim_end_matches('/').parse().during(format_args!("the relay is at {}", self.url))
    }
}

impl Relay {
    /// Starts `farhelm COMMAND` on a data folder; see [`Relay::ready`].
    pub(crate) fn spawn(lab: &Lab, command: &str, data: &Path) -> Outcome<Self> {
        let (ready_file, log) = (data.join("bench.ready"), data.join("bench.log"));
        let settings = data.join("bench.toml");
        fs::write(&settings, "")?;
        let _ = fs::remove_file(&ready_file);
        let said = fs::File::create(&log)?;
        let program = lab.start(|start: &mut Command| {
            start.arg(command).args(["--listen", "127.0.0.1:0"]).args(RAISED);
            start.arg("--config").arg(&settings).arg("--data").arg(data);
            start.arg("--ready-file").arg(&ready_file).stderr(said);
        })?;
        Ok(Self { program, ready_file, log })
    }

    /// Waits until it serves.
    pub(crate) fn ready(&mut self) -> Outcome<Ready> {
        let begun = Instant::now();
        loop {
            if let Ok(text) = fs::read(&self.ready_file) {
                return serde_json::from_slice(&text).during("could not read the ready file");
            }
            if self.program.child.try_wait()?.is_some() {
                return Err(self.trouble("the relay stopped while starting"));
            }
            if begun.elapsed() > START_WITHIN {
                return Err(self.trouble("the relay did not start in time"));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Starts a relay alone, on a data folder, and waits until it serves.
    pub(crate) fn start(lab: &Lab, data: &Path) -> Outcome<(Self, Ready)> {
        let mut relay = Self::spawn(lab, "relay", data)?;
        let ready = relay.ready()?;
        Ok((relay, ready))
    }

    /// What it has in memory.
    pub(crate) fn resident_bytes(&self) -> Outcome<u64> {
        resident_bytes(self.program.child.id())
    }

    /// Asks it to end and waits for it.
    pub(crate) fn stop(mut self) -> Outcome<()> {
        terminate(self.program.child.id());
        let begun = Instant::now();
        while self.program.child.try_wait()?.is_none() {
            if begun.elapsed() > STOP_WITHIN {
                return Err(self.trouble("the relay did not stop in time"));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    fn trouble(&self, words: &str) -> Trouble {
        let said = fs::read(&self.log).unwrap_or_default();
        let end = said.get(said.len().saturating_sub(LAST_WORDS_BYTES)..).unwrap_or_default();
        Trouble::new(format!("{words}. Its log ends with:\n{}", String::from_utf8_lossy(end)))
    }
}

/// What a process has in memory.
pub(crate) fn resident_bytes(process: u32) -> Outcome<u64> {
    let path = format!("/proc/{process}/status");
    let status =
        fs::read_to_string(&path).during("process memory can only be measured on Linux")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.ok_or_else(|| Trouble::new(format!("{path} has no VmRSS")))? * 1024)
}

/// Asks a process to end. Where that cannot be asked, dropping its handle ends it.
fn terminate(id: u32) {
    #[cfg(unix)]
    if let Some(id) = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
    }
    #[cfg(not(unix))]
    let _ = id;
}

/// Thousands of sockets need thousands of descriptors, here and in what is started from here.
pub(crate) fn raise_open_files() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        let most = limit.maximum.unwrap_or(OPEN_FILES).min(OPEN_FILES);
        if limit.current.is_some_and(|current| current < most) {
            let raised = Rlimit { current: Some(most), maximum: limit.maximum };
            if let Err(error) = setrlimit(Resource::Nofile, raised) {
                let words = "could not raise the limit of open files";
                let _ = writeln!(std::io::stderr(), "{words}: {error}");
            }
        }
    }
}
