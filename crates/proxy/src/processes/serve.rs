//! One program, from its start to the end of everything that it started.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agents::{Ended, FileJob, Input, Program};
use domain::SessionId;
use domain::content::Failure;
use tokio::io::{AsyncRead, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use super::files::Root;
use super::lines::{Lines, Next};
use super::tree::{self, SESSION_VARIABLE};
use super::{Heard, Job, Terminals, files, find, memory};
use crate::aids;

/// Where the programs' own files are written, beside the notes of what runs.
const FILES_FOLDER: &str = "agent-files";
/// After its input was closed, a program has so long to end by itself.
const LEAVES_WITHIN: Duration = Duration::from_secs(2);
/// After it was asked to end, so long.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
/// What a program printed last is waited for so long: something it started may hold its output.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(1);

/// A program's arguments and variables.
type Given = (Vec<String>, Vec<(String, String)>);

/// Another program may read the file at any time: it is there whole or not at all.
fn write_whole(path: &Path, text: &str) -> std::io::Result<()> {
    if std::fs::read_to_string(path).is_ok_and(|there| there == text) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let new = path.with_extension("new");
    std::fs::write(&new, text)?;
    std::fs::rename(new, path)
}

/// Tells what is heard of one life of a session's program.
#[derive(Clone)]
pub(super) struct Teller {
    pub(super) session: SessionId,
    pub(super) number: u64,
    pub(super) heard: mpsc::Sender<Heard>,
}

impl Teller {
    /// Waits while too much was said already.
    pub(super) async fn tell(&self, input: Input) {
        let session = self.session.clone();
        let _ = self.heard.send(Heard { session, life: Some(self.number), input }).await;
    }
}

/// The person's environment without anything of ours, what is given, and the session's mark.
pub(super) fn environment(start: &mut Command, env: &[(String, String)], session: &SessionId) {
    find::set_environment(start, env);
    start.env(SESSION_VARIABLE, session.as_str());
}

/// One life of a session's program.
pub(super) struct Life {
    pub(super) teller: Teller,
    /// Where it is noted that it runs.
    pub(super) note: PathBuf,
    pub(super) unread_bytes: Arc<AtomicUsize>,
    /// Bytes that it and all that it started may take.
    pub(super) memory_bytes_max: Option<u64>,
}

impl Life {
    pub(super) async fn serve(self, program: Program, jobs: mpsc::UnboundedReceiver<Job>) {
        let ended = match self.start(&program) {
            Ok((child, root)) => self.live(child, Arc::new(root), jobs).await,
            Err(failure) => Ended::NotStarted(failure),
        };
        self.teller.tell(Input::Ended(ended)).await;
    }

    fn start(&self, program: &Program) -> Result<(Child, Root), Failure> {
        let command = &program.command;
        let Some(file) = find::find_with(command, &program.env) else {
            let words = format!("The program {command} was not found on this machine");
            return Err(Failure::new("agent_not_open", words));
        };
        let root = Root::open(&program.folder).map_err(|error| {
            let words = format!("Could not open the folder {}: {error}", program.folder.display());
            Failure::new("path_not_allowed", words)
        })?;
        let (args, env) = self.with_files(program)?;
        let mut start = Command::new(file);
        start.args(&args).current_dir(&program.folder).kill_on_drop(true);
        start.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        environment(&mut start, &env, &self.teller.session);
        #[cfg(unix)]
        start.process_group(0);
        let child = start.spawn().map_err(|error| {
            let words = format!("The program {command} could not be started: {error}");
            Failure::new("agent_not_open", words)
        })?;
        if let Some(process) = child.id()
            && let Err(error) = tree::note(&self.note, process)
        {
            tracing::warn!(%error, "could not record that a program is running");
        }
        Ok((child, root))
    }

    /// Writes the program's own files, and names them among its arguments and variables.
    fn with_files(&self, program: &Program) -> Result<Given, Failure> {
        let (mut args, mut env) = (program.args.clone(), program.env.clone());
        let folder = self.note.parent().unwrap_or(Path::new(".")).with_file_name(FILES_FOLDER);
        for (name, text) in &program.files {
            let path = folder.join(name);
            write_whole(&path, text).map_err(|error| {
                let words = format!("{} could not be written: {error}", path.display());
                Failure::new("internal", words)
            })?;
            let stands_for_it = Program::argument_of(name);
            let values = env.iter_mut().map(|(_, value)| value);
            for arg in args.iter_mut().chain(values).filter(|arg| **arg == stands_for_it) {
                *arg = path.to_string_lossy().into_owned();
            }
        }
        Ok((args, env))
    }

    async fn live(
        &self,
        mut child: Child,
        root: Arc<Root>,
        mut jobs: mpsc::UnboundedReceiver<Job>,
    ) -> Ended {
        let process = child.id();
        let mut reading = JoinSet::new();
        if let Some(output) = child.stdout.take() {
            reading.spawn(self.listen(output, Input::Line));
        }
        if let Some(output) = child.stderr.take() {
            reading.spawn(self.listen(output, Input::Complaint));
        }
        let (lines, to_write) = mpsc::unbounded_channel();
        let writing = child.stdin.take().map(|input| self.write(input, to_write));
        let (leaders, all_leaders) = watch::channel(vec![]);
        let mut terminals = Terminals::new(self.teller.clone(), Arc::clone(&root), leaders);
        let (file_jobs, asked) = mpsc::unbounded_channel();
        let filing = tokio::spawn(file(asked, root, self.teller.clone()));
        let mut guarded = None;
        let mut over = pin!(memory::over(process, all_leaders, self.memory_bytes_max));
        let status = loop {
            tokio::select! {
                biased;
                status = child.wait() => break status,
                failure = &mut over => {
                    guarded = Some(failure);
                    // All of it at once: what it started may be what takes so much.
                    tree::end_all_of(&self.teller.session, process);
                    break child.wait().await;
                }
                () = terminals.next_end() => {}
                job = jobs.recv() => match job {
                    Some(Job::Line(line)) => {
                        let _ = lines.send(line);
                    }
                    Some(Job::File(job)) => {
                        let _ = file_jobs.send(job);
                    }
                    Some(Job::Terminal(job)) => terminals.carry_out(job),
                    Some(Job::End) | None => {
                        drop(lines);
                        break end(&mut child, process, writing.as_ref()).await;
                    }
                },
            }
        };
        if let Some(writing) = writing {
            writing.abort();
        }
        filing.abort();
        terminals.end().await;
        let drained = async { while reading.join_next().await.is_some() {} };
        if timeout(LAST_WORDS_WITHIN, drained).await.is_err() {
            reading.abort_all();
        }
        tree::end_all_of(&self.teller.session, process);
        tree::forget(&self.note);
        if let Some(failure) = guarded {
            return Ended::Guarded(failure);
        }
        status.map_or_else(
            |error| Ended::NotStarted(Failure::new("internal", error.to_string())),
            how,
        )
    }

    fn listen<R: AsyncRead + Unpin + Send + 'static>(
        &self,
        output: R,
        input: fn(String) -> Input,
    ) -> impl Future<Output = ()> + Send + 'static {
        let teller = self.teller.clone();
        async move {
            let mut lines = Lines::new(output);
            loop {
                let said = match lines.next().await {
                    Next::Line(line) => input(line),
                    Next::TooLong(bytes) => {
                        Input::Complaint(format!("skipped a line of {bytes} bytes: it is too long"))
                    }
                    Next::End => return,
                };
                teller.tell(said).await;
            }
        }
    }

    fn write(
        &self,
        mut input: ChildStdin,
        mut lines: mpsc::UnboundedReceiver<String>,
    ) -> JoinHandle<()> {
        let unread_bytes = Arc::clone(&self.unread_bytes);
        tokio::spawn(async move {
            while let Some(mut line) = lines.recv().await {
                line.push('\n');
                // A program that is gone says so by its end.
                if input.write_all(line.as_bytes()).await.is_err() {
                    return;
                }
                let _ = input.flush().await;
                aids::written(&line);
                unread_bytes.fetch_sub(line.len(), Ordering::Relaxed);
            }
        })
    }
}

