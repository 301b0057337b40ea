//! A pi session whose program is played by the test.

use std::collections::BTreeMap;

use domain::content::{Message, Part};
use domain::session::Report;
use domain::session::config::AgentConfig;
use domain::session::controls::Control;
use domain::session::delivery::{Mode, Send};
use domain::session::prompts::{AnswerDetail, Prompt};
use domain::session::runs::Outcome;
use domain::{Content, Sequence, Timestamp};
use serde_json::{Value, json};

use crate::pi::Pi;
use crate::{Driver, Earlier, Ended, File, Input, Launcher, Order, Output, Setup};

/// Everything of one kind.
macro_rules! pick {
    ($all:expr, $pattern:pat => $value:expr) => {{
        let all = $all.into_iter();
        let pick = all.filter_map(|one| {
            let $pattern = one else { return None };
            Some($value)
        });
        pick.collect::<Vec<_>>()
    }};
}
pub(super) use pick;

pub(super) const FILE: &str = "/home/p/.pi/agent/sessions/--w--/s1.jsonl";

pub(super) struct Bench {
    pub(super) pi: Pi,
    /// Everything that it said since the last look.
    pub(super) told: Vec<Output>,
    pub(super) notes: String,
    pub(super) now: u64,
}

pub(super) fn setup(notes: &str) -> Setup {
    Setup {
        session: "sess_1".into(),
        notes: notes.to_owned(),
        launcher: Launcher { command: "pi".to_owned(), ..Launcher::default() },
        workspace: "/w".into(),
        model: None,
        mode: None,
        earlier: None,
        ready_by: None,
        variables: BTreeMap::new(),
    }
}

impl Bench {
    pub(super) fn of(setup: Setup) -> Self {
        let notes = setup.notes.clone();
        let mut bench = Self { pi: Pi::new(setup), told: vec![], notes, now: 1_000 };
        let outputs = bench.pi.start(Timestamp(bench.now));
        bench.take(outputs);
        bench
    }

    /// A session that is ready, and has said so.
    pub(super) fn ready() -> Self {
        let mut bench = Self::of(setup(""));
        bench.greet();
        bench.told.clear();
        bench
    }

    /// The same session after the proxy was away.
    pub(super) fn again(&self) -> Self {
        Self::of(setup(&self.notes))
    }

    fn take(&mut self, outputs: Vec<Output>) {
        for output in &outputs {
            if let Output::Remember(line) = output {
                self.notes.push_str(line);
                self.notes.push('\n');
            }
        }
        self.told.extend(outputs);
    }

    pub(super) fn hear(&mut self, line: &Value) {
        self.now += 1;
        let outputs = self.pi.on_input(Input::Line(line.to_string()), Timestamp(self.now));
        self.take(outputs);
    }

    pub(super) fn order(&mut self, order: &Order) {
        self.now += 1;
        let outputs = self.pi.on_order(order, Timestamp(self.now));
        self.take(outputs);
    }

    pub(super) fn input(&mut self, input: Input) {
        let outputs = self.pi.on_input(input, Timestamp(self.now));
        self.take(outputs);
    }

    pub(super) fn end(&mut self, ended: Ended) {
        self.input(Input::Ended(ended));
    }

    pub(super) fn wait_ms(&mut self, ms: u64) {
        self.now += ms;
        let outputs = self.pi.on_deadline(Timestamp(self.now));
        self.take(outputs);
    }

    /// The last command of this type that was written, which is answered by [`Bench::answer`].
    pub(super) fn written(&self, kind: &str) -> Option<Value> {
        self.writes().into_iter().rev().find(|command| command["type"] == kind)
    }

    pub(super) fn writes(&self) -> Vec<Value> {
        pick!(self.told.iter(), Output::Write(line) => serde_json::from_str(line).unwrap())
    }

    /// Answers the last command of this type.
    pub(super) fn answer(&mut self, kind: &str, data: &Value) {
        let asked = self.written(kind).unwrap_or_else(|| panic!("{kind} was not asked"));
        let (id, command) = (&asked["id"], kind);
        self.hear(&json!({"id": id, "type": "response", "command": command, "success": true, "data": data}));
    }

    pub(super) fn refuse(&mut self, kind: &str, error: &str) {
        let asked = self.written(kind).unwrap_or_else(|| panic!("{kind} was not asked"));
        let id = &asked["id"];
        self.hear(&json!({"id": id, "type": "response", "command": kind, "success": false, "error": error}));
    }

    /// pi's first words.
    pub(super) fn greet(&mut self) {
        self.hear(&json!({"type": "extension_ui_request", "id": "u0", "method": "setStatus",
            "statusKey": "farhelm-gate", "statusText": "closed"}));
        self.tell_config("fake-a", "off");
    }

    pub(super) fn tell_config(&mut self, model: &str, effort: &str) {
        let of = |id: &str| json!({"id": id, "provider": "fake", "input": ["text", "image"]});
        let state = json!({"model": of(model), "thinkingLevel": effort, "isStreaming": false,
            "sessionFile": FILE, "sessionId": "s1"});
        self.answer("get_state", &state);
        self.answer("get_available_models", &json!({"models": [of("fake-a"), of("fake-b")]}));
        self.answer("get_available_thinking_levels", &json!({"levels": ["off", "low", "high"]}));
        let commands = json!([{"name": "skill:tidy", "description": "Tidies", "source": "skill"}]);
        self.answer("get_commands", &json!({"commands": commands}));
    }

    pub(super) fn deliver(&mut self, id: &str, text: &str, mode: Option<Mode>) {
        self.deliver_with(id, text, mode, vec![]);
    }

