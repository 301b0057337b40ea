//! Each real agent, in its prepared home, against the model: it answers, thinks, calls a tool and
//! goes on with the result.
//!
//! Ignored unless asked for: they need what `cargo xtask agents --install --all` fetches, and the
//! variable that it names.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use fake_model::homes::{Agent, prepare_home};
use fake_model::{End, FakeModel, Installed};
use tempfile::TempDir;
use tokio::process::Command;

const PATIENCE: Duration = Duration::from_secs(120);

/// An agent, its home and its workspace.
struct Stage {
    model: FakeModel,
    folder: TempDir,
    agent: Agent,
}

impl Stage {
    fn new(agent: Agent) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("workspace")).unwrap();
        Self { model: FakeModel::start().unwrap(), folder, agent }
    }

    fn workspace(&self) -> std::path::PathBuf {
        self.folder.path().join("workspace")
    }

    /// The command that has this agent answer once, with every tool allowed.
    fn command(&self, text: &str) -> Command {
        let installed = Installed::find(self.agent).unwrap();
        let home = self.folder.path().join("home");
        let environment = prepare_home(self.agent, &home, &self.model.base_url()).unwrap();
        let arguments: &[&str] = match self.agent {
            Agent::Claude => &["-p", text, "--allowedTools", "Bash", "Write"],
            Agent::Codex => &["exec", "--skip-git-repo-check", text],
            Agent::Gemini => &["--yolo", "-p", text],
            Agent::Opencode => &["run", "--auto", text],
            Agent::Pi => &["-p", text],
        };
        let mut command = Command::new(&installed.program);
        command
            .args(&installed.args_prefix)
            .args(arguments)
            .env_clear()
            .envs(environment)
            .env("PATH", installed.path())
            .current_dir(self.workspace())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// What the agent printed when asked this.
    async fn ask(&self, text: &str) -> String {
        let output = tokio::time::timeout(PATIENCE, self.command(text).output()).await;
        let output = output.expect("the agent did not end").unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}: {said}\n{complaint}");
        said
    }
}

async fn converses(agent: Agent) {
    let stage = Stage::new(agent);
    let said = stage.ask("hello there").await;
    assert!(said.contains("echo(") && said.contains("hello there"), "{said}");

    let said = stage.ask("think: cats").await;
    assert!(said.contains("thought: cats"), "{said}");

    let said = stage.ask("run: mkdir made-dir && echo made").await;
    assert!(said.contains("done: made"), "{said}");
    assert!(stage.workspace().join("made-dir").is_dir());

    let said = stage.ask("write: written.txt").await;
    assert!(said.contains("done: "), "{said}");
    let written = std::fs::read_to_string(stage.workspace().join("written.txt")).unwrap();
    assert_eq!(written, "hello\n");
    assert!(stays_home(stage.folder.path()), "something else was left in the folder");
}

/// Only what the test made lies beside the home.
fn stays_home(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    entries.map(|entry| entry.file_name()).all(|name| name == "home" || name == "workspace")
}

#[tokio::test]
#[ignore = "needs claude: cargo xtask agents --install"]
async fn claude_converses() {
    converses(Agent::Claude).await;
}

#[tokio::test]
#[ignore = "needs codex: cargo xtask agents --install"]
async fn codex_converses() {
    converses(Agent::Codex).await;
}

#[tokio::test]
#[ignore = "needs pi: cargo xtask agents --install"]
async fn pi_converses() {
    converses(Agent::Pi).await;
}

#[tokio::test]
#[ignore = "needs gemini: cargo xtask agents --install --all"]
async fn gemini_converses() {
    converses(Agent::Gemini).await;
}

#[tokio::test]
#[ignore = "needs opencode: cargo xtask agents --install --all"]
async fn opencode_converses() {
    converses(Agent::Opencode).await;
}

#[tokio::test]
#[ignore = "needs claude: cargo xtask agents --install"]
async fn claude_is_killed_and_the_model_notices() {
    let stage = Stage::new(Agent::Claude);
    let mut child = stage.command("slow: 1000").stdout(Stdio::null()).spawn().unwrap();
    let asked = stage.model.wait_for(PATIENCE, |seen| seen.path == "/v1/messages").await;
    assert!(asked.is_some(), "the agent did not ask");
    child.kill().await.unwrap();
    let left = stage.model.wait_for(PATIENCE, |seen| seen.end == Some(End::Disconnected)).await;
    assert!(left.is_some(), "the model did not notice");
}
