//! Ends everything that a program started, including what an earlier proxy left behind.
//!
//! Each program leads a process group; the group and its start time are recorded on disk. Processes
//! that left the group (agents run commands in separate groups) still have the variable that names
//! the session in their environment. On systems that expose environments, they are found by it.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use domain::SessionId;
use serde::{Deserialize, Serialize};

/// In the environment of every program, and of whatever it starts.
pub(super) const SESSION_VARIABLE: &str = "FARHELM_SESSION";

/// What is known of a program that runs.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    /// The leader of its group.
    process: u32,
    /// When it started, as the system counts; tells it from another process of the same number.
    started: Option<u64>,
}

/// Notes that a program runs, so that the next proxy can end it.
pub(super) fn note(file: &Path, process: u32) -> io::Result<()> {
    let note = Note { process, started: system::started(process) };
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut written = fs::File::create(file)?;
    written.write_all(&serde_json::to_vec(&note)?)?;
    written.sync_data()
}

/// It does not run any more.
pub(super) fn forget(file: &Path) {
    let _ = fs::remove_file(file);
}

/// Asks a program and its group to end.
pub(super) fn ask_to_end(process: Option<u32>) {
    if let Some(process) = process {
        system::end_group(process, false);
    }
}

/// Ends a program's group at once.
pub(super) fn end_group_of(process: Option<u32>) {
    if let Some(process) = process {
        system::end_group(process, true);
    }
}

/// Ends a program's group and all that still names its session.
pub(super) fn end_all_of(session: &SessionId, process: Option<u32>) {
    if let Some(process) = process {
        system::end_group(process, true);
    }
    system::end_marked(session);
}

/// Ends what an earlier proxy left behind in this folder. Gives the sessions concerned.
pub(crate) fn end_leftovers(notes: &Path) -> Vec<SessionId> {
    let mut sessions = vec![];
    let Ok(entries) = fs::read_dir(notes) else { return sessions };
    for entry in entries.flatten() {
        let file = entry.path();
        let name = file.file_stem().map(|name| name.to_string_lossy().into_owned());
        let Some(session) = name.as_deref().and_then(SessionId::parse) else { continue };
        let note =
            fs::read(&file).ok().and_then(|bytes| serde_json::from_slice::<Note>(&bytes).ok());
        if let Some(note) = note
            && note.started.is_some()
            && note.started == system::started(note.process)
        {
            system::end_group(note.process, true);
        }
        system::end_marked(&session);
        forget(&file);
        sessions.push(session);
    }
    sessions
}

#[cfg(unix)]
mod system {
    use domain::SessionId;
    use rustix::process::{Pid, Signal, kill_process, kill_process_group};

    use super::SESSION_VARIABLE;

    /// Looks at all processes; what is started meanwhile is found by looking again.
    const LOOKS_MAX: usize = 3;

    pub(super) fn end_group(process: u32, firmly: bool) {
        let Some(group) = pid(process) else { return };
        let signal = if firmly { Signal::KILL } else { Signal::TERM };
        let _ = kill_process_group(group, signal);
    }

    /// The 22nd field of `/proc/N/stat`; the name before may hold anything.
    pub(super) fn started(process: u32) -> Option<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let (_, after_name) = stat.rsplit_once(')')?;
        after_name.split_whitespace().nth(19)?.parse().ok()
    }

    pub(super) fn end_marked(session: &SessionId) {
        let mark = format!("{SESSION_VARIABLE}={session}");
        for _ in 0..LOOKS_MAX {
            let found = marked(mark.as_bytes());
            if found.is_empty() {
                return;
            }
            for process in found {
                let _ = kill_process(process, Signal::KILL);
            }
        }
    }

    fn marked(mark: &[u8]) -> Vec<Pid> {
        let own = std::process::id();
        let Ok(entries) = std::fs::read_dir("/proc") else { return vec![] };
        let numbers = entries.flatten().filter_map(|entry| {
            entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok())
        });
        let is_marked = |process: &u32| {
            let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == mark)
        };
        numbers.filter(|number| *number != own).filter(is_marked).filter_map(pid).collect()
    }

    fn pid(process: u32) -> Option<Pid> {
        Pid::from_raw(i32::try_from(process).ok()?)
    }
}

#[cfg(not(unix))]
mod system {
    use std::process::{Command, Stdio};

    use domain::SessionId;

    pub(super) fn end_group(process: u32, firmly: bool) {
        let mut end = Command::new("taskkill");
        end.args(["/T", "/PID", &process.to_string()]);
        if firmly {
            end.arg("/F");
        }
        let _ = end.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }

    pub(super) fn started(_process: u32) -> Option<u64> {
        None
    }

    pub(super) fn end_marked(_session: &SessionId) {}
}