    pub(super) fn deliver_with(
        &mut self,
        id: &str,
        text: &str,
        mode: Option<Mode>,
        files: Vec<File>,
    ) {
        let send = Send {
            id: id.into(),
            text: Content::Open(text.to_owned()),
            attachments: vec![],
            mode,
            by: "ada".to_owned(),
            created_at: Timestamp(self.now),
            digest: None,
        };
        self.order(&Order::Deliver { send, attempt: Sequence(1), files });
    }

    /// A send that pi took and works on.
    pub(super) fn begin(&mut self, id: &str, text: &str) {
        self.deliver(id, text, None);
        self.answer("get_entries", &json!({"entries": [], "leafId": "e1"}));
        self.answer("prompt", &json!(null));
        self.hear(&json!({"type": "agent_start"}));
        self.user(text);
    }

    pub(super) fn user(&mut self, text: &str) {
        let message = json!({"role": "user", "content": [{"type": "text", "text": text}]});
        self.hear(&json!({"type": "message_start", "message": message}));
        self.hear(&json!({"type": "message_end", "message": message}));
    }

    /// An answer of the model's, from its start to its end.
    pub(super) fn says(&mut self, text: &str) {
        self.hear(
            &json!({"type": "message_start", "message": {"role": "assistant", "content": []}}),
        );
        self.grows(&json!({"type": "text_delta", "contentIndex": 0, "delta": text}));
        self.ends(&json!([{"type": "text", "text": text}]), "stop");
    }

    pub(super) fn grows(&mut self, event: &Value) {
        self.hear(&json!({"type": "message_update", "assistantMessageEvent": event}));
    }

    pub(super) fn ends(&mut self, content: &Value, stop: &str) {
        let usage = json!({"input": 10, "output": 12, "cacheRead": 5, "cacheWrite": 0,
            "cost": {"total": 0.0025}});
        self.hear(&json!({"type": "message_end", "message": {"role": "assistant",
            "content": content, "usage": usage, "stopReason": stop, "errorMessage": "overloaded"}}));
    }

    pub(super) fn settles(&mut self) {
        self.hear(&json!({"type": "agent_end", "messages": []}));
        self.hear(&json!({"type": "agent_settled"}));
    }

    /// The gate asks.
    pub(super) fn gate(&mut self, id: &str, tool: &str, input: &Value) {
        let question = json!({"tool": tool, "call": "c1", "input": input});
        self.hear(&json!({"type": "tool_execution_start", "toolCallId": "c1", "toolName": tool,
            "args": input}));
        self.hear(&json!({"type": "extension_ui_request", "id": id, "method": "input",
            "title": format!("farhelm-gate {question}")}));
    }

    pub(super) fn choose(&mut self, prompt: &str, choice: Option<&str>, detail: AnswerDetail) {
        self.order(&Order::Answer {
            request: "r1".into(),
            prompt: prompt.into(),
            choice: choice.map(Into::into),
            detail: Some(Content::Open(detail)),
        });
    }

    pub(super) fn control(&mut self, control: Control) {
        self.order(&Order::Control { request: "r1".into(), control });
    }

    pub(super) fn reports(&self) -> Vec<&Report> {
        pick!(self.told.iter(), Output::Report(report) => report)
    }

    pub(super) fn outcome(&self) -> Option<Outcome> {
        pick!(self.reports(), Report::RunEnded { outcome, .. } => outcome.clone()).pop()
    }

    pub(super) fn delivered(&self) -> Vec<&str> {
        pick!(self.reports(), Report::SendDelivered { id, .. } => id.as_str())
    }

    /// The codes with which sends failed.
    pub(super) fn failed(&self) -> Vec<(&str, &str)> {
        pick!(self.reports(),
            Report::SendFailed { id, failure, .. } => (id.as_str(), failure.code.as_str()))
    }

    pub(super) fn prompts(&self) -> Vec<&Prompt> {
        pick!(self.reports(), Report::Asked(prompt) => prompt)
    }

    /// How orders were answered.
    pub(super) fn results(&self) -> Vec<Option<&str>> {
        pick!(self.reports(), Report::ControlResult { failure, .. } =>
            failure.as_ref().map(|failure| failure.code.as_str()))
    }

    pub(super) fn messages(&self) -> Vec<&Message> {
        pick!(self.reports(), Report::Message { message, .. } => message)
    }

    pub(super) fn said(&self) -> Vec<String> {
        let text = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Thinking(text) => format!("({text})"),
            Part::ToolCall(id) => format!("[{id}]"),
            Part::Image(_) | Part::File(_) => String::new(),
        };
        let parts = |message: &Message| message.parts.open().unwrap().iter().map(text).collect();
        self.messages().into_iter().map(parts).map(|parts: Vec<_>| parts.join("|")).collect()
    }

    pub(super) fn notices(&self) -> Vec<&str> {
        pick!(self.reports(), Report::Notice(notice) => notice.kind.as_str())
    }

    pub(super) fn config(&self) -> Option<&AgentConfig> {
        pick!(self.reports(), Report::Config(config) => config).pop()
    }

    pub(super) fn unusable(&self) -> Option<&str> {
        pick!(self.told.iter(), Output::Unusable(failure) => failure.message.as_str()).pop()
    }

    pub(super) fn spawned(&self) -> Option<&crate::Program> {
        pick!(self.told.iter(), Output::Spawn(program) => program).pop()
    }
}

pub(super) fn earlier(fork: bool) -> Setup {
    let earlier = Earlier { id: "s0".to_owned(), file: Some(FILE.into()), fork };
    Setup { earlier: Some(earlier), ..setup("") }
}
