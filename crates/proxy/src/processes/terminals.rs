//! Commands that run for an agent in separate terminals: one task each, owned by the task of the
//! agent's program.
//!
//! Each command leads a process group and carries the session's variable, as the program does. Its
//! output is reported in pieces of bounded size at a bounded rate: a command that prints without
//! end is slowed down by its own pipe.
//!
//! **Invariant**: when a command's task ends, for whatever reason, the command and everything left
//! in its process group are gone. When the program ends, all tasks are gone.
//!
//! Not here: how much output is kept and who receives it (`agents`), paths (`files`).

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use agents::{Exit, Input, TerminalCommand, TerminalId, TerminalJob, TerminalNews};
use domain::content::Failure;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::files::Root;
use super::serve::{Teller, environment};
use super::{find, tree};

/// Bytes that are told at once.
const TOLD_BYTES_MAX: usize = 64 << 10;
/// The least time between two tellings.
const TELL_EVERY: Duration = Duration::from_millis(10);
/// After it was asked to end, a command has so long.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
/// What a command printed last is waited for so long: something it started may hold its output.
const LAST_WORDS_WITHIN: Duration = Duration::from_millis(500);
/// Commands at once. The drivers have a lower bound; this one is for what is being ended.
const COMMANDS_MAX: usize = 64;

/// The commands of one program.
pub(super) struct Terminals {
    teller: Teller,
    root: Arc<Root>,
    tasks: JoinSet<TerminalId>,
    running: BTreeMap<TerminalId, Handle>,
    /// The leaders of all groups, for whoever counts what they take.
    leaders: watch::Sender<Vec<u32>>,
}

struct Handle {
    process: u32,
    kill: mpsc::Sender<()>,
}

impl Terminals {
    pub(super) fn new(teller: Teller, root: Arc<Root>, leaders: watch::Sender<Vec<u32>>) -> Self {
        Self { teller, root, tasks: JoinSet::new(), running: BTreeMap::new(), leaders }
    }

    /// Never waits.
    pub(super) fn carry_out(&mut self, job: TerminalJob) {
        match job {
            TerminalJob::Open(id, command) => {
                if let Err(words) = self.open(id, &command) {
                    let news = TerminalNews::NotOpened(Failure::new("internal", words));
                    let teller = self.teller.clone();
                    self.tasks.spawn(async move {
                        teller.tell(Input::Terminal(id, news)).await;
                        id
                    });
                }
            }
            TerminalJob::Kill(id) => {
                if let Some(handle) = self.running.get(&id) {
                    // Full: it was asked already.
                    let _ = handle.kill.try_send(());
                }
            }
        }
    }

    /// A command is over. Waits for ever when there is none.
    pub(super) async fn next_end(&mut self) {
        let Some(ended) = self.tasks.join_next().await else {
            return std::future::pending().await;
        };
        if let Ok(id) = ended {
            self.running.remove(&id);
        }
        self.count();
    }

    /// Ends all of them, and waits for it.
    pub(super) async fn end(mut self) {
        self.tasks.shutdown().await;
    }

    fn open(&mut self, id: TerminalId, wanted: &TerminalCommand) -> Result<(), String> {
        if self.running.len() >= COMMANDS_MAX {
            return Err("Too many commands are running at once".to_owned());
        }
        let (mut start, output) = self.prepare(wanted)?;
        let command = &wanted.command;
        let not_started = |error: io::Error| format!("{command} could not be started: {error}");
        let child = start.spawn().map_err(not_started)?;
        // Our ends of the pipe, which would keep it open.
        drop(start);
        let process = child.id().unwrap_or_default();
        let group = Group(child.id());
        let (kill, killed) = mpsc::channel(1);
        let session = Session { id, child, group, killed, teller: self.teller.clone() };
        self.tasks.spawn(session.run(output));
        self.running.insert(id, Handle { process, kill });
        self.count();
        Ok(())
    }

    /// The command with both of its outputs in one pipe.
    fn prepare(&self, wanted: &TerminalCommand) -> Result<(Command, pipe::Receiver), String> {
        let folder = wanted.folder.as_deref().unwrap_or(Path::new(""));
        let folder = self.root.folder_within(folder);
        let folder = folder.map_err(|fault| fault.words)?;
        let found = find::find_with(&wanted.command, &wanted.env);
        let mut start = match found {
            Some(program) => {
                let mut start = Command::new(program);
                start.args(&wanted.args);
                start
            }
            // Some write a whole line of shell.
            None if wanted.args.is_empty() && wanted.command.contains(char::is_whitespace) => {
                let mut start = Command::new("/bin/sh");
                start.args(["-c", &wanted.command]);
                start
            }
            None => {
                return Err(format!(
                    "The program {} was not found on this machine",
                    wanted.command
                ));
            }
        };
        let unusable = |error: io::Error| format!("Could not create a pipe: {error}");
        let (output, input) = io::pipe().map_err(unusable)?;
        start.stdout(input.try_clone().map_err(unusable)?).stderr(input).stdin(Stdio::null());
        start.current_dir(folder).kill_on_drop(true).process_group(0);
        environment(&mut start, &wanted.env, &self.teller.session);
        let output = pipe::Receiver::from_owned_fd(OwnedFd::from(output)).map_err(unusable)?;
        Ok((start, output))
    }

