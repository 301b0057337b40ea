//! A separate git working tree for a session.
//!
//! It is below the data folder, on its own branch. It is removed with the session only when it has
//! no uncommitted changes; the branch is kept if it has commits.
//!
//! Not here: which sessions want one (`engine`).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use domain::SessionId;
use domain::content::Failure;

/// How a branch of ours begins.
const BRANCH_PREFIX: &str = "farhelm/";
/// Characters of a session's id in the name of its branch.
const SHORT_ID_CHARACTERS: usize = 8;

/// A working tree that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// Its root.
    pub root: PathBuf,
    /// The folder in it that is the one that was named.
    pub folder: PathBuf,
}

/// Makes a working tree for a session, of the repository that this folder is in.
pub fn add(workspace: &Path, below: &Path, session: &SessionId) -> Result<Worktree, Failure> {
    let inside = git(workspace, &["rev-parse", "--show-toplevel"]).map_err(|why| {
        let place = workspace.display();
        let words = format!(
            "{place} is not in a git repository, so a working tree cannot be created ({why}). \
             Start the session without one"
        );
        Failure::new("launch_not_supported", words)
    })?;
    let top = PathBuf::from(inside);
    let top = top.canonicalize().unwrap_or(top);
    let (root, branch) = (below.join(session.as_str()), branch_of(session));
    std::fs::create_dir_all(below).map_err(|error| {
        Failure::new("internal", format!("{} could not be created: {error}", below.display()))
    })?;
    let place = root.to_string_lossy().into_owned();
    git(&top, &["worktree", "add", "-b", &branch, &place]).map_err(|why| {
        Failure::new("internal", format!("git could not create a working tree: {why}"))
    })?;
    let inner = workspace.strip_prefix(&top).unwrap_or(Path::new(""));
    let folder = root.join(inner);
    // A folder that git does not know is not in the new tree.
    let folder = if folder.is_dir() { folder } else { root.clone() };
    Ok(Worktree { root, folder })
}

/// Removes a working tree if nothing is in it that is not committed. Says whether it is gone.
pub fn tidy(root: &Path) -> bool {
    if !root.is_dir() {
        return true;
    }
    let is_clean = git(root, &["status", "--porcelain"]).is_ok_and(|changes| changes.is_empty());
    let common = git(root, &["rev-parse", "--path-format=absolute", "--git-common-dir"]);
    let branch = git(root, &["branch", "--show-current"]);
    let (true, Ok(common)) = (is_clean, common) else { return false };
    let (common, place) = (Path::new(&common), root.to_string_lossy());
    if git(common, &["worktree", "remove", &place]).is_err() {
        return false;
    }
    if let Some(branch) = branch.ok().filter(|branch| branch.starts_with(BRANCH_PREFIX)) {
        // Refused where something is on it that is nowhere else.
        let _ = git(common, &["branch", "-d", &branch]);
    }
    true
}

/// Removes what an earlier proxy left behind: trees of sessions that are not there, if clean.
pub fn tidy_all(below: &Path, is_known: impl Fn(&SessionId) -> bool) {
    let Ok(entries) = std::fs::read_dir(below) else { return };
    for entry in entries.flatten() {
        let session = entry.file_name().to_str().and_then(SessionId::parse);
        if let Some(session) = session.filter(|session| !is_known(session))
            && !tidy(&entry.path())
        {
            tracing::debug!(%session, "keeping a working tree: it has uncommitted changes");
        }
    }
}

fn branch_of(session: &SessionId) -> String {
    let short: String = session.as_str().chars().take(SHORT_ID_CHARACTERS).collect();
    format!("{BRANCH_PREFIX}{short}")
}

/// What git prints, or what it complains about.
fn git(folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(arguments).stdin(Stdio::null());
    // Whatever repository the proxy itself was started in is not meant.
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(variable);
    }
    let output = command.env("GIT_TERMINAL_PROMPT", "0").output();
    let output = output.map_err(|error| format!("git could not be started: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(words.trim().lines().last().unwrap_or("git failed").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("kite");
        std::fs::create_dir_all(at.join("src")).unwrap();
        std::fs::write(at.join("src/lib.rs"), "// kite\n").unwrap();
        git(&at, &["init", "-q", "-b", "main"]).unwrap();
        git(&at, &["add", "."]).unwrap();
        commit(&at, "first");
        folder
    }

    fn commit(at: &Path, words: &str) {
        let who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
        let arguments = [&who[..], &["commit", "-q", "--no-gpg-sign", "-m", words]].concat();
        git(at, &arguments).unwrap();
    }

    fn branches(at: &Path) -> String {
        git(at, &["branch", "--format", "%(refname:short)"]).unwrap()
    }

    // spec: native/proxy_launch_behavior.4
    #[test]
    fn a_clean_tree_goes_with_its_session_and_its_branch_too() {
        let folder = repository();
        let (kite, below) = (folder.path().join("kite"), folder.path().join("trees"));
        let kite = kite.canonicalize().unwrap();
        let made = add(&kite.join("src"), &below, &"0123456789-s".into()).unwrap();
        assert_eq!(made.folder, made.root.join("src"));
        assert!(made.folder.join("lib.rs").is_file());
        assert_eq!(branches(&kite), "farhelm/01234567\nmain");
        assert!(tidy(&made.root));
        assert!(!made.root.exists());
        assert_eq!(branches(&kite), "main");
    }

    #[test]
    fn a_tree_with_something_in_it_stays() {
        let folder = repository();
        let (kite, below) = (folder.path().join("kite"), folder.path().join("trees"));
        let made = add(&kite, &below, &"sess-1".into()).unwrap();
        std::fs::write(made.root.join("new.txt"), "x").unwrap();
        tidy_all(&below, |_| false);
        assert!(made.root.join("new.txt").is_file());
        // Committed: the tree goes, the branch with the commit stays.
        git(&made.root, &["add", "."]).unwrap();
        commit(&made.root, "second");
        tidy_all(&below, |_| true);
        assert!(made.root.exists(), "its session is there");
        tidy_all(&below, |_| false);
        assert!(!made.root.exists());
        assert_eq!(branches(&kite), "farhelm/sess-1\nmain");
    }

    // spec: native/proxy_launch_behavior.4
    #[test]
    fn a_folder_outside_of_any_repository_is_refused_in_words() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("trees");
        let failure = add(folder.path(), &below, &"sess-1".into()).unwrap_err();
        assert_eq!(failure.code, "launch_not_supported".into());
        assert!(failure.message.contains("not in a git repository"), "{}", failure.message);
    }
}
