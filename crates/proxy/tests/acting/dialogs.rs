//! Questions: only the button that was meant, of the dialog that was meant.

use agents::panel::{Done, Task};
use serde_json::json;

use crate::acting::stage::{Stage, code, open};

async fn press(stage: &Stage, dialog: &str, label: &str) -> String {
    let (dialog, label) = (dialog.to_owned(), label.to_owned());
    code(stage.perform(Task::Press { dialog, label }).await)
}

/// The only dialog's id.
async fn asked(stage: &Stage) -> String {
    let dialogs = stage.dialogs().await;
    assert_eq!(dialogs.len(), 1, "{dialogs:?}");
    dialogs[0]["id"].as_str().unwrap().to_owned()
}

/// Whatever was pressed was pressed in a dialog.
fn nothing_outside(stage: &Stage) {
    for kind in ["pointerdown", "click"] {
        for entry in stage.journal(kind) {
            assert_eq!(entry["within_dialog"], true, "{entry}");
        }
    }
}

#[tokio::test]
async fn a_question_is_answered_with_the_very_button() {
    let Some(stage) = open("dialogs", "textarea", "ask=May+I").await else { return };
    let dialog = asked(&stage).await;
    assert_eq!(press(&stage, &dialog, "Deny").await, "Plainly");
    let answered = stage.wait_for("answered", 1).await;
    assert_eq!((&answered[0]["label"], &answered[0]["is_trusted"]), (&json!("Deny"), &json!(true)));
    nothing_outside(&stage);
    // The second answer finds nothing.
    assert_eq!(press(&stage, &dialog, "Allow").await, "prompt_not_found");
    assert_eq!(stage.journal("answered").len(), 1);
    nothing_outside(&stage);
    stage.close().await;
}

#[tokio::test]
async fn a_question_that_became_another_is_not_answered() {
    let Some(stage) = open("swapped", "textarea", "ask=May+I").await else { return };
    let dialog = asked(&stage).await;
    stage.make(json!({"do": "swap", "text": "May I delete everything?"})).await;
    assert_eq!(press(&stage, &dialog, "Allow").await, "prompt_not_found");
    let other = asked(&stage).await;
    assert_ne!(other, dialog);
    stage.make(json!({"do": "withdraw"})).await;
    assert_eq!(press(&stage, &other, "Allow").await, "prompt_not_found");
    assert!(stage.journal("click").is_empty());
    assert!(stage.journal("answered").is_empty());
    stage.close().await;
}

#[tokio::test]
async fn a_question_that_becomes_another_under_the_mouse_is_not_answered() {
    let Some(stage) = open("hover", "textarea", "ask=May+I&mutate=swap-on-hover").await else {
        return;
    };
    let dialog = asked(&stage).await;
    assert_eq!(press(&stage, &dialog, "Allow").await, "prompt_not_found");
    assert!(stage.journal("pointerdown").is_empty());
    assert!(stage.journal("answered").is_empty());
    stage.close().await;
}

#[tokio::test]
async fn a_press_that_would_hit_something_else_is_stopped_inside_of_the_panel() {
    let Some(stage) = open("guard", "textarea", "ask=May+I").await else { return };
    let dialog = asked(&stage).await;
    // The dialog changes between the last look and the mouse button: nothing is faster than the
    // page's own handler for the pointer.
    stage
        .evaluate(
            "window.addEventListener('pointerover', () => {}, true); \
             const hand = __farhelmHand; const hindrance = hand.hindrance; \
             hand.hindrance = () => { const none = hindrance(); \
               document.dispatchEvent(new CustomEvent('panel:do', \
                 { detail: JSON.stringify({ do: 'swap', text: 'Delete?' }) })); \
               return none; }; 0",
        )
        .await;
    let outcome = press(&stage, &dialog, "Allow").await;
    assert!(outcome == "control_failed" || outcome == "prompt_not_found", "{outcome}");
    assert!(stage.journal("answered").is_empty(), "{:?}", stage.journal("answered"));
    stage.close().await;
}

#[tokio::test]
async fn a_button_that_is_not_in_the_dialog_is_not_looked_for_elsewhere() {
    let Some(stage) = open("elsewhere", "textarea", "ask=May+I").await else { return };
    let dialog = asked(&stage).await;
    for label in ["Send", "New chat", "Allow everything", ""] {
        assert_eq!(press(&stage, &dialog, label).await, "prompt_not_found", "{label}");
    }
    assert!(stage.journal("pointerdown").is_empty());
    stage.close().await;
}

