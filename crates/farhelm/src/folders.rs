//! Where things live on this platform.
//!
//! Not here: what is in the folders (`ready`, `store`, `proxy`).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::problem::{Context as _, Problem};

const NAME: &str = "farhelm";

/// Of the ledger.
pub(crate) const DATABASE_FILE_NAME: &str = "ledger.db";
/// Of the owner's token.
pub(crate) const OWNER_TOKEN_FILE_NAME: &str = "owner.token";
/// Of the token of the proxy on this computer.
pub(crate) const PROXY_TOKEN_FILE_NAME: &str = "proxy.token";
/// Uploaded files.
pub(crate) const UPLOADS_FOLDER_NAME: &str = "uploads";

/// An environment variable, unless it is empty.
type Lookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;

fn environment(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The named data folder, or the platform's.
pub(crate) fn data(named: Option<&Path>) -> Result<PathBuf, Problem> {
    let folder = named.map(Path::to_path_buf).or_else(|| platform_data(&environment));
    folder.ok_or_else(|| {
        Problem::new("no home folder found to keep data in; choose a folder with --data DIR")
    })
}

/// The same, made if it is missing, and private.
pub(crate) fn made_data(named: Option<&Path>) -> Result<PathBuf, Problem> {
    let folder = data(named)?;
    make_private(&folder).context(format_args!(
        "could not create the data folder {}; check its permissions, or choose another with --data",
        folder.display()
    ))?;
    Ok(folder)
}

/// The configuration file of this platform.
pub(crate) fn configuration_file() -> Option<PathBuf> {
    platform_configuration(&environment).map(|folder| folder.join("farhelm.toml"))
}

fn make_private(folder: &Path) -> std::io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn platform_data(get: Lookup<'_>) -> Option<PathBuf> {
    if cfg!(windows) {
        return Some(PathBuf::from(get("LOCALAPPDATA")?).join(NAME));
    }
    if cfg!(target_os = "macos") {
        return Some(home(get)?.join("Library/Application Support").join(NAME));
    }
    Some(xdg(get, "XDG_DATA_HOME", ".local/share")?.join(NAME))
}

fn platform_configuration(get: Lookup<'_>) -> Option<PathBuf> {
    if cfg!(windows) {
        return Some(PathBuf::from(get("APPDATA")?).join(NAME));
    }
    if cfg!(target_os = "macos") {
        return Some(home(get)?.join("Library/Application Support").join(NAME));
    }
    Some(xdg(get, "XDG_CONFIG_HOME", ".config")?.join(NAME))
}

/// XDG: a relative path in the variable is to be ignored.
fn xdg(get: Lookup<'_>, variable: &str, below_home: &str) -> Option<PathBuf> {
    let named = get(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    named.or_else(|| Some(home(get)?.join(below_home)))
}

fn home(get: Lookup<'_>) -> Option<PathBuf> {
    get("HOME").map(PathBuf::from)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn with<'a>(known: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<OsString> + 'a {
        |name| known.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into())
    }

    #[test]
    fn the_folders_follow_xdg() {
        let get = with(&[("HOME", "/home/ada"), ("XDG_DATA_HOME", "/srv/data")]);
        assert_eq!(platform_data(&get), Some("/srv/data/farhelm".into()));
        assert_eq!(platform_configuration(&get), Some("/home/ada/.config/farhelm".into()));
    }

    #[test]
    fn a_relative_xdg_path_is_ignored() {
        let get = with(&[("HOME", "/home/ada"), ("XDG_DATA_HOME", "data")]);
        assert_eq!(platform_data(&get), Some("/home/ada/.local/share/farhelm".into()));
    }

    #[test]
    fn without_a_home_there_is_no_folder() {
        assert_eq!(platform_data(&with(&[])), None);
    }

    #[test]
    fn a_made_data_folder_is_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let parent = tempfile::tempdir().unwrap();
        let made = made_data(Some(&parent.path().join("a/b"))).unwrap();
        assert_eq!(made.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }
}
