//! A command that goes on for long, and whose process can be found.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::{Mark, PATIENCE};
use crate::stage::{Stage, words};

/// One such command. Not `sleep`: some agents refuse to run that.
#[derive(Debug)]
pub(crate) struct Waiter {
    /// A number that no other process is started with.
    number: String,
}

impl Waiter {
    pub(crate) fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(1);
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        Self { number: format!("8{made}{}", std::process::id()) }
    }

    pub(crate) fn command(&self) -> String {
        format!("tail -s {} -f /dev/null", self.number)
    }

    /// Whether its process is there.
    pub(crate) fn runs(&self) -> bool {
        self.process().is_some()
    }

    /// Ends it, as if it were done.
    pub(crate) fn end(&self) {
        let process = self.process().and_then(rustix::process::Pid::from_raw).unwrap();
        rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
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

    fn process(&self) -> Option<i32> {
        let wanted = format!("tail\0-s\0{}\0-f\0/dev/null\0", self.number);
        std::fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            let number = entry.file_name().to_string_lossy().parse().ok()?;
            (line == wanted.as_bytes()).then_some(number)
        })
    }
}
