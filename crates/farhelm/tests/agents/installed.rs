//! Where `cargo xtask agents` put the real programs.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::Value;

/// The list, if not in the place where it usually is.
const LIST_VARIABLE: &str = "FARHELM_TEST_AGENTS";

/// One installed agent.
#[derive(Debug)]
pub(crate) struct Installed {
    pub(crate) version: String,
    /// The program, and what comes before all of its arguments.
    command: Vec<String>,
    /// The folder of the Node that it runs on.
    node: Option<PathBuf>,
}

impl Installed {
    /// Fails the test with what to do when the agent is not there.
    pub(crate) fn find(name: &str) -> Self {
        let list = list();
        let advice = format!(
            "{name} is not installed for tests ({} does not name it): run \
             `cargo xtask agents --install --only {name}`",
            list.display()
        );
        let text = std::fs::read_to_string(&list).unwrap_or_else(|_| panic!("{advice}"));
        let known: Value = serde_json::from_str(&text).unwrap();
        let entry = &known[name];
        let Some(program) = entry["program"].as_str() else { panic!("{advice}") };
        let prefix = entry["args_prefix"].as_array().cloned().unwrap_or_default();
        let prefix = prefix.iter().filter_map(Value::as_str).map(str::to_owned);
        Self {
            version: entry["version"].as_str().unwrap_or("unknown").to_owned(),
            command: std::iter::once(program.to_owned()).chain(prefix).collect(),
            node: entry["node_bin"].as_str().map(PathBuf::from),
        }
    }

    /// Puts it into this folder under its usual name, and gives the `PATH` with which it is found.
    pub(crate) fn put(&self, name: &str, folder: PathBuf) -> String {
        let quoted: Vec<String> = self.command.iter().map(|word| format!("'{word}'")).collect();
        let script = format!("#!/bin/sh\nexec {} \"$@\"\n", quoted.join(" "));
        let file = folder.join(name);
        std::fs::write(&file, script).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        let system = ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from);
        let path = std::iter::once(folder).chain(self.node.clone()).chain(system);
        std::env::join_paths(path).unwrap().into_string().unwrap()
    }
}

/// Where it is written which agents are installed, beside them.
pub(crate) fn list() -> PathBuf {
    if let Some(list) = std::env::var_os(LIST_VARIABLE) {
        return list.into();
    }
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.filter(|path| path.is_absolute()).unwrap_or_else(|| home().join(".cache"));
    cache.join("farhelm/agents/installed.json")
}
