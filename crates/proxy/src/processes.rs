//! The agents' programs: starts them, writes to them, reads their output, and ends them with
//! everything that they started.
//!
//! One task serves each program. A program's output waits in a bounded queue, so that a program
//! that prints faster than the proxy can read is slowed down by its own pipe. A program gets the
//! person's environment without the proxy's variables, plus one variable that names its session, by
//! which everything that it starts can be found.
//!
//! Not here: what lines mean (`agents`), how a process tree is found and ended (`tree`).

mod dialogue;
#[cfg(unix)]
mod files;
mod find;
mod lines;
mod memory;
mod serve;
#[cfg(unix)]
mod terminals;
mod tree;
#[cfg(not(unix))]
mod unserved;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agents::{FileJob, Input, Program, TerminalJob};
use domain::SessionId;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::host::Act;
pub(crate) use dialogue::conversations as told_conversations;
pub(crate) use find::{find_with, set_environment};
#[cfg(unix)]
use terminals::Terminals;
pub(crate) use tree::end_leftovers;
#[cfg(not(unix))]
use unserved::{Terminals, files};

/// Things that programs said and that wait for the host.
pub(crate) const HEARD_MAX: usize = 1_024;
/// Bytes that may wait for a program that does not read. Beyond, it is ended.
const UNREAD_BYTES_MAX: usize = 64 << 20;
/// Bytes of a file that are read; of a longer one the end.
const READ_BYTES_MAX: u64 = 64 << 20;
/// How long all programs together may take to end when the proxy does.
const ALL_END_WITHIN: Duration = Duration::from_secs(8);

/// Something that happened to a program.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) session: SessionId,
    /// Which program of the session; `None` for what is not of a program.
    life: Option<u64>,
    pub(crate) input: Input,
}

/// What a program's task is asked.
#[derive(Debug)]
enum Job {
    Line(String),
    File(FileJob),
    Terminal(TerminalJob),
    End,
}

struct Running {
    life: u64,
    jobs: mpsc::UnboundedSender<Job>,
    unread_bytes: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

/// All programs of this proxy.
pub(crate) struct Processes {
    heard: mpsc::Sender<Heard>,
    /// Where it is noted which programs run.
    notes: PathBuf,
    running: BTreeMap<SessionId, Running>,
    lives: u64,
    /// Bytes that one program and all that it started may take.
    memory_bytes_max: Option<u64>,
    handle: Handle,
}

impl Processes {
    pub(crate) fn new(
        heard: mpsc::Sender<Heard>,
        notes: PathBuf,
        memory_bytes_max: Option<u64>,
        handle: Handle,
    ) -> Self {
        Self { heard, notes, running: BTreeMap::new(), lives: 0, memory_bytes_max, handle }
    }

    /// Never waits.
    pub(crate) fn carry_out(&mut self, session: &SessionId, act: Act) {
        match act {
            Act::Spawn(program) => self.spawn(session, program),
            Act::Write(line) => self.write(session, line),
            Act::File(job) => self.ask(session, Job::File(job)),
            Act::Terminal(job) => self.ask(session, Job::Terminal(job)),
            Act::End => self.ask(session, Job::End),
            Act::Forget(worktree) => {
                let task = self.running.remove(session).map(|running| {
                    let _ = running.jobs.send(Job::End);
                    running.task
                });
                if let Some(worktree) = worktree {
                    self.tidy(task, worktree.into());
                }
            }
            Act::Read(path) => self.read(session, path),
        }
    }

    /// Whether this is of the program that runs now, and not of one before it.
    pub(crate) fn is_current(&self, heard: &Heard) -> bool {
        let running = self.running.get(&heard.session);
        heard.life.is_none_or(|life| running.is_some_and(|running| running.life == life))
    }

    /// Ends every program, and waits for it.
    pub(crate) async fn end_all(&mut self) {
        let all = std::mem::take(&mut self.running);
        for running in all.values() {
            let _ = running.jobs.send(Job::End);
        }
        let ended = async {
            for (_, running) in all {
                let _ = running.task.await;
            }
        };
        let _ = tokio::time::timeout(ALL_END_WITHIN, ended).await;
    }

    fn spawn(&mut self, session: &SessionId, program: Program) {
        let before = self.running.remove(session).map(|running| {
            let _ = running.jobs.send(Job::End);
            running.task
        });
        self.lives += 1;
        let (jobs, asked) = mpsc::unbounded_channel();
        let unread_bytes = Arc::new(AtomicUsize::new(0));
        let life = serve::Life {
            teller: serve::Teller {
                session: session.clone(),
                number: self.lives,
                heard: self.heard.clone(),
            },
            note: self.notes.join(format!("{session}.json")),
            unread_bytes: Arc::clone(&unread_bytes),
            memory_bytes_max: self.memory_bytes_max,
        };
        let task = self.handle.spawn(async move {
            if let Some(before) = before {
                let _ = before.await;
            }
            life.serve(program, asked).await;
        });
        let running = Running { life: self.lives, jobs, unread_bytes, task };
        self.running.insert(session.clone(), running);
    }

    /// Removes a working tree when nobody works in it any more.
    fn tidy(&mut self, task: Option<JoinHandle<()>>, worktree: PathBuf) {
        self.handle.spawn(async move {
            if let Some(task) = task {
                let _ = task.await;
            }
            let place = worktree.display().to_string();
            let tidy = move || crate::worktrees::tidy(&worktree);
            if matches!(tokio::task::spawn_blocking(tidy).await, Ok(false)) {
                tracing::info!(place, "keeping a working tree: it has uncommitted changes");
            }
        });
    }

    fn write(&mut self, session: &SessionId, line: String) {
        let Some(running) = self.running.get(session) else { return };
        let waiting = running.unread_bytes.fetch_add(line.len() + 1, Ordering::Relaxed);
        if waiting + line.len() > UNREAD_BYTES_MAX {
            tracing::warn!(%session, "the agent does not read its input; stopping it");
            let _ = running.jobs.send(Job::End);
            return;
        }
        let _ = running.jobs.send(Job::Line(line));
    }

    fn ask(&self, session: &SessionId, job: Job) {
        if let Some(running) = self.running.get(session) {
            let _ = running.jobs.send(job);
        }
    }

    fn read(&mut self, session: &SessionId, path: PathBuf) {
        let (heard, session) = (self.heard.clone(), session.clone());
        self.handle.spawn(async move {
            let place = path.clone();
            let text = tokio::task::spawn_blocking(move || read_end(&place)).await;
            let text = text.unwrap_or_default();
            let input = Input::Read { path, text };
            let _ = heard.send(Heard { session, life: None, input }).await;
        });
    }
}

/// A file's text, or the end of it, from the start of a line.
fn read_end(path: &Path) -> Option<String> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = std::fs::File::open(path).ok()?;
    let length = file.metadata().ok().filter(std::fs::Metadata::is_file)?.len();
    let start = length.saturating_sub(READ_BYTES_MAX);
    file.seek(SeekFrom::Start(start)).ok()?;
    let mut bytes = vec![];
    file.take(READ_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let skip = match start {
        0 => 0,
        _ => bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1),
    };
    Some(String::from_utf8_lossy(&bytes[skip..]).into_owned())
}

#[cfg(test)]
mod tests;
