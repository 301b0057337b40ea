//! A command that goes on for long, and whose process can be found.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::agents::client::{Mark, PATIENCE};
use crate::agents::stage::{Stage, words};

const PIPE: &str = "pipe";

/// One such command: it waits for a line of a pipe. Not `sleep`: some agents refuse to run that.
#[derive(Debug)]
pub(crate) struct Waiter {
    folder: tempfile::TempDir,
    /// Both ends: whoever opens the pipe later finds it open, and what was written in it.
    pipe: File,
}

impl Waiter {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("waiter-").tempdir().unwrap();
        let path = folder.path().join(PIPE);
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o644));
        rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).unwrap();
        let pipe = File::options().read(true).write(true).open(&path).unwrap();
        Self { folder, pipe }
    }

    pub(crate) fn command(&self) -> String {
        format!("head -n 1 {}", self.path().display())
    }

    /// Whether its process is there.
    pub(crate) fn runs(&self) -> bool {
        self.process().is_some()
    }

    /// Lets it be done. Not by a signal: opencode does not notice that one ended its command, and
    /// waits for two minutes.
    pub(crate) fn end(&self) {
        (&self.pipe).write_all(b"done\n").unwrap();
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(PIPE)
    }

    /// Allows it, if the agent asks, until its process is there.
    pub(crate) async fn is_let_run(&self, stage: &mut Stage, since: Mark) {
        let begun = Instant::now();
        let mut answered = vec![];
        while !self.runs() {
            assert!(begun.elapsed() < PATIENCE, "it never runs:\n{}", stage.client.shown());
            let soon = Duration::from_millis(20);
            let asked = stage.client.find(since, "a question", soon, |frame| {
                let prompt = words(&frame["prompt_id"]);
                frame["type"] == "permission_prompt" && !answered.iter().any(|one| one == prompt)
            });
            if let Some(prompt) = asked.await {
                answered.push(words(&prompt["prompt_id"]).to_owned());
                stage.answer(&prompt, "allow_once", &json!({})).await;
            }
        }
    }

    fn process(&self) -> Option<PathBuf> {
        let wanted = format!("head\0-n\x001\0{}\0", self.path().display());
        std::fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.path()).find(|process| {
            std::fs::read(process.join("cmdline")).is_ok_and(|line| line == wanted.as_bytes())
        })
    }
}
