//! The driver, fed with lines as agents write them.

#![expect(clippy::wildcard_enum_match_arm, reason = "a test looks for one kind among all")]
#![expect(clippy::needless_pass_by_value, reason = "frames are written where they are used")]

mod life;
mod resume;
mod served;
mod work;

use domain::content::{Message, Part, ToolCall, ToolUpdate};
use domain::session::Report;
use domain::session::controls::Control;
use domain::session::delivery::Send;
use domain::session::prompts::Prompt;
use domain::session::runs::Outcome;
use domain::{Content, RequestId, Sequence, SessionId, Timestamp};
use serde_json::{Value, json};

use super::*;
use crate::{Driver, Earlier, Input, Launcher, Order, Output, Setup};

/// A session, its notes as they lie on disk, and what it wrote to its program.
struct Bench {
    acp: Acp,
    agent: &'static str,
    notes: String,
    earlier: Option<Earlier>,
    now: Timestamp,
    /// Everything it told since [`Bench::take`].
    told: Vec<Output>,
    /// The lines for the program.
    written: Vec<Value>,
}

impl Bench {
    fn new(agent: &'static str) -> Self {
        Self::with(agent, String::new(), None, None)
    }

    fn with(
        agent: &'static str,
        notes: String,
        model: Option<&str>,
        earlier: Option<Earlier>,
    ) -> Self {
        let setup = Setup {
            session: SessionId::from("sess_1"),
            notes: notes.clone(),
            launcher: Launcher { command: agent.into(), args: vec![], env: vec![] },
            workspace: "/w".into(),
            model: model.map(Into::into),
            mode: None,
            earlier: earlier.clone(),
            ready_by: None,
            variables: std::collections::BTreeMap::new(),
        };
        let acp = Acp::new(agent, setup);
        let now = Timestamp(1_000_000);
        let mut bench = Self { acp, agent, notes, earlier, now, told: vec![], written: vec![] };
        let outputs = bench.acp.start(now);
        bench.hear(outputs);
        bench
    }

    /// The proxy died and comes back.
    fn restart(&self) -> Self {
        Self::with(self.agent, self.notes.clone(), None, self.earlier.clone())
    }

