//! A person can always stop it, and then goes on.

use super::talking::first_words;
use super::waiter::Waiter;
use crate::agents::agent::Agent;
use crate::agents::results::Verdict;
use crate::agents::stage::Stage;
use crate::agents::talk::until;

/// The run ends in the agent, not only on the screen: the model sees its client leave.
pub(crate) async fn interrupt_streaming(agent: &'static Agent) -> Verdict {
    let mut stage = Stage::open(agent).await;
    let sent = stage.send("slow: 300").await;
    first_words(&mut stage, sent.mark).await;
    stage.interrupt().await;
    stage.done(&sent, "interrupted").await;
    if agent.home.is_some() {
        until("the model is left alone", || stage.model.disconnected() > 0).await;
    }
    stage.exchange("after the stop").await;
    Verdict::Works
}

/// The question goes with the run that it blocked, and what it was about does not happen.
pub(crate) async fn interrupt_prompt(agent: &'static Agent) -> Verdict {
    let mut stage = Stage::open(agent).await;
    let sent = stage.send(&format!("{}mkdir never-dir", agent.asking)).await;
    let prompt = stage.prompt(sent.mark).await;
    stage.interrupt().await;
    let gone = stage
        .client
        .wait(sent.mark, "the question's end", |frame| {
            frame["type"] == "permission_prompt_expired"
                && frame["prompt_id"] == prompt["prompt_id"]
        })
        .await;
    assert!(gone["applied_choice"].is_null(), "{gone}");
    stage.done(&sent, "interrupted").await;
    assert!(!stage.work().join("never-dir").exists(), "it ran");
    stage.exchange("after the stop").await;
    Verdict::Works
}

/// The tool's process is gone afterwards.
pub(crate) async fn interrupt_tool(agent: &'static Agent) -> Verdict {
    let mut stage = Stage::open(agent).await;
    let waiter = Waiter::new();
    let sent = stage.send(&format!("{}{}", agent.running, waiter.command())).await;
    waiter.is_let_run(&mut stage, sent.mark).await;
    stage.interrupt().await;
    stage.done(&sent, "interrupted").await;
    until("the tool's process ends", || !waiter.runs()).await;
    stage.exchange("after the stop").await;
    Verdict::Works
}
