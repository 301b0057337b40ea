//! `farhelm proxy`: this machine's agents, for a relay elsewhere.

use std::path::Path;
use std::process::ExitCode;

use ::proxy::ProxyConfig;

use crate::arguments::Proxy;
use crate::problem::Problem;
use crate::stop::Stop;
use crate::{discovery, folders, ready};

/// Runs until it is asked to stop.
pub(super) async fn run(proxy: Proxy) -> Result<ExitCode, Problem> {
    let mut stop = Stop::listen()?;
    let data = folders::made_data(proxy.data.data.as_deref())?;
    let config = ProxyConfig {
        relay: relay(proxy.relay.as_deref(), &data)?,
        token: token(proxy.token, &data)?,
        tls_ca: proxy.tls_ca,
        machine: proxy.machine.label,
        has_demo: !proxy.machine.no_demo,
        workspaces: proxy.machine.agents.workspaces(),
        allowed_roots: proxy.machine.agents.allowed_roots(),
        guards: proxy.machine.agents.guards(),
        ide: proxy.machine.agents.ide.config(),
        agents: proxy.machine.agents.agents,
        data,
    };
    tracing::info!(relay = config.relay, "connecting");
    ::proxy::run(config, stop.asked()).await.map_err(Problem::new)?;
    Ok(ExitCode::SUCCESS)
}

fn relay(named: Option<&str>, data: &Path) -> Result<String, Problem> {
    if let Some(url) = named {
        // An address with the path of a socket is taken as it is.
        return discovery::base(url).or_else(|problem| {
            if url.contains("://") && url.contains("/ws") {
                Ok(url.to_owned())
            } else {
                Err(problem)
            }
        });
    }
    let local = ready::read_relay_file(data).map(|file| file.url);
    local.ok_or_else(|| Problem::usage("no relay given: pass --relay URL (or set FARHELM_URL)"))
}

fn token(named: Option<String>, data: &Path) -> Result<String, Problem> {
    let local = || std::fs::read_to_string(data.join(folders::PROXY_TOKEN_FILE_NAME)).ok();
    let token = named.or_else(local).map(|token| token.trim().to_owned());
    token.filter(|token| !token.is_empty()).ok_or_else(|| {
        Problem::usage(
            "no token given: create one where the relay runs with `farhelm token create --role \
             proxy`, then pass it with --token (or FARHELM_TOKEN)",
        )
    })
}
