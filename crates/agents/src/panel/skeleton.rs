//! The structure of a panel without its text, and where a landmark may have moved.
//!
//! When a panel no longer matches its profile, the observer reports its skeleton: tags, roles,
//! labels of controls, `data-` attributes, classes. From it, proposals are made for a person to
//! check; nothing here is ever applied automatically.
//!
//! Not here: where skeletons are kept, and showing proposals (`proxy`).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Profile;
use super::frames::Landmarks;

/// Proposals for one landmark.
const PROPOSALS_MAX: usize = 3;
/// What is less likely than this is not proposed.
const LIKELIHOOD_MIN: u32 = 40;
/// A name that so many elements have says little.
const ALIKE_MAX: usize = 3;

/// An element without its words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Node {
    /// `button`, `div`, …
    pub tag: String,
    /// Its role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// How its text can be edited, if it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub editable: Option<String>,
    /// The label of a control; digits are all zeros.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its classes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
    /// Its `data-` attributes; values that are not a plain word are left out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub data: BTreeMap<String, String>,
    /// Whether it is out of sight.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_hidden: bool,
    /// What is in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Node>,
}

/// Where a landmark may be now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// Which landmark of the profile: `composer`, `send`, …
    pub landmark: &'static str,
    /// A selector that finds it.
    pub selector: String,
    /// Why it is likely, in words for a person.
    pub why: String,
    /// How likely, for the order.
    pub likelihood: u32,
}

/// What is looked for.
struct Wanted<'a> {
    landmark: &'static str,
    old: &'a [String],
    /// Words that such an element often has.
    words: &'static [&'static str],
    /// What it is, whatever it is called.
    is_kind: fn(&Node) -> bool,
}

impl Node {
    /// A skeleton as the observer tells it.
    pub fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    fn all(&self) -> Vec<&Self> {
        let mut all = vec![self];
        let mut at = 0;
        while at < all.len() {
            let node = all[at];
            all.extend(&node.children);
            at += 1;
        }
        all
    }

    fn words(&self) -> BTreeSet<String> {
        let data = self.data.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
        let classes = self.classes.iter().map(String::as_str);
        let label = self.label.as_deref().into_iter();
        data.chain(classes).chain(label).flat_map(words_of).collect()
    }
}

