//! Checks that a session can be started here and prepares what it needs: finds its program and its
//! conversation, checks its folder, and creates its working tree. This takes time, so it does not
//! run on the host's thread.
//!
//! A folder counts by its real path, with all links resolved.
//!
//! Not here: launches themselves (`engine`), starting programs (`processes`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::content::Failure;
use tokio::sync::watch;

use crate::catalog::Catalog;
use crate::engine::{Preparation, Prepared};
use crate::journal::Earlier;
use crate::panels::ProfileSet;
use crate::{conversations, worktrees};

/// What a machine knows when it is asked to start something.
#[derive(Debug)]
pub struct Preparer {
    /// The agents.
    pub catalog: Arc<Catalog>,
    /// Folders in which agents may be started; none means anywhere.
    pub allowed_roots: Vec<String>,
    /// Where working trees are made.
    pub worktrees: PathBuf,
    /// The agents that live in panels.
    pub profiles: watch::Receiver<Arc<ProfileSet>>,
}

impl Preparer {
    /// Everything that a session needs, or why it cannot be started.
    pub fn prepare(&self, wanted: &Preparation) -> Result<Prepared, Failure> {
        if wanted.agent.as_str() == agents::demo::AGENT {
            return self.for_demo(wanted);
        }
        if self.profiles.borrow().get(wanted.agent.as_str()).is_some() {
            return self.for_panel(wanted);
        }
        self.program(wanted)?;
        let (earlier, held_in) = self.earlier(wanted)?;
        let named = wanted.workspace_path.clone().or(held_in);
        let folder = match &named {
            Some(path) => self.folder(path)?,
            None => self.usual_folder()?,
        };
        let worktree = if wanted.has_worktree {
            Some(worktrees::add(&folder, &self.worktrees, &wanted.session)?)
        } else {
            None
        };
        let folder = worktree.as_ref().map_or(folder, |worktree| worktree.folder.clone());
        Ok(Prepared {
            workspace_path: Some(folder.to_string_lossy().into_owned()),
            earlier,
            worktree: worktree.map(|worktree| worktree.root.to_string_lossy().into_owned()),
        })
    }

    /// The demo agent works in no folder, but one that is named must be there.
    fn for_demo(&self, wanted: &Preparation) -> Result<Prepared, Failure> {
        let workspace_path = wanted.workspace_path.clone();
        workspace_path.as_deref().map(|path| self.folder(path)).transpose()?;
        Ok(Prepared { workspace_path, ..Prepared::default() })
    }

    /// A chat in a panel works in the folder of its window. One that is named must be allowed; none
    /// is made up.
    fn for_panel(&self, wanted: &Preparation) -> Result<Prepared, Failure> {
        if wanted.has_worktree || wanted.earlier.is_some() {
            let words = format!(
                "{} runs in an IDE: it cannot use a working tree, and its earlier chats can only \
                 be opened there",
                wanted.agent
            );
            return Err(Failure::new("launch_not_supported", words));
        }
        let folder = wanted.workspace_path.as_deref().map(|path| self.folder(path)).transpose()?;
        let workspace_path = folder.map(|folder| folder.to_string_lossy().into_owned());
        Ok(Prepared { workspace_path, ..Prepared::default() })
    }

    fn program(&self, wanted: &Preparation) -> Result<(), Failure> {
        let Some(entry) = self.catalog.entries().get(&wanted.agent) else {
            let words =
                format!("Unknown agent \"{}\": this machine has no driver for it", wanted.agent);
            return Err(Failure::new("launch_not_supported", words));
        };
        if entry.program().is_some() {
            return Ok(());
        }
        let (name, command) = (&entry.display_name, &entry.launcher.command);
        let how = entry
            .install
            .as_deref()
            .unwrap_or("Add it to PATH, or set its command in the configuration file");
        let words = format!(
            "{name} is not installed on this machine: the program {command} was not found. {how}"
        );
        Err(Failure::new("agent_not_open", words))
    }