#[tokio::test]
async fn a_dialog_that_is_there_twice_is_answered_once() {
    let Some(stage) = open("twice", "vscode-chat", "ask=May+I&mutate=dup-dialog").await else {
        return;
    };
    let dialog = asked(&stage).await;
    assert_eq!(press(&stage, &dialog, "Skip").await, "Plainly");
    assert_eq!(stage.wait_for("answered", 1).await.len(), 1);
    nothing_outside(&stage);
    stage.close().await;
}

#[tokio::test]
async fn a_dialog_that_stays_is_told_and_not_pressed_again() {
    let Some(stage) = open("stuck", "textarea", "ask=May+I&mutate=stuck-dialog").await else {
        return;
    };
    let dialog = asked(&stage).await;
    assert_eq!(press(&stage, &dialog, "Deny").await, "control_failed");
    assert_eq!(stage.wait_for("answered", 1).await.len(), 1);
    nothing_outside(&stage);
    stage.close().await;
}

#[tokio::test]
async fn a_choice_with_a_submit_button_is_submitted() {
    let Some(stage) = open("submit", "codex-vscode", "ask=May+I").await else { return };
    let dialog = asked(&stage).await;
    let task = Task::Press { dialog, label: "No".to_owned() };
    assert_eq!(stage.perform(task).await, Ok(Done::Plainly));
    assert_eq!(stage.wait_for("answered", 1).await[0]["label"], "No");
    nothing_outside(&stage);
    stage.close().await;
}

#[tokio::test]
async fn answers_and_stops_leave_the_focus_where_it_was() {
    let Some(stage) = open("focus", "claude-vscode", "ask=May+I").await else { return };
    let browser = &stage.actor.browser;
    let window = browser.attach(&stage.target).await.unwrap();
    let in_window = async |expression: &str| {
        let params = json!({"expression": expression, "returnByValue": true});
        let answer = browser.call(Some(&window), "Runtime.evaluate", params).await.unwrap();
        answer["result"]["value"].clone()
    };
    // Somebody is in the code beside the panel.
    in_window("document.querySelector('.code').focus()").await;
    assert_eq!(press(&stage, &asked(&stage).await, "No").await, "Plainly");
    assert_eq!(in_window("document.activeElement.className").await, "code");
    assert_eq!(stage.send("slow: 500").await, Ok(Done::Plainly));
    assert_eq!(stage.perform(Task::Stop).await, Ok(Done::Plainly));
    assert_eq!(in_window("document.activeElement.className").await, "code");

    // Somebody is in the panel's own field.
    stage.make(json!({"do": "ask", "text": "And now?"})).await;
    let focused = "document.activeElement.getAttribute('aria-label')";
    stage.evaluate("document.querySelector('[aria-label=\"Message input\"]').focus()").await;
    assert_eq!(stage.evaluate(focused).await, "Message input");
    assert_eq!(press(&stage, &asked(&stage).await, "No").await, "Plainly");
    assert_eq!(stage.evaluate(focused).await, "Message input");
    assert_eq!(in_window("document.activeElement.tagName").await, "IFRAME");
    stage.close().await;
}

/// A page that is hidden takes five seconds for a move of the mouse.
#[tokio::test]
async fn a_panel_in_a_tab_behind_another_is_awake_while_it_is_answered_and_stopped() {
    for panel in ["claude-vscode", "opencode-web"] {
        let Some(stage) = open("behind", panel, "ask=May+I").await else { return };
        let browser = &stage.actor.browser;
        let other = stage.open_in_front().await;
        let deny = if panel == "opencode-web" { "Deny" } else { "No" };
        assert_eq!(press(&stage, &asked(&stage).await, deny).await, "Plainly");
        assert_eq!(stage.send("slow: 500").await, Ok(Done::Plainly));
        assert_eq!(stage.perform(Task::Stop).await, Ok(Done::Plainly));
        stage.wait_for("stopped", 1).await;
        for entry in stage.wait_for("pointerdown", 3).await {
            assert_eq!(entry["is_hidden"], false, "{panel}: {entry}");
        }
        browser.call(None, "Target.closeTarget", other).await.unwrap();
        stage.close().await;
    }
}
