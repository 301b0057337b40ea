//! The command line.
//!
//! **Invariant**: every flag has an environment variable and a key of the configuration file, by
//! the same rule; nothing here names them (`settings` adds them to all).
//!
//! Not here: files and the environment (`settings`), what the commands do (`commands`).

mod agents;
mod client;
mod ide;
mod notify;
mod serve;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub(crate) use agents::Hosting;
pub(crate) use client::{
    Answer, Attach, Close, Control, Dialect, Doctor, DoctorTopic, Interrupt, Launch, Pair, Reach,
    Resume, RoleWord, Run, Send, Sessions, Tail, Token, TokenTask,
};
pub(crate) use ide::{Cdp, CdpTask, Ide, Inspect};
pub(crate) use notify::{Notify, Occasion};
pub(crate) use serve::{Proxy, Relay, Serve, Up};

/// Watch and steer your coding agents from anywhere.
#[derive(Debug, Parser)]
#[command(
    name = "farhelm",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    max_term_width = 100,
    after_help = "Example:\n  farhelm up\n\n`farhelm COMMAND --help` has examples. Every \
                  flag is also an environment variable\n(--some-name: FARHELM_SOME_NAME) and a key \
                  of farhelm.toml (some-name)."
)]
pub(crate) struct Arguments {
    /// Configuration file [default: farhelm.toml in the configuration folder]
    #[arg(long, global = true, value_name = "FILE", env = "FARHELM_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Up(Up),
    Relay(Relay),
    Proxy(Proxy),
    Pair(Pair),
    Token(Token),
    Sessions(Sessions),
    Send(Send),
    Tail(Tail),
    Attach(Attach),
    Run(Run),
    Control(Control),
    Answer(Answer),
    Interrupt(Interrupt),
    Launch(Launch),
    Resume(Resume),
    Close(Close),
    Doctor(Doctor),
    Cdp(Cdp),
}

/// Where the data lives.
#[derive(Debug, Clone, Args)]
pub(crate) struct DataFolder {
    /// Data folder [default: the platform's data folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}
