//! Messages arrive as they were written, or it is told what became of them.

use std::time::{Duration, Instant};

use agents::Image;
use agents::panel::{Done, Task};
use fake_panels::Chromium;
use serde_json::json;

use crate::acting::stage::{Stage, code, open, open_in};

const EDITORS: [&str; 6] =
    ["textarea", "plaintext", "lexical", "lexical-rich", "prosemirror", "monaco"];

fn texts() -> Vec<(&'static str, String)> {
    let paragraph = "The quick brown fox; \"quotes\", <tags> & {braces} [\u{1f389} é ü 漢字]\n";
    let lines: Vec<String> = (0..1_600).map(|number| format!("{number}: {paragraph}")).collect();
    let long = lines.concat();
    assert!(long.len() > 100_000);
    vec![
        ("one line", "hello".to_owned()),
        ("lines", "first\nsecond\nthird".to_owned()),
        ("blank lines", "first\n\nthird\n\n\nsixth".to_owned()),
        ("emoji", "👩‍👩‍👧‍👦 🎉🇺🇳 e\u{301} 漢字".to_owned()),
        ("code", "if (a) {\n    b(\"c\");\n\n\t\treturn [1, 2];\n}".to_owned()),
        ("markdown", "# Title\n\n- one\n- two\n\n```rust\nfn main() {}\n```".to_owned()),
        ("100 KB", long.trim_end().to_owned()),
    ]
}

/// Every kind of text, into one editor.
async fn every_text(editor: &str) {
    let Some(stage) = open("sending", editor, "").await else { return };
    for (number, (name, text)) in texts().into_iter().enumerate() {
        let outcome = stage.send(&text).await;
        let presses = || (stage.journal("pointerdown"), stage.journal("click"));
        assert_eq!(outcome, Ok(Done::Plainly), "{editor}, {name}: {:?}", presses());
        let sent = stage.wait_for("sent", number + 1).await;
        let sent = &sent[number];
        let got = sent["text"].as_str().unwrap();
        let at = got.bytes().zip(text.bytes()).take_while(|(a, b)| a == b).count();
        let part = |text: &str| {
            String::from_utf8_lossy(&text.as_bytes()[at..]).chars().take(90).collect::<String>()
        };
        assert!(
            got == text,
            "{editor}, {name}: {} of {} bytes; after {at}: {:?} instead of {:?}",
            got.len(),
            text.len(),
            part(got),
            part(&text)
        );
        assert_eq!(sent["is_trusted"], true, "{editor}, {name}");
    }
    assert_eq!(stage.journal("sent").len(), texts().len());
    stage.close().await;
}

#[tokio::test]
async fn every_text_is_exact_in_a_textarea() {
    every_text(EDITORS[0]).await;
}

#[tokio::test]
async fn every_text_is_exact_in_a_plain_contenteditable() {
    every_text(EDITORS[1]).await;
}

#[tokio::test]
async fn every_text_is_exact_in_lexical() {
    every_text(EDITORS[2]).await;
}

#[tokio::test]
async fn every_text_is_exact_in_lexical_with_rich_text() {
    every_text(EDITORS[3]).await;
}

#[tokio::test]
async fn every_text_is_exact_in_prosemirror() {
    every_text(EDITORS[4]).await;
}

#[tokio::test]
async fn every_text_is_exact_in_monaco() {
    every_text(EDITORS[5]).await;
}

#[tokio::test]
async fn a_draft_is_put_back_after_the_message() {
    for editor in EDITORS {
        let Some(stage) = open("drafts", editor, "").await else { return };
        let draft = "my own\n\ndraft 🎉";
        stage.make(json!({"do": "draft", "text": draft})).await;
        assert_eq!(stage.send("from afar").await, Ok(Done::Plainly), "{editor}");
        let sent = stage.wait_for("sent", 1).await;
        assert_eq!(sent[0]["text"], "from afar", "{editor}");
        assert_eq!(stage.composed().await, draft, "{editor}");
        assert_eq!(stage.journal("sent").len(), 1, "{editor}");
        stage.close().await;
    }
}

