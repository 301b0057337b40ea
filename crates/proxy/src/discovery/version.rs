//! Asks a program for its version.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::time::timeout;

use crate::processes::set_environment;

/// A program that takes longer has none to tell.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// What is read of its answer.
const ANSWER_BYTES_MAX: u64 = 4_096;

/// What `--version` prints, as far as it looks like one.
pub(super) async fn ask(
    program: &Path,
    arguments: &[String],
    env: &[(String, String)],
) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments).arg("--version").kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    set_environment(&mut command, env);
    let mut child = command.spawn().ok()?;
    let output = child.stdout.take()?;
    let read = async {
        let mut bytes = vec![];
        output.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes).await.ok()?;
        Some(bytes)
    };
    let bytes = timeout(ANSWERS_WITHIN, read).await.ok().flatten();
    // Whoever does not end by itself is ended.
    let _ = child.start_kill();
    let _ = timeout(ANSWERS_WITHIN, child.wait()).await;
    version(&String::from_utf8_lossy(&bytes?))
}

/// The first word that begins with digits and a dot.
fn version(text: &str) -> Option<String> {
    let looks_like_one = |word: &&str| {
        let (major, rest) = word.split_once('.').unwrap_or((word, ""));
        !major.is_empty()
            && major.bytes().all(|byte| byte.is_ascii_digit())
            && rest.starts_with(|letter: char| letter.is_ascii_digit())
    };
    let words = text.split(|letter: char| letter.is_whitespace() || "()[],;".contains(letter));
    let words = words.map(|word| word.strip_prefix('v').unwrap_or(word));
    words.filter(|word| word.len() <= 64).find(looks_like_one).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_among_the_words_of_a_program() {
        for (text, expected) in [
            ("2.1.7 (Claude Code)\n", Some("2.1.7")),
            ("codex-cli 0.166.0", Some("0.166.0")),
            ("v0.3.1-beta", Some("0.3.1-beta")),
            ("pi (0.87.1)", Some("0.87.1")),
            ("unknown option --version. 4 tries", None),
            ("", None),
        ] {
            assert_eq!(version(text).as_deref(), expected, "{text}");
        }
    }
}
