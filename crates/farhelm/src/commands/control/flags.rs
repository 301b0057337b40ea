//! The flags of Claude Code that have a meaning for a session that already runs.
//!
//! A program may pass any flag of Claude Code, including ones that do not exist yet: unknown flags
//! are ignored. Farhelm's own flags may stand among them.

/// The mode that runs every tool without asking, and Claude Code's flag for it.
pub(super) const BYPASS: &str = "bypassPermissions";
const BYPASS_FLAG: &str = "--dangerously-skip-permissions";

/// The flags that were given.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    pub(super) session: Option<String>,
    /// The session by Claude Code's own flag for it.
    pub(super) resume: Option<String>,
    /// Whether a copy of the session was asked for.
    pub(super) fork: bool,
    pub(super) relay: Option<String>,
    pub(super) token: Option<String>,
    pub(super) data: Option<String>,
    /// Whether text is shown while it is written.
    pub(super) partial: bool,
    /// Whether the program's own messages come back to it.
    pub(super) replay: bool,
    pub(super) model: Option<String>,
    /// Empty where the flag has no value: that is no mode, and is refused as one.
    pub(super) permission_mode: Option<String>,
}

impl Flags {
    pub(super) fn read(words: &[String]) -> Self {
        let mut flags = Self::default();
        let mut bypasses = false;
        let mut words = words.iter().peekable();
        while let Some(word) = words.next() {
            let (name, joined) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (word.as_str(), None),
            };
            let place = match name {
                "--include-partial-messages" => {
                    flags.partial = true;
                    continue;
                }
                "--replay-user-messages" => {
                    flags.replay = true;
                    continue;
                }
                "--fork-session" => {
                    flags.fork = true;
                    continue;
                }
                BYPASS_FLAG => {
                    bypasses = true;
                    continue;
                }
                "--session" => &mut flags.session,
                "--resume" | "-r" => &mut flags.resume,
                "--relay" => &mut flags.relay,
                "--token" => &mut flags.token,
                "--data" => &mut flags.data,
                "--model" => &mut flags.model,
                "--permission-mode" => &mut flags.permission_mode,
                _ => continue,
            };
            // A flag is no value of the flag before it.
            let value = joined.or_else(|| words.next_if(|it| !it.starts_with("--")).cloned());
            *place = value.or_else(|| (name == "--permission-mode").then(String::new));
        }
        if bypasses && flags.permission_mode.is_none() {
            flags.permission_mode = Some(BYPASS.to_owned());
        }
        flags
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Flags {
        let words: Vec<_> = words.split_whitespace().map(str::to_owned).collect();
        Flags::read(&words)
    }

    // spec: control/stdio.2
    #[test]
    fn the_flags_of_the_sdk_are_read_and_the_rest_is_passed_over() {
        let flags = read(
            "--output-format stream-json --verbose --input-format stream-json --model=demo-large \
             --permission-prompt-tool=stdio --permission-mode plan --resume=x --mcp-config {} \
             --include-partial-messages --session abc --max-turns=3 --tomorrow \
             --replay-user-messages",
        );
        assert_eq!((flags.session.as_deref(), flags.partial), (Some("abc"), true));
        assert_eq!((flags.resume.as_deref(), flags.replay), (Some("x"), true));
        assert_eq!(flags.model.as_deref(), Some("demo-large"));
        assert_eq!(flags.permission_mode.as_deref(), Some("plan"));
        assert!(!flags.fork);
        assert!(read("--resume --fork-session").fork);
    }

    // spec: control/stdio.4
    #[test]
    fn every_permission_mode_is_heeded_and_one_without_a_value_is_none_that_can_be_set() {
        let mode = |words| read(words).permission_mode;
        assert_eq!(mode("--permission-mode=default").as_deref(), Some("default"));
        assert_eq!(mode("--permission-mode").as_deref(), Some(""));
        assert_eq!(mode("--permission-mode --session x").as_deref(), Some(""));
        assert_eq!(mode("--session x"), None);
        assert_eq!(mode("--allow-dangerously-skip-permissions"), None, "it only permits it");
        assert_eq!(mode(BYPASS_FLAG).as_deref(), Some(BYPASS));
        // Of two, the one that names a mode counts.
        assert_eq!(
            mode("--permission-mode plan --dangerously-skip-permissions").as_deref(),
            Some("plan")
        );
    }
}
