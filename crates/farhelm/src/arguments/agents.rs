//! A machine's agents: which ones, where they may work, and their limits.

use std::path::PathBuf;

use clap::Args;
use proxy::AgentSetting;
use proxy::config::Guards;
use serde::Deserialize;

use super::Ide;

/// Agents, their folders and their limits.
#[derive(Debug, Clone, Args)]
pub(crate) struct Hosting {
    /// Add an agent or change a known one: JSON with name, command, args and env (in the file:
    /// `[[agents]]` tables); repeatable
    #[arg(long, value_name = "JSON", value_parser = agent)]
    pub(crate) agents: Vec<AgentSetting>,
    /// Suggest this folder when someone starts a session; repeatable
    #[arg(long, value_name = "DIR", value_delimiter = ',')]
    pub(crate) workspaces: Vec<String>,
    /// Restrict agents to this folder; repeatable [default: no restriction]
    #[arg(long, value_name = "DIR", value_delimiter = ',')]
    pub(crate) allowed_roots: Vec<String>,
    /// Maximum number of agent programs that run at a time
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) agents_max: u32,
    /// Stop an agent program after this many idle minutes; its next message starts it again
    /// (0: never)
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub(crate) idle_stop_minutes: u32,
    /// Memory limit for one agent and everything it starts; an agent that exceeds it is stopped
    /// (0: no limit)
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) agent_memory_mib: u32,
    #[command(flatten)]
    pub(crate) ide: Ide,
}

impl Hosting {
    /// The bounds.
    pub(crate) fn guards(&self) -> Guards {
        let some = |number: u32| (number > 0).then_some(u64::from(number));
        Guards {
            programs_max: usize::try_from(self.agents_max).unwrap_or(usize::MAX),
            idle_stop_ms: some(self.idle_stop_minutes).map(|minutes| minutes * 60_000),
            memory_bytes_max: some(self.agent_memory_mib).map(|mib| mib << 20),
        }
    }

    /// The folders that are offered, with `~` written out.
    pub(crate) fn workspaces(&self) -> Vec<String> {
        self.workspaces.iter().map(|path| at_home(path)).collect()
    }

    /// The folders in which agents may be started, with `~` written out.
    pub(crate) fn allowed_roots(&self) -> Vec<String> {
        self.allowed_roots.iter().map(|path| at_home(path)).collect()
    }
}

/// No shell has seen what stands in a file.
pub(super) fn at_home(path: &str) -> String {
    let home = || std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE"));
    let below = if path == "~" { Some("") } else { path.strip_prefix("~/") };
    match (below, home()) {
        (Some(below), Some(home)) => PathBuf::from(home).join(below).to_string_lossy().into_owned(),
        (None, _) | (_, None) => path.to_owned(),
    }
}

/// Reads one agent.
fn agent(text: &str) -> Result<AgentSetting, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Written {
        name: String,
        #[serde(default)]
        command: String,
        #[serde(default)]
        args: Vec<String>,
        #[serde(default)]
        env: std::collections::BTreeMap<String, String>,
    }
    let Written { name, command, args, env } =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err("name may contain only letters, digits, -, _ and .".to_owned());
    }
    Ok(AgentSetting { name, command, args, env: env.into_iter().collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_has_a_name_and_nothing_that_nobody_knows() {
        let read = agent(r#"{"name":"mine","command":"m","args":["acp"],"env":{"A":"b"}}"#);
        let read = read.unwrap();
        assert_eq!((read.name.as_str(), read.command.as_str()), ("mine", "m"));
        assert_eq!(read.env, [("A".to_owned(), "b".to_owned())]);
        for wrong in [r#"{"command":"m"}"#, r#"{"name":"a b"}"#, r#"{"name":"a","comand":"m"}"#] {
            assert!(agent(wrong).is_err(), "{wrong}");
        }
    }
}