    /// The conversation to go on with, and where it was held.
    fn earlier(&self, wanted: &Preparation) -> Result<(Option<Earlier>, Option<String>), Failure> {
        let Some(earlier) = &wanted.earlier else { return Ok((None, None)) };
        let entry = self.catalog.entries().get(&wanted.agent);
        let variables = |name: &str| entry?.variable(name);
        let found = conversations::find(wanted.agent.as_str(), &earlier.id, &variables);
        let (file, held_in) = match found {
            // It keeps no files that we know; it will say itself whether it has it.
            None => (None, None),
            Some(Some(found)) => {
                (Some(found.file.to_string_lossy().into_owned()), found.summary.workspace)
            }
            Some(None) => {
                let words = format!(
                    "{} has no conversation {} on this machine. Run `farhelm resume` to list them",
                    wanted.agent, earlier.id
                );
                return Err(Failure::new("conversation_unknown", words));
            }
        };
        let (id, fork) = (earlier.id.clone(), earlier.fork);
        Ok((Some(Earlier { id, file, fork }), held_in))
    }

    fn folder(&self, path: &str) -> Result<PathBuf, Failure> {
        let not_there = |why: &str| {
            let words = format!("Cannot use the folder {path} on this machine: {why}");
            Failure::new("path_not_allowed", words)
        };
        let named = at_home(path);
        if !named.is_absolute() {
            return Err(not_there("the path must be absolute or start with ~/"));
        }
        let real = real(&named).map_err(|error| {
            if error.kind() == std::io::ErrorKind::NotFound {
                return not_there("it does not exist");
            }
            not_there(&error.to_string())
        })?;
        if !real.is_dir() {
            return Err(not_there("it is not a folder"));
        }
        if self.is_allowed(&real) {
            return Ok(real);
        }
        let roots = self.allowed_roots.join(", ");
        let words =
            format!("Agents may not be started in {path}. The allowed folders are: {roots}");
        Err(Failure::new("path_not_allowed", words))
    }

    /// Where no folder is named: the person's home, if agents may work there.
    fn usual_folder(&self) -> Result<PathBuf, Failure> {
        let home = real(&at_home("~")).ok().filter(|home| self.is_allowed(home));
        let roots = || self.allowed_roots.iter().find_map(|root| real(Path::new(root)).ok());
        home.or_else(roots).ok_or_else(|| {
            let words = "None of the allowed folders exists on this machine";
            Failure::new("path_not_allowed", words)
        })
    }

    fn is_allowed(&self, real_path: &Path) -> bool {
        let holds =
            |root: &String| real(Path::new(root)).is_ok_and(|root| real_path.starts_with(root));
        self.allowed_roots.is_empty() || self.allowed_roots.iter().any(holds)
    }
}

/// `~` and `~/…` as a shell has them.
fn at_home(path: &str) -> PathBuf {
    let home = || std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE"));
    let below = if path == "~" { Some("") } else { path.strip_prefix("~/") };
    match (below, home()) {
        (Some(""), Some(home)) => PathBuf::from(home),
        (Some(below), Some(home)) => PathBuf::from(home).join(below),
        (None, _) | (_, None) => PathBuf::from(path),
    }
}

