//! Shows a person what is behind a debug port: targets, the matching profile, its landmarks.
//!
//! Invariant: it only reads, as the observer does, and leaves nothing behind.
//!
//! Not here: printing it (`farhelm`).

use std::sync::Arc;

use agents::panel::Profile;
use agents::panel::frames::Push;
use agents::panel::profile::TargetKind;
use cdp::{Browser, Fault};
use serde::Serialize;
use serde_json::{Value, json};

use super::ProfileSet;
use super::candidates::{candidates, is_worth};
use super::skeletons::proposals;

/// Targets of one port that are looked at.
const TARGETS_MAX: usize = 64;
/// Not the one in which a panel may be watched at the same time.
const WORLD: &str = "farhelm-inspection";

/// A debug port.
#[derive(Debug, Clone, Serialize)]
pub struct SeenPort {
    /// Where.
    pub address: String,
    /// Why nothing is seen there, if so.
    pub fault: Option<String>,
    /// What is there.
    pub targets: Vec<SeenTarget>,
}

/// A page, or a frame in a process of its own.
#[derive(Debug, Clone, Serialize)]
pub struct SeenTarget {
    /// `page` or `iframe`.
    pub kind: String,
    /// Its title.
    pub title: String,
    /// Its address.
    pub url: String,
    /// The panels in it.
    pub panels: Vec<SeenPanel>,
}

/// A panel.
#[derive(Debug, Clone, Serialize)]
pub struct SeenPanel {
    /// The profile that fits.
    pub profile: String,
    /// Its revision.
    pub revision: u32,
    /// What was found of it.
    pub landmarks: Vec<Landmark>,
    /// Rows of the conversation that are in the document.
    pub rows: usize,
    /// Why it is not ready, if so.
    pub waiting: Option<String>,
    /// The model, as it is written.
    pub model: Option<String>,
    /// Whether a run goes on.
    pub is_busy: bool,
    /// What the script stumbled over.
    pub error: Option<String>,
    /// Where landmarks that moved may be, where that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub proposals: Vec<String>,
}

/// A landmark of a profile.
#[derive(Debug, Clone, Serialize)]
pub struct Landmark {
    /// Which.
    pub name: &'static str,
    /// The selector that found it; `None` where none did.
    pub found_by: Option<String>,
    /// Which alternative that is, from 0.
    pub alternative: Option<usize>,
    /// Whether the panel cannot be used without it.
    pub is_required: bool,
}

/// Looks at a port once.
pub async fn look(address: &str, profiles: &ProfileSet, with_proposals: bool) -> SeenPort {
    let (address, mut targets) = (address.to_owned(), vec![]);
    let fault = look_into(&address, profiles, with_proposals, &mut targets).await.err();
    SeenPort { address, fault: fault.map(|fault| fault.to_string()), targets }
}

async fn look_into(
    address: &str,
    profiles: &ProfileSet,
    with_bones: bool,
    seen: &mut Vec<SeenTarget>,
) -> Result<(), Fault> {
    let browser = Browser::connect(address).await?;
    let filter =
        json!([{"type": "page"}, {"type": "iframe"}, {"type": "webview"}, {"exclude": true}]);
    let answer = browser.call(None, "Target.getTargets", json!({"filter": filter})).await?;
    let infos = answer["targetInfos"].as_array().cloned().unwrap_or_default();
    for info in infos.iter().take(TARGETS_MAX) {
        let text = |name: &str| info[name].as_str().unwrap_or_default().to_owned();
        let kind = match info["type"].as_str() {
            Some("iframe") => TargetKind::Iframe,
            _ => TargetKind::Page,
        };
        let mut target = SeenTarget {
            kind: text("type"),
            title: text("title"),
            url: text("url"),
            panels: vec![],
        };
        if is_worth(kind, &target.url, profiles.all()) {
            let session = browser.attach(&text("targetId")).await?;
            // A target that does not answer must not hide the others.
            if let Ok(panels) = panels(&browser, &session, kind, profiles, with_bones).await {
                target.panels = panels;
            }
            let _ = browser.detach(&session).await;
        }
        seen.push(target);
    }
    Ok(())
}

async fn panels(
    browser: &Browser,
    session: &cdp::SessionId,
    kind: TargetKind,
    profiles: &ProfileSet,
    with_bones: bool,
) -> Result<Vec<SeenPanel>, Fault> {
    let frames = cdp::frames::all(browser, session).await?;
    let mut seen = vec![];
    for candidate in candidates(kind, &frames, profiles.all()) {
        for profile in &candidate.profiles {
            let place = cdp::world_named(WORLD, browser, session, &candidate.frame).await?;
            let (push, bones) = observe(browser, &place, profile, with_bones).await?;
            let is_there = profile.target.scope.is_empty() || push.landmarks.scope.is_some();
            if is_there {
                seen.push(panel(profile, push, bones));
                break;
            }
        }
    }
    Ok(seen)
}

/// Looks once with the observer's eyes, and stops it.
async fn observe(
    browser: &Browser,
    place: &cdp::Place,
    profile: &Arc<Profile>,
    with_bones: bool,
) -> Result<(Push, Option<Value>), Fault> {
    let expression = format!(
        "(() => {{ globalThis.farhelmLook = () => {{}}; const it = ({})({}, \"farhelmLook\", \
         \"look\"); const seen = it.snapshot(); const bones = {} ? it.skeleton() : null; \
         it.stop(); delete globalThis.__farhelm; return [seen, bones]; }})()",
        agents::panel::OBSERVER,
        json!(profile),
        with_bones,
    );
    let answer = browser.evaluate(place, &expression, false).await?;
    let push = answer[0].as_str().unwrap_or_default();
    let push = Push::read(push).map_err(Fault::Threw)?;
    let bones = answer[1].as_str().and_then(|bones| serde_json::from_str(bones).ok());
    Ok((push, bones))
}

fn panel(profile: &Profile, push: Push, bones: Option<Value>) -> SeenPanel {
    let found = &push.landmarks;
    let landmark = |name, any: &[String], alternative: Option<usize>, is_required| Landmark {
        name,
        found_by: alternative.and_then(|at| any.get(at).cloned()),
        alternative,
        is_required,
    };
    let mut landmarks = vec![];
    if !profile.target.scope.is_empty() {
        landmarks.push(landmark("scope", &profile.target.scope, found.scope, true));
    }
    landmarks.push(landmark("composer", &profile.composer.any, found.composer, true));
    if !profile.send.any.is_empty() {
        landmarks.push(landmark("send", &profile.send.any, found.send, false));
    }
    landmarks.push(landmark("transcript", &profile.transcript.root, found.root, true));
    if let Some(stop) = &profile.stop {
        landmarks.push(landmark("stop", &stop.any, found.stop, false));
    }
    if let Some(model) = &profile.model {
        landmarks.push(landmark("model", &model.read, found.model, false));
    }
    let proposals = bones.map(|bones| proposals(profile, found, &bones)).unwrap_or_default();
    SeenPanel {
        profile: profile.id.clone(),
        revision: profile.revision,
        landmarks,
        rows: push.count,
        waiting: push.waiting,
        model: push.model,
        is_busy: push.busy,
        error: push.error,
        proposals,
    }
}
