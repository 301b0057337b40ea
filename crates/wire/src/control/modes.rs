//! Permission modes: the names of this dialect, and the names that agents use for the same modes.
//!
//! A name that the agent itself knows is used unchanged. A name of this dialect that the agent
//! does not know becomes the agent's own name for the same mode, if there is one.

/// A word of this dialect, and what other agents call the same.
const SAME: [(&str, &[&str]); 4] = [
    ("default", &["ask", "on-request", "suggest"]),
    ("acceptEdits", &["autoEdit", "auto_edit", "auto-edit", "accept-edits"]),
    (
        "bypassPermissions",
        &["yolo", "full-access", "full_access", "danger-full-access", "never/danger-full-access"],
    ),
    ("plan", &["read-only", "read_only"]),
];

/// Codex's own list. Its `auto` asks before it leaves its sandbox, which is its default; other
/// agents mean by that word that nobody is asked.
const CODEX: [&str; 3] = ["read-only", "auto", "full-access"];
/// Before a slash, Codex's word for never asking, whatever the sandbox behind it.
const NEVER: &str = "never";

/// The agent's word for a mode that a client asks for. `None`: it has none.
pub(super) fn agents_word<'a>(asked: &'a str, available: Option<&'a [String]>) -> Option<&'a str> {
    let Some(available) = available else { return Some(asked) };
    if available.iter().any(|word| word == asked) {
        return Some(asked);
    }
    let (_, same) = SAME.iter().find(|(word, _)| *word == asked)?;
    let known = available.iter().map(String::as_str).find(|word| same.contains(word));
    let is_codex = || CODEX.iter().all(|word| available.iter().any(|it| it == word));
    known.or_else(|| (asked == "default" && is_codex()).then_some("auto"))
}

/// This dialect's word for the mode that an agent is in.
pub(super) fn clients_word(mode: &str) -> &str {
    if mode.split('/').next() == Some(NEVER) {
        return "bypassPermissions";
    }
    let known = SAME.iter().find(|(_, same)| same.contains(&mode));
    known.map_or(mode, |(word, _)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: control/requests.7
    #[test]
    fn a_mode_is_asked_for_in_the_agents_own_word() {
        let demo = ["ask".to_owned(), "yolo".to_owned()];
        assert_eq!(agents_word("bypassPermissions", Some(&demo)), Some("yolo"));
        assert_eq!(agents_word("yolo", Some(&demo)), Some("yolo"));
        assert_eq!(agents_word("default", Some(&demo)), Some("ask"));
        assert_eq!(agents_word("plan", Some(&demo)), None);
        assert_eq!(agents_word("plan", None), Some("plan"), "nobody knows; the agent will say");
        assert_eq!(clients_word("yolo"), "bypassPermissions");
        assert_eq!(clients_word("acceptEdits"), "acceptEdits");
    }

    // spec: control/requests.13
    #[test]
    fn codexs_default_is_the_mode_in_which_it_asks() {
        let codex = ["read-only", "auto", "full-access"].map(str::to_owned);
        assert_eq!(agents_word("default", Some(&codex)), Some("auto"));
        assert_eq!(agents_word("bypassPermissions", Some(&codex)), Some("full-access"));
        assert_eq!(agents_word("plan", Some(&codex)), Some("read-only"));
        assert_eq!(agents_word("acceptEdits", Some(&codex)), None);
        assert_eq!(clients_word("auto"), "auto", "the word of other agents for something else");
        let other = ["auto".to_owned(), "manual".to_owned()];
        assert_eq!(agents_word("default", Some(&other)), None, "it may mean that nobody is asked");
    }

    // spec: control/requests.13
    #[test]
    fn whoever_never_asks_is_recognised_whatever_its_sandbox() {
        for mode in ["never", "never/workspace-write", "never/read-only", "full-access", "yolo"] {
            assert_eq!(clients_word(mode), "bypassPermissions", "{mode}");
        }
        for mode in ["on-request/workspace-write", "untrusted/read-only", "neverland"] {
            assert_eq!(clients_word(mode), mode);
        }
    }
}
