//! How a panel is recognised across reloads of its window and restarts of the IDE and the proxy.
//!
//! Invariant: no guessing. If two sessions match, neither is used.
//!
//! Not here: keeping this knowledge on disk, and asking the browser (`proxy`).

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Profile, pattern};

/// Bytes of a workspace's name.
const NAME_BYTES_MAX: usize = 200;
/// The last words of a person that a transcript is known by.
pub const PRINTS_MAX: usize = 8;
/// So many of them must agree before a transcript is taken for another.
const PRINTS_MIN: usize = 2;

/// What is seen of a panel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Traits {
    /// The profile that it matches.
    pub profile: String,
    /// The extension whose panel it is, where its address says so.
    pub extension: Option<String>,
    /// The folder or workspace of its window, without the file that is open.
    pub workspace: Option<String>,
    /// The conversation's own id, where it is readable.
    pub conversation: Option<String>,
    /// Which one it is among those that are otherwise alike, from 0.
    pub ordinal: usize,
}

/// A panel that was seen before, or is seen now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mark {
    /// The browser's name of it; lasts as long as its window.
    pub target: String,
    /// What it is like.
    pub traits: Traits,
    /// Fingerprints of the last words of a person in it, oldest first.
    pub prints: Vec<String>,
}

/// Which of the known panels one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// This one, by its place in the list.
    Known(usize),
    /// None of them.
    New,
}

impl Traits {
    /// What a panel is like.
    pub fn new(profile: &Profile, url: &str, window_title: &str, folder: Option<&str>) -> Self {
        let folder = folder.map(str::to_owned).filter(|folder| !folder.is_empty());
        Self {
            profile: profile.id.clone(),
            extension: extension(url),
            workspace: folder.or_else(|| workspace(profile, window_title)),
            conversation: None,
            ordinal: 0,
        }
    }

    /// Recognises the panel after a restart; says nothing about what it was made of.
    pub fn signature(&self) -> String {
        let mut hash = Sha256::new();
        let ordinal = self.ordinal.to_string();
        // A conversation's own id needs no help.
        let last = self.conversation.as_deref().unwrap_or(&ordinal);
        let kind = if self.conversation.is_some() { "conversation" } else { "ordinal" };
        let workspace = self.workspace.as_deref().unwrap_or("");
        let pieces =
            [&self.profile, self.extension.as_deref().unwrap_or(""), workspace, kind, last];
        for piece in pieces {
            hash.update(u64::try_from(piece.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(piece.as_bytes());
        }
        let hex = hash
            .finalize()
            .iter()
            .take(12)
            .fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
        format!("panel-{hex}")
    }

    /// Whether both are of the same kind and window, whatever their conversations.
    fn is_beside(&self, other: &Self) -> bool {
        self.profile == other.profile
            && self.extension == other.extension
            && self.workspace == other.workspace
    }

    /// Whether the conversations are readable and not the same: then nothing else counts.
    fn contradicts(&self, other: &Self) -> bool {
        match (&self.conversation, &other.conversation) {
            (Some(one), Some(another)) => one != another,
            (Some(_), None) | (None, Some(_) | None) => false,
        }
    }
}

/// Which of the known panels the one that is seen is: by the browser's own name for as long as it
/// lasts, by what it is like, by what was said in it. `is_taken` says which are on show already.
pub fn recognise(seen: &Mark, known: &[Mark], is_taken: impl Fn(usize) -> bool) -> Match {
    let free = || {
        let all = known.iter().enumerate().filter(|(at, _)| !is_taken(*at));
        all.filter(|(_, mark)| {
            mark.traits.profile == seen.traits.profile && !mark.traits.contradicts(&seen.traits)
        })
    };
    let same_target = free().filter(|(_, mark)| {
        !seen.target.is_empty()
            && mark.target == seen.target
            && mark.traits.extension == seen.traits.extension
    });
    if let Some(found) = only(same_target) {
        return found;
    }
    let signature = seen.traits.signature();
    let alike = free().filter(|(_, mark)| {
        mark.traits.signature() == signature && !speak_of_others(&mark.prints, &seen.prints)
    });
    if let Some(found) = only(alike) {
        return found;
    }
    let same_words = free().filter(|(_, mark)| {
        mark.traits.is_beside(&seen.traits) && is_same_talk(&mark.prints, &seen.prints)
    });
    only(same_words).unwrap_or(Match::New)
}

/// The one that there is; `None` where the next step has to tell.
fn only<'a>(mut found: impl Iterator<Item = (usize, &'a Mark)>) -> Option<Match> {
    let (at, _) = found.next()?;
    if found.next().is_some() {
        return None;
    }
    Some(Match::Known(at))
}

/// Whether two transcripts are the same one, perhaps further on.
fn is_same_talk(one: &[String], another: &[String]) -> bool {
    let common = one.iter().filter(|print| another.contains(print)).count();
    common >= PRINTS_MIN && common >= one.len().min(another.len())
}

/// Whether both say something, and nothing of it in common.
fn speak_of_others(one: &[String], another: &[String]) -> bool {
    !one.is_empty() && !another.is_empty() && one.iter().all(|print| !another.contains(print))
}

