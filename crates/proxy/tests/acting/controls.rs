//! Stopping, models, new chats.

use agents::panel::{Done, Task};

use crate::acting::stage::{Stage, code, open};

/// What IDEs lay over their windows for as long as they like.
async fn notify(stage: &Stage) {
    let notice = "const notice = document.createElement('div'); \
        notice.className = 'notifications-toasts'; notice.textContent = 'An update is ready'; \
        notice.style = 'position: fixed; inset: 0; z-index: 1000'; \
        window.pressed = 0; notice.onpointerdown = () => window.pressed++; \
        document.body.append(notice), 0";
    stage.evaluate(notice).await;
}

#[tokio::test]
async fn a_run_is_stopped_and_an_idle_panel_says_so() {
    let Some(stage) = open("stopping", "textarea", "").await else { return };
    assert_eq!(code(stage.perform(Task::Stop).await), "agent_not_active");
    assert_eq!(stage.send("slow: 500").await, Ok(Done::Plainly));
    assert_eq!(stage.perform(Task::Stop).await, Ok(Done::Plainly));
    stage.wait_for("stopped", 1).await;
    assert_eq!(code(stage.perform(Task::Stop).await), "agent_not_active");
    stage.close().await;
}

#[tokio::test]
async fn models_are_read_and_chosen_and_the_menu_is_closed_again() {
    for panel in ["textarea", "vscode-chat", "cursor", "gemini-code-assist", "codex-vscode"] {
        let Some(stage) = open("models", panel, "").await else { return };
        let models = ["alpha-1", "beta-2", "gamma-3"].map(str::to_owned).to_vec();
        assert_eq!(stage.perform(Task::ReadModels).await, Ok(Done::Models(models)), "{panel}");
        assert!(stage.journal("model").is_empty(), "{panel}");
        assert_eq!(stage.evaluate("__farhelmHand.options().length").await, 0, "{panel}");
        let beta = Task::SetModel("beta-2".to_owned());
        assert_eq!(stage.perform(beta).await, Ok(Done::Plainly), "{panel}");
        assert_eq!(stage.wait_for("model", 1).await[0]["model"], "beta-2", "{panel}");
        let none = stage.perform(Task::SetModel("beta".to_owned())).await;
        assert_eq!(code(none), "model_not_available", "{panel}");
        assert_eq!(stage.evaluate("__farhelmHand.options().length").await, 0, "{panel}");
        assert_eq!(stage.journal("model").len(), 1, "{panel}");
        stage.close().await;
    }
}

#[tokio::test]
async fn entries_of_a_menu_that_come_after_the_first_are_read_and_chosen() {
    let Some(stage) = open("slow menus", "textarea", "mutate=slow-menu").await else { return };
    let models = ["alpha-1", "beta-2", "gamma-3"].map(str::to_owned).to_vec();
    assert_eq!(stage.perform(Task::ReadModels).await, Ok(Done::Models(models)));
    let gamma = Task::SetModel("gamma-3".to_owned());
    assert_eq!(stage.perform(gamma).await, Ok(Done::Plainly));
    assert_eq!(stage.wait_for("model", 1).await[0]["model"], "gamma-3");
    stage.close().await;
}

#[tokio::test]
async fn a_menu_that_keeps_the_way_to_more_models_is_not_waited_for() {
    let Some(stage) = open("menus that stay", "vscode-chat", "mutate=keep-more").await else {
        return;
    };
    let watch = "(() => { const real = __farhelmHand.until; window.inVain = []; \
        __farhelmHand.until = async (check, rest, ms) => { \
          const came = await real(check, rest, ms); \
          if (!came && ms > 0) window.inVain.push(check); \
          return came; }; })(), 0";
    stage.evaluate(watch).await;
    let models = ["alpha-1", "beta-2", "gamma-3"].map(str::to_owned).to_vec();
    assert_eq!(stage.perform(Task::ReadModels).await, Ok(Done::Models(models)));
    let beta = Task::SetModel("beta-2".to_owned());
    assert_eq!(stage.perform(beta).await, Ok(Done::Plainly));
    assert_eq!(stage.evaluate("window.inVain").await, serde_json::json!([]));
    stage.close().await;
}

