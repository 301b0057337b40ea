//! What a person does, in the words of the scenarios.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agents::client::{Mark, PATIENCE};
use crate::agents::stage::{Stage, words};

/// A message on its way.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) id: String,
    pub(crate) mark: Mark,
}

impl Stage {
    pub(crate) async fn send(&mut self, content: &str) -> Sent {
        self.send_as(content, None).await
    }

    /// With a mode: `steer` or `follow_up`.
    pub(crate) async fn send_as(&mut self, content: &str, mode: Option<&str>) -> Sent {
        let mark = self.client.mark();
        let id = format!("m-{}", self.client.next_number());
        self.client
            .say(json!({"type": "send_message", "session_id": self.session,
                "client_message_id": id, "content": content, "mode": mode,
                "created_at": "2026-11-16T10:00:00.000Z"}))
            .await;
        let sent = Sent { id, mark };
        self.wait_for(&sent, "message_accepted").await;
        sent
    }

    async fn wait_for(&mut self, sent: &Sent, kind: &str) -> Value {
        self.client
            .wait(sent.mark, &format!("{kind} of {}", sent.id), |frame| {
                frame["type"] == kind && frame["client_message_id"] == sent.id
            })
            .await
    }

    /// What became of it: delivered or failed.
    pub(crate) async fn settled(&mut self, sent: &Sent) -> Value {
        self.client
            .wait(sent.mark, &format!("the end of {}", sent.id), |frame| {
                let kinds = ["message_delivered", "message_failed"];
                kinds.contains(&words(&frame["type"])) && frame["client_message_id"] == sent.id
            })
            .await
    }

    pub(crate) async fn delivered(&mut self, sent: &Sent) -> Value {
        let settled = self.settled(sent).await;
        assert_eq!(settled["type"], "message_delivered", "{settled}");
        settled
    }

    /// The end of the first run that ended since.
    pub(crate) async fn run_ended(&mut self, since: Mark) -> Value {
        let session = self.session.clone();
        self.client
            .wait(since, "the end of the run", |frame| {
                frame["type"] == "run_ended" && frame["session_id"] == session
            })
            .await
    }

    /// Delivered, and the run that it began has ended like this.
    pub(crate) async fn done(&mut self, sent: &Sent, outcome: &str) -> Value {
        self.delivered(sent).await;
        let ended = self.run_ended(sent.mark).await;
        assert_eq!(ended["outcome"], outcome, "{ended}");
        self.nothing_stays_open(sent.mark);
        ended
    }

    /// Sends plain words, and takes the answer.
    pub(crate) async fn exchange(&mut self, content: &str) -> String {
        let sent = self.send(content).await;
        self.done(&sent, "completed").await;
        let said = self.said(sent.mark);
        assert!(said.contains(content), "the answer to {content:?} is {said:?}");
        said
    }

    /// All that the agent said since, of whole messages.
    pub(crate) fn said(&self, since: Mark) -> String {
        let messages = self.client.since(since).iter().filter(|frame| {
            frame["type"] == "message_event"
                && frame["session_id"] == self.session
                && frame["message"]["role"] == "assistant"
        });
        messages.map(|frame| words(&frame["message"]["content"])).collect::<Vec<_>>().join("\n")
    }

    /// The next question since.
    pub(crate) async fn prompt(&mut self, since: Mark) -> Value {
        let session = self.session.clone();
        self.client
            .wait(since, "a permission question", |frame| {
                frame["type"] == "permission_prompt" && frame["session_id"] == session
            })
            .await
    }

    /// Presses the first button with this effect; with what else the answer carries.
    pub(crate) async fn answer(&mut self, prompt: &Value, effect: &str, detail: &Value) {
        let choices = prompt["choices"].as_array().unwrap();
        let choice = choices.iter().find(|choice| choice["effect"] == effect);
        let choice = choice.unwrap_or_else(|| panic!("no choice of {effect}: {prompt}"));
        let mut frame = json!({"type": "permission_response", "session_id": self.session,
            "prompt_id": prompt["prompt_id"], "choice_id": choice["choice_id"]});
        for (name, value) in detail.as_object().unwrap() {
            frame[name] = value.clone();
        }
        let mark = self.client.mark();
        let id = self.client.ask(frame).await;
        let resolved = self
            .client
            .wait(mark, "the answer's record", |frame| {
                frame["request_id"] == id
                    || frame["type"] == "permission_prompt_resolved"
                        && frame["prompt_id"] == prompt["prompt_id"]
            })
            .await;
        assert_ne!(resolved["result"], "failed", "{resolved}");
    }

    /// Asks for something of the session, and takes the result.
    pub(crate) async fn control(&mut self, mut frame: Value) -> Value {
        frame["session_id"] = json!(self.session);
        let mark = self.client.mark();
        let id = self.client.ask(frame).await;
        self.client
            .wait(mark, "the result of a control", |frame| {
                frame["type"] == "agent_control_result" && frame["request_id"] == id
            })
            .await
    }

    pub(crate) async fn interrupt(&mut self) {
        let result = self.control(json!({"type": "agent_interrupt"})).await;
        assert_eq!(result["result"], "ok", "{result}");
    }

    /// The newest configuration that was told.
    pub(crate) fn config(&self) -> Value {
        let all = self.client.since(Mark::START);
        let newest = all
            .iter()
            .rev()
            .find(|frame| frame["type"] == "agent_config" && frame["session_id"] == self.session);
        newest.cloned().unwrap_or_default()
    }

    pub(crate) fn can(&self, ability: &str) -> bool {
        self.config()["capabilities"][ability] == true
    }

    /// The tool calls since, each in its newest state.
    pub(crate) fn tools(&self, since: Mark) -> BTreeMap<String, Value> {
        let mut tools: BTreeMap<String, Value> = BTreeMap::new();
        for frame in self.client.since(since) {
            let is_tool = frame["type"] == "tool_call" || frame["type"] == "tool_update";
            if !is_tool || frame["session_id"] != self.session {
                continue;
            }
            let tool = tools.entry(words(&frame["tool_call_id"]).to_owned()).or_default();
            for (name, value) in frame.as_object().unwrap() {
                tool[name] = value.clone();
            }
        }
        tools
    }

    /// After a run no tool of it is still at work.
    fn nothing_stays_open(&self, since: Mark) {
        for tool in self.tools(since).values() {
            let status = words(&tool["status"]);
            assert!(!matches!(status, "pending" | "running"), "it stays open: {tool}");
        }
    }
}

/// Waits until it is so.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