/// The extension whose panel it is, as a webview's address says.
fn extension(url: &str) -> Option<String> {
    let (_, query) = url.split_once('?')?;
    let query = query.split('#').next().unwrap_or(query);
    let value = query.split('&').find_map(|pair| pair.strip_prefix("extensionId="))?;
    (!value.is_empty()).then(|| value.to_ascii_lowercase())
}

/// The workspace's name, out of the window's title.
pub fn workspace(profile: &Profile, window_title: &str) -> Option<String> {
    let wanted = profile.identity.workspace_title.as_deref().and_then(pattern)?;
    let found = wanted.captures(window_title.trim())?.get(1)?.as_str().trim();
    (!found.is_empty() && found.len() <= NAME_BYTES_MAX).then(|| found.to_owned())
}

/// A fingerprint of somebody's words, however they are spaced.
pub fn print_of(words: &str) -> String {
    let squeezed: String = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let digest = Sha256::digest(squeezed.as_bytes());
    digest.iter().take(8).fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panel::profile::built_in;

    fn traits(workspace: &str, ordinal: usize) -> Traits {
        Traits {
            profile: "claude-vscode".to_owned(),
            extension: Some("anthropic.claude-code".to_owned()),
            workspace: Some(workspace.to_owned()),
            conversation: None,
            ordinal,
        }
    }

    fn mark(target: &str, traits: Traits, prints: &[&str]) -> Mark {
        let prints = prints.iter().map(|print| (*print).to_owned()).collect();
        Mark { target: target.to_owned(), traits, prints }
    }

    fn profile(id: &str) -> Profile {
        built_in().into_iter().find(|profile| profile.id == id).unwrap()
    }

    #[test]
    fn the_open_file_is_no_part_of_a_signature() {
        let profile = profile("vscode-chat");
        let of = |title| Traits::new(&profile, "http://127.0.0.1/", title, None).signature();
        let one = of("main.rs - farhelm - Visual Studio Code");
        assert_eq!(one, of("other.rs - farhelm - Visual Studio Code"));
        assert_eq!(one, of("farhelm - Visual Studio Code"));
        assert_ne!(one, of("main.rs - elsewhere - Visual Studio Code"));
    }

    #[test]
    fn an_extension_is_read_from_a_webviews_address() {
        let url = "vscode-webview://x/index.html?id=1&extensionId=Anthropic.claude-code&platform=a";
        assert_eq!(extension(url).as_deref(), Some("anthropic.claude-code"));
        assert_eq!(extension("http://x/"), None);
    }

    #[test]
    fn a_window_that_was_only_reloaded_is_known_by_its_target() {
        let known = [mark("t1", traits("a", 0), &[])];
        let seen = mark("t1", traits("b", 3), &[]);
        assert_eq!(recognise(&seen, &known, |_| false), Match::Known(0));
        assert_eq!(recognise(&seen, &known, |_| true), Match::New, "it is on show already");
    }

    #[test]
    fn after_a_restart_of_the_ide_it_is_known_by_its_signature() {
        let known = [mark("t1", traits("a", 0), &["x"]), mark("t2", traits("b", 0), &["y"])];
        let seen = mark("t9", traits("b", 0), &["y"]);
        assert_eq!(recognise(&seen, &known, |_| false), Match::Known(1));
    }

    #[test]
    fn the_same_place_with_other_words_is_a_new_session() {
        let known = [mark("t1", traits("a", 0), &["x", "y"])];
        let seen = mark("t9", traits("a", 0), &["p", "q"]);
        assert_eq!(recognise(&seen, &known, |_| false), Match::New);
    }

    #[test]
    fn windows_that_changed_places_are_known_by_their_words() {
        let known =
            [mark("t1", traits("a", 0), &["x", "y"]), mark("t2", traits("a", 1), &["p", "q"])];
        let seen = mark("t9", traits("a", 0), &["p", "q", "r"]);
        assert_eq!(recognise(&seen, &known, |_| false), Match::Known(1));
    }

    #[test]
    fn two_candidates_make_a_new_session_not_a_guess() {
        let known =
            [mark("t1", traits("a", 1), &["x", "y"]), mark("t2", traits("a", 2), &["x", "y"])];
        let seen = mark("t9", traits("a", 0), &["x", "y"]);
        assert_eq!(recognise(&seen, &known, |_| false), Match::New);
    }

    #[test]
    fn another_conversation_is_another_session_even_in_the_same_target() {
        let with = |id: &str| Traits { conversation: Some(id.to_owned()), ..traits("a", 0) };
        let known = [mark("t1", with("c1"), &["x", "y"])];
        assert_eq!(recognise(&mark("t1", with("c2"), &["x", "y"]), &known, |_| false), Match::New);
        let elsewhere = Traits { ordinal: 4, ..with("c1") };
        assert_eq!(recognise(&mark("t7", elsewhere, &[]), &known, |_| false), Match::Known(0));
    }

    #[test]
    fn spaces_make_no_other_words() {
        assert_eq!(print_of("a  b\n"), print_of("a b"));
        assert_ne!(print_of("a b"), print_of("ab"));
    }
}
