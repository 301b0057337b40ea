//! Commands that talk to a running relay.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{DataFolder, Hosting};

/// Which relay to use, and with which credential.
#[derive(Debug, Clone, Args)]
pub(crate) struct Reach {
    /// Address of the relay [default: the relay that runs on the data folder]
    #[arg(long, value_name = "URL", env = "FARHELM_URL")]
    pub(crate) relay: Option<String>,
    /// Token to authenticate with [default: owner.token in the data folder]
    #[arg(long, value_name = "TOKEN", env = "FARHELM_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// Also trust these certificates (PEM): the relay's own, or the authority that signed it
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_ca: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) data: DataFolder,
}

/// Print a code, link and QR code that pair another device (works once, for 5 minutes)
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

/// Create, list and revoke tokens
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
    /// Full access, including deleting sessions and managing tokens
    Owner,
    /// Can send, answer, steer, launch and close
    Operator,
    /// Can only watch
    Viewer,
    /// For a proxy, not a person
    Proxy,
}

/// Create a token and print it (it is shown only once)
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  farhelm token create --role proxy --name workshop --json")]
pub(crate) struct TokenCreate {
    /// What the token allows
    #[arg(long, value_enum)]
    pub(crate) role: RoleWord,
    /// Name shown in lists [default: the role]
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

/// Revoke a token and close its connections immediately
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  farhelm token revoke tok_0123456789abcdef")]
pub(crate) struct TokenRevoke {
    /// Id of the token, from `farhelm token list`
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
    /// Include archived sessions
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Send a message to an agent and wait until it is delivered
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  farhelm send demo \"say: hello there\"\n  echo \"fix the \
                        tests\" | farhelm send demo -\n\nExit code: 0 if the message was delivered, \
                        1 if it failed.")]
pub(crate) struct Send {
    /// Session id, at least the first 4 characters of it, or the session's name
    pub(crate) session: String,
    /// Message text; `-` reads it from standard input
    pub(crate) text: String,
    /// Message id; a message with the same id is never delivered twice [default: a new id]
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// Exit as soon as the relay has stored the message
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Stop waiting after N milliseconds [default: wait until the outcome is known]
    #[arg(long, value_name = "N")]
    pub(crate) timeout_ms: Option<u64>,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Print the final state as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Follow a session live
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  farhelm tail demo\n  farhelm tail demo --after 0 --json\n  \
                        farhelm tail demo --dialect control")]
pub(crate) struct Tail {
    /// Session id, at least the first 4 characters of it, or the session's name
    pub(crate) session: String,
    /// Start after this event; 0 shows the whole history
    #[arg(long, value_name = "SEQUENCE", conflicts_with = "last")]
    pub(crate) after: Option<u64>,
    /// Start this many events before the end
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub(crate) last: u64,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Show new events as a client of this dialect sees them
    #[arg(long, value_name = "NAME", conflicts_with_all = ["after", "last"])]
    pub(crate) dialect: Option<Dialect>,
    /// Print each event as a line of JSON
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

/// Join a session in this terminal: read it, send messages, answer questions
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  farhelm attach demo")]
pub(crate) struct Attach {
    /// Session id, at least the first 4 characters of it, or the session's name
    pub(crate) session: String,
    #[command(flatten)]
    pub(crate) reach: Reach,
}

/// Start an agent in this folder and attach this terminal to it
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  farhelm run claude\n  farhelm run codex --workspace \
                        ~/src/project --model gpt-5\n  farhelm run claude -- --add-dir ../lib\n\nThe agent runs under the proxy. It keeps \
                        running when you leave this terminal, and other devices see the same session.")]
pub(crate) struct Run {
    /// Agent to start
    pub(crate) agent: String,
    /// Folder to work in [default: the current folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Model to use [default: the agent's own]
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Permission mode to use [default: the agent's own]
    #[arg(long, value_name = "NAME", visible_alias = "permission-mode")]
    pub(crate) mode: Option<String>,
    /// Machine to run on [default: any machine that has the agent]
    #[arg(long, value_name = "LABEL")]
    pub(crate) machine: Option<String>,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Arguments for the agent's own program, after `--` (owner only)
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) arguments: Vec<String>,
}

/// Serve a session on standard input and output, as Claude Code would
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  farhelm control --session demo\n\nFor programs built on the \
                        Claude Agent SDK: set pathToClaudeCodeExecutable to this binary \
                        and executableArgs to [\"control\", \"--session\", ID].")]
pub(crate) struct Control {
    /// Session id, at least the first 4 characters of it, or the session's name
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
    /// Session id, at least the first 4 characters of it, or the session's name
    pub(crate) session: String,
    /// Id of the question, as `farhelm tail` shows it
    pub(crate) prompt: String,
    /// Id of the choice, as `farhelm tail` shows it
    pub(crate) choice: String,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Stop the current run
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  farhelm interrupt demo")]
pub(crate) struct Interrupt {
    /// Session id, at least the first 4 characters of it, or the session's name
    pub(crate) session: String,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Start a session, or list the available agents
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  farhelm launch\n  farhelm launch claude --workspace \
                        ~/src/project --worktree")]
pub(crate) struct Launch {
    /// Agent to start; omit to list the available agents
    pub(crate) agent: Option<String>,
    /// Folder to work in, on that machine
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<String>,
    /// Machine to run on [default: any machine that has the agent]
    #[arg(long, value_name = "LABEL")]
    pub(crate) machine: Option<String>,
    /// Model to use [default: the agent's own]
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Permission mode to use [default: the agent's own]
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<String>,
    /// Work in a new git worktree
    #[arg(long)]
    pub(crate) worktree: bool,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Resume an earlier conversation of an agent, or list them
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  farhelm resume\n  farhelm resume --agent claude \
                        0c1f5a6e-1f6b-4b3e-9a55-1f2e3d4c5b6a")]
pub(crate) struct Resume {
    /// Conversation id; omit to list the newest conversations
    pub(crate) conversation: Option<String>,
    /// Only conversations of this agent
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Machine to look on [default: the one that was active last]
    #[arg(long, value_name = "LABEL")]
    pub(crate) machine: Option<String>,
    /// Resume a copy and leave the original conversation unchanged
    #[arg(long)]
    pub(crate) fork: bool,
    /// Maximum number to list
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Close a session (its history is kept)
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  farhelm close demo")]
pub(crate) struct Close {
    /// Session id, at least the first 4 characters of it, or the session's name
    pub(crate) session: String,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A part of the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DoctorTopic {
    /// IDE panels: what changed in those that no longer match
    Cdp,
}

/// Find problems and suggest fixes
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  farhelm doctor\n  farhelm doctor cdp")]
pub(crate) struct Doctor {
    /// Run only these checks
    #[arg(value_name = "TOPIC")]
    pub(crate) topic: Option<DoctorTopic>,
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Address to check for a relay
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:4780")]
    pub(crate) listen: std::net::SocketAddr,
    #[command(flatten)]
    pub(crate) agents: Hosting,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
