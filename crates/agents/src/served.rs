//! What an agent may ask the program that runs it to do on its machine: read and write files of its
//! workspace, and run commands in terminals.
//!
//! Invariant: no job leaves the folder in which the agent's program was started; the code that does
//! the job ensures it.
//!
//! Not here: doing it (`proxy`), the requests themselves (the drivers).

use std::path::PathBuf;

use domain::content::Failure;
use domain::{AttachmentId, MessageId, RunId, Timestamp, ToolCallId};

/// Whether files and terminals are served on this system at all.
pub const IS_SERVED: bool = cfg!(unix);

/// A file to be read or written. Answered by [`crate::Input::Filed`], in the order in which the
/// jobs of one program were given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileJob {
    /// Names the job; never used twice by one driver.
    pub number: u64,
    /// Which file, as the agent wrote it.
    pub path: PathBuf,
    /// What to do with it.
    pub deed: FileDeed,
}

/// What to do with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileDeed {
    /// Its text, or some lines of it.
    Read {
        /// The first line, from 1.
        line: Option<u64>,
        /// How many lines.
        limit: Option<u64>,
    },
    /// This is its text from now on. Folders on the way to it are made.
    Write(String),
}

/// Why a file job was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFault {
    /// What sort of reason.
    pub kind: FileFaultKind,
    /// In words for the agent.
    pub words: String,
}

/// What sort of reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFaultKind {
    /// There is no such file.
    Missing,
    /// It is not done for anybody: the path leaves the folder, or it is too much.
    Refused,
    /// It was tried.
    Failed,
}

/// Names a terminal within its session; never used twice by one driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TerminalId(pub u64);

impl std::fmt::Display for TerminalId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "terminal-{}", self.0)
    }
}

/// Something to do with a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalJob {
    /// Run a command. It ends with the program that wanted it, at the latest.
    Open(TerminalId, Box<TerminalCommand>),
    /// End the command and all that it started. [`TerminalNews::Ended`] follows.
    Kill(TerminalId),
}

/// A command for a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalCommand {
    /// A path, a name to be looked up as a shell would, or (without arguments) a line for a shell.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Set besides the person's own environment.
    pub env: Vec<(String, String)>,
    /// Where it works, as the agent wrote it; else where the agent does.
    pub folder: Option<PathBuf>,
}

/// What happened to a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalNews {
    /// The command runs.
    Opened,
    /// It does not, and nothing more is heard of it.
    NotOpened(Failure),
    /// It printed this since the last time.
    Printed(String),
    /// It is over, and everything that it printed was told.
    Ended(Exit),
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// A picture that an agent made, to be kept where every client can get it. Answered by
/// [`crate::Input::Kept`].
#[derive(Clone, PartialEq, Eq)]
pub struct Picture {
    /// The message that will show it; names the picture too.
    pub message: MessageId,
    /// What it is called.
    pub name: String,
    /// `image/png`, …
    pub media_type: String,
    /// Its bytes.
    pub base64: String,
    /// What else its message says. `None` where the driver puts it into a message of an earlier
    /// conversation, which is told anew after a crash.
    pub place: Option<Place>,
}

/// Where a picture of its own message belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The run that made it.
    pub run: Option<RunId>,
    /// The subagent's tool call that it belongs to.
    pub parent: Option<ToolCallId>,
    /// When it was seen.
    pub seen_at: Timestamp,
}

/// Without the picture: it is long.
impl std::fmt::Debug for Picture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (message, name, length) = (&self.message, &self.name, self.base64.len());
        write!(f, "Picture({message:?}, {name}, {}, {length} characters)", self.media_type)
    }
}

/// What became of a picture.
pub type Kept = Result<AttachmentId, Failure>;
