//! The client against a real Chromium. Skipped aloud where there is none.

use std::time::Duration;

use cdp::{Browser, Events, Fault, Heard, Place};
use fake_panels::Chromium;
use serde_json::json;

use crate::tab;

const PATIENCE: Duration = Duration::from_secs(120);

/// A page of its own for a test, loaded, with our world in it.
async fn page(browser: &Browser, html: &str) -> Place {
    let url = format!("data:text/html,{html}");
    let session = browser.attach(&tab::open(browser, &url).await).await.unwrap();
    let is_loaded = "location.protocol === 'data:' && document.readyState === 'complete'";
    let loaded = async {
        loop {
            let frame = cdp::frames::find(browser, &session, None).await.unwrap();
            // The empty document before the page goes away at any time.
            if let Ok(place) = cdp::world(browser, &session, &frame).await
                && browser.evaluate(&place, is_loaded, false).await == Ok(json!(true))
            {
                return place;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, loaded).await.unwrap()
}

async fn event(events: &mut Events, method: &str) -> cdp::Event {
    let found = async {
        loop {
            if let Heard::Event(event) = events.next().await.expect("the connection is there")
                && event.method == method
            {
                return cdp::Event::clone(&event);
            }
        }
    };
    tokio::time::timeout(PATIENCE, found).await.expect(method)
}

#[tokio::test]
async fn a_world_of_our_own_sees_the_document_and_not_the_pages_scripts() {
    let Some(chromium) = Chromium::shared_or_told("a world of our own") else { return };
    let browser = Browser::connect(&chromium.address()).await.unwrap();
    let place = page(&browser, "<p id=p>here</p><script>secret = 1</script>").await;
    assert!(!place.unique.is_empty());
    let text =
        browser.evaluate(&place, "document.querySelector('p').textContent", false).await.unwrap();
    assert_eq!(text, "here");
    assert_eq!(browser.evaluate(&place, "typeof secret", false).await.unwrap(), "undefined");
    let arguments = [json!(1), json!({"c": 2})];
    let sum = browser.call_function(&place, "async (a, b) => a + b.c", &arguments).await;
    assert_eq!(sum.unwrap(), 3);
    // The second time it is the same one.
    assert_eq!(cdp::world(&browser, &place.session, &place.frame).await, Ok(place));
}

#[tokio::test]
async fn what_a_binding_is_told_arrives_as_an_event() {
    let Some(chromium) = Chromium::shared_or_told("bindings") else { return };
    let browser = Browser::connect(&chromium.address()).await.unwrap();
    let place = page(&browser, "hello").await;
    let mut events = browser.events().await.unwrap();
    let binding = json!({"name": "farhelmPush", "executionContextName": cdp::WORLD});
    browser.call(Some(&place.session), "Runtime.addBinding", binding).await.unwrap();
    browser.evaluate(&place, "farhelmPush('word')", false).await.unwrap();
    let called = event(&mut events, "Runtime.bindingCalled").await;
    assert_eq!(called.params["payload"], "word");
    assert_eq!(called.params["executionContextId"], place.context);
    assert_eq!(called.session, Some(place.session));
}

#[tokio::test]
async fn after_a_reload_a_place_is_gone_and_a_new_one_is_found() {
    let Some(chromium) = Chromium::shared_or_told("reload") else { return };
    let browser = Browser::connect(&chromium.address()).await.unwrap();
    let place = page(&browser, "hello").await;
    let mut events = browser.events().await.unwrap();
    let script = json!({"source": "globalThis.again = 1", "worldName": cdp::WORLD});
    let session = place.session.clone();
    browser.call(Some(&session), "Page.addScriptToEvaluateOnNewDocument", script).await.unwrap();
    browser.call(Some(&session), "Page.enable", json!({})).await.unwrap();
    browser.call(Some(&session), "Page.reload", json!({})).await.unwrap();
    event(&mut events, "Page.loadEventFired").await;
    assert_eq!(browser.evaluate(&place, "1", false).await, Err(Fault::Gone));
    assert!(!browser.is_there(&place).await.unwrap());
    let fresh =
        browser.place(&session, &place.frame).await.unwrap().expect("the script made a world");
    assert_eq!(browser.evaluate(&fresh, "again", false).await.unwrap(), 1);
}

#[tokio::test]
async fn a_script_that_throws_and_a_call_that_is_wrong_are_told() {
    let Some(chromium) = Chromium::shared_or_told("throwing") else { return };
    let browser = Browser::connect(&chromium.address()).await.unwrap();
    let place = page(&browser, "hello").await;
    let threw = browser.evaluate(&place, "throw new Error('mine')", false).await;
    assert!(matches!(&threw, Err(Fault::Threw(words)) if words.contains("mine")), "{threw:?}");
    let refused = browser.call(Some(&place.session), "Page.noSuchThing", json!({})).await;
    assert!(matches!(refused, Err(Fault::Refused { code: -32601, .. })), "{refused:?}");
    let none = cdp::frames::find(&browser, &place.session, Some("active-frame")).await;
    assert_eq!(none, Err(Fault::NoFrame("active-frame".to_owned())));
}

#[tokio::test]
async fn a_call_that_is_never_answered_is_late() {
    let Some(chromium) = Chromium::shared_or_told("lateness") else { return };
    let browser = Browser::connect(&chromium.address()).await.unwrap();
    let session = page(&browser, "hello").await.session;
    let within = Duration::from_millis(200);
    let forever = json!({"expression": "new Promise(() => {})", "awaitPromise": true});
    let late = browser.call_within(within, Some(&session), "Runtime.evaluate", forever).await;
    assert_eq!(late, Err(Fault::Late { method: "Runtime.evaluate".to_owned(), within }));
}

#[tokio::test]
async fn the_end_of_a_target_fails_what_waits_there_and_nothing_else() {
    let Some(chromium) = Chromium::shared_or_told("a target's end") else { return };
    let browser = Browser::connect(&chromium.address()).await.unwrap();
    let waits = |place: &Place| {
        let (browser, session) = (browser.clone(), place.session.clone());
        let forever = json!({"expression": "new Promise(() => {})", "awaitPromise": true});
        tokio::spawn(async move {
            browser.call_within(PATIENCE * 2, Some(&session), "Runtime.evaluate", forever).await
        })
    };
    let (ends, stays) = (page(&browser, "ends").await, page(&browser, "stays").await);
    let (waiting, other) = (waits(&ends), waits(&stays));
    browser.call(None, "Browser.getVersion", json!({})).await.unwrap();
    let target = browser.call(Some(&ends.session), "Target.getTargetInfo", json!({})).await;
    let target = target.unwrap()["targetInfo"]["targetId"].clone();
    browser.call(None, "Target.closeTarget", json!({"targetId": target})).await.unwrap();
    let failed = tokio::time::timeout(PATIENCE, waiting).await.unwrap().unwrap();
    assert_eq!(failed, Err(Fault::Gone));
    assert!(!other.is_finished());
}

#[tokio::test]
async fn the_end_of_the_browser_fails_what_waits_and_ends_the_events() {
    let chromium = match Chromium::shared_or_told("the browser's end") {
        None => return,
        Some(_) => Chromium::start().unwrap(),
    };
    let browser = Browser::connect(&chromium.address()).await.unwrap();
    let session = page(&browser, "hello").await.session;
    let mut events = browser.events().await.unwrap();
    let forever = json!({"expression": "new Promise(() => {})", "awaitPromise": true});
    let waiting = {
        let browser = browser.clone();
        tokio::spawn(async move { browser.call(Some(&session), "Runtime.evaluate", forever).await })
    };
    // The answer to a later call says that the first has arrived.
    browser.call(None, "Browser.getVersion", json!({})).await.unwrap();
    tokio::task::spawn_blocking(|| chromium.kill()).await.unwrap();
    tokio::time::timeout(PATIENCE, browser.closed()).await.unwrap();
    assert_eq!(waiting.await.unwrap(), Err(Fault::Closed));
    assert!(!browser.is_open());
    assert_eq!(browser.call(None, "Browser.getVersion", json!({})).await, Err(Fault::Closed));
    while events.next().await.is_some() {}
}

#[tokio::test]
async fn long_messages_go_both_ways() {
    // Its own: such messages hold up everybody else in the browser.
    let Some(_) = Chromium::shared_or_told("long messages") else { return };
    let chromium = Chromium::start().unwrap();
    let browser = Browser::connect(&chromium.address()).await.unwrap();
    let place = page(&browser, "hello").await;
    let long = "x🎉".repeat(2 << 20);
    let back = browser.call_function(&place, "text => text", &[json!(long)]).await.unwrap();
    assert_eq!(back.as_str().map(str::len), Some(long.len()));
}