#[tokio::test]
async fn somebody_who_types_is_waited_for_and_keeps_their_words() {
    let Some(stage) = open("typing", "lexical", "").await else { return };
    stage.evaluate("document.querySelector('.composer').focus()").await;
    let (browser, person) = (&stage.actor.browser, Some(&stage.person));
    let insert = |text: &str| browser.call(person, "Input.insertText", json!({"text": text}));
    insert("I am ").await.unwrap();
    let begun = Instant::now();
    let typing = async {
        // Quick, so that a busy machine makes no pause of it that ends the typing.
        for letter in "still typing here".chars() {
            tokio::time::sleep(Duration::from_millis(100)).await;
            insert(&letter.to_string()).await.unwrap();
        }
        begun.elapsed()
    };
    let (outcome, typed_until) = tokio::join!(stage.send("from afar"), typing);
    assert_eq!(outcome, Ok(Done::Plainly));
    assert!(begun.elapsed() > typed_until + Duration::from_secs(2), "it did not wait");
    assert_eq!(stage.wait_for("sent", 1).await[0]["text"], "from afar");
    assert_eq!(stage.composed().await, "I am still typing here");
    // Their focus is where it was, too.
    let focus = stage.evaluate("document.activeElement.className").await;
    assert!(focus.as_str().unwrap().contains("composer"), "{focus}");
    stage.close().await;
}

#[tokio::test]
async fn a_panel_that_is_gone_after_the_press_leaves_the_outcome_unknown() {
    let Some(stage) = open("unknown", "textarea", "mutate=reload-on-send").await else { return };
    assert_eq!(code(stage.send("gone").await), "delivery_unknown");
    stage.wait_for("ready", 2).await;
    // And nothing was repeated.
    assert_eq!(stage.journal("sent").len(), 1);
    stage.close().await;
}

#[tokio::test]
async fn a_text_that_stays_although_it_was_taken_leaves_the_outcome_unknown() {
    let Some(stage) = open("unknown", "lexical", "mutate=keep-text").await else { return };
    assert_eq!(code(stage.send("kept").await), "delivery_unknown");
    assert_eq!(stage.journal("sent").len(), 1);
    // Nobody can tell whose the text is now: it is left alone.
    assert_eq!(stage.composed().await, "kept");
    stage.close().await;
}

#[tokio::test]
async fn a_send_button_that_seems_to_do_nothing_is_pressed_once_and_the_draft_is_back() {
    let Some(stage) = open("swallowed", "prosemirror", "mutate=swallow-send&draft=mine").await
    else {
        return;
    };
    assert_eq!(code(stage.send("lost").await), "delivery_unknown");
    // The panel may only be slow: no other way of the profile's ladder is tried.
    assert_eq!(stage.journal("swallowed").len(), 1);
    assert_eq!(stage.composed().await, "mine");
    stage.close().await;
}

#[tokio::test]
async fn what_a_panel_refuses_for_now_is_given_to_it_again() {
    let Some(stage) = open("refused twice", "textarea", "mutate=refuse-twice").await else {
        return;
    };
    assert_eq!(stage.send("once").await, Ok(Done::Plainly));
    assert_eq!(stage.wait_for("sent", 1).await[0]["text"], "once");
    assert_eq!(stage.wait_for("refused", 2).await.len(), 2);
    stage.close().await;
}

#[tokio::test]
async fn what_a_panel_refuses_for_good_is_not_sent_and_its_words_are_told() {
    let Some(stage) = open("refused", "textarea", "mutate=refuse&draft=mine").await else { return };
    let failure = stage.send("never").await.unwrap_err();
    let words = "The panel says: Not yet: it is still loading";
    assert_eq!((failure.code.as_str(), failure.message.as_str()), ("send_injection_failed", words));
    assert_eq!(stage.composed().await, "mine");
    assert!(stage.journal("sent").is_empty());
    stage.close().await;
}

#[tokio::test]
async fn a_slow_panel_is_waited_for() {
    let Some(stage) = open("slow", "textarea", "mutate=slow-send").await else { return };
    assert_eq!(stage.send("slowly").await, Ok(Done::Plainly));
    assert_eq!(stage.journal("sent").len(), 1);
    stage.close().await;
}

async fn refused(switches: &str, expected: &str) -> Option<Stage> {
    let stage = open("refusals", "lexical", switches).await?;
    assert_eq!(code(stage.send("never").await), expected, "{switches}");
    assert!(stage.journal("sent").is_empty(), "{switches}");
    Some(stage)
}

#[tokio::test]
async fn a_panel_that_is_not_as_its_profile_says_is_not_typed_into() {
    refused("mutate=drop-composer", "selector_failure").await;
    refused("mutate=login", "agent_not_active").await;
    if let Some(stage) = refused("mutate=drop-send&draft=mine", "selector_failure").await {
        assert_eq!(stage.composed().await, "mine");
    }
    if let Some(stage) = refused("ask=Really&draft=mine", "send_rejected").await {
        assert_eq!(stage.composed().await, "mine");
    }
}