    fn hear(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match &output {
                Output::Remember(line) => {
                    self.notes.push_str(line);
                    self.notes.push('\n');
                }
                Output::Write(line) => self.written.push(serde_json::from_str(line).unwrap()),
                _ => {}
            }
            self.told.push(output);
        }
    }

    fn take(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.told)
    }

    fn line(&mut self, line: Value) {
        let outputs = self.acp.on_input(Input::Line(line.to_string()), self.now);
        self.hear(outputs);
    }

    fn update(&mut self, update: Value) {
        self.line(json!({"jsonrpc": "2.0", "method": "session/update",
            "params": {"sessionId": "c1", "update": update}}));
    }

    fn says(&mut self, text: &str) {
        self.update(json!({"sessionUpdate": "agent_message_chunk",
            "content": {"type": "text", "text": text}}));
    }

    /// Answers the last request of this method.
    fn answer(&mut self, method: &str, result: Value) {
        let id = self.id_of(method);
        self.line(json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn refuse(&mut self, method: &str, code: i64, message: &str) {
        let id = self.id_of(method);
        self.line(json!({"jsonrpc": "2.0", "id": id,
            "error": {"code": code, "message": message}}));
    }

    fn id_of(&self, method: &str) -> Value {
        let asked = self.written.iter().rev().find(|line| line["method"] == method);
        asked.unwrap_or_else(|| panic!("nothing asked {method}: {:?}", self.written))["id"].clone()
    }

    fn count(&self, method: &str) -> usize {
        self.written.iter().filter(|line| line["method"] == method).count()
    }

    fn order(&mut self, order: &Order) {
        let outputs = self.acp.on_order(order, self.now);
        self.hear(outputs);
    }

    fn deliver(&mut self, id: &str, attempt: u64, text: &str) {
        self.order(&deliver(id, attempt, text));
    }

    fn control(&mut self, control: Control) {
        self.order(&Order::Control { request: RequestId::from("r1"), control });
    }

    fn ended(&mut self, ended: Ended) {
        let outputs = self.acp.on_input(Input::Ended(ended), self.now);
        self.hear(outputs);
    }

    fn pass(&mut self, ms: u64) {
        self.now = self.now.plus_ms(ms);
        let outputs = self.acp.on_deadline(self.now);
        self.hear(outputs);
    }

    /// The handshake, as the agent of that name makes it.
    fn shake(&mut self) {
        self.answer("initialize", initialized(self.agent));
    }

    /// Up, with nothing said yet.
    fn up(agent: &'static str) -> Self {
        let mut bench = Self::new(agent);
        bench.shake();
        bench.answer("session/new", opened(agent));
        assert!(bench.take().contains(&Output::Ready));
        bench
    }

    fn reports(&self) -> impl Iterator<Item = &Report> {
        self.told.iter().filter_map(|output| match output {
            Output::Report(report) => Some(report),
            _ => None,
        })
    }

    fn messages(&self) -> Vec<&Message> {
        let reports = self.reports();
        reports
            .filter_map(|report| match report {
                Report::Message { message, .. } => Some(message),
                _ => None,
            })
            .collect()
    }

    fn texts(&self) -> Vec<String> {
        self.messages().into_iter().map(text_of).collect()
    }

    fn tools(&self) -> Vec<&ToolCall> {
        let reports = self.reports();
        reports
            .filter_map(|report| match report {
                Report::ToolCall(call) => Some(call),
                _ => None,
            })
            .collect()
    }

    fn tool_updates(&self) -> Vec<&ToolUpdate> {
        let reports = self.reports();
        reports
            .filter_map(|report| match report {
                Report::ToolUpdate(update) => Some(update),
                _ => None,
            })
            .collect()
    }

    fn prompts(&self) -> Vec<&Prompt> {
        let reports = self.reports();
        reports
            .filter_map(|report| match report {
                Report::Asked(prompt) => Some(prompt),
                _ => None,
            })
            .collect()
    }

    fn outcomes(&self) -> Vec<Outcome> {
        let reports = self.reports();
        reports
            .filter_map(|report| match report {
                Report::RunEnded { outcome, .. } => Some(outcome.clone()),
                _ => None,
            })
            .collect()
    }

    fn was_delivered(&self) -> usize {
        self.reports().filter(|report| matches!(report, Report::SendDelivered { .. })).count()
    }

    /// The codes under which sends failed.
    fn failed(&self) -> Vec<String> {
        let reports = self.reports();
        reports
            .filter_map(|report| match report {
                Report::SendFailed { failure, .. } => Some(failure.code.as_str().to_owned()),
                _ => None,
            })
            .collect()
    }

    /// How control commands ended: the code of the failure, or nothing.
    fn results(&self) -> Vec<Option<String>> {
        let reports = self.reports();
        reports
            .filter_map(|report| match report {
                Report::ControlResult { failure, .. } => {
                    Some(failure.as_ref().map(|failure| failure.code.as_str().to_owned()))
                }
                _ => None,
            })
            .collect()
    }

    fn notices(&self) -> Vec<&str> {
        let reports = self.reports();
        reports
            .filter_map(|report| match report {
                Report::Notice(notice) => Some(notice.kind.as_str()),
                _ => None,
            })
            .collect()
    }

    fn unusable(&self) -> Option<&Failure> {
        self.told.iter().find_map(|output| match output {
            Output::Unusable(failure) => Some(failure),
            _ => None,
        })
    }
}

fn deliver(id: &str, attempt: u64, text: &str) -> Order {
    let send = Send {
        id: id.into(),
        text: Content::Open(text.to_owned()),
        attachments: vec![],
        mode: None,
        by: "ada".to_owned(),
        created_at: Timestamp(1),
        digest: None,
    };
    Order::Deliver { send, attempt: Sequence(attempt), files: vec![] }
}

fn text_of(message: &Message) -> String {
    let parts = message.parts.open().unwrap();
    let text = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Thinking(text) => format!("({text})"),
        Part::Image(_) | Part::File(_) | Part::ToolCall(_) => String::new(),
    };
    parts.iter().map(text).collect()
}

fn initialized(agent: &str) -> Value {
    match agent {
        "gemini" => json!({"protocolVersion": 1, "agentInfo": {"name": "gemini-cli"},
            "authMethods": [{"id": "oauth", "name": "Log in with Google"}],
            "agentCapabilities": {"loadSession": true, "promptCapabilities": {"image": true}}}),
        "opencode" => json!({"protocolVersion": 1, "agentInfo": {"name": "OpenCode"},
            "agentCapabilities": {"loadSession": true, "promptCapabilities": {"image": true},
                "sessionCapabilities": {"list": {}, "fork": {}}}}),
        _ => json!({"protocolVersion": 1}),
    }
}

fn opened(agent: &str) -> Value {
    match agent {
        "gemini" => json!({"sessionId": "c1",
            "modes": {"currentModeId": "default",
                "availableModes": [{"id": "default"}, {"id": "plan"}]},
            "models": {"currentModelId": "auto",
                "availableModels": [{"modelId": "auto"}, {"modelId": "flash"}]}}),
        "opencode" => json!({"sessionId": "c1", "configOptions": options("a", "build")}),
        _ => json!({"sessionId": "c1"}),
    }
}

fn options(model: &str, mode: &str) -> Value {
    json!([
        {"id": "model", "category": "model", "type": "select", "currentValue": model,
            "options": [{"value": "a"}, {"group": "more", "options": [{"value": "b"}]}]},
        {"id": "mode", "category": "mode", "type": "select", "currentValue": mode,
            "options": [{"value": "build"}, {"value": "plan"}]},
        {"id": "fast", "category": "model_config", "currentValue": "off", "options": []},
    ])
}
