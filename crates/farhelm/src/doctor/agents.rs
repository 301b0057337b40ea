//! Checks the agents of this computer and their limits.

use std::sync::Arc;

use domain::fleet::AgentOffer;
use proxy::catalog::Catalog;
use proxy::discovery::Discovery;

use super::Look;
use crate::arguments::Hosting;

pub(super) async fn look(agents: &Hosting) -> Vec<Look> {
    let catalog = Arc::new(Catalog::new(&agents.agents));
    let mut looks: Vec<Look> = Discovery::new(catalog).look().await.iter().map(of_agent).collect();
    looks.push(guards(agents));
    looks.extend(agents.allowed_roots().iter().filter_map(|root| of_root(root)));
    looks
}

/// An agent that nobody needs is nothing to mend.
fn of_agent(offer: &AgentOffer) -> Look {
    let name = offer.display_name.as_deref().unwrap_or(offer.agent.as_str());
    if !offer.is_installed {
        let mut look = Look::note("agent", format!("{name} is not installed"));
        look.advice.clone_from(&offer.install);
        return look;
    }
    let version = offer.version.as_deref().unwrap_or("(unknown version)");
    match offer.is_logged_in {
        Some(true) => Look::ok("agent", format!("{name} {version}, logged in")),
        None => Look::ok("agent", format!("{name} {version}")),
        Some(false) => {
            let mut look = Look::note("agent", format!("{name} {version}, not logged in"));
            look.advice = Some(format!("start {} once in a terminal and log in", offer.agent));
            look
        }
    }
}

fn guards(agents: &Hosting) -> Look {
    let idle = match agents.idle_stop_minutes {
        0 => "idle agents keep running".to_owned(),
        minutes => format!("idle agents stop after {minutes} minutes"),
    };
    let memory = match agents.agent_memory_mib {
        0 => "no memory limit".to_owned(),
        mib => format!("{mib} MiB of memory each"),
    };
    let words = format!("at most {} agents at a time; {idle}; {memory}", agents.agents_max);
    Look::ok("guards", words)
}

fn of_root(root: &str) -> Option<Look> {
    let is_there = std::path::Path::new(root).is_dir();
    let words = format!("{root} is an allowed root, but not a folder");
    let advice = "create the folder, or remove it from allowed-roots";
    (!is_there).then(|| Look::wrong("roots", words, advice))
}
