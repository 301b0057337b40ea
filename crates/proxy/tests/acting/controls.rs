//! Stopping, models, new chats.

use agents::panel::{Done, Task};

use crate::acting::stage::{code, open};

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
async fn a_new_chat_is_opened_by_the_profiles_steps() {
    for panel in ["claude-vscode", "antigravity", "cursor", "vscode-chat"] {
        let Some(stage) = open("new chats", panel, "rows=4").await else { return };
        let outcome = stage.perform(Task::Open { workspace_path: None }).await;
        assert_eq!(outcome, Ok(Done::Plainly), "{panel}");
        stage.wait_for("new_chat", 1).await;
        stage.close().await;
    }
}