/// Where the landmarks may be that were not found, or only in a second place; the likeliest first.
pub fn propose(profile: &Profile, landmarks: &Landmarks, skeleton: &Node) -> Vec<Proposal> {
    let none: &[String] = &[];
    let model = profile.model.as_ref().map_or(none, |model| &model.read);
    let stop = profile.stop.as_ref().map_or(none, |stop| &stop.any);
    let all: [(Option<usize>, Wanted<'_>); 5] = [
        (
            landmarks.composer,
            Wanted {
                landmark: "composer",
                old: &profile.composer.any,
                words: &["input", "composer", "editor", "prompt", "message"],
                is_kind: is_editor,
            },
        ),
        (
            landmarks.send,
            Wanted {
                landmark: "send",
                old: &profile.send.any,
                words: &["send", "submit"],
                is_kind: is_button,
            },
        ),
        (
            landmarks.stop,
            Wanted {
                landmark: "stop",
                old: stop,
                words: &["stop", "cancel", "interrupt"],
                is_kind: is_button,
            },
        ),
        (
            landmarks.root,
            Wanted {
                landmark: "transcript.root",
                old: &profile.transcript.root,
                words: &["messages", "conversation", "transcript", "history", "chat", "turns"],
                is_kind: |node| !node.children.is_empty() && !is_button(node) && !is_editor(node),
            },
        ),
        (
            landmarks.model,
            Wanted { landmark: "model", old: model, words: &["model"], is_kind: is_button },
        ),
    ];
    let nodes: Vec<_> = skeleton.all().into_iter().filter(|node| !node.is_hidden).collect();
    let missing = all.iter().filter(|(found, wanted)| *found != Some(0) && !wanted.old.is_empty());
    missing.flat_map(|(_, wanted)| search(wanted, &nodes)).collect()
}

fn search(wanted: &Wanted<'_>, nodes: &[&Node]) -> Vec<Proposal> {
    let old: BTreeSet<String> = wanted.old.iter().flat_map(|text| words_of(text)).collect();
    let mut found: Vec<Proposal> = vec![];
    for node in nodes.iter().filter(|node| (wanted.is_kind)(node)) {
        let own = node.words();
        let kept: Vec<_> = own.intersection(&old).map(String::as_str).collect();
        let usual: Vec<_> =
            wanted.words.iter().copied().filter(|word| own.contains(*word)).collect();
        let is_editor = wanted.landmark == "composer";
        let Some((selector, alike)) = selector(node, nodes, wanted.old) else { continue };
        let points = 25 * u32::try_from(usual.len()).unwrap_or(0).min(2)
            + 15 * u32::try_from(kept.len()).unwrap_or(0).min(3)
            + if is_editor { 40 } else { 10 };
        let likelihood = points.saturating_sub(if alike > 1 { 15 } else { 0 });
        if likelihood < LIKELIHOOD_MIN || found.iter().any(|it| it.selector == selector) {
            continue;
        }
        let mut why = vec![];
        if is_editor {
            why.push("it accepts text".to_owned());
        }
        if !kept.is_empty() {
            why.push(format!("it shares {} with the old element", kept.join(", ")));
        }
        if !usual.is_empty() {
            why.push(format!("its name matches {}", usual.join(", ")));
        }
        if alike > 1 {
            why.push(format!("{alike} elements match"));
        }
        let (landmark, why) = (wanted.landmark, why.join("; "));
        found.push(Proposal { landmark, selector, why, likelihood });
    }
    found.sort_by_key(|proposal| std::cmp::Reverse(proposal.likelihood));
    found.truncate(PROPOSALS_MAX);
    found
}

/// The best selector for an element, and how many it finds. One that the profile has already is
/// none: it was tried.
fn selector(node: &Node, nodes: &[&Node], old: &[String]) -> Option<(String, usize)> {
    let mut all: Vec<(String, usize)> = vec![];
    let mut add = |selector: String, has: &dyn Fn(&Node) -> bool| {
        let alike = nodes.iter().filter(|other| has(other)).count();
        if alike <= ALIKE_MAX && !old.contains(&selector) {
            all.push((selector, alike));
        }
    };
    for (name, value) in node.data.iter().filter(|(_, value)| !value.is_empty()) {
        add(format!("[{name}='{value}']"), &|other| other.data.get(name) == Some(value));
    }
    if let Some(label) = node.label.as_ref().filter(|it| !it.contains(['0', '\'', '\\'])) {
        add(format!("{}[aria-label='{label}']", node.tag), &|other| {
            other.tag == node.tag && other.label.as_ref() == Some(label)
        });
    }
    for class in &node.classes {
        let stem = stem(class);
        let is_hashed = stem.len() < class.len();
        let selector =
            if is_hashed { format!("[class*='{stem}']") } else { format!("{}.{class}", node.tag) };
        let has = |other: &Node| {
            let has_class = other.classes.iter().any(|it| it.starts_with(stem));
            has_class && (is_hashed || other.tag == node.tag)
        };
        if class.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)) {
            add(selector, &has);
        }
    }
    if let Some(role) = &node.role {
        add(format!("[role='{role}']"), &|other| other.role.as_ref() == Some(role));
    }
    if node.tag == "textarea" {
        add("textarea".to_owned(), &|other| other.tag == "textarea");
    }
    // The first that finds it alone.
    let alone = all.iter().find(|(_, alike)| *alike == 1).cloned();
    alone.or_else(|| all.into_iter().min_by_key(|(_, alike)| *alike))
}

