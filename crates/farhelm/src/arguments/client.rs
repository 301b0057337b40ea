//! The commands that talk to a relay and end.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{DataFolder, Hosting};

/// Which relay, and who asks.
#[derive(Debug, Clone, Args)]
pub(crate) struct Reach {
    /// The relay's address [default: the one that runs on the data folder]
    #[arg(long, value_name = "URL", env = "FARHELM_URL")]
    pub(crate) relay: Option<String>,
    /// The token to show [default: owner.token in the data folder]
    #[arg(long, value_name = "TOKEN", env = "FARHELM_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// Trust these certificates too (PEM): the relay's own, or of whoever signed it
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_ca: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) data: DataFolder,
}

/// A code, link and QR for another device: one use, 5 minutes
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  farhelm pair")]
pub(crate) struct Pair {
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// What the device may do
    #[arg(long, value_enum, default_value_t = RoleWord::Operator)]
    pub(crate) role: RoleWord,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Make, list and revoke tokens
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  farhelm token create --role viewer --name wall-display\n  \
                        farhelm token list",
    subcommand_required = true,
    disable_help_subcommand = true
)]
pub(crate) struct Token {
    #[command(subcommand)]
    pub(crate) task: TokenTask,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenTask {
    Create(TokenCreate),
    List(TokenList),
    Revoke(TokenRevoke),
}

/// What a token allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RoleWord {
    /// Everything, also deleting and managing tokens
    Owner,
    /// Sends, answers, steers, launches, closes
    Operator,
    /// Watches only
    Viewer,
    /// For a proxy, not a person
    Proxy,
}

