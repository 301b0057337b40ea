//! The agents that `cargo xtask agents --install` fetched, for tests to find.
//!
//! Not here: fetching them (`xtask`), the home they run in (`homes`).

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::homes::Agent;

/// The variable that names the list of installed agents; `cargo xtask agents --install` tells its
/// value.
pub const LIST_VARIABLE: &str = "FARHELM_TEST_AGENTS";

/// An agent that can be started: `program args_prefix… arguments…`, with [`Installed::path`] as
/// its `PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Which version it is.
    pub version: String,
    /// What to start.
    pub program: PathBuf,
    /// For agents that are scripts: the script, for a program that is Node.
    pub args_prefix: Vec<String>,
    /// The folder of the Node that it runs on.
    pub node_bin: Option<PathBuf>,
}

impl Installed {
    /// Finds an agent in the list that [`LIST_VARIABLE`] names. The error says what to do.
    pub fn find(agent: Agent) -> Result<Self, String> {
        let Some(list) = env::var_os(LIST_VARIABLE) else {
            return Err(format!(
                "run `cargo xtask agents --install`, and set {LIST_VARIABLE} as it says"
            ));
        };
        Self::find_in(Path::new(&list), agent)
    }

    fn find_in(list: &Path, agent: Agent) -> Result<Self, String> {
        let name = agent.name();
        let told = |error: &dyn std::fmt::Display| format!("{}: {error}", list.display());
        let text = fs::read_to_string(list).map_err(|error| told(&error))?;
        let value: Value = serde_json::from_str(&text).map_err(|error| told(&error))?;
        let found = &value[name];
        let (Some(program), Some(version)) = (found["program"].as_str(), found["version"].as_str())
        else {
            return Err(told(&format!("{name} is not in it: run `cargo xtask agents --install`")));
        };
        let arguments = found["args_prefix"].as_array().into_iter().flatten();
        Ok(Self {
            version: version.to_owned(),
            program: program.into(),
            args_prefix: arguments.filter_map(Value::as_str).map(str::to_owned).collect(),
            node_bin: found["node_bin"].as_str().map(PathBuf::from),
        })
    }

    /// Our own `PATH`, with its Node in front.
    pub fn path(&self) -> OsString {
        let own = env::var_os("PATH").unwrap_or_default();
        let folders = self.node_bin.iter().cloned().chain(env::split_paths(&own));
        // Only a folder with a separator in its name cannot be joined.
        env::join_paths(folders).unwrap_or(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_found_with_all_that_starting_it_takes() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("installed.json");
        let text = r#"{"pi": {"name": "pi", "version": "1.2.3", "program": "/n/bin/node",
            "args_prefix": ["/p/cli.js"], "node_bin": "/n/bin"}}"#;
        fs::write(&list, text).unwrap();
        let pi = Installed::find_in(&list, Agent::Pi).unwrap();
        assert_eq!((pi.version.as_str(), pi.args_prefix[0].as_str()), ("1.2.3", "/p/cli.js"));
        let first = env::split_paths(&pi.path()).next().unwrap();
        assert_eq!(first, Path::new("/n/bin"));
    }

    #[test]
    fn a_missing_agent_or_list_is_told_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("installed.json");
        assert!(Installed::find_in(&list, Agent::Pi).is_err());
        fs::write(&list, "{}").unwrap();
        let sentence = Installed::find_in(&list, Agent::Pi).unwrap_err();
        assert!(sentence.contains("pi is not in it"), "{sentence}");
    }
}
