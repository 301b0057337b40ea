//! A tab for one test, apart from those of other tests in the same browser.

use cdp::Browser;
use serde_json::json;

/// Opens an address in a browser context of its own, which ends with this connection. Gives the
/// tab's target.
pub(crate) async fn open(browser: &Browser, url: &str) -> String {
    let ends = json!({"disposeOnDetach": true});
    let context = browser.call(None, "Target.createBrowserContext", ends).await.unwrap();
    let params = json!({"url": url, "browserContextId": context["browserContextId"]});
    let made = browser.call(None, "Target.createTarget", params).await.unwrap();
    made["targetId"].as_str().unwrap().to_owned()
}
