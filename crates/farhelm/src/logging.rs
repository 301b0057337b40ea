//! The log, on standard error.
//!
//! Not here: tokens; the code that logs leaves them out.

use tracing_subscriber::EnvFilter;

use crate::output;

/// How much is told when `FARHELM_LOG` says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Talk {
    /// A command that ends: only what is wrong.
    Quiet,
    /// A relay or proxy: what happens.
    Running,
}

/// Begins.
pub(crate) fn begin(talk: Talk) {
    let otherwise = match talk {
        Talk::Quiet => "warn",
        Talk::Running => "info",
    };
    let asked = std::env::var("FARHELM_LOG").ok().filter(|filter| !filter.is_empty());
    let filter = match asked.as_deref().map(EnvFilter::try_new) {
        Some(Ok(filter)) => filter,
        Some(Err(error)) => {
            output::aside(format_args!("farhelm: FARHELM_LOG is ignored: {error}"));
            EnvFilter::new(otherwise)
        }
        None => EnvFilter::new(otherwise),
    };
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(output::aside_is_terminal());
    // A second log in one process would be a defect; the first goes on.
    let _ = log.try_init();
}
