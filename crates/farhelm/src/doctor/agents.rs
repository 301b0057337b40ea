//! The agents of this computer, and how much they may take.

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
    let version = offer.version.as_deref().unwrap_or("of unknown version");
    match offer.is_logged_in {
        Some(true) => Look::ok("agent", format!("{name} {version}, with a credential")),
        None => Look::ok("agent", format!("{name} {version}")),
        Some(false) => {
            let mut look = Look::note("agent", format!("{name} {version}, without a credential"));
            look.advice = Some(format!("start {} by itself once, and log in", offer.agent));
            look
        }
    }
}

fn guards(agents: &Hosting) -> Look {
    let idle = match agents.idle_stop_minutes {
        0 => "are never ended for being idle".to_owned(),
        minutes => format!("are ended after {minutes} minutes without work"),
    };
    let memory = match agents.agent_memory_mib {
        0 => "may take any memory".to_owned(),
        mib => format!("may take {mib} MiB each"),
    };
    let words = format!("at most {} agents run at once, {idle}, and {memory}", agents.agents_max);
    Look::ok("guards", words)
}

fn of_root(root: &str) -> Option<Look> {
    let is_there = std::path::Path::new(root).is_dir();
    let words = format!("{root} is an allowed root, but no folder");
    let advice = "make the folder, or take it out of allowed-roots";
    (!is_there).then(|| Look::wrong("roots", words, advice))
}