    fn count(&self) {
        let leaders = self.running.values().map(|handle| handle.process).collect();
        self.leaders.send_replace(leaders);
    }
}

/// Ends a group when it is dropped.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        tree::end_group_of(self.0);
    }
}

/// One command.
struct Session {
    id: TerminalId,
    // Before the child: a group is ended while its leader's number is still its own.
    group: Group,
    child: Child,
    killed: mpsc::Receiver<()>,
    teller: Teller,
}

impl Session {
    async fn run(mut self, output: pipe::Receiver) -> TerminalId {
        self.tell(TerminalNews::Opened).await;
        let mut printed = Printed::new(output);
        let mut firmly_at: Option<Instant> = None;
        let status = loop {
            tokio::select! {
                biased;
                Some(()) = self.killed.recv(), if firmly_at.is_none() => {
                    tree::ask_to_end(self.group.0);
                    firmly_at = Some(Instant::now() + ENDS_WITHIN);
                }
                () = until(firmly_at) => {
                    tree::end_group_of(self.group.0);
                    break self.child.wait().await;
                }
                status = self.child.wait() => break status,
                text = printed.next() => self.print(text).await,
            }
        };
        let until = Instant::now() + LAST_WORDS_WITHIN;
        while let Ok(false) = timeout_at(until, printed.fill()).await {
            let text = printed.take();
            self.print(text).await;
        }
        let text = printed.rest();
        self.print(text).await;
        // What it left running in its group ends with it.
        drop(std::mem::replace(&mut self.group, Group(None)));
        self.tell(TerminalNews::Ended(status.map_or(Exit::Code(-1), how))).await;
        self.id
    }

    async fn print(&self, text: String) {
        if !text.is_empty() {
            self.tell(TerminalNews::Printed(text)).await;
        }
    }

    async fn tell(&self, news: TerminalNews) {
        self.teller.tell(Input::Terminal(self.id, news)).await;
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// What a command prints, gathered.
struct Printed {
    output: pipe::Receiver,
    bytes: Vec<u8>,
    is_over: bool,
    next_at: Instant,
}

impl Printed {
    fn new(output: pipe::Receiver) -> Self {
        let bytes = Vec::with_capacity(TOLD_BYTES_MAX);
        Self { output, bytes, is_over: false, next_at: Instant::now() }
    }

    /// The next piece, when it may be told. Nothing is lost when nobody waits any more.
    async fn next(&mut self) -> String {
        if self.bytes.is_empty() {
            if self.is_over {
                return std::future::pending().await;
            }
            self.fill_some().await;
        }
        while Instant::now() < self.next_at && !self.is_full() && !self.is_over {
            if timeout_at(self.next_at, self.fill_some()).await.is_err() {
                break;
            }
        }
        sleep_until(self.next_at).await;
        self.next_at = Instant::now() + TELL_EVERY;
        if self.is_over { self.rest() } else { self.take() }
    }

    /// Reads until there is a whole piece (false) or the end (true).
    async fn fill(&mut self) -> bool {
        while !self.is_over && !self.is_full() {
            self.fill_some().await;
        }
        self.is_over
    }

    async fn fill_some(&mut self) {
        let room = TOLD_BYTES_MAX.saturating_sub(self.bytes.len());
        let mut limited = (&mut self.output).take(room as u64);
        let read = limited.read_buf(&mut self.bytes).await;
        self.is_over |= !matches!(read, Ok(count) if count > 0);
    }

    fn is_full(&self) -> bool {
        self.bytes.len() >= TOLD_BYTES_MAX
    }

    /// All whole characters; what was cut off waits for its rest.
    fn take(&mut self) -> String {
        let cut = cut_off(&self.bytes);
        let rest = self.bytes.split_off(self.bytes.len() - cut);
        let text = String::from_utf8_lossy(&self.bytes).into_owned();
        self.bytes = rest;
        text
    }

    fn rest(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.bytes)).into_owned()
    }
}

/// Bytes at the end that begin a character and do not finish it.
fn cut_off(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let byte = bytes[bytes.len() - back];
        let length = match byte {
            0xC0..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF7 => 4,
            0x80..=0xBF => continue,
            _ => return 0,
        };
        return if back < length { back } else { 0 };
    }
    0
}

fn how(status: ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_that_is_cut_off_waits_for_its_rest() {
        assert_eq!(cut_off("aä".as_bytes()), 0);
        assert_eq!(cut_off(&"aä".as_bytes()[..2]), 1);
        assert_eq!(cut_off(&"🙂".as_bytes()[..3]), 3);
        assert_eq!(cut_off(&[0x80; 5]), 0, "that is no text");
        assert_eq!(cut_off(b""), 0);
    }
}