/// Where a path really leads, through all links.
fn real(path: &Path) -> std::io::Result<PathBuf> {
    let real = path.canonicalize()?;
    // Windows has a longer form of the same path, which many programs do not take.
    let plain = real.to_str().and_then(|text| text.strip_prefix(r"\\?\")).map(PathBuf::from);
    Ok(plain.filter(|plain| plain.is_absolute()).unwrap_or(real))
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::catalog::AgentSetting;

    fn preparer(allowed_roots: &[&Path], data: &Path) -> Preparer {
        let setting = |name: &str, command: &str| AgentSetting {
            name: name.to_owned(),
            command: command.to_owned(),
            ..AgentSetting::default()
        };
        let catalog = Catalog::new(&[setting("shell", "sh"), setting("absent", "no-such-agent")]);
        Preparer {
            catalog: Arc::new(catalog),
            allowed_roots: allowed_roots.iter().map(|root| root.display().to_string()).collect(),
            worktrees: data.join("worktrees"),
            profiles: watch::Sender::new(Arc::new(ProfileSet::load(None))).subscribe(),
        }
    }

    fn wanted(agent: &str, path: Option<&Path>) -> Preparation {
        Preparation {
            session: "sess-1".into(),
            agent: agent.into(),
            workspace_path: path.map(|path| path.display().to_string()),
            has_worktree: false,
            earlier: None,
        }
    }

    fn code(outcome: Result<Prepared, Failure>) -> String {
        outcome.unwrap_err().code.to_string()
    }

    // spec: native/proxy_launch_behavior.2
    #[test]
    fn an_agent_that_is_not_installed_is_refused_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let preparer = preparer(&[], folder.path());
        let failure = preparer.prepare(&wanted("absent", None)).unwrap_err();
        assert_eq!(failure.code, "agent_not_open".into());
        assert!(failure.message.contains("no-such-agent"), "{}", failure.message);
        assert_eq!(code(preparer.prepare(&wanted("other", None))), "launch_not_supported");
    }

    #[test]
    fn a_chat_in_a_panel_needs_no_program_and_a_folder_only_if_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().canonicalize().unwrap();
        let preparer = preparer(&[&place], &place);
        assert_eq!(preparer.prepare(&wanted("cursor", None)).unwrap(), Prepared::default());
        let named = preparer.prepare(&wanted("cursor", Some(&place))).unwrap();
        assert_eq!(named.workspace_path, Some(place.display().to_string()));
        let outside = preparer.prepare(&wanted("cursor", Some(Path::new("/"))));
        assert_eq!(code(outside), "path_not_allowed");
        let tree = Preparation { has_worktree: true, ..wanted("cursor", None) };
        assert_eq!(code(preparer.prepare(&tree)), "launch_not_supported");
    }

    // spec: native/proxy_launch_behavior.3
    #[test]
    fn links_lead_out_of_no_allowed_folder() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().canonicalize().unwrap();
        for name in ["inside/kite", "outside"] {
            std::fs::create_dir_all(place.join(name)).unwrap();
        }
        symlink(place.join("outside"), place.join("inside/way-out")).unwrap();
        symlink(place.join("inside"), place.join("way-in")).unwrap();
        std::fs::write(place.join("inside/file"), "").unwrap();
        let preparer = preparer(&[&place.join("way-in")], &place);
        let prepare = |name: &str| preparer.prepare(&wanted("shell", Some(&place.join(name))));

        let kite = place.join("inside/kite").display().to_string();
        for allowed in ["inside/kite", "way-in/kite", "inside/way-out/../inside/kite"] {
            assert_eq!(prepare(allowed).unwrap().workspace_path, Some(kite.clone()), "{allowed}");
        }
        for refused in
            ["outside", "inside/way-out", "inside/../outside", "inside/none", "inside/file"]
        {
            assert_eq!(code(prepare(refused)), "path_not_allowed", "{refused}");
        }
        let relative =
            Preparation { workspace_path: Some("kite".to_owned()), ..wanted("shell", None) };
        assert_eq!(code(preparer.prepare(&relative)), "path_not_allowed");
        assert!(prepare("inside/none").unwrap_err().message.contains("it does not exist"));
    }

    #[test]
    fn without_a_folder_an_agent_works_where_it_may() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().canonicalize().unwrap();
        let prepared = preparer(&[&place], &place).prepare(&wanted("shell", None)).unwrap();
        assert_eq!(prepared.workspace_path, Some(place.display().to_string()));
    }

    #[test]
    fn a_working_tree_is_refused_where_there_is_no_repository() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().canonicalize().unwrap();
        let wanted = Preparation { has_worktree: true, ..wanted("shell", Some(&place)) };
        assert_eq!(code(preparer(&[], &place).prepare(&wanted)), "launch_not_supported");
    }

    #[test]
    fn a_conversation_of_an_agent_that_keeps_no_files_is_left_to_the_agent() {
        let folder = tempfile::tempdir().unwrap();
        let earlier = domain::fleet::Earlier { id: "ses_1".to_owned(), fork: true };
        let wanted = Preparation { earlier: Some(earlier), ..wanted("shell", Some(folder.path())) };
        let prepared = preparer(&[], folder.path()).prepare(&wanted).unwrap();
        let expected = Earlier { id: "ses_1".to_owned(), file: None, fork: true };
        assert_eq!(prepared.earlier, Some(expected));
    }
}
