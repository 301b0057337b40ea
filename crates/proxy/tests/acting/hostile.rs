//! Moments that are against us: what lies over the panel, what moves between the last look and the
//! deed, and a person who does not wait.

use std::sync::Arc;
use std::time::{Duration, Instant};

use agents::panel::profile::Press;
use agents::panel::{Done, Task};
use serde_json::{Value, json};

use crate::acting::stage::{PATIENCE, Stage, code, open};

/// Has a function of the script inside do something more, before or after what it does.
async fn meddle(stage: &Stage, name: &str, before: &str, after: &str) {
    let script = format!(
        "(() => {{ const real = __farhelmHand.{name}; let isDone = false; \
         __farhelmHand.{name} = async (...all) => {{ \
           const first = !isDone; isDone = true; \
           if (first) {{ {before} }} \
           const outcome = real(...all); \
           if (first) {{ {after} }} \
           return outcome; }}; }})(), 0"
    );
    stage.evaluate(&script).await;
}

const ASK: &str = "document.dispatchEvent(new CustomEvent('panel:do', \
    { detail: JSON.stringify({ do: 'ask', text: 'May I?' }) }));";

/// Somebody with a console in the window around a webview.
async fn in_window(stage: &Stage, expression: &str) -> Value {
    let browser = &stage.actor.browser;
    let window = browser.attach(&stage.target).await.unwrap();
    let params = json!({"expression": expression, "returnByValue": true});
    let answer = browser.call(Some(&window), "Runtime.evaluate", params).await.unwrap();
    browser.detach(&window).await.unwrap();
    answer["result"]["value"].clone()
}

#[tokio::test]
async fn what_lies_over_a_webview_in_its_window_is_not_pressed() {
    let Some(stage) = open("overlays", "claude-vscode", "ask=May+I").await else { return };
    let cover = "const toast = document.createElement('button'); toast.textContent = 'Restart'; \
        toast.className = 'toast'; \
        toast.style = 'position: fixed; inset: 0; width: 100%; height: 100%; z-index: 9'; \
        window.pressed = 0; toast.onclick = () => window.pressed++; document.body.append(toast); 0";
    in_window(&stage, cover).await;
    let dialog = stage.dialogs().await[0]["id"].as_str().unwrap().to_owned();
    let press = Task::Press { dialog: dialog.clone(), label: "No".to_owned() };
    assert_eq!(code(stage.perform(press.clone()).await), "control_failed");
    assert_eq!(in_window(&stage, "window.pressed").await, 0);
    assert!(stage.journal("answered").is_empty());
    in_window(&stage, "document.querySelector('.toast').remove()").await;
    assert_eq!(stage.perform(press).await, Ok(Done::Plainly));
    stage.close().await;
}

#[tokio::test]
async fn a_press_that_comes_late_is_not_repeated() {
    let Some(stage) = open("late presses", "textarea", "mutate=keep-text").await else { return };
    let busy = "setTimeout(() => { const end = performance.now() + 5000; \
                while (performance.now() < end); }, 0);";
    meddle(&stage, "hindrance", "", busy).await;
    assert_eq!(code(stage.send("once").await), "delivery_unknown");
    assert_eq!(stage.wait_for("sent", 1).await.len(), 1);
    stage.close().await;
}

#[tokio::test]
async fn a_button_that_moves_as_soon_as_it_was_pressed_gets_its_press() {
    let Some(stage) = open("moving buttons", "textarea", "").await else { return };
    // As the line goes away that tells of work, and what is below it comes up; on a busy machine.
    let moves = "const send = document.querySelector('.send'); \
        const next = new MessageChannel(); \
        next.port1.onmessage = () => (send.style = 'position: relative; top: 60px'); \
        send.addEventListener('pointerdown', () => { \
          next.port2.postMessage(null); \
          const end = performance.now() + 400; while (performance.now() < end); }), 0";
    stage.evaluate(moves).await;
    assert_eq!(stage.send("once").await, Ok(Done::Plainly));
    assert_eq!(stage.wait_for("sent", 1).await.len(), 1);
    stage.close().await;
}

