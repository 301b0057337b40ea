//! A relay, a proxy and a fake model as they really run, in a folder of their own, and one client.
//!
//! Invariant: nothing reaches beyond 127.0.0.1 and the folder; the agent sees a clean home, dummy
//! keys and no variable of the machine but `PATH`; everything ends with the stage.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fake_model::homes::{self, Environment, prepare_home};
use fake_model::{FakeModel, Options, Pace};
use serde_json::{Value, json};

use crate::agents::agent::Agent;
use crate::agents::client::{Client, Mark, PATIENCE};
use crate::agents::installed::Installed;

/// Set it to keep the folder of a failed test.
const KEEP_VARIABLE: &str = "FARHELM_TEST_KEEP";
/// Lines of a process that are shown when a test failed.
const SHOWN_LINES_MAX: usize = 40;

/// Where one scenario is played.
pub(crate) struct Stage {
    pub(crate) agent: &'static Agent,
    pub(crate) model: FakeModel,
    pub(crate) client: Client,
    pub(crate) session: String,
    relay: Child,
    proxy: Option<Child>,
    told: Value,
    environment: Environment,
    folder: Option<tempfile::TempDir>,
}

impl Stage {
    /// Everything up, and a session launched.
    pub(crate) async fn open(agent: &'static Agent) -> Self {
        Self::open_with(agent, &[]).await
    }

    /// The same, with further variables for the proxy's first life.
    pub(crate) async fn open_with(agent: &'static Agent, more: &[(&str, &str)]) -> Self {
        let mut stage = Self::empty(agent, more).await;
        let frame = json!({"type": "launch_session", "agent_type": agent.name,
            "workspace_path": stage.work()});
        stage.session = stage.launch(&frame).await;
        stage
    }

    /// Everything up, and no session.
    pub(crate) async fn empty(agent: &'static Agent, more: &[(&str, &str)]) -> Self {
        let folder = tempfile::Builder::new().prefix("farhelm-agents-").tempdir().unwrap();
        let place = std::fs::canonicalize(folder.path()).unwrap();
        for name in ["home", "work", "bin", "temporary"] {
            std::fs::create_dir(place.join(name)).unwrap();
        }
        make_repository(&place.join("work"));
        let log_file = Some(place.join("model.jsonl"));
        let model = FakeModel::start_with(&Options { port: 0, log_file, pace: Pace::QUICK });
        let model = model.unwrap();
        let environment = match agent.home {
            Some(home) => {
                let installed = Installed::find(agent.name);
                let mut environment =
                    prepare_home(home, &place.join("home"), &model.base_url()).unwrap();
                let path = installed.put(agent.name, place.join("bin"));
                environment.push(("PATH".to_owned(), path));
                let temporary = place.join("temporary").to_string_lossy().into_owned();
                environment.push(("TMPDIR".to_owned(), temporary));
                if home == homes::Agent::Codex {
                    keep_in_workspace(&place.join("home/.codex/config.toml"));
                }
                environment
            }
            None => vec![home_alone(&place)],
        };
        let (relay, told) = start_relay(&place);
        let url = format!("{}?token={}", words(&told["ws"]), words(&told["token"]));
        let client = Client::connect(&url).await;
        let mut stage = Self {
            agent,
            model,
            client,
            session: String::new(),
            relay,
            proxy: None,
            told,
            environment,
            folder: Some(folder),
        };
        stage.start_proxy(more);
        stage
    }