/// A class without the hash that a build put at its end; it keeps what separated them.
fn stem(class: &str) -> &str {
    let Some((name, hash)) = class.rsplit_once('_').filter(|(name, _)| !name.is_empty()) else {
        return class;
    };
    let is_mixed = hash.chars().any(|c| c.is_ascii_digit())
        || (hash.chars().any(char::is_uppercase) && hash.chars().any(char::is_lowercase));
    let is_hash = hash.len() >= 5 && is_mixed;
    if is_hash { &class[..=name.len()] } else { class }
}

fn is_editor(node: &Node) -> bool {
    let is_editable = node.editable.as_deref().is_some_and(|how| how != "false");
    let has_role = matches!(node.role.as_deref(), Some("textbox" | "combobox"));
    is_editable || has_role || node.tag == "textarea"
}

fn is_button(node: &Node) -> bool {
    matches!(node.tag.as_str(), "button" | "a" | "select")
        || matches!(node.role.as_deref(), Some("button" | "combobox"))
}

/// The plain words in a name or a selector: `sendButton_x1` has `send` and `button`.
fn words_of(text: &str) -> Vec<String> {
    let mut words = vec![];
    let mut word = String::new();
    let mut was_small = false;
    for c in text.chars().chain(std::iter::once(' ')) {
        let begins = c.is_ascii_uppercase() && was_small;
        if (begins || !c.is_ascii_alphabetic()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_ascii_alphabetic() {
            word.push(c.to_ascii_lowercase());
        }
        was_small = c.is_ascii_lowercase();
    }
    // Words of CSS and attributes that say nothing.
    let is_plain = |word: &String| {
        word.len() > 2
            && !matches!(
                word.as_str(),
                "aria" | "label" | "role" | "class" | "data" | "type" | "true" | "div" | "testid"
            )
    };
    words.retain(is_plain);
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::panel::profile::built_in;

    fn profile() -> Profile {
        built_in().into_iter().find(|profile| profile.id == "claude-vscode").unwrap()
    }

    fn panel() -> Node {
        let text = json!({"tag": "body", "children": [
            {"tag": "div", "classes": ["messagesContainer_07S1Yg"], "children": [
                {"tag": "div", "classes": ["message_07S1Yg"]},
                {"tag": "div", "classes": ["message_07S1Yg"]},
            ]},
            {"tag": "form", "children": [
                {"tag": "div", "editable": "plaintext-only", "classes": ["composerText_a1B2c3"]},
                {"tag": "button", "classes": ["submitMessage_x9Yz12"], "label": "Send it"},
                {"tag": "button", "classes": ["attach_x9Yz12"], "label": "Attach"},
                {"tag": "button", "classes": ["hidden_x9Yz12"], "label": "Send", "is_hidden": true},
            ]},
        ]});
        Node::read(&text.to_string()).unwrap()
    }

    #[test]
    fn landmarks_that_moved_are_proposed_by_what_they_are_and_are_called() {
        let landmarks = Landmarks { root: Some(0), model: Some(0), ..Landmarks::default() };
        let proposals = propose(&profile(), &landmarks, &panel());
        let best: Vec<_> = proposals.iter().map(|it| (it.landmark, it.selector.as_str())).collect();
        assert_eq!(
            best,
            [("composer", "[class*='composerText_']"), ("send", "button[aria-label='Send it']")]
        );
        assert!(proposals.iter().all(|it| !it.why.is_empty()));
    }

    #[test]
    fn what_was_found_in_its_first_place_is_not_proposed_again() {
        let landmarks = Landmarks {
            scope: Some(0),
            composer: Some(0),
            send: Some(0),
            stop: Some(0),
            root: Some(0),
            model: Some(0),
        };
        assert_eq!(propose(&profile(), &landmarks, &panel()), []);
    }

    #[test]
    fn a_builds_hash_is_no_part_of_a_class() {
        assert_eq!(stem("sendButton_gGYT1w"), "sendButton_");
        assert_eq!(stem("send_button"), "send_button");
        assert_eq!(stem("chat-input"), "chat-input");
        assert_eq!(words_of("sendButton_gGYT1w"), ["send", "button", "gyt"]);
    }
}
