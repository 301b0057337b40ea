//! Which agents are on this machine: their programs, their versions, and whether a person is logged
//! in.
//!
//! Checking is cheap after the first time: a program is asked for its version once per file and
//! modification time. No credential is read or used.
//!
//! Not here: what is known of each agent (`agents`), when to check (`shell`).

mod version;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use agents::{Login, login_of};
use domain::AgentType;
use domain::fleet::AgentOffer;

use crate::catalog::{Catalog, Entry};

/// What an agent without a known way of installing is said to lack.
const NOT_FOUND: &str = "The program was not found";

/// Looks for agents, and remembers what it saw.
#[derive(Debug)]
pub struct Discovery {
    catalog: Arc<Catalog>,
    /// By program, with the time of its last change.
    versions: BTreeMap<PathBuf, (Option<SystemTime>, Option<String>)>,
}

impl Discovery {
    /// Nothing was seen yet.
    pub fn new(catalog: Arc<Catalog>) -> Self {
        Self { catalog, versions: BTreeMap::new() }
    }

    /// What can be seen at once: everything but versions that were not asked for yet.
    pub fn glance(&self) -> Vec<AgentOffer> {
        let offer = |(name, entry): (&AgentType, &Entry)| {
            let program = entry.program();
            let version = program.as_deref().and_then(|program| self.known_version(program));
            seen(name, entry, program.is_some(), version)
        };
        self.catalog.entries().iter().map(offer).collect()
    }

    /// Everything. Programs are started to tell their versions, each for a few seconds at most.
    pub async fn look(&mut self) -> Vec<AgentOffer> {
        let catalog = Arc::clone(&self.catalog);
        for entry in catalog.entries().values() {
            let Some(program) = entry.program() else { continue };
            let Some(arguments) = &entry.version_arguments else { continue };
            let changed_at = changed_at(&program);
            let is_known = self.versions.get(&program).is_some_and(|(at, _)| *at == changed_at);
            if !is_known {
                let version = version::ask(&program, arguments, &entry.launcher.env).await;
                self.versions.insert(program, (changed_at, version));
            }
        }
        self.glance()
    }

    fn known_version(&self, program: &Path) -> Option<String> {
        let (at, version) = self.versions.get(program)?;
        version.clone().filter(|_| *at == changed_at(program))
    }
}

/// Through links, because that is how package managers put programs on the path.
fn changed_at(program: &Path) -> Option<SystemTime> {
    std::fs::metadata(program).ok()?.modified().ok()
}

fn seen(
    name: &AgentType,
    entry: &Entry,
    is_installed: bool,
    version: Option<String>,
) -> AgentOffer {
    let login = login_of(name.as_str());
    AgentOffer {
        agent: name.clone(),
        display_name: Some(entry.display_name.clone()),
        is_installed,
        version,
        is_logged_in: login.filter(|_| is_installed).and_then(|login| is_logged_in(login, entry)),
        install: Some(entry.install.clone().unwrap_or_else(|| NOT_FOUND.to_owned())),
    }
}

/// `None` where it cannot be seen.
fn is_logged_in(login: &Login, entry: &Entry) -> Option<bool> {
    let set = |name: &str| {
        let own = agents::variable(&entry.launcher.env, name).map(str::to_owned);
        own.or_else(|| std::env::var(name).ok()).filter(|value| !value.is_empty())
    };
    let home = set("HOME").or_else(|| set("USERPROFILE")).map(PathBuf::from);
    let is_there = |(variable, below_home, file): &(&str, &str, &str)| {
        let named = set(variable).map(PathBuf::from);
        let folder = named.or_else(|| home.as_ref().map(|home| home.join(below_home)));
        folder.is_some_and(|folder| folder.join(file).is_file())
    };
    let is_seen =
        login.variables.iter().any(|name| set(name).is_some()) || login.files.iter().any(is_there);
    match (is_seen, login.is_complete) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::catalog::AgentSetting;

    /// A program that says a version, and each time it is asked writes a line.
    fn program(folder: &Path, name: &str, words: &str) -> PathBuf {
        let file = folder.join(name);
        let asked = folder.join("asked").display().to_string();
        let script = format!("#!/bin/sh\necho x >> '{asked}'\necho '{words}'\n");
        std::fs::write(&file, script).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
        file
    }

    fn catalog(file: &Path, env: Vec<(String, String)>) -> Arc<Catalog> {
        let setting = AgentSetting {
            name: "claude".to_owned(),
            command: file.display().to_string(),
            args: vec![],
            env,
        };
        let mut catalog = Catalog::new(&[setting]);
        catalog.ask_versions(&"claude".into());
        Arc::new(catalog)
    }

    fn of_claude(offers: &[AgentOffer]) -> AgentOffer {
        offers.iter().find(|offer| offer.agent.as_str() == "claude").unwrap().clone()
    }

    #[tokio::test]
    async fn a_version_is_asked_for_once_until_the_program_changes() {
        let folder = tempfile::tempdir().unwrap();
        let file = program(folder.path(), "agent", "2.1.7 (Agent)");
        let mut discovery = Discovery::new(catalog(&file, vec![]));
        assert_eq!(of_claude(&discovery.glance()).version, None, "nobody asked yet");
        for _ in 0..2 {
            assert_eq!(of_claude(&discovery.look().await).version.as_deref(), Some("2.1.7"));
        }
        let asked =
            || std::fs::read_to_string(folder.path().join("asked")).unwrap().lines().count();
        assert_eq!(asked(), 1);

        program(folder.path(), "agent", "2.2.0 (Agent)");
        let later = SystemTime::now() + std::time::Duration::from_secs(5);
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(later).unwrap();
        assert_eq!(of_claude(&discovery.look().await).version.as_deref(), Some("2.2.0"));
        assert_eq!(asked(), 2);
    }

    #[tokio::test]
    async fn an_agent_that_is_installed_later_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("agent");
        let mut discovery = Discovery::new(catalog(&file, vec![]));
        let missing = of_claude(&discovery.look().await);
        assert!(!missing.is_installed && missing.install.is_some());
        program(folder.path(), "agent", "agent 1.0.0-beta.2");
        let found = of_claude(&discovery.look().await);
        assert!(found.is_installed);
        assert_eq!(found.version.as_deref(), Some("1.0.0-beta.2"));
    }

    #[test]
    fn who_is_logged_in_is_seen_by_files_and_variables() {
        let folder = tempfile::tempdir().unwrap();
        let file = program(folder.path(), "agent", "1.0");
        let at = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let place = folder.path().display().to_string();
        let nobody: Vec<_> =
            login_of("claude").unwrap().variables.iter().map(|it| at(it, "")).collect();
        let here = [nobody, vec![at("CLAUDE_CONFIG_DIR", &place)]].concat();
        let seen = |env: &[(String, String)]| {
            let discovery = Discovery::new(catalog(&file, env.to_vec()));
            of_claude(&discovery.glance()).is_logged_in
        };
        let expected = if cfg!(target_os = "macos") { None } else { Some(false) };
        assert_eq!(seen(&here), expected);
        std::fs::write(folder.path().join(".credentials.json"), "{}").unwrap();
        assert_eq!(seen(&here), Some(true));
        let key = vec![at("CLAUDE_CONFIG_DIR", "/nowhere"), at("ANTHROPIC_API_KEY", "k")];
        assert_eq!(seen(&key), Some(true));
    }
}
