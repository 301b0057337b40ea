//! Finds a program as a shell would, and builds its environment.
//!
//! Invariant: a program is searched for in the PATH that it is started with.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use tokio::process::Command;

/// The program that a command names for a process with these variables besides the person's own.
pub(crate) fn find_with(command: &str, env: &[(String, String)]) -> Option<PathBuf> {
    let set = agents::variable(env, "PATH").map(OsString::from);
    let path = set.or_else(|| std::env::var_os("PATH"));
    find(command, path.as_deref(), &program_extensions())
}

/// The person's environment without anything of ours, and these variables.
pub(crate) fn set_environment(start: &mut Command, env: &[(String, String)]) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("FARHELM_") {
            start.env_remove(name);
        }
    }
    start.envs(env.iter().map(|(name, value)| (name, value)));
}

/// The file that a command names: itself if it is a path, else the first of its name in the
/// folders of `path`. `extensions` are tried in order where the name has none of them: on Windows
/// those of PATHEXT, so that the shims that npm makes (`.cmd`) are found; elsewhere none.
fn find(command: &str, path: Option<&OsStr>, extensions: &[String]) -> Option<PathBuf> {
    if command.contains(['/', '\\']) {
        return with_extension(Path::new(command), extensions);
    }
    let path = path?;
    std::env::split_paths(path)
        .filter(|folder| !folder.as_os_str().is_empty())
        .find_map(|folder| with_extension(&folder.join(command), extensions))
}

/// The extensions of programs on this system.
fn program_extensions() -> Vec<String> {
    if !cfg!(windows) {
        return vec![];
    }
    let listed = std::env::var("PATHEXT").unwrap_or_else(|_| ".COM;.EXE;.BAT;.CMD".to_owned());
    listed.split(';').filter(|word| word.starts_with('.')).map(str::to_lowercase).collect()
}

fn with_extension(file: &Path, extensions: &[String]) -> Option<PathBuf> {
    let name = file.file_name()?.to_string_lossy().to_lowercase();
    let has_one = extensions.is_empty() || extensions.iter().any(|end| name.ends_with(end));
    if has_one && is_program(file) {
        return Some(file.to_owned());
    }
    extensions.iter().find_map(|end| {
        let mut whole = file.as_os_str().to_owned();
        whole.push(end);
        Some(PathBuf::from(whole)).filter(|whole| is_program(whole))
    })
}

#[cfg(unix)]
fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let executable =
        |data: std::fs::Metadata| data.is_file() && data.permissions().mode() & 0o111 != 0;
    std::fs::metadata(file).is_ok_and(executable)
}

#[cfg(not(unix))]
fn is_program(file: &Path) -> bool {
    file.is_file()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[cfg(unix)]
    fn program(folder: &Path, name: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let file = folder.join(name);
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    #[cfg(unix)]
    #[test]
    fn the_first_program_of_the_name_is_found_and_other_files_are_not() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(one.path().join("claude"), "not a program").unwrap();
        let claude = program(two.path(), "claude");
        let path = std::env::join_paths([one.path(), two.path()]).unwrap();
        assert_eq!(find("claude", Some(&path), &[]), Some(claude.clone()));
        assert_eq!(find("codex", Some(&path), &[]), None);
        assert_eq!(find(claude.to_str().unwrap(), None, &[]), Some(claude));
    }

    #[cfg(unix)]
    #[test]
    fn a_shim_with_an_extension_is_found_where_programs_have_one() {
        let folder = tempfile::tempdir().unwrap();
        program(folder.path(), "claude");
        let shim = program(folder.path(), "claude.cmd");
        let path = folder.path().as_os_str();
        let extensions = [".exe".to_owned(), ".cmd".to_owned()];
        assert_eq!(find("claude", Some(path), &extensions), Some(shim.clone()));
        assert_eq!(find("claude.cmd", Some(path), &extensions), Some(shim));
    }
}
