//! Eight agents that print 50 words a second each, through proxy and relay to a client; and the
//! memory of the proxy while eight agents are attached and silent.
//!
//! The floor reads the same agents' stdout directly. The result is what proxy and relay add.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::clients;
use super::helper::stub_agent::{WORDS, now_nanos};
use super::lab::{Lab, Program};
use super::process::{Ready, Relay, resident_bytes};
use super::scenario::Contest;
use super::statistics::{number, percentile};
use super::trouble::{During as _, Outcome, Trouble};
use super::websocket::Socket;

const AGENTS: usize = 8;
const AGENT: &str = "stub";
/// Of each answer, the first words find everything cold.
const UNCOUNTED: usize = 10;
/// What starting left behind is freed by then.
const SETTLE: Duration = Duration::from_millis(500);

/// Relay, proxy and the agents it runs.
struct House {
    client: Socket,
    sessions: Vec<String>,
    proxy: Program,
    _relay: Relay,
    _data: (TempDir, TempDir),
}

impl House {
    fn prepare(lab: &Lab) -> Outcome<Self> {
        let data = (lab.new_folder()?, lab.new_folder()?);
        let (relay, ready) = Relay::start(lab, data.0.path())?;
        let proxy = start_proxy(lab, &ready, &data.1)?;
        let mut client = clients::connect(&ready, "bench-agents", &["deltas", "runs"])?;
        let mut sessions = vec![];
        for _ in 0..AGENTS {
            sessions.push(launch(&mut client, sessions.len(), data.1.path())?);
        }
        Ok(Self { client, sessions, proxy, _relay: relay, _data: data })
    }
}

fn start_proxy(lab: &Lab, ready: &Ready, data: &TempDir) -> Outcome<Program> {
    let settings = data.path().join("bench.toml");
    let program = lab.helper().to_string_lossy().into_owned();
    let command = serde_json::to_string(&program)?;
    fs::write(
        &settings,
        format!("[[agents]]\nname = \"{AGENT}\"\ncommand = {command}\nargs = [\"stub-agent\"]\n"),
    )?;
    lab.start(|start| {
        start.args(["proxy", "--no-demo", "--relay", ready.url()]);
        start.arg("--config").arg(&settings).arg("--data").arg(data.path());
        start.env("FARHELM_TOKEN", &ready.proxy_token);
        if let Ok(log) = fs::File::create(data.path().join("bench.log")) {
            start.stderr(log);
        }
    })
}

/// Asks until the proxy is there, then once.
fn launch(client: &mut Socket, number: usize, folder: &std::path::Path) -> Outcome<String> {
    const TRIES_MAX: usize = 200;
    for attempt in 0..TRIES_MAX {
        client.send(
            &json!({"type": "launch_session", "protocol_version": 1,
                "request_id": format!("launch-{number}-{attempt}"), "agent_type": AGENT,
                "workspace_path": folder})
            .to_string(),
        )?;
        loop {
            let frame: Value = serde_json::from_slice(client.next()?)?;
            match frame["type"].as_str() {
                Some("session_launch_ack") => {
                    let session = frame["session_id"].as_str().unwrap_or_default();
                    return Ok(session.to_owned());
                }
                Some("session_launch_failed") => break,
                _ => {}
            }
        }
        thread::sleep(Duration::from_millis(50));
    }
    Err(Trouble::new("the proxy did not start an agent in time"))
}

/// The added latency of a word.
pub(crate) struct TokenHop<'a> {
    lab: &'a Lab,
    house: House,
    round: u32,
    direct_p50: f64,
    direct_p99: f64,
    added_p99: f64,
}

impl<'a> TokenHop<'a> {
    pub(crate) fn prepare(lab: &'a Lab) -> Outcome<Self> {
        let house = House::prepare(lab)?;
        Ok(Self { lab, house, round: 0, direct_p50: 0.0, direct_p99: 0.0, added_p99: 0.0 })
    }

