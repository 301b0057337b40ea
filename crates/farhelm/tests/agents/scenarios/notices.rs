//! What a person should know besides the conversation: limits, and a context that was summed up.

use serde_json::{Value, json};

use crate::agents::agent::Agent;
use crate::agents::client::Mark;
use crate::agents::results::Verdict;
use crate::agents::stage::Stage;

/// The conversation is summed up, and the person is told.
pub(crate) async fn compaction(agent: &'static Agent) -> Verdict {
    let Some(order) = agent.compacts else {
        return Verdict::Cannot("not tested: no known prompt makes it compact");
    };
    let mut stage = Stage::open(agent).await;
    stage.exchange("remember the kite").await;
    stage.exchange("and the string").await;
    let sent = stage.send(order).await;
    stage.delivered(&sent).await;
    notice(&mut stage, sent.mark, "compaction").await;
    stage.run_ended(sent.mark).await;
    stage.exchange("after the summary").await;
    Verdict::Works
}

/// The model's service says that there is little left, or nothing: the person is told, the run can
/// be stopped, and the session goes on.
pub(crate) async fn limit_told(agent: &'static Agent) -> Verdict {
    let Some((order, kind)) = agent.limited else {
        return Verdict::Cannot("not tested: no known prompt makes it report a limit");
    };
    let mut stage = Stage::open(agent).await;
    let sent = stage.send(order).await;
    notice(&mut stage, sent.mark, kind).await;
    let is_over = |frame: &Value| frame["type"] == "run_ended";
    if kind == "retry" {
        let result = stage.control(json!({"type": "agent_interrupt"})).await;
        // It may have been over already.
        let is_over = stage.client.since(sent.mark).iter().any(is_over);
        assert!(result["result"] == "ok" || is_over, "{result}");
    }
    stage.run_ended(sent.mark).await;
    stage.exchange("after the limit").await;
    Verdict::Works
}

async fn notice(stage: &mut Stage, since: Mark, kind: &str) -> Value {
    let session = stage.session.clone();
    stage
        .client
        .wait(since, &format!("a notice of {kind}"), |frame| {
            frame["type"] == "notice" && frame["kind"] == kind && frame["session_id"] == session
        })
        .await
}
