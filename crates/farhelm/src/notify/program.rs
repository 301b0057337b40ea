//! A command as a target: it gets the notice as JSON on standard input, and in variables what a
//! shell one-liner needs.
//!
//! **Invariant**: nothing that an agent wrote is part of the command itself.

use std::process::Stdio;

use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};

use super::notice::Notice;

/// Runs it to its end. Whoever stops waiting ends it, with everything it started.
pub(super) async fn run(command: &str, notice: &Notice, body: &[u8]) -> Result<(), String> {
    let mut shell = shell(command);
    shell
        .env("FARHELM_NOTICE_KIND", notice.kind.word())
        .env("FARHELM_NOTICE_TITLE", &notice.title)
        .env("FARHELM_NOTICE_TEXT", &notice.text)
        .env("FARHELM_NOTICE_LINK", &notice.link)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    #[cfg(unix)]
    shell.process_group(0);
    let child = shell.spawn().map_err(|error| format!("it could not be started: {error}"))?;
    let mut running = Running(child);
    if let Some(mut input) = running.0.stdin.take() {
        // A command need not read what it is told.
        let _ = input.write_all(body).await;
    }
    let ended = running.0.wait().await.map_err(|error| error.to_string())?;
    if ended.success() { Ok(()) } else { Err(format!("it failed with {ended}")) }
}

#[cfg(unix)]
fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]);
    shell
}

#[cfg(not(unix))]
fn shell(command: &str) -> Command {
    let mut shell = Command::new("cmd");
    shell.args(["/C", command]);
    shell
}

/// A command that does not outlive whoever waits for it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // `None` once it has ended: its number may be another's by then.
        #[cfg(unix)]
        if let Some(group) = self.0.id().and_then(|id| i32::try_from(id).ok())
            && let Some(group) = rustix::process::Pid::from_raw(group)
        {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}
