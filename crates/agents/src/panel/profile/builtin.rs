//! The profiles that come with the program.

use super::Profile;

/// The profiles by their ids, as they are written.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("claude-vscode", include_str!("../profiles/claude-vscode.toml")),
    ("codex-vscode", include_str!("../profiles/codex-vscode.toml")),
    ("gemini-code-assist", include_str!("../profiles/gemini-code-assist.toml")),
    ("continue-vscode", include_str!("../profiles/continue-vscode.toml")),
    ("antigravity", include_str!("../profiles/antigravity.toml")),
    ("cursor", include_str!("../profiles/cursor.toml")),
    ("vscode-chat", include_str!("../profiles/vscode-chat.toml")),
    ("opencode-web", include_str!("../profiles/opencode-web.toml")),
];

/// The profiles, read.
pub fn built_in() -> Vec<Profile> {
    BUILT_IN.iter().filter_map(|(_, text)| Profile::read(text).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_profile_is_whole_and_has_the_id_it_is_kept_under() {
        for (id, text) in BUILT_IN {
            let profile = Profile::read(text).unwrap_or_else(|faults| panic!("{id}: {faults:?}"));
            assert_eq!(profile.id, *id);
        }
        assert_eq!(built_in().len(), BUILT_IN.len());
    }
}
