//! What tests need to know about an installed agent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::cache;

/// An agent that can be started: `program args_prefix… arguments…`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Installed {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) program: PathBuf,
    /// For agents that are scripts: the script, for a program that is Node.
    pub(crate) args_prefix: Vec<String>,
    /// The folder of the Node that it runs on, to be put in front of PATH.
    pub(crate) node_bin: Option<PathBuf>,
}

/// Writes them all, by name: `{"claude": {"program": …, …}, …}`.
pub(super) fn write(path: &Path, installed: &[Installed]) -> Result<(), String> {
    let by_name: BTreeMap<&str, &Installed> =
        installed.iter().map(|one| (one.name.as_str(), one)).collect();
    let text = serde_json::to_string_pretty(&by_name).map_err(|error| error.to_string())?;
    cache::replace(path, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("installed.json");
        let one = Installed {
            name: "pi".into(),
            version: "1.2.3".into(),
            program: "/n/node".into(),
            args_prefix: vec!["/p/cli.js".into()],
            node_bin: Some("/n".into()),
        };
        write(&path, std::slice::from_ref(&one)).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let read: BTreeMap<String, Installed> = serde_json::from_str(&text).unwrap();
        assert_eq!(read["pi"], one);
    }
}
