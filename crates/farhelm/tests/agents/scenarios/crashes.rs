//! Things that end in the middle.

use super::talking::first_words;
use crate::agents::agent::Agent;
use crate::agents::client::Mark;
use crate::agents::results::Verdict;
use crate::agents::stage::{Stage, words};
use crate::agents::talk::until;

/// A proxy that was killed comes back with the same session, and the agent knows what was said.
pub(crate) async fn resume_after_kill(agent: &'static Agent) -> Verdict {
    let mut stage = Stage::open(agent).await;
    stage.exchange("remember the kite").await;
    let mark = stage.client.mark();
    stage.kill_proxy();
    down(&mut stage, mark).await;
    let back = stage.client.mark();
    stage.start_proxy(&[]);
    up(&mut stage, back).await;
    stage.exchange("what was it").await;
    knows(&stage, "what was it", "remember the kite").await;
    assert!(stage.can("resume") || agent.home.is_none(), "{}", stage.config());
    Verdict::Works
}

/// The run that was under way is told as over, and the session is used again.
pub(crate) async fn killed_while_streaming(agent: &'static Agent) -> Verdict {
    let mut stage = Stage::open(agent).await;
    stage.exchange("remember the kite").await;
    let sent = stage.send("slow: 300").await;
    first_words(&mut stage, sent.mark).await;
    let process = stage.agent_process();
    stage.kill_proxy();
    stage.start_proxy(&[]);
    let ended = stage.run_ended(sent.mark).await;
    assert_eq!(ended["outcome"], "interrupted", "{ended}");
    assert!(words(&ended["reason"]).contains("stopped on this machine"), "{ended}");
    // The words that were shown are a message now.
    assert!(!stage.said(sent.mark).is_empty(), "what was shown is gone");
    if let Some(process) = process {
        let place = std::path::PathBuf::from(format!("/proc/{process}"));
        until("what the killed proxy had started ends", || !place.exists()).await;
    }
    stage.exchange("what was it").await;
    knows(&stage, "what was it", "remember the kite").await;
    Verdict::Works
}

/// The model's service refuses: the run fails with the reason, and the session goes on.
pub(crate) async fn api_error(agent: &'static Agent) -> Verdict {
    let mut stage = Stage::open(agent).await;
    let sent = stage.send("fail: 400").await;
    stage.delivered(&sent).await;
    let ended = stage.run_ended(sent.mark).await;
    assert_eq!(ended["outcome"], "failed", "{ended}");
    assert!(!words(&ended["reason"]).is_empty(), "{ended}");
    stage.exchange("after the error").await;
    Verdict::Works
}

/// The agent's program dies: the run fails with the reason, and the next message starts it again.
pub(crate) async fn agent_killed(agent: &'static Agent) -> Verdict {
    let mut stage = Stage::open(agent).await;
    stage.exchange("remember the kite").await;
    let sent = stage.send("slow: 300").await;
    first_words(&mut stage, sent.mark).await;
    let process = stage.agent_process().and_then(|process| i32::try_from(process).ok());
    let process = process.and_then(rustix::process::Pid::from_raw).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
    let ended = stage.run_ended(sent.mark).await;
    assert_eq!(ended["outcome"], "failed", "{ended}");
    assert!(words(&ended["reason"]).contains("signal 9"), "{ended}");
    let session = stage.session.clone();
    stage
        .client
        .wait(sent.mark, "that it is degraded", |frame| {
            frame["type"] == "session_status"
                && frame["status"] == "degraded"
                && frame["session_id"] == session
        })
        .await;
    stage.exchange("what was it").await;
    knows(&stage, "what was it", "remember the kite").await;
    Verdict::Works
}

/// An agent that takes more memory than it may is ended, and the session says why.
pub(crate) async fn memory_guard(agent: &'static Agent) -> Verdict {
    let mut stage = Stage::open(agent).await;
    stage.kill_proxy();
    // Less than any of them takes.
    stage.start_proxy(&[("FARHELM_AGENT_MEMORY_MIB", "8")]);
    let sent = stage.send("slow: 300").await;
    // Of a slow start nothing was delivered yet; otherwise a run is cut.
    let told = stage
        .client
        .wait(sent.mark, "that it took too much", |frame| {
            words(&frame["reason"]).contains("MiB of memory")
        })
        .await;
    assert!(words(&told["reason"]).contains("8 MiB"), "{told}");
    until("its program is gone", || stage.agent_process().is_none()).await;
    Verdict::Works
}

/// Whether the model was told of the one in the same breath as of the other.
pub(crate) async fn knows(stage: &Stage, now: &str, before: &str) {
    if stage.agent.home.is_some() {
        let told = stage.model_heard(now).await;
        assert!(told.iter().any(|words| words.contains(before)), "it forgot: {told:?}");
    }
}

async fn down(stage: &mut Stage, since: Mark) {
    let session = stage.session.clone();
    let fits = |frame: &serde_json::Value| {
        frame["type"] == "session_down" && frame["session_id"] == session
    };
    stage.client.wait(since, "that the session is down", fits).await;
}

pub(crate) async fn up(stage: &mut Stage, since: Mark) {
    let session = stage.session.clone();
    let fits = |frame: &serde_json::Value| {
        frame["type"] == "session_up" && frame["session"]["session_id"] == session
    };
    stage.client.wait(since, "that the session is up again", fits).await;
}
