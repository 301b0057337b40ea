//! What a conversation holds besides words: pictures, plans, changes of files, long outputs.

use std::io::{Read as _, Write as _};

use serde_json::{Value, json};

use crate::agents::agent::Agent;
use crate::agents::client::PATIENCE;
use crate::agents::results::Verdict;
use crate::agents::stage::{Stage, words};
use crate::agents::talk::Sent;

const PICTURE: &[u8] = include_bytes!("../picture.png");
/// How a picture of this kind begins, as the services of models are sent them.
const PICTURE_BEGINS: &str = "iVBORw0KGgo";
/// More than is told at once.
const LONG_KIBIBYTES: usize = 80;

/// An uploaded picture reaches the model as a picture.
pub(crate) async fn picture_sent(agent: &'static Agent) -> Verdict {
    let mut stage = Stage::open(agent).await;
    assert_eq!(stage.can("images"), agent.takes_pictures);
    if !agent.takes_pictures {
        return Verdict::Cannot("it does not accept pictures");
    }
    show_picture(&mut stage).await;
    let has = |body: &Value| body.to_string().contains(PICTURE_BEGINS);
    let seen = stage.model.wait_for(PATIENCE, |seen| has(&seen.body)).await;
    assert!(seen.is_some(), "the model never saw the picture");
    Verdict::Works
}

/// Sends a picture, and takes the answer.
pub(super) async fn show_picture(stage: &mut Stage) {
    let upload = upload(stage, "picture.png", "image/png", PICTURE);
    let picture = json!({"attachment_id": upload["attachment_id"], "name": "picture.png",
        "kind": "uploaded_file"});
    let mark = stage.client.mark();
    let sent = Sent { id: "m-picture".to_owned(), mark };
    stage
        .client
        .say(json!({"type": "send_message", "session_id": stage.session,
            "client_message_id": sent.id, "content": "what is this picture",
            "attachments": [picture], "created_at": "2026-11-16T10:00:00.000Z"}))
        .await;
    stage.done(&sent, "completed").await;
}

/// The agent's list of things to do is shown as one.
pub(crate) async fn plan(agent: &'static Agent) -> Verdict {
    let mut stage = Stage::open(agent).await;
    let sent = stage.send("plan: look around; mend it").await;
    stage.done(&sent, "completed").await;
    let has_tool = !stage.said(sent.mark).contains("no tool for this");
    assert_eq!(has_tool, agent.keeps_plan, "{}", stage.client.shown());
    if !agent.keeps_plan {
        return Verdict::Cannot("it has no to-do list");
    }
    let plans = stage.client.since(sent.mark).iter().rev();
    let mut plans = plans.filter(|frame| frame["type"] == "plan");
    let newest = plans.next().unwrap_or_else(|| panic!("no plan:\n{}", stage.client.shown()));
    let entries = newest["entries"].as_array().unwrap();
    assert!(words(&entries[0]["text"]).contains("look around"), "{newest}");
    Verdict::Works
}

/// A file that the agent writes is shown as what it was and what it is.
pub(crate) async fn file_written(agent: &'static Agent) -> Verdict {
    let mut stage = Stage::open(agent).await;
    let path = stage.work().join("written.txt");
    let sent = stage.send(&format!("write: {}", path.display())).await;
    allow_if_asked(&mut stage, &sent, || assert!(!path.exists(), "it did not wait")).await;
    stage.done(&sent, "completed").await;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "hello\n");
    let tools = stage.tools(sent.mark);
    let diffs = tools.values().flat_map(|tool| tool["diffs"].as_array().into_iter().flatten());
    let told = diffs.into_iter().find(|diff| words(&diff["path"]).ends_with("written.txt"));
    let told = told.unwrap_or_else(|| panic!("no change is shown: {tools:?}"));
    assert!(words(&told["new_text"]).contains("hello"), "{told}");
    Verdict::Works
}

/// A long output is told by its ends, and the rest can be had.
pub(crate) async fn long_output(agent: &'static Agent) -> Verdict {
    let mut stage = Stage::open(agent).await;
    let kibibytes = LONG_KIBIBYTES;
    let sent = stage.send(&format!("big: {kibibytes}")).await;
    allow_if_asked(&mut stage, &sent, || ()).await;
    stage.done(&sent, "completed").await;
    let tools = stage.tools(sent.mark);
    let tool = tools.values().find(|tool| words(&tool["output"]).contains("0123456789abcde"));
    assert_eq!(tool.is_some(), agent.tells_output, "{tools:?}");
    let Some(tool) = tool else { return Verdict::Cannot("it does not report tool output") };
    let told = words(&tool["output"]).len();
    assert!(told <= 70 * 1024, "{told} bytes are told at once");
    assert_eq!(tool["output_truncated"] == true, agent.leaves_output_whole, "{tool}");
    if !agent.leaves_output_whole {
        return Verdict::Cannot("it truncates long outputs itself");
    }
    let whole = tool["output_bytes"].as_u64().unwrap();
    assert!(whole > 64 * 1024, "{whole}");
    Verdict::Works
}

/// Not every agent asks about everything.
async fn allow_if_asked(stage: &mut Stage, sent: &Sent, before: impl Fn()) {
    let next = stage
        .client
        .wait(sent.mark, "a question or the end", |frame| {
            frame["type"] == "permission_prompt" || frame["type"] == "run_ended"
        })
        .await;
    if next["type"] == "permission_prompt" {
        before();
        stage.answer(&next, "allow_once", &json!({})).await;
    }
}

fn upload(stage: &Stage, name: &str, media_type: &str, body: &[u8]) -> Value {
    let (host, token) = stage.relay();
    let mut stream = std::net::TcpStream::connect(&host).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(
        stream,
        "POST /v1/uploads?name={name} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer \
         {token}\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )
    .unwrap();
    stream.write_all(body).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 2"), "{answer}");
    serde_json::from_str(body).unwrap()
}