#[tokio::test]
async fn pictures_are_pasted_before_the_words() {
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    for editor in EDITORS {
        let Some(stage) = open("pictures", editor, "").await else { return };
        let image = Image { media_type: "image/png".to_owned(), base64: png.to_owned() };
        let text = "what is this?".to_owned();
        let outcome = stage.perform(Task::Send { text, images: vec![image.clone(), image] }).await;
        assert_eq!(outcome, Ok(Done::Plainly), "{editor}");
        let sent = &stage.wait_for("sent", 1).await[0];
        assert_eq!(sent["text"], "what is this?", "{editor}");
        let images = sent["images"].as_array().unwrap();
        assert_eq!(images.len(), 2, "{editor}");
        assert_eq!((&images[0]["type"], &images[0]["bytes"]), (&json!("image/png"), &json!(70)));
        stage.close().await;
    }
}

#[tokio::test]
async fn focus_and_scroll_outside_of_the_composer_stay_as_they_were() {
    let Some(stage) = open("focus", "antigravity", "rows=80").await else { return };
    stage.evaluate("document.querySelector('.code').focus()").await;
    stage.evaluate("document.querySelector('#conversation').scrollTop = 100").await;
    assert_eq!(stage.send("hello").await, Ok(Done::Plainly));
    let focus = "document.activeElement.className + ' ' + document.hasFocus()";
    assert!(stage.evaluate(focus).await.as_str().unwrap().starts_with("code"));
    let scroll = stage.evaluate("document.querySelector('#conversation').scrollTop").await;
    assert_eq!(scroll, 100);
    stage.close().await;
}

#[tokio::test]
async fn focus_in_the_window_around_a_webview_stays_where_it_was() {
    let Some(stage) = open("focus around", "claude-vscode", "").await else { return };
    let (browser, target) = (&stage.actor.browser, stage.target.clone());
    let window = browser.attach(&target).await.unwrap();
    let evaluate = async |expression: &str| {
        let params = json!({"expression": expression, "returnByValue": true});
        let answer = browser.call(Some(&window), "Runtime.evaluate", params).await.unwrap();
        answer["result"]["value"].clone()
    };
    evaluate("document.querySelector('.code').focus()").await;
    assert_eq!(stage.send("hello").await, Ok(Done::Plainly));
    assert_eq!(evaluate("document.activeElement.className").await, "code");
    assert_eq!(evaluate("document.querySelector('.code').value").await, "fn main() {}");
    stage.close().await;
}

#[tokio::test]
async fn what_a_panel_puts_before_every_message_stays_and_is_no_draft() {
    for (switches, expected) in
        [("sticky=@fixture%20", "@fixture "), ("sticky=@fixture%20&draft=mine", "@fixture mine")]
    {
        let Some(stage) = open("sticky", "vscode-chat", switches).await else { return };
        assert_eq!(stage.send("hello\n\nthere").await, Ok(Done::Plainly), "{switches}");
        let sent = stage.wait_for("sent", 1).await;
        assert_eq!(sent[0]["text"], "@fixture hello\n\nthere", "{switches}");
        assert_eq!(stage.composed().await, expected, "{switches}");
        stage.close().await;
    }
}

#[tokio::test]
async fn a_panel_in_a_tab_behind_another_is_used_all_the_same() {
    let Some(stage) = open("behind", "opencode-web", "").await else { return };
    let browser = &stage.actor.browser;
    let other = stage.open_in_front().await;
    assert_eq!(stage.send("hello").await, Ok(Done::Plainly));
    assert_eq!(stage.send("slow: 500").await, Ok(Done::Plainly));
    assert_eq!(stage.perform(Task::Stop).await, Ok(Done::Plainly));
    browser.call(None, "Target.closeTarget", other).await.unwrap();
    stage.close().await;
}

#[tokio::test]
async fn a_browser_that_dies_after_the_press_leaves_the_outcome_unknown() {
    let Some(own) = Chromium::shared_or_told("dying").map(|_| Chromium::start().unwrap()) else {
        return;
    };
    let stage = open_in(&own, "textarea", "mutate=slow-send").await;
    let dying = async {
        stage.wait_for("sent", 1).await;
        tokio::task::spawn_blocking(|| own.kill()).await.unwrap();
    };
    let (outcome, ()) = tokio::join!(stage.send("last words"), dying);
    assert_eq!(code(outcome), "delivery_unknown");
}

#[tokio::test]
async fn a_panel_that_is_closed_before_the_press_got_nothing() {
    let Some(stage) = open("closed", "lexical", "").await else { return };
    let params = json!({"targetId": stage.target});
    stage.actor.browser.call(None, "Target.closeTarget", params).await.unwrap();
    stage.actor.browser.evaluate(&stage.actor.place, "1", false).await.unwrap_err();
    let outcome = code(stage.send("never").await);
    assert!(["control_failed", "send_injection_failed"].contains(&outcome.as_str()), "{outcome}");
    assert!(stage.journal("sent").is_empty());
}
