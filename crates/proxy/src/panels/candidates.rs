//! Which frames of a target may be panels, judged by their addresses and names alone.
//!
//! Not here: whether the panel is in the document (`watcher`).

use std::sync::Arc;

use agents::panel::Profile;
use agents::panel::profile::TargetKind;
use cdp::frames::Frame;

/// A frame, and the profiles that it may be of, best first.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Candidate {
    pub(super) frame: String,
    pub(super) profiles: Vec<Arc<Profile>>,
}

/// Whether a target is worth attaching to.
pub(super) fn is_worth(kind: TargetKind, url: &str, profiles: &[Arc<Profile>]) -> bool {
    let is_content = !["about:", "chrome:", "devtools:", "chrome-extension:", "edge:", "data:"]
        .iter()
        .any(|scheme| url.starts_with(scheme));
    is_content
        && !url.is_empty()
        && profiles.iter().any(|profile| match (kind, profile.target.kind) {
            // A webview need not be a target of its own: it may be in any page.
            (TargetKind::Page, TargetKind::Iframe) => true,
            (TargetKind::Page, TargetKind::Page) | (TargetKind::Iframe, TargetKind::Iframe) => {
                has_address(profile, url)
            }
            (TargetKind::Iframe, TargetKind::Page) => false,
        })
}

/// The frames of a target that may be panels, the outermost first.
pub(super) fn candidates(
    kind: TargetKind,
    frames: &[Frame],
    profiles: &[Arc<Profile>],
) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = vec![];
    for profile in profiles {
        let roots = frames.iter().filter(|frame| {
            let is_outermost = frame.parent.is_none();
            let fits = match (kind, profile.target.kind) {
                (TargetKind::Page, TargetKind::Page) | (TargetKind::Iframe, TargetKind::Iframe) => {
                    is_outermost
                }
                (TargetKind::Page, TargetKind::Iframe) => !is_outermost,
                (TargetKind::Iframe, TargetKind::Page) => false,
            };
            fits && has_address(profile, &frame.url)
        });
        for root in roots {
            let named = profile.target.frame.as_deref();
            let holder = named.map_or(Some(root), |name| below(frames, root, name));
            let Some(holder) = holder else { continue };
            match found.iter_mut().find(|candidate| candidate.frame == holder.id) {
                Some(known) => known.profiles.push(Arc::clone(profile)),
                None => found.push(Candidate {
                    frame: holder.id.clone(),
                    profiles: vec![Arc::clone(profile)],
                }),
            }
        }
    }
    found
}

fn has_address(profile: &Profile, url: &str) -> bool {
    profile.target.url_contains.iter().all(|part| contains(url, part))
}

/// Extensions are written with capitals in some places and without in others.
fn contains(url: &str, part: &str) -> bool {
    url.to_ascii_lowercase().contains(&part.to_ascii_lowercase())
}

/// The frame of this name inside of another.
fn below<'a>(frames: &'a [Frame], root: &Frame, name: &str) -> Option<&'a Frame> {
    let is_inside = |frame: &Frame| {
        let mut parent = frame.parent.as_deref();
        for _ in 0..frames.len() {
            let Some(id) = parent else { return false };
            if id == root.id {
                return true;
            }
            parent = frames.iter().find(|it| it.id == id).and_then(|it| it.parent.as_deref());
        }
        false
    };
    frames.iter().find(|frame| frame.name == name && is_inside(frame))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panels::profiles::ProfileSet;

    fn frame(id: &str, parent: Option<&str>, name: &str, url: &str) -> Frame {
        let (id, parent) = (id.to_owned(), parent.map(str::to_owned));
        Frame { id, parent, name: name.to_owned(), url: url.to_owned() }
    }

    fn names(kind: TargetKind, frames: &[Frame]) -> Vec<(String, Vec<String>)> {
        let set = ProfileSet::load(None);
        let found = candidates(kind, frames, set.all());
        let ids = |it: &Candidate| it.profiles.iter().map(|profile| profile.id.clone()).collect();
        found.iter().map(|it| (it.frame.clone(), ids(it))).collect()
    }

    const WEBVIEW: &str = "https://w.example/pre/index.html?id=1&extensionId=Anthropic.claude-code";

    #[test]
    fn a_webview_is_found_as_a_target_of_its_own_and_inside_of_a_page() {
        let own = [frame("w", None, "", WEBVIEW), frame("a", Some("w"), "active-frame", "about:x")];
        let found = names(TargetKind::Iframe, &own);
        assert_eq!(found, [("a".to_owned(), vec!["claude-vscode".to_owned()])]);

        let inside = [
            frame("p", None, "", "http://127.0.0.1:8390/?folder=/src"),
            frame("x", Some("p"), "active-frame", "about:another"),
            frame("w", Some("p"), "webview", WEBVIEW),
            frame("a", Some("w"), "active-frame", "about:x"),
        ];
        let found = names(TargetKind::Page, &inside);
        let webviews: Vec<_> = found.iter().filter(|(_, ids)| ids[0] == "claude-vscode").collect();
        assert_eq!(webviews.len(), 1, "{found:?}");
        assert_eq!(webviews[0].0, "a", "not the frame of somebody else");
    }

    #[test]
    fn a_webview_whose_inner_frame_is_not_there_yet_is_none_yet() {
        assert!(names(TargetKind::Iframe, &[frame("w", None, "", WEBVIEW)]).is_empty());
    }

    #[test]
    fn pages_of_the_browser_itself_are_left_alone() {
        let set = ProfileSet::load(None);
        for url in ["", "about:blank", "chrome://newtab/", "devtools://devtools/x", "data:,x"] {
            assert!(!is_worth(TargetKind::Page, url, set.all()), "{url}");
        }
        assert!(is_worth(TargetKind::Page, "vscode-file://vscode-app/workbench.html", set.all()));
        assert!(is_worth(TargetKind::Iframe, &WEBVIEW.to_lowercase(), set.all()));
        assert!(!is_worth(TargetKind::Iframe, "https://ads.example/", set.all()));
    }
}
