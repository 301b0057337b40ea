//! Programs with chat panels that nobody here wrote, as a test starts them: a clean home, nothing
//! of the machine's environment, 127.0.0.1 only.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;

use crate::support::{PATIENCE, Running, said};

/// A program that serves a page. It ends with all that it started: code-server is two programs,
/// and the second spins without the first.
pub(crate) struct Served {
    pub(crate) url: String,
    running: Running,
}

impl Drop for Served {
    fn drop(&mut self) {
        #[cfg(unix)]
        {
            let group = rustix::process::Pid::from_child(&self.running.0);
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

/// Runs a program until the input of this ends, which it does with the test: also with one that is
/// killed, and then nobody would end the program.
const ENDS_WITH_THE_TEST: &str = "\"$@\" </dev/null & read -r _; kill -KILL 0";

/// A command for such a program, to which its arguments are added.
pub(crate) fn ending(program: &Path) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", ENDS_WITH_THE_TEST, "sh"]).arg(program);
    command
}

fn spawn(mut command: Command) -> Running {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    Running(command.spawn().unwrap())
}

impl Served {
    /// Starts it, and waits until it says where it listens.
    pub(crate) fn start(command: Command) -> Self {
        let mut running = spawn(command);
        let out = BufReader::new(running.0.stdout.take().unwrap());
        let (tell, told) = mpsc::channel();
        // Reads to the end: a full pipe would stop the program.
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let at = line.find("http://127.0.0.1:");
                let _ = at.map(|at| tell.send(line[at..].trim().to_owned()));
            }
        });
        let url = told.recv_timeout(PATIENCE * 2).unwrap();
        Self { url, running }
    }
}

/// A program that was fetched, with the agents' own way of finding it.
pub(crate) fn fetched(name: &str) -> (std::path::PathBuf, Vec<String>, String) {
    let list = std::env::var_os(fake_model::LIST_VARIABLE);
    let list = list.unwrap_or_else(|| panic!("run `cargo xtask ide`"));
    let text = std::fs::read_to_string(Path::new(&list)).unwrap();
    let all: serde_json::Value = serde_json::from_str(&text).unwrap();
    let one = &all[name];
    let program = one["program"].as_str().unwrap_or_else(|| panic!("{name}: `cargo xtask ide`"));
    let arguments = one["args_prefix"].as_array().unwrap().iter();
    let arguments = arguments.map(|it| it.as_str().unwrap().to_owned()).collect();
    let folder = one["node_bin"].as_str().map_or(String::new(), |it| format!("{it}:"));
    (program.into(), arguments, format!("{folder}/usr/bin:/bin"))
}

/// How many messages hold these words.
pub(crate) fn times_said(seen: &[serde_json::Value], words: &str) -> usize {
    seen.iter().filter(|event| said(event).is_some_and(|it| it.contains(words))).count()
}

#[test]
fn a_program_ends_with_the_test_that_started_it() {
    let mut command = ending(Path::new("sh"));
    command.args(["-c", "echo is here; sleep 300"]);
    let mut running = spawn(command);
    let mut out = BufReader::new(running.0.stdout.take().unwrap());
    let mut said = String::new();
    out.read_line(&mut said).unwrap();
    // As the system does it for a test that is killed.
    drop(running.0.stdin.take());
    running.0.wait().unwrap();
    // The pipe ends when the last of them has: the program, and what it started.
    assert_eq!(out.read_line(&mut said).unwrap(), 0, "{said}");
    assert_eq!(said, "is here\n");
}
