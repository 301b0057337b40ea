//! Test hooks, in debug builds only: a proxy that kills itself after a given step of a send, and
//! one that records the output of agents.
//!
//! `FARHELM_PROXY_DIES_AT` is `received`, `attempting`, `settled` (that step is on disk, nothing
//! else was done), `heard` (the agent confirmed, nothing is on disk) or `written WORDS` (a line
//! with this text was written to an agent). `FARHELM_RECORD_LINES` names a folder for recordings,
//! one file per session. They contain the whole conversation.
//!
//! Invariant: in a release build both variables have no effect.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::OnceLock;

use agents::recording::{Entry, Head};
use agents::{Driver, Input, Order, Output};
use domain::Timestamp;
use domain::session::Report;

use crate::disk::Disk;
use crate::host::Drivers;
use crate::journal::{self, Means, Record};

/// After which step the proxy dies.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Received,
    Attempting,
    Written(String),
    Heard,
    Settled,
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| cfg!(debug_assertions) && !value.is_empty())
}

fn last_step() -> Option<&'static Step> {
    static STEP: OnceLock<Option<Step>> = OnceLock::new();
    STEP.get_or_init(|| step(&variable("FARHELM_PROXY_DIES_AT")?)).as_ref()
}

fn step(words: &str) -> Option<Step> {
    match words {
        "received" => Some(Step::Received),
        "attempting" => Some(Step::Attempting),
        "heard" => Some(Step::Heard),
        "settled" => Some(Step::Settled),
        _ => words.strip_prefix("written ").map(|words| Step::Written(words.to_owned())),
    }
}

/// As SIGKILL from outside would: nothing is tidied up.
fn die() -> ! {
    #[cfg(unix)]
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::process::abort()
}

/// A line is with an agent's program.
pub(crate) fn written(line: &str) {
    if let Some(Step::Written(words)) = last_step()
        && line.contains(words)
    {
        die();
    }
}

/// A disk whose process may die when a record is on it.
#[derive(Debug)]
pub(crate) struct Mortal<D>(pub(crate) D);

impl<D: Disk> Disk for Mortal<D> {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        self.0.read()
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(end) = last_step().and_then(|step| end_of(step, bytes)) else {
            return self.0.append(bytes);
        };
        self.0.append(&bytes[..end])?;
        self.0.sync()?;
        die()
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync()
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.replace(bytes)
    }
}

/// Where the first record of this step ends among these lines.
fn end_of(step: &Step, lines: &[u8]) -> Option<usize> {
    let (records, _) = journal::decode(lines);
    let place = records.iter().position(|record| match step {
        Step::Received => matches!(record, Record::Received { .. }),
        Step::Attempting => matches!(record, Record::Attempting(_)),
        Step::Settled => {
            matches!(record, Record::Frame { means: Some(Means::Settled(..)), .. })
        }
        Step::Written(_) | Step::Heard => false,
    })?;
    let ends = lines.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    ends.map(|(at, _)| at + 1).nth(place)
}

/// The same drivers, watched where that was asked for.
pub(crate) fn watched(drivers: Drivers) -> Drivers {
    let folder = variable("FARHELM_RECORD_LINES").map(PathBuf::from);
    if folder.is_none() && last_step() != Some(&Step::Heard) {
        return drivers;
    }
    Box::new(move |session, opened, notes| {
        let file = folder.as_ref().and_then(|folder| {
            let path = folder.join(format!("{}-{session}.lines", opened.agent));
            File::options().create(true).append(true).open(path).ok()
        });
        let head = Head {
            agent: opened.agent.to_string(),
            version: None,
            session: session.clone(),
            workspace: opened.workspace_path.clone().unwrap_or_default(),
        };
        let mut watched = Watched { driver: drivers(session, opened, notes), file };
        watched.note(&Entry::Head(head));
        Box::new(watched)
    })
}

#[derive(Debug)]
struct Watched {
    driver: Box<dyn Driver>,
    file: Option<File>,
}

