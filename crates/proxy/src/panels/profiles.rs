//! The profiles in use: the built-in ones, and those in the person's folder, which take precedence.
//!
//! Invariant: an invalid file removes nothing. The profile that it would have replaced stays in
//! use, and every fault is reported with its file and line.
//!
//! Not here: what a profile contains (`agents`), when to reload (`service`).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use agents::panel::profile::built_in;
use agents::panel::{Profile, ProfileFault};

/// Files that are read in the person's folder.
const FILES_MAX: usize = 64;
/// Bytes of one. A profile is far shorter.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// All profiles, in the order in which they are tried.
#[derive(Debug, Clone, Default)]
pub struct ProfileSet {
    profiles: Vec<Arc<Profile>>,
    /// What is wrong with files of the person's folder.
    pub faults: Vec<(PathBuf, ProfileFault)>,
    stamp: Stamp,
}

/// By which a changed folder is recognised.
type Stamp = Vec<(PathBuf, Option<SystemTime>, u64)>;

impl ProfileSet {
    /// Reads the folder, if there is one.
    pub fn load(folder: Option<&Path>) -> Self {
        let stamp = folder.map(stamp).unwrap_or_default();
        let (mut own, mut faults) = (vec![], vec![]);
        for (path, _, length) in &stamp {
            match read(path, *length) {
                Ok(profile) => own.push(Arc::new(profile)),
                Err(found) => faults.extend(found.into_iter().map(|it| (path.clone(), it))),
            }
        }
        let is_own = |id: &str| own.iter().any(|profile: &Arc<Profile>| profile.id == id);
        let others: Vec<_> =
            built_in().into_iter().filter(|it| !is_own(&it.id)).map(Arc::new).collect();
        let profiles = own.into_iter().chain(others).collect();
        Self { profiles, faults, stamp }
    }

    /// Whether the folder is as it was when this was read.
    pub fn is_current(&self, folder: Option<&Path>) -> bool {
        folder.map(stamp).unwrap_or_default() == self.stamp
    }

    /// All of them.
    pub fn all(&self) -> &[Arc<Profile>] {
        &self.profiles
    }

    /// One by its name.
    pub fn get(&self, id: &str) -> Option<&Arc<Profile>> {
        self.profiles.iter().find(|profile| profile.id == id)
    }
}

fn stamp(folder: &Path) -> Stamp {
    let Ok(entries) = std::fs::read_dir(folder) else { return vec![] };
    let paths = entries.flatten().map(|entry| entry.path());
    let mut paths: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|it| it == "toml")).collect();
    paths.sort();
    paths.truncate(FILES_MAX);
    let stamped = paths.into_iter().filter_map(|path| {
        let about = std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file)?;
        Some((path, about.modified().ok(), about.len()))
    });
    stamped.collect()
}

fn read(path: &Path, length: u64) -> Result<Profile, Vec<ProfileFault>> {
    let fault = |words: String| vec![ProfileFault { line: None, words }];
    if length > FILE_BYTES_MAX {
        return Err(fault(format!("the file is larger than {FILE_BYTES_MAX} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| fault(error.to_string()))?;
    Profile::read(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_folder_replaces_the_built_in_one_and_a_broken_one_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let before = ProfileSet::load(Some(path));
        assert!(before.get("cursor").is_some() && before.faults.is_empty());
        assert!(before.is_current(Some(path)));

        let text = agents::panel::profile::BUILT_IN;
        let (_, cursor) = text.iter().find(|(id, _)| *id == "cursor").unwrap();
        let own = cursor.replace("display_name = \"", "display_name = \"My ");
        std::fs::write(path.join("mine.toml"), own).unwrap();
        std::fs::write(path.join("broken.toml"), "id = \"opencode-web\"\nrevision = = 1").unwrap();
        std::fs::write(path.join("notes.txt"), "no profile").unwrap();
        assert!(!before.is_current(Some(path)));

        let after = ProfileSet::load(Some(path));
        assert!(after.get("cursor").unwrap().display_name.starts_with("My "));
        assert!(after.get("opencode-web").is_some(), "the built-in one stays");
        assert_eq!(after.all().len(), before.all().len());
        assert_eq!(after.all()[0].id, "cursor", "the person's come first");
        let [(file, fault)] = &after.faults[..] else { panic!("{:?}", after.faults) };
        assert!(file.ends_with("broken.toml"));
        assert_eq!(fault.line, Some(2));
    }

    #[test]
    fn without_a_folder_there_are_the_built_in_ones() {
        let none = ProfileSet::load(Some(Path::new("/nowhere/at/all")));
        assert_eq!(none.all().len(), agents::panel::profile::BUILT_IN.len());
    }
}
