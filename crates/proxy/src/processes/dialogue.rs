//! A short dialogue with an agent that lists its own conversations: the program is started for it
//! alone, and ended with it.
//!
//! Not here: the messages (`agents::acp`).

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use agents::acp::{Listed, Listing};
use agents::{Launcher, Summary};
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::find::{find_with, set_environment};
use super::lines::{Lines, Next};
use super::tree;

/// The whole of it; an agent that takes longer is not listed.
const WITHIN: Duration = Duration::from_secs(12);

/// The conversations that an agent tells; none where it does not, or takes too long.
pub(crate) async fn conversations(launcher: &Launcher, folder: &Path) -> Vec<Summary> {
    let (listing, program, first) = Listing::begin(launcher, folder, None);
    let Some(file) = find_with(&program.command, &program.env) else { return vec![] };
    let mut start = Command::new(file);
    start.args(&program.args).current_dir(&program.folder).kill_on_drop(true);
    start.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    set_environment(&mut start, &program.env);
    #[cfg(unix)]
    start.process_group(0);
    let Ok(mut child) = start.spawn() else { return vec![] };
    let process = child.id();
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return vec![];
    };
    let told = timeout(WITHIN, converse(listing, &first, input, output)).await;
    tree::end_group_of(process);
    let _ = child.wait().await;
    told.ok().flatten().unwrap_or_default()
}

async fn converse(
    mut listing: Listing,
    first: &str,
    mut input: ChildStdin,
    output: ChildStdout,
) -> Option<Vec<Summary>> {
    let mut lines = Lines::new(output);
    let mut to_write = vec![first.to_owned()];
    loop {
        for line in to_write.drain(..) {
            input.write_all(format!("{line}\n").as_bytes()).await.ok()?;
        }
        input.flush().await.ok()?;
        match lines.next().await {
            Next::Line(line) => match listing.hear(&line) {
                Listed::Write(more) => to_write = more,
                Listed::Done(told) => return Some(told),
                Listed::Impossible(why) => {
                    tracing::debug!(why, "could not list the conversations of an agent");
                    return None;
                }
            },
            Next::TooLong(_) => {}
            Next::End => return None,
        }
    }
}
