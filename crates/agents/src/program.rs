//! Programs: what to start, and what a session knows at its start.

use std::collections::BTreeMap;
use std::path::PathBuf;

use domain::{ModelId, SessionId, Timestamp};

/// A program to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// A path, or a name to be looked up as a shell would.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Set besides the person's own environment.
    pub env: Vec<(String, String)>,
    /// Where it works.
    pub folder: PathBuf,
    /// Files that it needs, by name and content: written before it starts, where only the proxy
    /// writes. [`Program::argument_of`] stands for the path of one among the arguments
    /// and the variables.
    pub files: Vec<(String, String)>,
}

impl Program {
    /// What stands for the path of one of its own files.
    pub fn argument_of(file: &str) -> String {
        format!("{{file:{file}}}")
    }
}

/// What a variable is set to: where it is set twice, the last one counts, as it does for the
/// program that is started with them.
pub fn variable<'a>(env: &'a [(String, String)], name: &str) -> Option<&'a str> {
    env.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// How an agent is started on this machine, before a driver adds its own arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launcher {
    /// A path, or a name to be looked up as a shell would.
    pub command: String,
    /// Come before the driver's own.
    pub args: Vec<String>,
    /// Set besides the person's own environment.
    pub env: Vec<(String, String)>,
}

impl Launcher {
    /// The program with a driver's arguments, in a folder.
    pub fn program(&self, args: &[&str], folder: PathBuf) -> Program {
        let own = args.iter().map(|argument| (*argument).to_owned());
        Program {
            command: self.command.clone(),
            args: self.args.iter().cloned().chain(own).collect(),
            env: self.env.clone(),
            folder,
            files: vec![],
        }
    }
}

/// An earlier conversation of the agent's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Earlier {
    /// As the agent names it.
    pub id: String,
    /// Its file, where the agent keeps one that is known.
    pub file: Option<PathBuf>,
    /// Whether to go on in a copy.
    pub fork: bool,
}

/// How long a program may take to be ready where no launch waits for it.
const START_MS_MAX: u64 = 25_000;

/// What a session's driver knows at its start.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Which session.
    pub session: SessionId,
    /// What its driver remembered, a line each; empty for a new one.
    pub notes: String,
    /// How the agent is started.
    pub launcher: Launcher,
    /// Where it works.
    pub workspace: PathBuf,
    /// The model it was asked to use.
    pub model: Option<ModelId>,
    /// The permission mode it was asked to use.
    pub mode: Option<String>,
    /// The conversation to go on with.
    pub earlier: Option<Earlier>,
    /// When its launch has to be over, while it is being launched.
    pub ready_by: Option<Timestamp>,
    /// The person's variables that say where agents keep their files: `HOME`, `CODEX_HOME`, …
    pub variables: BTreeMap<String, String>,
}

impl Setup {
    /// When a program that is started now is given up.
    pub fn start_until(&mut self, now: Timestamp) -> Timestamp {
        self.ready_by.take().unwrap_or_else(|| now.plus_ms(START_MS_MAX))
    }

    /// A folder named by a variable, or else this one below the person's home.
    pub fn folder(&self, variable: &str, below_home: &str) -> PathBuf {
        match self.variables.get(variable).filter(|value| !value.is_empty()) {
            Some(value) => value.into(),
            None => PathBuf::from(self.variables.get("HOME").map_or("/", String::as_str))
                .join(below_home),
        }
    }
}
