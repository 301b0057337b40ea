//! Checks panels of IDEs: what is there, what changed, and the risk of an open debug port.

use std::path::Path;

use proxy::panels::{ProfileSet, SeenPanel, saved};

use super::Look;
use crate::arguments::Ide;

/// What every debug port is, whoever opened it.
const WARNING: &str = "any program on this computer that can reach a debug port has full control \
                       of that IDE: it can read and type anything in it, with your rights. Open \
                       one only on a computer that nobody else uses, and close the IDE when you \
                       are done";

/// Everything when it is asked for alone; else only what concerns a configured machine.
pub(super) async fn look(ide: &Ide, data: &Path, is_alone: bool) -> Vec<Look> {
    let config = ide.config();
    let profiles = ProfileSet::load(config.profiles.as_deref());
    let mut looks: Vec<Look> = profiles
        .faults
        .iter()
        .map(|(file, fault)| {
            let words = format!("{}: {fault}", file.display());
            Look::wrong("profile", words, "fix the file; until then the built-in profile is used")
        })
        .collect();
    let ports = config.all_ports();
    if ports.is_empty() {
        if is_alone {
            let words = "no debug port of an IDE or browser is configured";
            let mut look = Look::note("ide", words);
            look.advice = Some("set one with --ide-ports PORT; see docs/ide.md".to_owned());
            looks.push(look);
        }
    } else {
        let mut warning = Look::note("ide", format!("Farhelm attaches to {}", ports.join(", ")));
        warning.advice = Some(WARNING.to_owned());
        looks.push(warning);
    }
    for port in &ports {
        let seen = proxy::panels::look(port, &profiles, is_alone).await;
        if let Some(fault) = seen.fault {
            looks.push(Look::note("ide", fault));
            continue;
        }
        let panels: Vec<_> = seen.targets.iter().flat_map(|target| &target.panels).collect();
        if panels.is_empty() {
            let words = format!("a browser responds at {port}, but no agent panel is open in it");
            looks.push(Look::note("ide", words));
        }
        looks.extend(panels.into_iter().map(|panel| of_panel(panel, port)));
    }
    if is_alone {
        looks.extend(kept(data, &profiles));
    }
    looks
}

fn of_panel(panel: &SeenPanel, port: &str) -> Look {
    let name = &panel.profile;
    if let Some(waiting) = &panel.waiting {
        return Look::note("panel", format!("{name} at {port} is not ready: {waiting}"));
    }
    let missing: Vec<_> = panel
        .landmarks
        .iter()
        .filter(|landmark| landmark.is_required && landmark.found_by.is_none())
        .map(|landmark| landmark.name)
        .collect();
    if !missing.is_empty() {
        let words = format!(
            "{name} at {port} no longer matches its profile: {} not found",
            missing.join(", ")
        );
        let advice = "run `farhelm doctor cdp` for proposed fixes";
        let proposed = advice_of(&panel.proposals);
        return Look::wrong("panel", words, proposed.unwrap_or_else(|| advice.to_owned()));
    }
    let fallbacks = panel.landmarks.iter().filter(|it| it.alternative.is_some_and(|at| at > 0));
    let fallbacks: Vec<_> = fallbacks.map(|landmark| landmark.name).collect();
    if fallbacks.is_empty() {
        return Look::ok("panel", format!("{name} at {port}"));
    }
    let words = format!("{name} at {port}, found by fallback selectors: {}", fallbacks.join(", "));
    Look::note("panel", words)
}

/// What proxies kept of panels that changed.
fn kept(data: &Path, profiles: &ProfileSet) -> Vec<Look> {
    let of_saved = |saved: proxy::panels::Skeleton| {
        let profile = profiles.get(&saved.profile).filter(|it| it.revision == saved.revision);
        let Some(profile) = profile else {
            let words =
                format!("{} had changed; its profile has been updated since", saved.profile);
            return Look::note("skeleton", words);
        };
        let words =
            format!("{} did not match revision {} of its profile", saved.profile, saved.revision);
        let advice = "found no replacement for the missing parts; look with `farhelm cdp inspect`";
        let proposed = advice_of(&saved.proposals(profile));
        Look::wrong("skeleton", words, proposed.unwrap_or_else(|| advice.to_owned()))
    };
    saved(data).into_iter().map(of_saved).collect()
}

/// What may have moved, and what to do with it.
fn advice_of(proposals: &[String]) -> Option<String> {
    let how = "copy the profile to your own profiles folder and put the right selectors there";
    (!proposals.is_empty()).then(|| format!("{}; {how} (see docs/ide.md)", proposals.join("; ")))
}
