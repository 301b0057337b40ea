//! The structure of a panel that changed, saved for a person: tags, roles and labels of controls,
//! without any text.
//!
//! One file per profile, the newest; `farhelm doctor cdp` reads them.
//!
//! Not here: creating one (the observer), finding what moved (`agents`).

use std::path::{Path, PathBuf};

use agents::panel::Profile;
use agents::panel::frames::{Landmarks, Push};
use agents::panel::skeleton::{Node, propose};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::book::replace;

/// Bytes of one. The observer's are far smaller.
const BYTES_MAX: usize = 4 << 20;

/// A panel's bones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Skeleton {
    /// Of which profile.
    pub profile: String,
    /// Which revision of it did not fit.
    pub revision: u32,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Which landmarks were found.
    #[serde(default)]
    pub found: Landmarks,
    /// What is there.
    pub bones: Value,
}

impl Skeleton {
    /// Which landmarks may have moved, and where to: sentences for a person.
    pub fn proposals(&self, profile: &Profile) -> Vec<String> {
        proposals(profile, &self.found, &self.bones)
    }
}

/// Which landmarks may have moved, and where to: sentences for a person.
pub(super) fn proposals(profile: &Profile, found: &Landmarks, bones: &Value) -> Vec<String> {
    let Ok(node) = serde_json::from_value::<Node>(bones.clone()) else { return vec![] };
    let proposed = propose(profile, found, &node).into_iter();
    proposed.map(|it| format!("{}: try {} ({})", it.landmark, it.selector, it.why)).collect()
}

/// What was seen of a panel that changed.
#[derive(Debug, Clone, Default)]
pub(super) struct Bones {
    found: Landmarks,
    bones: Value,
}

impl Bones {
    /// Reads a whole view and a skeleton, each as the observer writes it.
    pub(super) fn read(push: &str, bones: &str) -> Option<Self> {
        let found = Push::read(push).ok()?.landmarks;
        Some(Self { found, bones: serde_json::from_str(bones).ok()? })
    }
}

fn folder(data: &Path) -> PathBuf {
    data.join("skeletons")
}

/// Keeps one.
pub(super) fn keep(data: &Path, profile: &Profile, seen: Bones, at_ms: u64) {
    let Bones { found, bones } = seen;
    let (id, revision) = (profile.id.clone(), profile.revision);
    let skeleton = Skeleton { profile: id, revision, at_ms, found, bones };
    let Ok(text) = serde_json::to_vec(&skeleton) else { return };
    if text.len() > BYTES_MAX {
        return;
    }
    // The id is small letters, digits and hyphens: it can name a file.
    let path = folder(data).join(format!("{}.json", profile.id));
    match replace(&path, &text) {
        Ok(()) => tracing::warn!(
            profile = profile.id,
            path = %path.display(),
            "a panel no longer matches its profile; run `farhelm doctor cdp` to see what changed"
        ),
        Err(error) => tracing::warn!(%error, "could not save a panel's skeleton"),
    }
}

/// Those that are kept in a proxy's data folder.
pub fn saved(data: &Path) -> Vec<Skeleton> {
    let Ok(entries) = std::fs::read_dir(folder(&own(data))) else { return vec![] };
    let texts = entries.flatten().filter_map(|entry| std::fs::read(entry.path()).ok());
    let mut all: Vec<Skeleton> =
        texts.filter_map(|text| serde_json::from_slice(&text).ok()).collect();
    all.sort_by(|one, other| one.profile.cmp(&other.profile));
    all
}

/// The folder of this room in a proxy's data folder.
pub(super) fn own(data: &Path) -> PathBuf {
    data.join("panels")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_each_profile_is_kept() {
        let data = tempfile::tempdir().unwrap();
        let profile = agents::panel::profile::built_in().remove(0);
        let own = own(data.path());
        let push = r#"{"epoch":"e","n":1,"kind":"whole","landmarks":{"send":0}}"#;
        let bones = |text: &str| Bones::read(push, text).unwrap();
        keep(&own, &profile, bones(r#"{"tag":"div"}"#), 1);
        let editor = r#"{"tag":"main","children":[{"tag":"div","role":"textbox",
            "editable":"true","label":"Message input","data":{"data-composer":"x"}}]}"#;
        keep(&own, &profile, bones(editor), 2);
        assert!(Bones::read(push, "no json").is_none());
        let all = saved(data.path());
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].at_ms, &all[0].bones["tag"]), (2, &"main".into()));
        assert_eq!(all[0].revision, profile.revision);
        let proposed = all[0].proposals(&profile);
        assert!(proposed.iter().any(|it| it.starts_with("composer: try ")), "{proposed:?}");
    }
}