    /// Launches a session, as soon as there is a proxy to do so.
    pub(crate) async fn launch(&mut self, frame: &Value) -> String {
        let begun = Instant::now();
        loop {
            let (mark, id) = (self.client.mark(), self.client.ask(frame.clone()).await);
            let answer = self
                .client
                .wait(mark, "an answer to the launch", |frame| {
                    let kinds = ["session_launch_ack", "session_launch_failed"];
                    frame["request_id"] == id && kinds.contains(&words(&frame["type"]))
                })
                .await;
            if answer["type"] == "session_launch_ack" {
                let session = words(&answer["session_id"]).to_owned();
                self.client
                    .wait(Mark::START, "the configuration", |frame| {
                        frame["type"] == "agent_config" && frame["session_id"] == session
                    })
                    .await;
                return session;
            }
            // A program of 400 MB that starts on a busy machine may take longer than a person
            // would wait; that is told as it should be, and is no failure of the agent.
            let code = words(&answer["error_code"]);
            let may_try = matches!(code, "no_proxy_connected" | "launch_timeout");
            assert!(may_try && begun.elapsed() < PATIENCE, "it is not launched: {answer}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        let folder = self.folder.as_ref().unwrap().path();
        std::fs::canonicalize(folder).unwrap().join(name)
    }

    /// Where the relay listens, and the owner's token.
    pub(crate) fn relay(&self) -> (String, &str) {
        let host = words(&self.told["url"]).trim_start_matches("http://").to_owned();
        (host, words(&self.told["token"]))
    }

    /// The folder in which the agent works.
    pub(crate) fn work(&self) -> PathBuf {
        self.path("work")
    }

    /// Starts a proxy, with further variables.
    pub(crate) fn start_proxy(&mut self, more: &[(&str, &str)]) {
        assert!(self.proxy.is_none(), "there is a proxy");
        let mut command = Command::new(env!("CARGO_BIN_EXE_farhelm"));
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.envs(more.iter().copied());
        command.args(["proxy", "--no-demo", "--machine", "stage", "--relay"]);
        command.args([words(&self.told["url"]), "--token", words(&self.told["proxy_token"])]);
        command.arg("--data").arg(self.path("machine"));
        self.proxy = Some(spawn(command, &self.path("proxy.log")));
    }

    /// SIGKILL, and its end.
    pub(crate) fn kill_proxy(&mut self) {
        end(self.proxy.take());
    }

    /// Waits for the proxy to end by itself.
    pub(crate) async fn proxy_ends(&mut self) {
        let begun = Instant::now();
        while self.proxy.as_mut().unwrap().try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < PATIENCE, "the proxy goes on:\n{}", self.client.shown());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.proxy = None;
    }

    /// The agent's process, if one runs.
    pub(crate) fn agent_process(&self) -> Option<u32> {
        let note = self.path(&format!("machine/running/{}.json", self.session));
        let note: Value = serde_json::from_slice(&std::fs::read(note).ok()?).ok()?;
        u32::try_from(note["process"].as_u64()?).ok()
    }

    /// What people said to the model in each request that contains these words.
    pub(crate) async fn model_heard(&self, token: &str) -> Vec<String> {
        let has = |body: &Value| said_by_people(body).join("\n").contains(token);
        let seen = self.model.wait_for(PATIENCE, |seen| has(&seen.body)).await;
        assert!(seen.is_some(), "the model never heard {token}");
        let requests = self.model.requests();
        let fitting = requests.iter().filter(|seen| has(&seen.body));
        fitting.map(|seen| said_by_people(&seen.body).join("\n")).collect()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        end(self.proxy.take());
        let _ = self.relay.kill();
        let _ = self.relay.wait();
        // Whatever the agent started ends when its input does; a killed proxy cannot see to it.
        if let Some(process) = self.agent_process().and_then(|p| i32::try_from(p).ok())
            && let Some(group) = rustix::process::Pid::from_raw(process)
        {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        if !std::thread::panicking() {
            return;
        }
        let mut out = std::io::stderr().lock();
        let _ = writeln!(out, "what was heard:\n{}", self.client.shown());
        for log in ["proxy.log", "relay.log"] {
            let text = std::fs::read_to_string(self.path(log)).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let shown = &lines[lines.len().saturating_sub(SHOWN_LINES_MAX)..];
            let _ = writeln!(out, "{log}:\n{}", shown.join("\n"));
        }
        if std::env::var_os(KEEP_VARIABLE).is_some() {
            let kept = self.folder.take().map(tempfile::TempDir::keep);
            let _ = writeln!(out, "kept: {kept:?}");
        }
    }
}

/// What people said in a request, whichever API it is of.
pub(crate) fn said_by_people(body: &Value) -> Vec<String> {
    let lists = ["messages", "input", "contents"].map(|name| body[name].as_array());
    let of_people = lists.into_iter().flatten().flatten().filter(|item| item["role"] == "user");
    let mut texts = vec![];
    for item in of_people {
        let pieces = if item["parts"].is_null() { &item["content"] } else { &item["parts"] };
        match pieces {
            Value::String(text) => texts.push(text.clone()),
            Value::Array(pieces) => {
                // Words that came during a tool may stand in its result.
                let inside = |piece: &Value| match (&piece["text"], &piece["content"]) {
                    (Value::String(text), _) | (_, Value::String(text)) => Some(text.clone()),
                    (_, result) => result.is_array().then(|| result.to_string()),
                };
                texts.extend(pieces.iter().filter_map(inside));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
        }
    }
    texts
}

pub(crate) fn words(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn home_alone(place: &Path) -> (String, String) {
    ("HOME".to_owned(), place.join("home").to_string_lossy().into_owned())
}

/// Agents look upwards for the project that a folder belongs to, and write what is allowed for
/// always there. It is to end here, whatever lies in the folders above.
fn make_repository(work: &Path) {
    let git = work.join(".git");
    for name in ["objects", "refs"] {
        std::fs::create_dir_all(git.join(name)).unwrap();
    }
    std::fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
}

/// Codex lets commands write to the system's temporary folder, and leaves traces there.
fn keep_in_workspace(config: &Path) {
    let mut file = File::options().append(true).open(config).unwrap();
    let table = "\n[sandbox_workspace_write]\nexclude_slash_tmp = true\n";
    file.write_all(table.as_bytes()).unwrap();
}

fn start_relay(place: &Path) -> (Child, Value) {
    let ready = place.join("ready.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_farhelm"));
    command.env_clear().env("HOME", place.join("home"));
    command.args(["relay", "--listen", "127.0.0.1:0"]);
    command.args(["--sends-per-10s", "100000", "--frames-per-minute", "100000"]);
    command.arg("--ready-file").arg(&ready).arg("--data").arg(place.join("relay"));
    let mut relay = spawn(command, &place.join("relay.log"));
    let begun = Instant::now();
    while !ready.exists() {
        assert!(relay.try_wait().unwrap().is_none(), "the relay ended instead of serving");
        assert!(begun.elapsed() < PATIENCE, "the relay is never ready");
        std::thread::sleep(Duration::from_millis(5));
    }
    let told = serde_json::from_slice(&std::fs::read(&ready).unwrap()).unwrap();
    (relay, told)
}

fn spawn(mut command: Command, log: &Path) -> Child {
    let log = File::options().create(true).append(true).open(log).unwrap();
    command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()
}

fn end(child: Option<Child>) {
    if let Some(mut child) = child {
        let _ = child.kill();
        let _ = child.wait();
    }
}