/// One as IDEs leave them behind: it goes a moment after a mouse was in it and left.
const TOOLTIP: &str = "const tooltip = document.createElement('div'); \
    tooltip.style = 'position: fixed; inset: 0; z-index: 9'; \
    let going = null; \
    tooltip.onmouseenter = () => clearTimeout(going); \
    tooltip.onmouseleave = () => (going = setTimeout(() => tooltip.remove(), 200)); \
    document.body.append(tooltip), 0";

#[tokio::test]
async fn a_tooltip_does_not_keep_a_run_from_being_stopped() {
    let Some(mut stage) = open("tooltips", "textarea", "").await else { return };
    let stop = Arc::make_mut(&mut stage.actor.profile).stop.as_mut().unwrap();
    stop.ladder = vec![Press::Mouse];
    assert_eq!(stage.send("slow: 500").await, Ok(Done::Plainly));
    stage.evaluate(TOOLTIP).await;
    assert_eq!(stage.perform(Task::Stop).await, Ok(Done::Plainly));
    stage.wait_for("stopped", 1).await;
    stage.close().await;
}

#[tokio::test]
async fn no_mouse_is_left_behind_in_the_panel() {
    let Some(stage) = open("mice", "textarea", "").await else { return };
    let count = "window.within = 0; const html = document.documentElement; \
        html.addEventListener('mouseenter', () => window.within++); \
        html.addEventListener('mouseleave', () => window.within--), 0";
    stage.evaluate(count).await;
    assert_eq!(stage.send("slow: 500").await, Ok(Done::Plainly));
    assert_eq!(stage.evaluate("window.within").await, 0);
    assert_eq!(stage.perform(Task::Stop).await, Ok(Done::Plainly));
    assert_eq!(stage.evaluate("window.within").await, 0);
    stage.close().await;
}

#[tokio::test]
async fn what_lies_over_a_button_is_told_and_keeps_no_run_from_being_stopped() {
    let Some(stage) = open("hindrances", "textarea", "").await else { return };
    assert_eq!(stage.send("slow: 500").await, Ok(Done::Plainly));
    stage.make(json!({"do": "ask", "text": "May I?"})).await;
    let dialog = stage.dialogs().await[0]["id"].as_str().unwrap().to_owned();
    let cover = "const cover = document.createElement('div'); cover.className = 'notice of mine'; \
        cover.style = 'position: fixed; inset: 0'; cover.textContent = 'secret'; \
        document.body.append(cover), 0";
    stage.evaluate(cover).await;
    let press = Task::Press { dialog, label: "Deny".to_owned() };
    let failure = stage.perform(press).await.unwrap_err();
    let words = "Could not press the question's button: div.notice.of.mine covers it";
    assert_eq!((failure.code.as_str(), failure.message.as_str()), ("control_failed", words));
    assert_eq!(stage.perform(Task::Stop).await, Ok(Done::Plainly));
    stage.wait_for("stopped", 1).await;
    stage.close().await;
}

#[tokio::test]
async fn a_question_that_comes_before_the_key_is_not_answered_by_it() {
    let Some(mut stage) = open("enter", "textarea", "").await else { return };
    Arc::make_mut(&mut stage.actor.profile).send.ladder = vec![Press::Enter];
    let ask = format!("{ASK} document.querySelector('.dialog button').focus();");
    // The key that sends, not those that empty the field.
    stage
        .evaluate(&format!(
            "(() => {{ const real = __farhelmHand.beforeKey; __farhelmHand.beforeKey = \
             (key, sends) => {{ real(key, sends); if (sends) {{ {ask} }} }}; }})(), 0"
        ))
        .await;
    assert_eq!(code(stage.send("hello").await), "send_rejected");
    assert!(stage.journal("answered").is_empty(), "{:?}", stage.journal("answered"));
    assert!(stage.journal("sent").is_empty());
    stage.close().await;
}