    /// The words of eight agents, read from their stdout.
    fn direct(&self) -> Outcome<Vec<f64>> {
        let mut readers = vec![];
        for _ in 0..AGENTS {
            let mut agent = self.lab.start_helper(|start| {
                start.args(["stub-agent"]).stdin(Stdio::piped()).stdout(Stdio::piped());
            })?;
            let (input, output) = (agent.child.stdin.take(), agent.child.stdout.take());
            let (Some(mut input), Some(output)) = (input, output) else {
                return Err(Trouble::new("an agent has no pipes"));
            };
            let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": {}});
            input.write_all(format!("{ask}\n").as_bytes())?;
            readers.push(thread::spawn(move || {
                let mut times = vec![];
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    match taken_micros(line.as_bytes()) {
                        Some(taken) => times.push(taken),
                        None => break,
                    }
                }
                drop((input, agent));
                times
            }));
        }
        let mut all = vec![];
        for reader in readers {
            let times = reader.join().map_err(|_| Trouble::new("a reader thread stopped"))?;
            all.extend(times.into_iter().skip(UNCOUNTED));
        }
        Ok(all)
    }
}

impl Contest for TokenHop<'_> {
    /// Not a floor to be held against: it is taken off.
    fn floor(&mut self) -> Outcome<Option<f64>> {
        let times = self.direct()?;
        self.direct_p50 = percentile(&times, 50);
        self.direct_p99 = percentile(&times, 99);
        Ok(None)
    }

    fn measure(&mut self) -> Outcome<f64> {
        self.round += 1;
        let House { client, sessions, .. } = &mut self.house;
        for (place, session) in sessions.iter().enumerate() {
            client.send(&clients::send_message(session, &format!("{}-{place}", self.round)))?;
        }
        let mut counts: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
        let (mut times, mut ended) = (vec![], 0);
        while ended < AGENTS {
            let frame = client.next()?;
            if frame.starts_with(b"{\"type\":\"run_ended\"") {
                ended += 1;
            }
            if !frame.starts_with(b"{\"type\":\"message_delta\"") {
                continue;
            }
            let Some(taken) = taken_micros(frame) else { continue };
            let count = counts.entry(session_of(frame)?).or_default();
            *count += 1;
            if *count > UNCOUNTED {
                times.push(taken);
            }
        }
        let heard: usize = counts.values().sum();
        let printed = AGENTS * usize::try_from(WORDS).unwrap_or(0);
        // Several words may share a delta, but none may be missing by much.
        if heard * 10 < printed * 9 {
            return Err(Trouble::new(format!(
                "only {heard} of {printed} words arrived in deltas of their own"
            )));
        }
        self.added_p99 = percentile(&times, 99) - self.direct_p99;
        Ok(percentile(&times, 50) - self.direct_p50)
    }

    fn details(&self) -> Vec<(&'static str, f64)> {
        vec![("p99_us", self.added_p99), ("stdout_p50_us", self.direct_p50)]
    }
}

fn session_of(frame: &[u8]) -> Outcome<Vec<u8>> {
    let frame: Value = serde_json::from_slice(frame).during("a delta")?;
    Ok(frame["session_id"].as_str().unwrap_or_default().as_bytes().to_vec())
}

/// How long the first word in this line was on its way.
fn taken_micros(line: &[u8]) -> Option<f64> {
    let place = memchr::memmem::find(line, b"at=")? + 3;
    let left: u128 = std::str::from_utf8(line.get(place..place + 20)?).ok()?.parse().ok()?;
    let nanos = now_nanos().saturating_sub(left);
    Some(Duration::from_nanos(u64::try_from(nanos).ok()?).as_secs_f64() * 1e6)
}

/// The proxy's memory with silent agents.
pub(crate) struct ProxyMemory<'a>(&'a Lab);

impl<'a> ProxyMemory<'a> {
    pub(crate) fn prepare(lab: &'a Lab) -> Self {
        Self(lab)
    }
}

impl Contest for ProxyMemory<'_> {
    fn floor(&mut self) -> Outcome<Option<f64>> {
        Ok(None)
    }

    fn measure(&mut self) -> Outcome<f64> {
        let house = House::prepare(self.0)?;
        thread::sleep(SETTLE);
        Ok(number(resident_bytes(house.proxy.child.id())?) / 1024.0 / 1024.0)
    }
}