#[tokio::test]
async fn a_run_whose_stop_button_comes_late_is_stopped() {
    let Some(stage) = open("late stop buttons", "textarea", "").await else { return };
    assert_eq!(stage.send("slow: 500").await, Ok(Done::Plainly));
    let late = "const stop = document.querySelector('.stop'); stop.style.display = 'none'; \
        setTimeout(() => (stop.style.display = ''), 1500), 0";
    stage.evaluate(late).await;
    assert_eq!(stage.perform(Task::Stop).await, Ok(Done::Plainly));
    stage.wait_for("stopped", 1).await;
    stage.close().await;
}

#[tokio::test]
async fn models_are_read_and_chosen_under_a_notification() {
    for panel in ["textarea", "vscode-chat"] {
        let Some(stage) = open("models under a notification", panel, "").await else { return };
        notify(&stage).await;
        let models = ["alpha-1", "beta-2", "gamma-3"].map(str::to_owned).to_vec();
        assert_eq!(stage.perform(Task::ReadModels).await, Ok(Done::Models(models)), "{panel}");
        let beta = Task::SetModel("beta-2".to_owned());
        assert_eq!(stage.perform(beta).await, Ok(Done::Plainly), "{panel}");
        assert_eq!(stage.wait_for("model", 1).await[0]["model"], "beta-2", "{panel}");
        assert_eq!(stage.evaluate("__farhelmHand.options().length").await, 0, "{panel}");
        assert_eq!(stage.evaluate("window.pressed").await, 0, "{panel}");
        stage.close().await;
    }
}

#[tokio::test]
async fn the_cursor_comes_into_a_field_that_a_notification_lies_over() {
    let Some(stage) = open("fields under a notification", "vscode-chat", "rows=4").await else {
        return;
    };
    // As in a panel that is too narrow for its button.
    stage.evaluate("document.querySelector(\"a[aria-label^='New Chat']\").remove(), 0").await;
    notify(&stage).await;
    let outcome = stage.perform(Task::Open { workspace_path: None }).await;
    assert_eq!(outcome, Ok(Done::Plainly));
    stage.wait_for("new_chat", 1).await;
    assert_eq!(stage.evaluate("window.pressed").await, 0);
    stage.close().await;
}

#[tokio::test]
async fn a_field_that_does_not_take_the_cursor_is_told_and_no_key_goes_elsewhere() {
    let Some(stage) = open("fields without a cursor", "vscode-chat", "rows=4").await else {
        return;
    };
    let shy = "document.querySelector(\"a[aria-label^='New Chat']\").remove(); \
        document.querySelector('.code').focus(); window.keys = 0; \
        window.addEventListener('keydown', () => window.keys++, true); \
        for (const it of document.querySelectorAll('.interactive-input-part *')) \
          it.focus = () => {}; 0";
    stage.evaluate(shy).await;
    notify(&stage).await;
    let outcome = stage.perform(Task::Open { workspace_path: None }).await;
    assert_eq!(code(outcome), "control_failed");
    assert_eq!(stage.evaluate("window.keys").await, 0);
    assert!(stage.journal("new_chat").is_empty());
    stage.close().await;
}

#[tokio::test]
async fn a_new_chat_is_opened_by_the_profiles_steps() {
    for panel in ["claude-vscode", "antigravity", "cursor", "vscode-chat"] {
        let Some(stage) = open("new chats", panel, "rows=4").await else { return };
        let outcome = stage.perform(Task::Open { workspace_path: None }).await;
        assert_eq!(outcome, Ok(Done::Plainly), "{panel}");
        stage.wait_for("new_chat", 1).await;
        stage.close().await;
    }
}
