//! Conversations that the agent had before.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::content::show_picture;
use super::crashes::{knows, up};
use crate::agents::agent::Agent;
use crate::agents::client::PATIENCE;
use crate::agents::results::Verdict;
use crate::agents::stage::{Stage, words};

/// An earlier conversation is listed, taken up with everything that was said in it, once, and
/// goes on.
pub(crate) async fn transcript_import(agent: &'static Agent) -> Verdict {
    if !agent.lists_conversations {
        return Verdict::Cannot("its earlier conversations cannot be listed");
    }
    let mut stage = Stage::open(agent).await;
    stage.exchange("remember the kite").await;
    stage.exchange("and the string").await;
    close(&mut stage).await;

    let conversation = listed(&mut stage).await;
    assert_eq!(words(&conversation["workspace_path"]), stage.work().to_string_lossy());
    let resume = json!({"type": "resume_session", "agent_type": agent.name,
        "conversation_id": conversation["conversation_id"]});
    stage.session = stage.launch(&resume).await;
    was_taken_up_once(&mut stage).await;

    let mark = stage.client.mark();
    stage.kill_proxy();
    stage.start_proxy(&[]);
    up(&mut stage, mark).await;
    stage.exchange("what was it").await;
    knows(&stage, "what was it", "remember the kite").await;
    was_taken_up_once(&mut stage).await;
    assert_eq!(stage.launch(&resume).await, stage.session, "it is open already");
    Verdict::Works
}

/// A picture of an earlier conversation stands in its message.
pub(crate) async fn picture_imported(agent: &'static Agent) -> Verdict {
    if !agent.lists_conversations {
        return Verdict::Cannot("its earlier conversations cannot be listed");
    }
    let mut stage = Stage::open(agent).await;
    assert!(stage.can("images"), "it takes no pictures");
    show_picture(&mut stage).await;
    close(&mut stage).await;
    let conversation = listed(&mut stage).await;
    let resume = json!({"type": "resume_session", "agent_type": agent.name,
        "conversation_id": conversation["conversation_id"]});
    stage.session = stage.launch(&resume).await;
    let history = history(&mut stage).await;
    let is_only_named = history.to_string().contains("[image: ");
    assert_eq!(!is_only_named, agent.keeps_pictures, "{history}");
    if is_only_named {
        return Verdict::Cannot("it stores only the path of a picture");
    }
    let parts = history["messages"].as_array().unwrap().iter();
    let mut parts = parts.flat_map(|message| message["parts"].as_array().into_iter().flatten());
    assert!(parts.any(|part| part["kind"] == "image"), "{history}");
    Verdict::Works
}

async fn close(stage: &mut Stage) {
    let (mark, session) = (stage.client.mark(), stage.session.clone());
    stage.client.ask(json!({"type": "close_session", "session_id": session})).await;
    stage
        .client
        .wait(mark, "the session's end", |frame| {
            frame["type"] == "session_closed" && frame["session_id"] == session
        })
        .await;
}

/// The conversation that was held here, as soon as the agent has put it down.
async fn listed(stage: &mut Stage) -> Value {
    let begun = Instant::now();
    loop {
        let mark = stage.client.mark();
        let ask = json!({"type": "resumable_list", "agent_type": stage.agent.name});
        let id = stage.client.ask(ask).await;
        let answer = stage.client.wait(mark, "the list", |frame| frame["request_id"] == id).await;
        if let Some(conversation) = answer["conversations"].get(0) {
            return conversation.clone();
        }
        assert!(begun.elapsed() < PATIENCE, "nothing is listed: {answer}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn history(stage: &mut Stage) -> Value {
    let (mark, session) = (stage.client.mark(), stage.session.clone());
    let id = stage.client.ask(json!({"type": "history_request", "session_id": session})).await;
    stage
        .client
        .wait(mark, "the history", |frame| {
            frame["type"] == "history_snapshot" && frame["request_id"] == id
        })
        .await
}

async fn was_taken_up_once(stage: &mut Stage) {
    let history = history(stage).await;
    let messages = history["messages"].as_array().unwrap();
    for (role, said) in [
        ("user", "remember the kite"),
        ("assistant", "remember the kite"),
        ("user", "and the string"),
        ("assistant", "and the string"),
    ] {
        let fits =
            |message: &&Value| message["role"] == role && words(&message["content"]).contains(said);
        assert_eq!(messages.iter().filter(fits).count(), 1, "{role}: {said}: {history}");
    }
}
