//! The person's focus: remembered before acting, given back after.
//!
//! A webview is a frame of another process: what has the focus in the window around it is known
//! only there, so the window is attached to for as long as it takes.
//!
//! Not here: what is done in between.

use cdp::{Browser, Fault, Place, SessionId};
use serde_json::json;

use super::hand::Hand;

const REMEMBER: &str = "() => void (globalThis.__farhelmFocus = document.activeElement)";
const GIVE_BACK: &str = "() => {
    const element = globalThis.__farhelmFocus;
    delete globalThis.__farhelmFocus;
    if (!element || !element.isConnected || element === document.activeElement) return;
    if (element !== document.body) element.focus({ preventScroll: true });
    else document.activeElement?.blur();
}";

/// Where the focus was.
pub(super) struct Attention {
    around: Option<Place>,
}

impl Attention {
    /// Remembers, and lets the panel believe that it has the focus.
    pub(super) async fn take(hand: &Hand<'_>) -> Result<Self, Fault> {
        hand.call::<()>("remember", &[]).await?;
        // Where the window cannot be asked, only the panel's own focus is given back.
        let around = around(&hand.actor.browser, &hand.actor.place.session).await;
        let around = around.unwrap_or_else(|fault| {
            tracing::debug!(%fault, "the window around a panel is not known");
            None
        });
        hand.emulate_focus(true).await;
        Ok(Self { around })
    }

    /// Gives it back. What is gone by now needs nothing.
    pub(super) async fn give_back(self, hand: &Hand<'_>) {
        let _ = hand.call::<()>("restore", &[]).await;
        let browser = &hand.actor.browser;
        if let Some(place) = self.around {
            let _ = browser.call_function(&place, GIVE_BACK, &[]).await;
            let _ = browser.detach(&place.session).await;
        }
        hand.emulate_focus(false).await;
    }
}

/// Our world in the window around a webview; nothing for a panel that is in the window itself.
async fn around(browser: &Browser, session: &SessionId) -> Result<Option<Place>, Fault> {
    let own = browser.call(Some(session), "Target.getTargetInfo", json!({})).await?;
    let Some(parent) = own["targetInfo"]["parentFrameId"].as_str() else { return Ok(None) };
    // The outermost frame of a window has the id of its target.
    let session = browser.attach(parent).await?;
    let remembered = async {
        let place = cdp::world(browser, &session, parent).await?;
        browser.call_function(&place, REMEMBER, &[]).await?;
        Ok(place)
    };
    match remembered.await {
        Ok(place) => Ok(Some(place)),
        Err(fault) => {
            let _ = browser.detach(&session).await;
            Err(fault)
        }
    }
}
