//! What a person may configure about a proxy.

use std::fmt;
use std::path::PathBuf;

use crate::catalog::AgentSetting;

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
            .finish_non_exhaustive()
    }
}
