//! The window around a webview. A webview is a frame in another process; focus, typing and
//! overlapping elements are known only in the window's own process. Farhelm therefore attaches to
//! the window while it acts.
//!
//! Not here: the panel itself (`hand`).

use cdp::{Browser, Fault, Place};
use serde::Deserialize;
use serde_json::json;

use super::hand::Hand;

const REMEMBER: &str = "() => void (globalThis.__farhelmFocus = document.activeElement)";
/// Only what we took: whoever went elsewhere meanwhile stays there.
const GIVE_BACK: &str = "() => {
    const [element, active] = [globalThis.__farhelmFocus, document.activeElement];
    delete globalThis.__farhelmFocus;
    const isTaken = active == null || active === document.body || active.tagName === 'IFRAME';
    if (!isTaken || !element || !element.isConnected || element === active) return;
    if (element !== document.body) element.focus({ preventScroll: true });
    else active?.blur();
}";
/// From the first question on it is known when somebody types.
const TYPING: &str = "() => {
    const isKnown = globalThis.__farhelmTyping != null;
    if (!isKnown) {
        const typing = (globalThis.__farhelmTyping = { at: null });
        const hear = (event) => event.isTrusted && (typing.at = performance.now());
        for (const type of ['keydown', 'beforeinput', 'compositionupdate']) {
            document.addEventListener(type, hear, { capture: true, passive: true });
        }
    }
    const active = document.activeElement;
    const takes = 'textarea, input, [contenteditable], .native-edit-context';
    const { at } = globalThis.__farhelmTyping;
    return {
        typed_ms_ago: at == null ? null : performance.now() - at,
        may_type: !isKnown && document.hasFocus() && active != null && active.matches(takes),
    };
}";
const HINDRANCE: &str = "function (x, y) {
    const box = this.getBoundingClientRect();
    const [left, top] = [box.left + this.clientLeft + x, box.top + this.clientTop + y];
    const hit = this.getRootNode().elementFromPoint(left, top);
    if (hit === this) return null;
    return hit ? 'a part of its window covers it' : 'it is outside the window';
}";

/// The window, attached to.
pub(super) struct Around {
    place: Place,
    /// The webview's own frame.
    frame: String,
}

/// Whether somebody types in the window.
#[derive(Debug, Deserialize)]
pub(super) struct Typing {
    pub(super) typed_ms_ago: Option<f64>,
    /// It was not known before, and somebody may.
    pub(super) may_type: bool,
}

impl Around {
    /// `None` for a panel that is in the window itself, and where the window cannot be asked.
    pub(super) async fn of(hand: &Hand<'_>) -> Option<Self> {
        match attached(hand).await {
            Ok(around) => around,
            Err(fault) => {
                tracing::debug!(%fault, "could not attach to the window around a panel");
                None
            }
        }
    }

    pub(super) async fn leave(self, browser: &Browser) {
        let _ = browser.detach(&self.place.session).await;
    }

    pub(super) async fn remember_focus(&self, browser: &Browser) {
        let _ = browser.call_function(&self.place, REMEMBER, &[]).await;
    }

    pub(super) async fn give_focus_back(&self, browser: &Browser) {
        let _ = browser.call_function(&self.place, GIVE_BACK, &[]).await;
    }

    /// Whether somebody types beside the webview. Where it cannot be told, nobody does.
    pub(super) async fn typing(&self, browser: &Browser) -> Typing {
        let told = browser.call_function(&self.place, TYPING, &[]).await;
        let told = told.ok().and_then(|told| serde_json::from_value(told).ok());
        told.unwrap_or(Typing { typed_ms_ago: None, may_type: false })
    }

    /// Why a press at a point of the webview would come to something else of the window.
    pub(super) async fn hindrance(
        &self,
        browser: &Browser,
        (x, y): (f64, f64),
    ) -> Result<Option<String>, Fault> {
        let session = Some(&self.place.session);
        let owner = json!({"frameId": self.frame});
        let owner = browser.call(session, "DOM.getFrameOwner", owner).await?;
        let node = json!({
            "backendNodeId": owner["backendNodeId"],
            "executionContextId": self.place.context,
        });
        let node = browser.call(session, "DOM.resolveNode", node).await?;
        let object = node["object"]["objectId"].clone();
        let params = json!({
            "objectId": object,
            "functionDeclaration": HINDRANCE,
            "arguments": [{"value": x}, {"value": y}],
            "returnByValue": true,
        });
        let answer = browser.call(session, "Runtime.callFunctionOn", params).await;
        let _ = browser.call(session, "Runtime.releaseObject", json!({"objectId": object})).await;
        Ok(answer?["result"]["value"].as_str().map(str::to_owned))
    }
}

async fn attached(hand: &Hand<'_>) -> Result<Option<Around>, Fault> {
    let (browser, own) = (&hand.actor.browser, &hand.actor.place.session);
    let info = browser.call(Some(own), "Target.getTargetInfo", json!({})).await?;
    let info = &info["targetInfo"];
    let (Some(parent), Some(frame)) = (info["parentFrameId"].as_str(), info["targetId"].as_str())
    else {
        return Ok(None);
    };
    // The outermost frame of a window has the id of its target.
    let session = browser.attach(parent).await?;
    match cdp::world(browser, &session, parent).await {
        Ok(place) => Ok(Some(Around { place, frame: frame.to_owned() })),
        Err(fault) => {
            let _ = browser.detach(&session).await;
            Err(fault)
        }
    }
}