/// Make a token; it is shown this once
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  farhelm token create --role proxy --name workshop --json")]
pub(crate) struct TokenCreate {
    /// What it allows
    #[arg(long, value_enum)]
    pub(crate) role: RoleWord,
    /// What people call it [default: the role]
    #[arg(long)]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the valid tokens
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  farhelm token list")]
pub(crate) struct TokenList {
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Revoke a token; what it opened closes at once
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  farhelm token revoke tok_0123456789abcdef")]
pub(crate) struct TokenRevoke {
    /// Its id, from the list
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the sessions
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  farhelm sessions")]
pub(crate) struct Sessions {
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Also those that are put away
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Send a message to an agent and wait until it has it
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  farhelm send demo \"say: hello there\"\n  echo \"fix the \
                        tests\" | farhelm send demo -\n\nEnds with 0 when the message was delivered, \
                        with 1 when it failed.")]
pub(crate) struct Send {
    /// The session: its id, at least 4 characters of its beginning, or its name
    pub(crate) session: String,
    /// The message; `-` reads it from standard input
    pub(crate) text: String,
    /// Its id: sending again with the same id never delivers twice [default: a new one]
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// End as soon as the relay has it on disk
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Give up waiting after this long [default: never]
    #[arg(long, value_name = "N")]
    pub(crate) timeout_ms: Option<u64>,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Print the last state as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Follow a session live
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  farhelm tail demo\n  farhelm tail demo --after 0 --json\n  \
                        farhelm tail demo --dialect control")]
pub(crate) struct Tail {
    /// The session: its id, at least 4 characters of its beginning, or its name
    pub(crate) session: String,
    /// Begin after this event; 0 is the very beginning
    #[arg(long, value_name = "SEQUENCE", conflicts_with = "last")]
    pub(crate) after: Option<u64>,
    /// Begin this many events before the end
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub(crate) last: u64,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// As a client of another dialect sees it, from now on
    #[arg(long, value_name = "NAME", conflicts_with_all = ["after", "last"])]
    pub(crate) dialect: Option<Dialect>,
    /// Print every event as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The other dialects
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Dialect {
    /// Agent Blob
    Blob,
    /// Claude Code's remote control
    Control,
    /// pi's web frontend
    Pi,
    /// A webchannel page
    Webchannel,
}

/// Join a session in this terminal: read it, type, answer its questions
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  farhelm attach demo")]
pub(crate) struct Attach {
    /// The session: its id, at least 4 characters of its beginning, or its name
    pub(crate) session: String,
    #[command(flatten)]
    pub(crate) reach: Reach,
}

/// Start an agent in this folder, in this terminal and on every other client
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  farhelm run claude\n  farhelm run codex --workspace \
                        ~/src/project --model gpt-5\n  farhelm run claude -- --add-dir ../lib\n\nThe agent runs under the proxy: leaving \
                        this terminal does not end it, and a phone sees the same session.")]
pub(crate) struct Run {
    /// Which agent
    pub(crate) agent: String,
    /// In which folder [default: this one]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// With which model
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// In which permission mode
    #[arg(long, value_name = "NAME", visible_alias = "permission-mode")]
    pub(crate) mode: Option<String>,
    /// On which machine [default: any that has the agent]
    #[arg(long, value_name = "LABEL")]
    pub(crate) machine: Option<String>,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// For the agent's own program, after --; needs the owner's credential
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) arguments: Vec<String>,
}

/// A session on standard input and output, as Claude Code would be
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  farhelm control --session demo\n\nFor programs that are built on \
                        the Claude Agent SDK: pathToClaudeCodeExecutable is this binary, \
                        executableArgs is [\"control\", \"--session\", ID]."
)]
pub(crate) struct Control {
    /// The session: its id, at least 4 characters of its beginning, or its name
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Claude Code's own flags
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FLAGS")]
    pub(crate) claude: Vec<String>,
}

/// Answer a permission question
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  farhelm answer demo prompt_1 yes")]
pub(crate) struct Answer {
    /// The session: its id, at least 4 characters of its beginning, or its name
    pub(crate) session: String,
    /// The question, as `farhelm tail` shows it
    pub(crate) prompt: String,
    /// The choice, as `farhelm tail` shows it
    pub(crate) choice: String,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Stop what the agent is doing
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  farhelm interrupt demo")]
pub(crate) struct Interrupt {
    /// The session: its id, at least 4 characters of its beginning, or its name
    pub(crate) session: String,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Start a session, or list what can be started
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  farhelm launch\n  farhelm launch claude --workspace \
                        ~/src/project --worktree")]
pub(crate) struct Launch {
    /// Which agent; without one, those that there are are listed
    pub(crate) agent: Option<String>,
    /// In which folder of its machine
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<String>,
    /// On which machine
    #[arg(long, value_name = "LABEL")]
    pub(crate) machine: Option<String>,
    /// With which model
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// In which permission mode
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<String>,
    /// In a git working tree of its own
    #[arg(long)]
    pub(crate) worktree: bool,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Go on with a conversation that an agent keeps, or list them
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  farhelm resume\n  farhelm resume --agent claude \
                        0c1f5a6e-1f6b-4b3e-9a55-1f2e3d4c5b6a")]
pub(crate) struct Resume {
    /// The conversation as the list names it; without one, the newest are listed
    pub(crate) conversation: Option<String>,
    /// Of which agent
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// On which machine [default: the one that was active last]
    #[arg(long, value_name = "LABEL")]
    pub(crate) machine: Option<String>,
    /// Go on in a copy, and leave the conversation as it is
    #[arg(long)]
    pub(crate) fork: bool,
    /// List at most so many
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Close a session; its history stays
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  farhelm close demo")]
pub(crate) struct Close {
    /// The session: its id, at least 4 characters of its beginning, or its name
    pub(crate) session: String,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What the doctor may look at alone
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DoctorTopic {
    /// Panels of IDEs: what moved in those that changed
    Cdp,
}

/// What is wrong, and what to do about it
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  farhelm doctor\n  farhelm doctor cdp")]
pub(crate) struct Doctor {
    /// Look at this alone
    #[arg(value_name = "TOPIC")]
    pub(crate) topic: Option<DoctorTopic>,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Where a relay would listen
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:4780")]
    pub(crate) listen: std::net::SocketAddr,
    #[command(flatten)]
    pub(crate) agents: Hosting,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
