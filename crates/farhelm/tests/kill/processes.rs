//! The relay and the proxy as processes that are killed and started again.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use domain::session::Recorded;
use domain::{Sequence, SessionId};
use serde_json::Value;
use store::Ledger as _;

/// Anything that takes longer has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Chance from a seed.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 = self.0.max(1);
        self.0 % bound
    }
}

/// One relay and one proxy.
pub(crate) struct Fleet {
    folder: tempfile::TempDir,
    listen: String,
    told: Value,
    relay: Option<Child>,
    proxy: Option<Child>,
}

impl Fleet {
    pub(crate) fn start() -> Self {
        let mut fleet = Self {
            folder: tempfile::tempdir().unwrap(),
            listen: "127.0.0.1:0".to_owned(),
            told: Value::Null,
            relay: None,
            proxy: None,
        };
        fleet.revive();
        // The same port from here on: clients and proxy come back to where they were.
        fleet.listen = fleet.told["url"].as_str().unwrap().replace("http://", "");
        fleet
    }

    pub(crate) fn ws_url(&self) -> String {
        let (ws, token) = (self.told["ws"].as_str().unwrap(), self.told["token"].as_str().unwrap());
        format!("{ws}?token={token}")
    }

    pub(crate) fn kill_relay(&mut self) {
        kill(&mut self.relay);
    }

    pub(crate) fn kill_proxy(&mut self) {
        kill(&mut self.proxy);
    }

    /// Starts whatever is not running.
    pub(crate) fn revive(&mut self) {
        if self.relay.is_none() {
            self.start_relay();
        }
        if self.proxy.is_none() {
            let (url, token) = (self.told["url"].as_str(), self.told["proxy_token"].as_str());
            let data = self.path("machine");
            let mut command = self.farhelm(&["proxy", "--machine", "kill-test", "--relay"]);
            command.args([url.unwrap(), "--token", token.unwrap()]).arg("--data").arg(data);
            self.proxy = Some(command.spawn().unwrap());
        }
    }

    pub(crate) fn demo_session(&self) -> String {
        let begun = Instant::now();
        loop {
            let mut command = self.farhelm(&["sessions", "--json", "--relay"]);
            let (url, token) = (self.told["url"].as_str(), self.told["token"].as_str());
            command.args([url.unwrap(), "--token", token.unwrap()]).stdout(Stdio::piped());
            let told = command.output().unwrap();
            let sessions: Value = serde_json::from_slice(&told.stdout).unwrap_or_default();
            if let Some(session) = sessions["sessions"][0]["session_id"].as_str() {
                return session.to_owned();
            }
            assert!(begun.elapsed() < PATIENCE, "there is never a demo session");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends both, and reads the ledger from the file.
    pub(crate) fn end_and_read(&mut self, session: &str) -> Vec<Recorded> {
        // The relay first: it would still record that its proxy went away.
        self.kill_relay();
        self.kill_proxy();
        let ledger = store::SqliteLedger::open(&self.path("data").join("ledger.db")).unwrap();
        let mut reader = ledger.reader().unwrap();
        let session: SessionId = session.into();
        let mut events: Vec<Recorded> = vec![];
        loop {
            let after = events.last().map_or(Sequence(0), |recorded| recorded.sequence);
            let page = reader.events(&session, after, None, 10_000, usize::MAX).unwrap();
            let decoded = page.entries.iter().map(|e| store::codec::decode_event(&e.body).unwrap());
            events.extend(decoded);
            if !page.has_more {
                return events;
            }
        }
    }

    /// What the agent received, by its own record.
    pub(crate) fn received(&self, session: &str) -> Vec<String> {
        let record = self.path("machine").join("demo").join(format!("{session}.received"));
        let lines = std::fs::read_to_string(record).unwrap();
        let ids = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        ids.filter_map(|line| line["id"].as_str().map(str::to_owned)).collect()
    }

    fn start_relay(&mut self) {
        let ready = self.path("ready.json");
        let _ = std::fs::remove_file(&ready);
        let data = self.path("data");
        let listen = self.listen.clone();
        let mut command = self.farhelm(&["relay", "--listen", &listen]);
        command.arg("--ready-file").arg(&ready).arg("--data").arg(data);
        command.args(["--sends-per-10s", "1000000", "--frames-per-minute", "1000000"]);
        let mut child = command.spawn().unwrap();
        let begun = Instant::now();
        while !ready.exists() {
            assert!(child.try_wait().unwrap().is_none(), "the relay ended instead of serving");
            assert!(begun.elapsed() < PATIENCE, "the relay is never ready");
            std::thread::sleep(Duration::from_millis(2));
        }
        self.told = serde_json::from_slice(&std::fs::read(&ready).unwrap()).unwrap();
        self.relay = Some(child);
    }

    fn farhelm(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_farhelm"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("FARHELM_") {
                command.env_remove(name);
            }
        }
        command.env("HOME", self.folder.path()).env_remove("XDG_CONFIG_HOME").args(words);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.kill_proxy();
        self.kill_relay();
    }
}

fn kill(child: &mut Option<Child>) {
    if let Some(mut child) = child.take() {
        let _ = child.kill();
        let _ = child.wait();
    }
}
