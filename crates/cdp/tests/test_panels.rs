//! The test panels in a real Chromium: each appears, and webviews are frames of other processes.

use std::time::Duration;

use cdp::Browser;
use fake_panels::{Chromium, PANELS, Panels};
use serde_json::{Value, json};

use crate::tab;

const PATIENCE: Duration = Duration::from_secs(120);

/// The webview in this tab.
async fn webview(browser: &Browser, tab: &str) -> Value {
    let found = async {
        loop {
            let targets = browser.call(None, "Target.getTargets", json!({})).await.unwrap();
            let targets = targets["targetInfos"].as_array().unwrap().clone();
            let fits = |it: &&Value| it["type"] == "iframe" && it["parentFrameId"] == tab;
            if let Some(target) = targets.iter().find(fits) {
                return target.clone();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, found).await.expect("a webview")
}

#[tokio::test]
async fn every_panel_appears_and_webviews_are_targets_of_their_own() {
    let Some(chromium) = Chromium::shared_or_told("panels") else { return };
    let panels = Panels::start().unwrap();
    let browser = Browser::connect(&chromium.address()).await.unwrap();
    for panel in PANELS {
        let url = panels.url(panel, panel, "rows=2");
        let tab = tab::open(&browser, &url).await;
        let ready = panels.wait_for(panel, PATIENCE, |entries| {
            entries.iter().find(|entry| entry["kind"] == "ready").cloned()
        });
        let ready = ready.await.unwrap_or_else(|| panic!("{panel} is not ready"));
        assert_eq!(ready["shows"], "panel", "{panel}");
        let is_webview = url.contains("/window/");
        let (session, name) = if is_webview {
            let target = webview(&browser, &tab).await;
            assert!(target["url"].as_str().unwrap().contains(&format!("&panel={panel}&")));
            let session = browser.attach(target["targetId"].as_str().unwrap()).await.unwrap();
            (session, Some("active-frame"))
        } else {
            (browser.attach(&tab).await.unwrap(), None)
        };
        let frame = cdp::frames::find(&browser, &session, name).await.unwrap();
        let place = cdp::world(&browser, &session, &frame).await.unwrap();
        let text = browser.evaluate(&place, "document.body.innerText", false).await.unwrap();
        assert!(text.as_str().unwrap().contains("earlier row 1"), "{panel}: {text}");
        let close = json!({"targetId": tab});
        browser.call(None, "Target.closeTarget", close).await.unwrap();
    }
}
