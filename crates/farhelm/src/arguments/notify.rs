//! Whom to call when nobody is looking.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Where help lists them.
const HEADING: &str = "When nobody is watching (docs/notify.md)";

/// Where and when to call. Without a target nothing is called.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Notify {
    /// Publish to this ntfy topic
    #[arg(long = "notify-ntfy", help_heading = HEADING, value_name = "URL", hide_env_values = true)]
    pub(crate) ntfy: Option<String>,
    /// The access token for the topic is in this file
    #[arg(long = "notify-ntfy-token-file", help_heading = HEADING, value_name = "FILE")]
    pub(crate) ntfy_token_file: Option<PathBuf>,
    /// Post JSON here, signed with the secret
    #[arg(long = "notify-webhook", help_heading = HEADING, value_name = "URL", hide_env_values = true)]
    pub(crate) webhook: Option<String>,
    /// The secret that signs for the webhook is in this file
    #[arg(long = "notify-secret-file", help_heading = HEADING, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
    /// Run this command, with the shell
    #[arg(long = "notify-command", help_heading = HEADING, value_name = "COMMAND")]
    pub(crate) command: Option<String>,
    /// What to call for
    #[arg(long = "notify-on", help_heading = HEADING, value_name = "WHAT", value_delimiter = ',', value_enum,
          default_values = ["prompt", "run", "failure"])]
    pub(crate) on: Vec<Occasion>,
}

/// What is worth a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Occasion {
    /// A question waits
    Prompt,
    /// A run ended
    Run,
    /// A message failed
    Failure,
}
