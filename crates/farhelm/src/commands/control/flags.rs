//! Claude Code's own flags, as far as they mean something for a session that runs already.
//!
//! Whatever starts Claude Code may say any of its flags, also ones that do not exist yet: what is
//! unknown is passed over. What is ours may stand among them.

/// What was said.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    pub(super) session: Option<String>,
    pub(super) relay: Option<String>,
    pub(super) token: Option<String>,
    pub(super) data: Option<String>,
    /// Whether words are shown in the making.
    pub(super) partial: bool,
    model: Option<String>,
    permission_mode: Option<String>,
}

impl Flags {
    pub(super) fn read(words: &[String]) -> Self {
        let mut flags = Self::default();
        let mut words = words.iter();
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
                "--session" => &mut flags.session,
                "--relay" => &mut flags.relay,
                "--token" => &mut flags.token,
                "--data" => &mut flags.data,
                "--model" => &mut flags.model,
                "--permission-mode" => &mut flags.permission_mode,
                _ => continue,
            };
            *place = joined.or_else(|| words.next().cloned());
        }
        flags
    }

    /// The requests that the flags amount to: subtype, field, value.
    pub(super) fn settings(&self) -> Vec<(&'static str, &'static str, &str)> {
        let model = self.model.as_deref().map(|model| ("set_model", "model", model));
        // The mode that a session is in is its default.
        let mode = self.permission_mode.as_deref().filter(|mode| *mode != "default");
        let mode = mode.map(|mode| ("set_permission_mode", "mode", mode));
        model.into_iter().chain(mode).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: control/stdio.2
    #[test]
    fn the_flags_of_the_sdk_are_read_and_the_rest_is_passed_over() {
        let said = "--output-format stream-json --verbose --input-format stream-json \
            --model=demo-large --permission-prompt-tool=stdio --permission-mode plan --resume=x \
            --mcp-config {} --include-partial-messages --session abc --max-turns=3 --tomorrow";
        let words: Vec<_> = said.split_whitespace().map(str::to_owned).collect();
        let flags = Flags::read(&words);
        assert_eq!((flags.session.as_deref(), flags.partial), (Some("abc"), true));
        assert_eq!(
            flags.settings(),
            [("set_model", "model", "demo-large"), ("set_permission_mode", "mode", "plan")]
        );
        let plain = Flags::read(&["--permission-mode=default".to_owned()]);
        assert_eq!(plain.settings(), []);
    }
}
