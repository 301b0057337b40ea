//! Words, and words while the agent works.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::waiter::Waiter;
use crate::agents::agent::Agent;
use crate::agents::client::{Mark, PATIENCE};
use crate::agents::results::Verdict;
use crate::agents::stage::{Stage, words};

/// The words come piece by piece, then as one message that says the same.
pub(crate) async fn plain_streaming(agent: &'static Agent) -> Verdict {
    let mut stage = Stage::open(agent).await;
    let sent = stage.send(&format!("{}hello there friend", agent.saying)).await;
    let ended = stage.done(&sent, "completed").await;
    let said = stage.said(sent.mark);
    assert!(said.contains("hello there friend"), "{said}");

    let heard = stage.client.since(sent.mark);
    let deltas: Vec<&Value> = heard
        .iter()
        .filter(|frame| frame["type"] == "message_delta" && frame["kind"] == "text")
        .collect();
    assert!(deltas.len() >= 3, "it came in {} pieces", deltas.len());
    let id = &deltas[0]["message_id"];
    let drafted: String = deltas
        .iter()
        .filter(|delta| delta["message_id"] == *id)
        .map(|d| words(&d["content"]))
        .collect();
    let whole = heard.iter().find(|frame| frame["message"]["message_id"] == *id);
    assert_eq!(whole.map(|frame| words(&frame["message"]["content"])), Some(drafted.as_str()));

    let own = heard.iter().filter(|frame| frame["message"]["role"] == "user").count();
    assert_eq!(own, 1, "the person's own words are in the transcript once");
    if agent.tells_usage {
        assert!(ended["usage"]["output_tokens"].as_u64().is_some_and(|n| n > 0), "{ended}");
    }
    assert!(stage.can("interrupt"), "{}", stage.config());
    Verdict::Works
}

/// What is sent during a run waits, and is taken up after it.
pub(crate) async fn queue(agent: &'static Agent) -> Verdict {
    let mut stage = Stage::open(agent).await;
    let first = stage.send("slow: 15").await;
    first_words(&mut stage, first.mark).await;
    let second = stage.send_as("and then this", Some("follow_up")).await;
    let delivered = stage.delivered(&second).await;
    let ended = stage.run_ended(first.mark).await;
    assert_eq!(ended["outcome"], "completed", "{ended}");
    assert!(delivered["sequence"].as_u64() > ended["sequence"].as_u64(), "it did not wait");
    let after = ended["sequence"].as_u64();
    stage
        .client
        .wait(second.mark, "the second run's end", |frame| {
            frame["type"] == "run_ended" && frame["sequence"].as_u64() > after
        })
        .await;
    assert!(stage.said(second.mark).contains("and then this"));
    Verdict::Works
}

/// What is sent to steer reaches the agent in the middle of the run, while a tool is at work;
/// where that cannot be, it follows, and the session says so.
pub(crate) async fn steer(agent: &'static Agent) -> Verdict {
    let lines = tempfile::tempdir().unwrap();
    let recorded = ("FARHELM_RECORD_LINES", lines.path().to_str().unwrap());
    let mut stage = Stage::open_with(agent, &[recorded]).await;
    let token = "turn left now";
    assert_eq!(stage.can("steer"), agent.steers, "{}", stage.config());
    let waiter = Waiter::new();
    let first = if agent.home.is_some() {
        let first = stage.send(&format!("{}{}", agent.running, waiter.command())).await;
        waiter.is_let_run(&mut stage, first.mark).await;
        first
    } else {
        let first = stage.send("slow: 100").await;
        first_words(&mut stage, first.mark).await;
        first
    };
    let second = stage.send_as(token, Some("steer")).await;
    if agent.home.is_some() && waiter.runs() {
        if agent.steers {
            has_taken(lines.path(), token).await;
        }
        waiter.end();
    }
    let delivered = stage.delivered(&second).await;
    let ended = stage.run_ended(first.mark).await;
    let at_once = delivered["sequence"].as_u64() < ended["sequence"].as_u64();
    assert_eq!(at_once, agent.steers, "delivered at {}", delivered["sequence"]);
    if agent.home.is_some() {
        stage.model_heard(token).await;
    }
    stage
        .client
        .wait(second.mark, "an answer to what steered", |frame| {
            words(&frame["message"]["content"]).contains(token)
                && frame["message"]["role"] == "assistant"
        })
        .await;
    if agent.steers {
        Verdict::Works
    } else {
        Verdict::Cannot("it takes no messages during a run; they are sent after it")
    }
}

/// The agent was told this and said something since: while its tool waits it has nothing else to
/// say.
async fn has_taken(lines: &Path, token: &str) {
    let has = || {
        let files = std::fs::read_dir(lines).unwrap().flatten();
        let texts = files.map(|file| std::fs::read_to_string(file.path()).unwrap_or_default());
        texts.into_iter().any(|text| {
            let mut after =
                text.lines().skip_while(|it| !(it.starts_with(">>") && it.contains(token)));
            after.any(|line| line.starts_with("<<"))
        })
    };
    let begun = Instant::now();
    while !has() {
        assert!(begun.elapsed() < PATIENCE, "the agent never took what steers it");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The agent has begun to speak.
pub(crate) async fn first_words(stage: &mut Stage, since: Mark) {
    let session = stage.session.clone();
    stage
        .client
        .wait(since, "the first words", |frame| {
            frame["type"] == "message_delta" && frame["session_id"] == session
        })
        .await;
}
