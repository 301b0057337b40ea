//! The real binary in a folder of its own, ended by its id whatever happens.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Anything that takes longer has failed. IDEs and browsers start slowly on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A folder for one test.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path("data")
    }

    /// A command that sees nothing of the machine it runs on.
    pub(crate) fn farhelm(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_farhelm"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("FARHELM_") {
                command.env_remove(name);
            }
        }
        command.env("HOME", self.folder.path()).env_remove("XDG_CONFIG_HOME");
        // Agents of this machine are not the test's.
        command.env("PATH", format!("{}:/usr/bin:/bin", self.path("bin").display()));
        command.env_remove("CLAUDE_CONFIG_DIR").env_remove("CODEX_HOME");
        command.env("FARHELM_DATA", self.data()).args(words).stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, words: &[&str]) -> Output {
        ended(self.farhelm(words))
    }

    /// Runs a command that succeeds, and takes what it printed.
    pub(crate) fn told(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The same, as JSON.
    pub(crate) fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.told(words)).unwrap()
    }

    /// `farhelm up` on a free port, ready.
    pub(crate) fn up(&self, more: &[&str]) -> Up {
        self.serving("up", more)
    }

    /// `up` or `relay` on a free port, ready.
    pub(crate) fn serving(&self, command: &str, more: &[&str]) -> Up {
        let ready = self.path("ready.json");
        let _ = std::fs::remove_file(&ready);
        let words = [command, "--listen", "127.0.0.1:0", "--ready-file", ready.to_str().unwrap()];
        let mut command = self.farhelm(&words);
        command.args(more).stdout(Stdio::null()).stderr(Stdio::null());
        let mut running = Running(command.spawn().unwrap());
        let begun = Instant::now();
        while !ready.exists() {
            assert!(running.0.try_wait().unwrap().is_none(), "it ended instead of serving");
            assert!(begun.elapsed() < PATIENCE, "it is never ready");
            std::thread::sleep(Duration::from_millis(5));
        }
        let told = serde_json::from_slice(&std::fs::read(&ready).unwrap()).unwrap();
        Up { running, ready, told }
    }
}

/// A process that does not outlive its test.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// SIGTERM, and its end.
    pub(crate) fn stop(&mut self) -> std::process::ExitStatus {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        waited(&mut self.0)
    }

    /// Its end, which comes by itself.
    pub(crate) fn ended(&mut self) -> std::process::ExitStatus {
        waited(&mut self.0)
    }

    /// SIGKILL, and its end.
    pub(crate) fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A relay that serves.
pub(crate) struct Up {
    pub(crate) running: Running,
    pub(crate) ready: PathBuf,
    pub(crate) told: Value,
}

impl Up {
    /// Posts something as the owner, over plain HTTP, and takes the JSON that comes back.
    pub(crate) fn post(&self, path: &str, media_type: &str, body: &str) -> Value {
        let (host, token) = (self.told["url"].as_str().unwrap(), &self.told["token"]);
        let (host, token) = (host.strip_prefix("http://").unwrap(), token.as_str().unwrap());
        let mut stream = std::net::TcpStream::connect(host).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: {media_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 2"), "{answer}");
        serde_json::from_str(body).unwrap()
    }
}

/// Lines of a process that goes on.
pub(crate) struct Lines {
    pub(crate) running: Running,
    lines: Receiver<String>,
}

impl Lines {
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Self { running: Running(child), lines }
    }

    /// With what is typed on its terminal.
    pub(crate) fn typing(mut command: Command) -> (Self, ChildStdin) {
        command.stdin(Stdio::piped());
        let mut lines = Self::of(command);
        let input = lines.running.0.stdin.take().unwrap();
        (lines, input)
    }

    /// Passes lines over up to one that begins like this.
    pub(crate) fn until_line(&self, beginning: &str) -> String {
        let (begun, mut seen) = (Instant::now(), vec![]);
        loop {
            let left = PATIENCE.saturating_sub(begun.elapsed());
            let line = self.lines.recv_timeout(left);
            let line = line.unwrap_or_else(|_| panic!("{beginning} never came; seen: {seen:#?}"));
            if line.starts_with(beginning) {
                return line;
            }
            seen.push(line);
        }
    }

    /// Every line as JSON, up to the one that fits.
    pub(crate) fn until(&self, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let within = self.within(PATIENCE, fits);
        within.unwrap_or_else(|seen| panic!("it never came; seen: {seen:#?}"))
    }

    /// The same, or what came instead in this time.
    pub(crate) fn within(
        &self,
        time: Duration,
        fits: impl Fn(&Value) -> bool,
    ) -> Result<Vec<Value>, Vec<Value>> {
        let (begun, mut seen) = (Instant::now(), vec![]);
        loop {
            let left = time.saturating_sub(begun.elapsed());
            let Ok(line) = self.lines.recv_timeout(left) else { return Err(seen) };
            let value: Value = serde_json::from_str(&line).unwrap();
            seen.push(value);
            if seen.last().is_some_and(&fits) {
                return Ok(seen);
            }
        }
    }
}

/// Runs a command to its end.
pub(crate) fn ended(mut command: Command) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    let (done, is_done) = channel::<()>();
    // Whoever hangs is ended, and the test sees its failure.
    let guard = std::thread::spawn(move || {
        if is_done.recv_timeout(PATIENCE).is_err() {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    });
    let output = child.wait_with_output().unwrap();
    done.send(()).unwrap();
    guard.join().unwrap();
    output
}

fn waited(child: &mut Child) -> std::process::ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(begun.elapsed() < PATIENCE, "it does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The words of a transcript message, if this is one.
pub(crate) fn said(event: &Value) -> Option<&str> {
    (event["type"] == "message_event").then(|| event["message"]["content"].as_str())?
}

/// Whether a file can be read by its owner alone.
pub(crate) fn is_private(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().unwrap().permissions().mode() & 0o777 == 0o600
}
