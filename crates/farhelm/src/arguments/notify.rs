//! Notifications when nobody is watching.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Heading in `--help`.
const HEADING: &str = "Notifications, when nobody is watching (docs/notify.md)";

/// Where and when to notify. Off without a target.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Notify {
    /// Publish to this ntfy topic
    #[arg(long = "notify-ntfy", help_heading = HEADING, value_name = "URL", hide_env_values = true)]
    pub(crate) ntfy: Option<String>,
    /// File with the access token for the topic
    #[arg(long = "notify-ntfy-token-file", help_heading = HEADING, value_name = "FILE")]
    pub(crate) ntfy_token_file: Option<PathBuf>,
    /// Post JSON to this URL, signed with the secret
    #[arg(long = "notify-webhook", help_heading = HEADING, value_name = "URL", hide_env_values = true)]
    pub(crate) webhook: Option<String>,
    /// File with the webhook signing secret (at least 16 characters)
    #[arg(long = "notify-secret-file", help_heading = HEADING, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
    /// Run this shell command
    #[arg(long = "notify-command", help_heading = HEADING, value_name = "COMMAND")]
    pub(crate) command: Option<String>,
    /// When to notify
    #[arg(long = "notify-on", help_heading = HEADING, value_name = "WHAT", value_delimiter = ',', value_enum,
          default_values = ["prompt", "run", "failure"])]
    pub(crate) on: Vec<Occasion>,
}

/// A reason to notify.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Occasion {
    /// An agent asks a question
    Prompt,
    /// A run ended
    Run,
    /// A message failed
    Failure,
}
