//! The cache folder: one folder for each agent and version, with a stamp when it is complete.
//!
//! Invariant: a folder without its stamp is an incomplete installation and is fetched again. The
//! stamp is written last and holds what tests need to know.

use std::env;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use super::installed::Installed;
use crate::shell;

const STAMP: &str = "installed.json";

/// Where the agents are.
pub(super) struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// `$XDG_CACHE_HOME/farhelm/agents`, or below `~/.cache`.
    pub(super) fn open() -> Result<Self, String> {
        let set = |name: &str| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let home = || set("HOME").or_else(|| set("USERPROFILE")).map(|home| home.join(".cache"));
        // XDG: a relative path is to be ignored.
        let base = set("XDG_CACHE_HOME").filter(|path| path.is_absolute()).or_else(home);
        let base = base.ok_or("no cache folder for the agents: set XDG_CACHE_HOME or HOME")?;
        Self::at(base.join("farhelm").join("agents"))
    }

    fn at(folder: PathBuf) -> Result<Self, String> {
        match fs::create_dir_all(&folder) {
            Ok(()) => Ok(Self { folder }),
            Err(error) => Err(format!("could not make {}: {error}", folder.display())),
        }
    }

    /// Held until dropped; the system frees it when the process dies.
    pub(super) fn lock(&self) -> Result<File, String> {
        let path = self.folder.join("lock");
        let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let file = File::create(&path).map_err(|error| told(&error))?;
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {
                shell::say("waiting for another installation of agents to finish");
            }
            Err(TryLockError::Error(error)) => return Err(told(&error)),
        }
        file.lock().map_err(|error| told(&error))?;
        Ok(file)
    }

    /// Where tests read what is installed.
    pub(super) fn list(&self) -> PathBuf {
        self.folder.join("installed.json")
    }

    /// What npm keeps between two runs.
    pub(super) fn npm(&self) -> PathBuf {
        self.folder.join("npm")
    }

    /// The folder of one version.
    pub(super) fn folder(&self, name: &str, version: &str) -> PathBuf {
        self.folder.join(format!("{name}-{version}"))
    }

    /// What npm printed while it filled that folder.
    pub(super) fn log(&self, name: &str, version: &str) -> PathBuf {
        self.folder.join(format!("{name}-{version}.log"))
    }

    /// An empty folder, whatever was there.
    pub(super) fn begin(&self, name: &str, version: &str) -> Result<PathBuf, String> {
        let folder = self.folder(name, version);
        let told = |error: &dyn std::fmt::Display| format!("{}: {error}", folder.display());
        // First, so that a removal that is cut short leaves no stamp behind.
        let removed =
            fs::remove_file(folder.join(STAMP)).and_then(|()| fs::remove_dir_all(&folder));
        if removed.is_err() && folder.exists() {
            fs::remove_dir_all(&folder).map_err(|error| told(&error))?;
        }
        fs::create_dir_all(&folder).map_err(|error| told(&error))?;
        Ok(folder)
    }

    /// The stamp of a complete installation whose program is still there.
    pub(super) fn stamp(&self, name: &str, version: &str) -> Option<Installed> {
        let text = fs::read_to_string(self.folder(name, version).join(STAMP)).ok()?;
        let installed: Installed = serde_json::from_str(&text).ok()?;
        let whole = installed.program.is_file()
            && installed.args_prefix.iter().all(|argument| Path::new(argument).is_file());
        (whole && installed.version == version).then_some(installed)
    }

    /// Completes an installation.
    pub(super) fn finish(&self, installed: &Installed) -> Result<(), String> {
        let path = self.folder(&installed.name, &installed.version).join(STAMP);
        let text = serde_json::to_string_pretty(installed).map_err(|error| error.to_string())?;
        replace(&path, &text)
    }
}

/// Writes a file so that a reader sees the old one or the new one, whole.
pub(super) fn replace(path: &Path, text: &str) -> Result<(), String> {
    let told = |error: std::io::Error| format!("could not write {}: {error}", path.display());
    let new = path.with_extension("new");
    let write = || {
        fs::write(&new, text)?;
        File::open(&new)?.sync_all()?;
        fs::rename(&new, path)
    };
    write().map_err(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed(folder: &Path) -> Installed {
        let program = folder.join("program");
        fs::write(&program, "").unwrap();
        Installed {
            name: "a".into(),
            version: "1.0.0".into(),
            program,
            args_prefix: vec![],
            node_bin: None,
        }
    }

    #[test]
    fn only_a_finished_installation_has_a_stamp() {
        let home = tempfile::tempdir().unwrap();
        let cache = Cache::at(home.path().join("agents")).unwrap();
        let folder = cache.begin("a", "1.0.0").unwrap();
        let installed = installed(&folder);
        assert!(cache.stamp("a", "1.0.0").is_none());
        cache.finish(&installed).unwrap();
        assert_eq!(cache.stamp("a", "1.0.0"), Some(installed.clone()));
        assert!(cache.stamp("a", "1.0.1").is_none());

        // The program was deleted: half an installation again.
        fs::remove_file(&installed.program).unwrap();
        assert!(cache.stamp("a", "1.0.0").is_none());
    }

    #[test]
    fn beginning_again_takes_everything_away() {
        let home = tempfile::tempdir().unwrap();
        let cache = Cache::at(home.path().join("agents")).unwrap();
        let folder = cache.begin("a", "1.0.0").unwrap();
        cache.finish(&installed(&folder)).unwrap();
        cache.begin("a", "1.0.0").unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::write(folder.join("half"), "").unwrap();
        cache.begin("a", "1.0.0").unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    }

    #[test]
    fn the_lock_is_held_by_one() {
        let home = tempfile::tempdir().unwrap();
        let cache = Cache::at(home.path().join("agents")).unwrap();
        let held = cache.lock().unwrap();
        let other = File::open(home.path().join("agents/lock")).unwrap();
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        drop(held);
        assert!(other.try_lock().is_ok());
    }
}