impl Watched {
    fn note(&mut self, entry: &Entry) {
        if let Some(file) = &mut self.file {
            // A recording that fails is seen by whoever wanted it; the proxy goes on.
            let _ = writeln!(file, "{}", entry.line());
        }
    }

    fn see(&mut self, outputs: Vec<Output>) -> Vec<Output> {
        for output in &outputs {
            if let Output::Write(line) = output {
                self.note(&Entry::Wrote(line.clone()));
            }
            let is_delivered = matches!(output, Output::Report(Report::SendDelivered { .. }));
            if is_delivered && last_step() == Some(&Step::Heard) {
                die();
            }
        }
        outputs
    }
}

impl Driver for Watched {
    fn ready_by(&mut self, at: Timestamp) {
        self.driver.ready_by(at);
    }

    fn start(&mut self, now: Timestamp) -> Vec<Output> {
        let outputs = self.driver.start(now);
        self.see(outputs)
    }

    fn on_order(&mut self, order: &Order, now: Timestamp) -> Vec<Output> {
        self.note(&Entry::Order(order.clone()));
        let outputs = self.driver.on_order(order, now);
        self.see(outputs)
    }

    fn on_input(&mut self, input: Input, now: Timestamp) -> Vec<Output> {
        match &input {
            Input::Line(line) => self.note(&Entry::Said(line.clone())),
            Input::Complaint(line) => self.note(&Entry::Complained(line.clone())),
            Input::Ended(ended) => self.note(&Entry::Ended(ended.clone())),
            Input::Read { .. }
            | Input::Filed { .. }
            | Input::Terminal(..)
            | Input::Kept { .. }
            | Input::Panel(_)
            | Input::Held(_) => {}
        }
        let outputs = self.driver.on_input(input, now);
        self.see(outputs)
    }

    fn on_deadline(&mut self, now: Timestamp) -> Vec<Output> {
        let outputs = self.driver.on_deadline(now);
        self.see(outputs)
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.driver.deadline()
    }

    fn shorten_notes(&self, notes: &str) -> Option<String> {
        self.driver.shorten_notes(notes)
    }

    fn conversation(&self) -> Option<&str> {
        self.driver.conversation()
    }

    fn is_at_rest(&self) -> bool {
        self.driver.is_at_rest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Attempt;
    use domain::Sequence;

    #[test]
    fn the_disk_is_cut_after_the_record_of_the_step() {
        let attempt = Attempt { session: "s".into(), number: Sequence(4), id: "m".into() };
        let mut lines = vec![];
        journal::encode(&Record::Acked(1), &mut lines);
        journal::encode(&Record::Attempting(attempt), &mut lines);
        let end = lines.len();
        journal::encode(&Record::Acked(2), &mut lines);
        assert_eq!(end_of(&Step::Attempting, &lines), Some(end));
        assert_eq!(end_of(&Step::Received, &lines), None);
    }

    #[test]
    fn a_watched_driver_names_its_conversation_and_shortens_its_notes() {
        let setup = agents::Setup {
            session: "s".into(),
            notes: r#"{"conversation":"c1"}"#.to_owned(),
            launcher: agents::Launcher::default(),
            workspace: "/".into(),
            model: None,
            mode: None,
            earlier: None,
            ready_by: None,
            variables: std::collections::BTreeMap::new(),
        };
        let driver = agents::driver_of("claude", setup);
        assert_eq!(driver.conversation(), Some("c1"));
        let watched = Watched { driver, file: None };
        assert_eq!(watched.conversation(), Some("c1"));
        let notes = "\"imported\"\n\"imported\"\n";
        assert_eq!(watched.shorten_notes(notes).as_deref(), Some("\"imported\"\n"));
    }

    #[test]
    fn steps_are_read_from_their_words() {
        assert_eq!(step("received"), Some(Step::Received));
        assert_eq!(step("written a b"), Some(Step::Written("a b".to_owned())));
        assert_eq!(step("never"), None);
    }
}
