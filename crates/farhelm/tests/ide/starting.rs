//! IDEs that are started because somebody wants a chat.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::ide::stage::{Stage, id};

/// A program that is started by the machine, outlives it, and is ended here.
pub(crate) struct Program {
    command: PathBuf,
    pid: PathBuf,
}

impl Program {
    /// A shell script that becomes `last`. It is given the port and the folder.
    pub(crate) fn new(place: &Path, last: &str) -> Self {
        let (command, pid) = (place.join("ide.sh"), place.join("ide.pid"));
        let script = format!("#!/bin/sh\necho $$ > {}\nexec {last}\n", pid.display());
        std::fs::write(&command, script).unwrap();
        std::fs::set_permissions(&command, PermissionsExt::from_mode(0o755)).unwrap();
        Self { command, pid }
    }

    /// Chromium, with this page.
    pub(crate) fn chromium(place: &Path, page: &str) -> Self {
        let home = place.join("ide-home");
        std::fs::create_dir_all(&home).unwrap();
        let last = format!(
            "env HOME={home} {} --headless --no-sandbox --disable-gpu --no-first-run \
             --disable-background-networking --disable-dev-shm-usage --window-size=1200,900 \
             --remote-debugging-address=127.0.0.1 --remote-debugging-port=$1 \
             --user-data-dir={home}/browser '{page}'$2",
            fake_panels::Chromium::program().unwrap().display(),
            home = home.display()
        );
        Self::new(place, &last)
    }

    /// As it is configured.
    pub(crate) fn configured(&self, profile: &str, port: u16) -> String {
        configured(self.command.to_str().unwrap(), profile, port)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let pid = std::fs::read_to_string(&self.pid).ok().and_then(|it| it.trim().parse().ok());
        if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
    }
}

fn configured(command: &str, profile: &str, port: u16) -> String {
    json!({"profiles": [profile], "command": command, "port": port,
        "args": ["{port}", "{workspace}"]})
    .to_string()
}

/// A port that nobody listens at.
pub(crate) fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn refusal(stage: &Stage, words: &[&str]) -> String {
    let refused = stage.place.run(words);
    assert_eq!(refused.status.code(), Some(1));
    String::from_utf8(refused.stderr).unwrap()
}

#[test]
fn an_ide_is_started_for_a_chat_and_outlives_the_machine() {
    let Some(mut stage) = Stage::new("starting an IDE") else { return };
    let port = free_port();
    let page = stage.panels.url("antigravity", "started", "");
    let program = Program::chromium(&stage.place.path(""), &format!("{page}&folder="));
    stage.up_with(&["--ide-start", &program.configured("antigravity", port)]);
    let folder = stage.place.path("kite");
    std::fs::create_dir_all(&folder).unwrap();
    let folder = folder.to_str().unwrap().to_owned();
    let launched = stage.place.json(&["launch", "antigravity", "--workspace", &folder, "--json"]);
    let session = id(&launched);
    assert_eq!(stage.session("antigravity"), session);
    stage.send(&session, "into the new one");
    stage.noted_exactly("started", "sent", 1);

    stage.kill();
    stage.up_with(&["--ide-start", &program.configured("antigravity", port)]);
    assert_eq!(stage.session("antigravity"), session, "it goes on without the machine");
}

#[test]
fn an_ide_that_opens_no_port_is_waited_for_and_one_that_cannot_be_started_is_named() {
    let Some(mut stage) = Stage::new("an IDE that does not come") else { return };
    let program = Program::new(&stage.place.path(""), "sleep 300");
    let silent = program.configured("antigravity", free_port());
    let missing = configured("/nowhere/at-all", "cursor", free_port());
    stage.up_with(&["--ide-start", &silent, "--ide-start", &missing]);
    let words = refusal(&stage, &["launch", "cursor"]);
    assert!(words.contains("agent_not_open") && words.contains("/nowhere/at-all"), "{words}");

    let words = refusal(&stage, &["launch", "antigravity"]);
    assert!(words.contains("launch_timeout"), "{words}");
    let open = |it: &&Value| it["status"] == "healthy";
    assert_eq!(stage.sessions().iter().filter(open).count(), 0);
}
