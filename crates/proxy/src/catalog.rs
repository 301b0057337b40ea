//! The agents that can be started here, and how.
//!
//! Not here: what is known of each agent (`agents`), installed versions and logins (`discovery`).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use agents::{Earlier, KNOWN, Launcher, Setup, driver_of};
use domain::AgentType;

use crate::host::Drivers;
use crate::processes::find_with;

/// An agent that a person named in the configuration. One that is known already is changed by it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentSetting {
    /// Its name in `agent_type`.
    pub name: String,
    /// The program; a known agent's own where it is empty.
    pub command: String,
    /// Its arguments; for a known agent those that come before its own.
    pub args: Vec<String>,
    /// Set besides the person's environment.
    pub env: Vec<(String, String)>,
}

/// One agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What people call it.
    pub display_name: String,
    /// How it is started.
    pub launcher: Launcher,
    /// How a person gets it, where that is known.
    pub install: Option<String>,
    /// What comes before `--version` to ask its program; `None` where that may mean something
    /// else to it.
    pub version_arguments: Option<Vec<String>>,
}

impl Entry {
    /// A variable as its program would see it: set for it, else the person's own.
    pub fn variable(&self, name: &str) -> Option<String> {
        let own = agents::variable(&self.launcher.env, name).map(str::to_owned);
        own.or_else(|| std::env::var(name).ok())
    }

    /// Its program on this machine, if it is there.
    pub fn program(&self) -> Option<PathBuf> {
        find_with(&self.launcher.command, &self.launcher.env)
    }
}

/// All agents that are known here, whether their programs are there or not.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    entries: BTreeMap<AgentType, Entry>,
}

impl Catalog {
    /// The known agents and those that a person named.
    pub fn new(named: &[AgentSetting]) -> Self {
        let known = KNOWN.iter().map(|known| {
            let launcher = Launcher {
                command: known.command.to_owned(),
                args: known.args.iter().map(|argument| (*argument).to_owned()).collect(),
                env: vec![],
            };
            let (display_name, install) =
                (known.display_name.to_owned(), Some(known.install.to_owned()));
            let version_arguments = Some(vec![]);
            (known.name.into(), Entry { display_name, launcher, install, version_arguments })
        });
        let mut catalog = Self { entries: known.collect() };
        for setting in named {
            catalog.name(setting);
        }
        catalog
    }

    fn name(&mut self, setting: &AgentSetting) {
        let entry = self.entries.entry(setting.name.as_str().into()).or_insert_with(|| Entry {
            display_name: setting.name.clone(),
            launcher: Launcher::default(),
            install: None,
            version_arguments: None,
        });
        if !setting.command.is_empty() {
            entry.launcher.command.clone_from(&setting.command);
        }
        let mut args = setting.args.clone();
        args.append(&mut entry.launcher.args);
        entry.launcher.args = args;
        if let Some(before) = &mut entry.version_arguments {
            before.splice(..0, setting.args.iter().cloned());
        }
        entry.launcher.env.extend(setting.env.iter().cloned());
    }

    /// Every agent by its name.
    pub fn entries(&self) -> &BTreeMap<AgentType, Entry> {
        &self.entries
    }

    /// Asks an agent for its version, as if it were a known one.
    #[cfg(test)]
    pub(crate) fn ask_versions(&mut self, name: &AgentType) {
        if let Some(entry) = self.entries.get_mut(name) {
            entry.version_arguments = Some(vec![]);
        }
    }

    /// Makes drivers for sessions of these agents.
    pub fn drivers(self: &Arc<Self>) -> Drivers {
        let catalog = Arc::clone(self);
        Box::new(move |session, opened, notes| {
            let variables: BTreeMap<String, String> = std::env::vars().collect();
            let home = variables.get("HOME").or_else(|| variables.get("USERPROFILE"));
            let workspace = opened.workspace_path.clone().or_else(|| home.cloned());
            let earlier = opened.earlier.clone().map(|earlier| Earlier {
                id: earlier.id,
                file: earlier.file.map(PathBuf::from),
                fork: earlier.fork,
            });
            let entry = catalog.entries.get(&opened.agent);
            let mut launcher = entry.map(|entry| entry.launcher.clone()).unwrap_or_default();
            // Before the driver's own, which win where both say the same thing.
            launcher.args.extend(opened.arguments.iter().cloned());
            let setup = Setup {
                session: session.clone(),
                notes,
                launcher,
                workspace: real(workspace.unwrap_or_else(|| "/".to_owned()).into()),
                model: opened.model.clone(),
                mode: opened.mode.clone(),
                earlier,
                ready_by: None,
                variables,
            };
            driver_of(opened.agent.as_str(), setup)
        })
    }
}

/// A folder without links in its path: agents name their files by where they find themselves.
fn real(folder: PathBuf) -> PathBuf {
    if cfg!(unix) { folder.canonicalize().unwrap_or(folder) } else { folder }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_adds_agents_and_changes_known_ones() {
        let setting = |name: &str, command: &str| AgentSetting {
            name: name.to_owned(),
            command: command.to_owned(),
            args: vec!["--fast".to_owned()],
            env: vec![],
        };
        let catalog = Catalog::new(&[setting("mine", "my-agent"), setting("mine", "")]);
        let mine = &catalog.entries()[&"mine".into()];
        assert_eq!(mine.launcher.command, "my-agent");
        assert_eq!(mine.launcher.args, ["--fast", "--fast"]);
    }

    #[cfg(unix)]
    #[test]
    fn an_agent_is_looked_for_where_its_last_path_says_as_its_program_is_started() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("my-agent");
        std::fs::write(&program, "").unwrap();
        let runs = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, runs).unwrap();
        let path = |value: &str| ("PATH".to_owned(), value.to_owned());
        let setting = |env| AgentSetting {
            name: "mine".to_owned(),
            command: "my-agent".to_owned(),
            args: vec![],
            env,
        };
        let here = folder.path().to_str().unwrap();
        let found = |env| Catalog::new(&[setting(env)]).entries()[&"mine".into()].program();
        assert_eq!(found(vec![path("/nowhere"), path(here)]), Some(program));
        assert_eq!(found(vec![path(here), path("/nowhere")]), None);
    }
}
