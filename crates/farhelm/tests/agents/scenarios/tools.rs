//! Permission questions, and what each answer leads to.

use std::path::Path;

use serde_json::{Value, json};

use crate::agents::agent::Agent;
use crate::agents::results::Verdict;
use crate::agents::stage::{Stage, words};
use crate::agents::talk::Sent;

/// Nothing happens before the answer; after it the tool runs, and its output is seen.
pub(crate) async fn tool_approved(agent: &'static Agent) -> Verdict {
    let mut stage = Stage::open(agent).await;
    assert!(stage.can("permission_dialogs"), "{}", stage.config());
    let made = stage.work().join("ok-dir");
    let sent = stage.send(&format!("{}mkdir ok-dir && echo made", agent.asking)).await;
    let prompt = stage.prompt(sent.mark).await;
    assert!(prompt.to_string().contains("mkdir ok-dir"), "it does not say what for: {prompt}");
    assert!(!made.exists(), "it did not wait for the answer");
    stage.answer(&prompt, "allow_once", &json!({})).await;
    stage.done(&sent, "completed").await;
    assert!(made.is_dir(), "it was allowed, and did not run");
    let tools = stage.tools(sent.mark);
    let ran = tools.values().find(|tool| tool.to_string().contains("mkdir ok-dir"));
    let ran = ran.unwrap_or_else(|| panic!("no tool call is shown: {tools:?}"));
    assert_eq!(ran["status"], "completed", "{ran}");
    assert_eq!(ran["kind"], "execute", "{ran}");
    assert!(stage.said(sent.mark).contains("done:"), "{}", stage.said(sent.mark));
    text_comes_before_its_tool(agent, &stage, &sent);
    Verdict::Works
}

/// What the model says before it uses a tool comes before the tool. Not every API of the model
/// lets it say something there; Claude's does.
fn text_comes_before_its_tool(agent: &Agent, stage: &Stage, sent: &Sent) {
    let frames = stage.client.since(sent.mark);
    let place = |fits: &dyn Fn(&Value) -> bool| frames.iter().position(fits);
    let said = place(&|frame| words(&frame["message"]["content"]).contains("I will use"));
    let called = place(&|frame| frame["type"] == "tool_call");
    assert!(said.is_some() || agent.name != "claude", "{frames:#?}");
    assert!(said < called, "said: {said:?}, called: {called:?}: {frames:#?}");
}

/// What is refused does not happen, and the session goes on.
pub(crate) async fn tool_denied(agent: &'static Agent) -> Verdict {
    let mut stage = Stage::open(agent).await;
    let sent = stage.send(&format!("{}mkdir bad-dir && echo made", agent.asking)).await;
    let prompt = stage.prompt(sent.mark).await;
    assert!(
        prompt["choices"]
            .as_array()
            .unwrap()
            .iter()
            .all(|choice| { choice["is_default"] == false || choice["effect"] == "reject" })
    );
    stage.answer(&prompt, "reject", &json!({"message": "not in this folder"})).await;
    let ended = stage.run_ended(sent.mark).await;
    assert_ne!(ended["outcome"], "failed", "{ended}");
    if !agent.refusal_ends_run {
        assert_eq!(ended["outcome"], "completed", "{ended}");
    }
    assert!(!stage.work().join("bad-dir").exists(), "it was refused, and ran");
    for tool in stage.tools(sent.mark).values() {
        assert!(matches!(words(&tool["status"]), "failed" | "cancelled"), "{tool}");
    }
    stage.exchange("still there").await;
    Verdict::Works
}

/// After an answer for always, the like is not asked again.
pub(crate) async fn always_allow(agent: &'static Agent) -> Verdict {
    let mut stage = Stage::open(agent).await;
    // A rule that an earlier run left behind must not be taken for this one's.
    let name = format!("first-dir-{}", std::process::id());
    let command = format!("{}mkdir {name}", agent.asking);
    let sent = stage.send(&command).await;
    let prompt = stage.prompt(sent.mark).await;
    let offers = |effect: &str| {
        prompt["choices"].as_array().unwrap().iter().any(|choice| choice["effect"] == effect)
    };
    assert_eq!(offers("allow_always"), agent.allows_always, "{prompt}");
    if !agent.allows_always {
        return Verdict::Cannot("it asks each time");
    }
    stage.answer(&prompt, "allow_always", &json!({})).await;
    stage.done(&sent, "completed").await;
    let made = stage.work().join(&name);
    std::fs::remove_dir(&made).unwrap();

    let again = stage.send(&command).await;
    stage.done(&again, "completed").await;
    let asked = stage.client.since(again.mark).iter().any(is_prompt);
    assert!(!asked, "it asked again");
    assert!(!above_has_rule(&name), "the rule was written outside of the stage");
    assert!(made.is_dir(), "the second one did not run");
    Verdict::Works
}

/// The person changes the command, and the changed one runs.
pub(crate) async fn edited_input(agent: &'static Agent) -> Verdict {
    if !agent.takes_edited_input {
        return Verdict::Cannot("its protocol has no field for edited input");
    }
    let mut stage = Stage::open(agent).await;
    let sent = stage.send(&format!("{}mkdir meant-dir", agent.asking)).await;
    let prompt = stage.prompt(sent.mark).await;
    let mut input = prompt["input"].clone();
    assert_eq!(input["command"], "mkdir meant-dir", "{prompt}");
    input["command"] = json!("mkdir edited-dir");
    stage.answer(&prompt, "allow_once", &json!({"updated_input": input})).await;
    stage.done(&sent, "completed").await;
    let exists = |name: &str| Path::new(&stage.work()).join(name).is_dir();
    assert!(exists("edited-dir") && !exists("meant-dir"));
    Verdict::Works
}

/// Whether an agent took the folder above all stages for its project.
fn above_has_rule(words: &str) -> bool {
    let rules = std::env::temp_dir().join(".claude/settings.local.json");
    std::fs::read_to_string(rules).is_ok_and(|text| text.contains(words))
}

pub(crate) fn is_prompt(frame: &Value) -> bool {
    frame["type"] == "permission_prompt"
}

/// What a subagent does in the background is told to its end, also when the run ended before.
pub(crate) async fn background_subagent(agent: &'static Agent) -> Verdict {
    let Some(order) = agent.works_in_background else {
        return Verdict::Cannot("not tested: it has no known background subagents");
    };
    let mut stage = Stage::open(agent).await;
    let sent = stage.send(order).await;
    stage.delivered(&sent).await;
    stage.run_ended(sent.mark).await;
    // One that was asked within the run is asked anew behind it.
    let behind = stage.client.mark();
    let prompt = stage.prompt(behind).await;
    stage.answer(&prompt, "allow_once", &json!({})).await;
    stage
        .client
        .wait(sent.mark, "the end of what it runs", |frame| {
            words(&frame["output"]).contains("from behind") && frame["status"] == "completed"
        })
        .await;
    Verdict::Works
}