#[tokio::test]
async fn a_question_that_comes_while_a_message_is_typed_leaves_it_unsent() {
    let Some(stage) = open("asked meanwhile", "lexical", "draft=mine").await else { return };
    meddle(&stage, "hold", "", ASK).await;
    assert_eq!(code(stage.send("hello").await), "send_rejected");
    assert!(stage.journal("sent").is_empty());
    assert!(stage.journal("answered").is_empty());
    assert_eq!(stage.composed().await, "mine");
    stage.close().await;
}

#[tokio::test]
async fn a_text_goes_nowhere_else_when_the_focus_does() {
    let Some(stage) = open("focus elsewhere", "antigravity", "").await else { return };
    meddle(&stage, "beforeText", "", "document.querySelector('.code').focus();").await;
    assert_eq!(code(stage.send("hello there").await), "send_injection_failed");
    assert_eq!(stage.evaluate("document.querySelector('.code').value").await, "");
    assert!(stage.journal("sent").is_empty());
    // Whoever went there stays there.
    assert_eq!(stage.evaluate("document.activeElement.className").await, "code");
    stage.close().await;
}

#[tokio::test]
async fn what_somebody_types_into_the_message_is_not_sent_with_it_and_not_lost() {
    let Some(stage) = open("meddling", "lexical", "draft=mine").await else { return };
    let wait = "window.farhelmWaits = true; await new Promise((done) => { \
        const look = () => document.querySelector('.composer').textContent.includes('X') \
            ? done() : setTimeout(look, 10); look(); });";
    meddle(&stage, "hold", wait, "").await;
    let person = async {
        let begun = Instant::now();
        while stage.evaluate("window.farhelmWaits === true").await != true {
            assert!(begun.elapsed() < PATIENCE);
        }
        let (browser, person) = (&stage.actor.browser, Some(&stage.person));
        for kind in ["keyDown", "keyUp"] {
            let key = json!({"type": kind, "key": "X", "code": "KeyX", "text": "X",
                "windowsVirtualKeyCode": 88, "modifiers": 8});
            browser.call(person, "Input.dispatchKeyEvent", key).await.unwrap();
        }
    };
    let (outcome, ()) = tokio::join!(stage.send("hello"), person);
    assert_eq!(code(outcome), "send_rejected");
    assert!(stage.journal("sent").is_empty());
    assert_eq!(stage.composed().await, "mineX");
    stage.close().await;
}

#[tokio::test]
async fn a_draft_is_back_though_nobody_knows_whether_the_message_was_taken() {
    let Some(stage) = open("drafts", "lexical", "mutate=keep-text&draft=mine").await else {
        return;
    };
    assert_eq!(code(stage.send("kept").await), "delivery_unknown");
    assert_eq!(stage.composed().await, "mine");
    assert_eq!(stage.journal("sent").len(), 1);
    stage.close().await;
}

#[tokio::test]
async fn a_draft_that_is_longer_than_its_field_is_put_back_whole() {
    let Some(stage) = open("long drafts", "monaco", "").await else { return };
    let lines: Vec<String> = (0..80).map(|number| format!("line {number} of mine")).collect();
    let long = format!("{}\n{}", lines.join("\n"), "a line that wraps ".repeat(40));
    stage.make(json!({"do": "draft", "text": long})).await;
    assert_eq!(stage.send("from afar").await, Ok(Done::Plainly));
    assert_eq!(stage.wait_for("sent", 1).await[0]["text"], "from afar");
    assert_eq!(stage.composed().await, long);
    stage.close().await;
}

#[tokio::test]
async fn the_same_question_again_is_another_one_and_not_answered() {
    let Some(stage) = open("again", "textarea", "ask=May+I&mutate=ask-again").await else { return };
    let dialog = stage.dialogs().await[0]["id"].as_str().unwrap().to_owned();
    let press = Task::Press { dialog, label: "Allow".to_owned() };
    assert_eq!(stage.perform(press).await, Ok(Done::Plainly));
    stage.wait_for("asked", 2).await;
    assert_eq!(stage.journal("answered").len(), 1);
    assert_eq!(stage.dialogs().await.len(), 1);
    stage.close().await;
}

