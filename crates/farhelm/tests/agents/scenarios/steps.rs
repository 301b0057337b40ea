//! The proxy is killed at each step of a send: afterwards the agent has it once, or the person is
//! told that nobody knows.

use serde_json::Value;

use crate::agents::agent::Agent;
use crate::agents::results::Verdict;
use crate::agents::stage::{Stage, words};

/// In the environment of a proxy: the step after which it kills itself, once.
const DIES_AT_VARIABLE: &str = "FARHELM_PROXY_DIES_AT";

/// The model does not repeat these words, so they are counted where a person said them.
const TOKEN: &str = "x-only-once-x";

/// On disk, and the agent cannot have it.
pub(crate) async fn killed_at_received(agent: &'static Agent) -> Verdict {
    killed_at(agent, "received").await
}

/// On disk that the agent may have it; it does not.
pub(crate) async fn killed_at_attempting(agent: &'static Agent) -> Verdict {
    killed_at(agent, "attempting").await
}

/// Written to the agent, which may have read it or not.
pub(crate) async fn killed_at_written(agent: &'static Agent) -> Verdict {
    killed_at(agent, &format!("written {TOKEN}")).await
}

/// The agent said that it has it, and nobody wrote that down.
pub(crate) async fn killed_at_heard(agent: &'static Agent) -> Verdict {
    killed_at(agent, "heard").await
}

/// On disk that the agent has it, and the relay does not know.
pub(crate) async fn killed_at_settled(agent: &'static Agent) -> Verdict {
    killed_at(agent, "settled").await
}

async fn killed_at(agent: &'static Agent, step: &str) -> Verdict {
    let mut stage = Stage::open_with(agent, &[(DIES_AT_VARIABLE, step)]).await;
    let sent = stage.send(&format!("slow: 3 {TOKEN}")).await;
    stage.proxy_ends().await;
    stage.start_proxy(&[]);
    let settled = stage.settled(&sent).await;
    let is_unknown = settled["error"]["code"] == "delivery_unknown";
    let is_delivered = settled["type"] == "message_delivered";
    assert!(is_delivered || is_unknown, "{settled}");
    if matches!(step, "received" | "settled") {
        assert!(is_delivered, "here it is known: {settled}");
    }
    if is_delivered {
        stage.run_ended(sent.mark).await;
    }

    let next = stage.send("the next words").await;
    stage.delivered(&next).await;
    stage
        .client
        .wait(next.mark, "an answer to the next words", |frame| {
            frame["message"]["role"] == "assistant"
                && words(&frame["message"]["content"]).contains("the next words")
        })
        .await;
    let times = if agent.home.is_some() {
        let told = stage.model_heard("the next words").await;
        told.iter().map(|words| words.matches(TOKEN).count()).max().unwrap()
    } else {
        let record = stage.path(&format!("machine/demo/{}.received", stage.session));
        let record = std::fs::read_to_string(record).unwrap();
        record.lines().filter(|line| line.contains(&sent.id)).count()
    };
    assert!(times <= 1, "it reached the agent {times} times");
    if is_delivered && times == 0 {
        // The agent had it and was killed with the proxy before it wrote it down: the person is
        // told that what it began came to nothing.
        let is_cut =
            |frame: &Value| frame["type"] == "run_ended" && frame["outcome"] != "completed";
        let ended = stage.client.since(sent.mark).iter().any(is_cut);
        assert!(
            ended && matches!(step, "heard" | "settled"),
            "told as delivered, and is not there"
        );
    }
    Verdict::Works
}
