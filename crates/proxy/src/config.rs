//! The configuration of a proxy.

use std::fmt;
use std::path::PathBuf;

use domain::fleet::Limits;

use crate::catalog::AgentSetting;
use crate::panels::IdeConfig;

/// A proxy's settings.
#[derive(Clone)]
pub struct ProxyConfig {
    /// The relay: `ws://`, `wss://`, `http://` or `https://`; without a path, `/ws/proxy`.
    pub relay: String,
    /// A token of role proxy.
    pub token: String,
    /// A PEM file of certificates to trust besides the system's, for `wss` and `https`.
    pub tls_ca: Option<PathBuf>,
    /// What people call this machine; `None` asks the system.
    pub machine: Option<String>,
    /// Where the journal and the demo agent's record lie.
    pub data: PathBuf,
    /// Whether to keep one demo session.
    pub has_demo: bool,
    /// Folders that this machine is known for.
    pub workspaces: Vec<String>,
    /// Folders in which agents may be started; none means anywhere.
    pub allowed_roots: Vec<String>,
    /// Agents besides the known ones, and changes to those.
    pub agents: Vec<AgentSetting>,
    /// How much the agents may take.
    pub guards: Guards,
    /// The IDEs and browsers whose panels are looked at.
    pub ide: IdeConfig,
}

/// How much the agents of a machine may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guards {
    /// Programs that run at once. At the bound the one that rested longest makes room; where
    /// none rests, a further one is not started.
    pub programs_max: usize,
    /// A program that had nothing to do for so long is ended, and started again when needed.
    pub idle_stop_ms: Option<u64>,
    /// Memory of one program and all that it started. One that takes more is ended.
    pub memory_bytes_max: Option<u64>,
}

impl Guards {
    /// As everybody is told.
    pub fn limits(&self) -> Limits {
        let is_bound = self.programs_max < usize::MAX;
        Limits {
            agents_max: u64::try_from(self.programs_max).ok().filter(|_| is_bound),
            idle_stop_ms: self.idle_stop_ms,
            memory_bytes_max: self.memory_bytes_max,
        }
    }
}

/// No bound.
impl Default for Guards {
    fn default() -> Self {
        Self { programs_max: usize::MAX, idle_stop_ms: None, memory_bytes_max: None }
    }
}

/// Without the token: settings are logged.
impl fmt::Debug for ProxyConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyConfig")
            .field("relay", &self.relay)
            .field("tls_ca", &self.tls_ca)
            .field("machine", &self.machine)
            .field("data", &self.data)
            .field("has_demo", &self.has_demo)
            .field("workspaces", &self.workspaces)
            .field("allowed_roots", &self.allowed_roots)
            .field("guards", &self.guards)
            .field("ide", &self.ide)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_bound_is_told_as_none() {
        assert_eq!(Guards::default().limits(), Limits::default());
        let guards = Guards { programs_max: 4, idle_stop_ms: Some(60_000), ..Guards::default() };
        let told = Limits { agents_max: Some(4), idle_stop_ms: Some(60_000), ..Limits::default() };
        assert_eq!(guards.limits(), told);
    }
}