/// Does what the program asks about files, one after the other.
async fn file(mut jobs: mpsc::UnboundedReceiver<FileJob>, root: Arc<Root>, teller: Teller) {
    while let Some(job) = jobs.recv().await {
        let (number, root) = (job.number, Arc::clone(&root));
        let done = tokio::task::spawn_blocking(move || files::carry_out(&root, &job)).await;
        let Ok(outcome) = done else { continue };
        teller.tell(Input::Filed { number, outcome }).await;
    }
}

/// First politely: what was written is read, then the input ends. Then firmly.
async fn end(
    child: &mut Child,
    process: Option<u32>,
    writing: Option<&JoinHandle<()>>,
) -> std::io::Result<ExitStatus> {
    if let Ok(status) = timeout(LEAVES_WITHIN, child.wait()).await {
        return status;
    }
    if let Some(writing) = writing {
        writing.abort();
    }
    tree::ask_to_end(process);
    if let Ok(status) = timeout(ENDS_WITHIN, child.wait()).await {
        return status;
    }
    child.start_kill()?;
    child.wait().await
}

#[cfg(unix)]
fn how(status: ExitStatus) -> Ended {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Exited(code),
        (None, signal) => Ended::Killed(signal.unwrap_or(0)),
    }
}

#[cfg(not(unix))]
fn how(status: ExitStatus) -> Ended {
    Ended::Exited(status.code().unwrap_or(-1))
}