#[tokio::test]
async fn somebody_who_types_elsewhere_in_the_window_is_waited_for() {
    let Some(stage) = open("typing beside", "antigravity", "").await else { return };
    stage.evaluate("document.querySelector('.code').focus()").await;
    let (browser, person) = (&stage.actor.browser, Some(&stage.person));
    let insert = |text: &str| browser.call(person, "Input.insertText", json!({"text": text}));
    insert("le").await.unwrap();
    let begun = Instant::now();
    let typing = async {
        // Quick, so that a busy machine makes no pause of it that ends the typing.
        for _ in 0..15 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            insert("t").await.unwrap();
        }
        begun.elapsed()
    };
    let (outcome, typed_until) = tokio::join!(stage.send("hello"), typing);
    assert_eq!(outcome, Ok(Done::Plainly));
    assert!(begun.elapsed() > typed_until + Duration::from_millis(800), "it did not wait");
    let typed = format!("le{}", "t".repeat(15));
    assert_eq!(stage.evaluate("document.querySelector('.code').value").await, typed);
    assert_eq!(stage.evaluate("document.activeElement.className").await, "code");
    stage.close().await;
}

#[tokio::test]
async fn somebody_who_types_in_the_window_around_a_webview_is_waited_for() {
    let Some(stage) = open("typing around", "claude-vscode", "").await else { return };
    let browser = &stage.actor.browser;
    let window = browser.attach(&stage.target).await.unwrap();
    let focus = json!({"enabled": true});
    browser.call(Some(&window), "Emulation.setFocusEmulationEnabled", focus).await.unwrap();
    in_window(&stage, "document.querySelector('.code').value = ''").await;
    in_window(&stage, "document.querySelector('.code').focus()").await;
    let insert =
        |text: &str| browser.call(Some(&window), "Input.insertText", json!({"text": text}));
    insert("le").await.unwrap();
    let begun = Instant::now();
    let typing = async {
        for _ in 0..16 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            insert("t").await.unwrap();
        }
        begun.elapsed()
    };
    let (outcome, typed_until) = tokio::join!(stage.send("hello"), typing);
    assert_eq!(outcome, Ok(Done::Plainly));
    assert!(begun.elapsed() > typed_until + Duration::from_millis(800), "it did not wait");
    let typed = format!("le{}", "t".repeat(16));
    assert_eq!(in_window(&stage, "document.querySelector('.code').value").await, typed);
    assert_eq!(in_window(&stage, "document.activeElement.className").await, "code");
    stage.close().await;
}

#[tokio::test]
async fn a_new_chat_is_not_opened_over_somebodys_draft() {
    let Some(stage) = open("drafts and chats", "lexical", "draft=mine").await else { return };
    let open = Task::Open { workspace_path: None };
    assert_eq!(code(stage.perform(open).await), "control_failed");
    assert!(stage.journal("new_chat").is_empty());
    assert_eq!(stage.composed().await, "mine");
    stage.close().await;
}

#[tokio::test]
async fn the_observer_knows_who_typed() {
    for editor in ["lexical", "textarea", "prosemirror", "plaintext"] {
        let Some(stage) = open("who typed", editor, "").await else { return };
        let typed = "JSON.parse(__farhelm.snapshot()).composer.typed_ms_ago";
        assert_eq!(stage.send("from afar").await, Ok(Done::Plainly));
        assert_eq!(stage.evaluate(typed).await, Value::Null, "{editor}");
        stage.evaluate("__farhelm.composer().focus()").await;
        let text = json!({"text": "I am here"});
        let person = Some(&stage.person);
        stage.actor.browser.call(person, "Input.insertText", text).await.unwrap();
        assert!(stage.evaluate(typed).await.is_number(), "{editor}");
        stage.close().await;
    }
}
