//! What a panel that changed is made of, kept for a person: tags, roles, labels of controls, and
//! no words of anybody.
//!
//! One file for each profile, the newest; `farhelm doctor cdp` reads them.
//!
//! Not here: making one (the observer), what moved (`agents`).

use std::path::{Path, PathBuf};

use agents::panel::Profile;
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
    /// What is there.
    pub bones: Value,
}

fn folder(data: &Path) -> PathBuf {
    data.join("skeletons")
}

/// Keeps one.
pub(super) fn keep(data: &Path, profile: &Profile, bones: &str, at_ms: u64) {
    let Ok(bones) = serde_json::from_str::<Value>(bones) else { return };
    let skeleton =
        Skeleton { profile: profile.id.clone(), revision: profile.revision, at_ms, bones };
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
            "a panel looks otherwise than its profile says; `farhelm doctor cdp` says what moved"
        ),
        Err(error) => tracing::warn!(%error, "a panel's skeleton cannot be kept"),
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
        keep(&own, &profile, r#"{"tag":"div"}"#, 1);
        keep(&own, &profile, r#"{"tag":"main"}"#, 2);
        keep(&own, &profile, "no json", 3);
        let all = saved(data.path());
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].at_ms, &all[0].bones["tag"]), (2, &"main".into()));
        assert_eq!(all[0].revision, profile.revision);
    }
}
