//! The environment of one run: its folder, its programs, and how they all end.
//!
//! **Invariant**: nothing that a lab started or made outlives it, even after Ctrl-C.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use tempfile::TempDir;

use super::Bench;
use super::trouble::{During as _, Outcome};

/// The exit code of a program that Ctrl-C ended, as shells have it.
const INTERRUPTED: i32 = 130;
/// The ledger, as the relay calls it in its data folder.
pub(crate) const DATABASE_FILE_NAME: &str = "ledger.db";

pub(crate) struct Lab {
    folder: TempDir,
    program: PathBuf,
    /// This program, which also plays the other end of a measurement.
    helper: PathBuf,
    running: Arc<Running>,
    pub(crate) rounds: u32,
    pub(crate) big_bytes: u64,
}

/// The ids of the processes to end when the run is cut short.
#[derive(Default)]
struct Running(Mutex<Vec<u32>>);

impl Running {
    fn with<T>(&self, change: impl FnOnce(&mut Vec<u32>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Lab {
    pub(crate) fn open(bench: &Bench) -> Outcome<Self> {
        let parent = bench.folder.clone().unwrap_or_else(std::env::temp_dir);
        let folder = tempfile::Builder::new().prefix("farhelm-bench-").tempdir_in(&parent);
        let folder = folder.during(format_args!("cannot write to {}", parent.display()))?;
        let helper = std::env::current_exe()?;
        let beside = || helper.with_file_name(format!("farhelm{}", std::env::consts::EXE_SUFFIX));
        let program = bench.program.clone().unwrap_or_else(beside);
        let running = Arc::new(Running::default());
        clean_up_when_interrupted(running.clone(), folder.path().to_path_buf())?;
        let (rounds, big_bytes) = (bench.rounds, bench.big_bytes);
        Ok(Self { folder, program, helper, running, rounds, big_bytes })
    }

    /// The program that plays the other end of a measurement.
    pub(crate) fn helper(&self) -> &Path {
        &self.helper
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A new folder of this run; gone when it is dropped.
    pub(crate) fn new_folder(&self) -> Outcome<TempDir> {
        Ok(TempDir::new_in(self.folder())?)
    }

    /// Tells a person how far it is.
    #[expect(clippy::unused_self, reason = "only a run has progress")]
    pub(crate) fn say(&self, words: &str) {
        let _ = writeln!(io::stderr().lock(), "{words}");
    }

    /// Starts the build that is measured. Settings of the person do not reach it.
    pub(crate) fn start(&self, configure: impl FnOnce(&mut Command)) -> Outcome<Program> {
        self.start_program(&self.program, configure)
    }

    /// Starts the other end of a measurement.
    pub(crate) fn start_helper(&self, configure: impl FnOnce(&mut Command)) -> Outcome<Program> {
        self.start_program(&self.helper, configure)
    }

    fn start_program(
        &self,
        program: &Path,
        configure: impl FnOnce(&mut Command),
    ) -> Outcome<Program> {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("FARHELM_") {
                command.env_remove(name);
            }
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        configure(&mut command);
        let child = command.spawn();
        let child = child.during(format_args!("could not start {}", program.display()))?;
        self.running.with(|ids| ids.push(child.id()));
        Ok(Program { child, running: self.running.clone() })
    }
}

/// A process of this run; ended when it is dropped.
pub(crate) struct Program {
    pub(crate) child: Child,
    running: Arc<Running>,
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself; either way it is waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let id = self.child.id();
        self.running.with(|ids| ids.retain(|running| *running != id));
    }
}

/// Ctrl-C reaches the whole group at a terminal; a lone signal does not.
#[cfg(unix)]
fn clean_up_when_interrupted(running: Arc<Running>, folder: PathBuf) -> Outcome<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("interrupt".to_owned()).spawn(move || {
        runtime.block_on(async {
            let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
            let (Ok(mut interrupt), Ok(mut terminate)) = signals else { return };
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            running.with(|ids| {
                for id in ids.drain(..) {
                    let id = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw);
                    if let Some(id) = id {
                        let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
                    }
                }
            });
            let _ = fs::remove_dir_all(&folder);
            std::process::exit(INTERRUPTED);
        });
    })?;
    Ok(())
}

#[cfg(not(unix))]
fn clean_up_when_interrupted(_: Arc<Running>, _: PathBuf) -> Outcome<()> {
    Ok(())
}
