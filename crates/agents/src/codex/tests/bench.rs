//! A driver under test: the test reads what it writes and plays Codex.

use std::collections::{BTreeMap, VecDeque};

use domain::session::Report;
use domain::session::delivery::{Mode, Send};
use domain::{Content, MessageId, RequestId, Sequence, Timestamp};
use serde_json::{Value, json};

use crate::codex::Codex;
use crate::{Driver, Ended, Input, Launcher, Order, Output, Setup, uuid_of};

pub(super) const THREAD: &str = "t1";
pub(super) const TURN: &str = "turn1";

pub(super) struct Bench {
    pub(super) codex: Codex,
    pub(super) now: Timestamp,
    /// Everything told since the last [`Bench::told`].
    outputs: Vec<Output>,
    /// Requests that were written and not answered yet.
    asked: VecDeque<Value>,
    /// Everything remembered, as the next driver will read it.
    pub(super) notes: String,
}

pub(super) fn setup(notes: &str) -> Setup {
    Setup {
        session: "s1".into(),
        notes: notes.to_owned(),
        launcher: Launcher { command: "codex".into(), ..Launcher::default() },
        workspace: "/w".into(),
        model: None,
        mode: None,
        earlier: None,
        ready_by: None,
        variables: BTreeMap::new(),
    }
}

impl Bench {
    pub(super) fn new(setup: Setup) -> Self {
        let notes = setup.notes.clone();
        let mut bench = Self {
            codex: Codex::new(setup),
            now: Timestamp(1_000),
            outputs: vec![],
            asked: VecDeque::new(),
            notes,
        };
        let told = bench.codex.start(bench.now);
        bench.hear(told);
        bench
    }

    /// A session that answered its launch.
    pub(super) fn ready() -> Self {
        let mut bench = Self::new(setup(""));
        bench.greet();
        bench.answer("thread/start", opened(THREAD));
        assert!(bench.told().contains(&Output::Ready));
        bench
    }

    /// A run of `m1` goes on.
    pub(super) fn running() -> Self {
        let mut bench = Self::ready();
        bench.deliver("m1", "hello", None);
        bench.answer("turn/start", json!({ "turn": { "id": TURN } }));
        bench.notify("turn/started", json!({ "threadId": THREAD, "turn": { "id": TURN } }));
        bench.show("m1");
        bench
    }

    /// Up to the opening of the thread.
    pub(super) fn greet(&mut self) {
        self.answer("initialize", json!({ "userAgent": "codex" }));
        self.answer("account/read", json!({ "account": null, "requiresOpenaiAuth": false }));
        self.answer("model/list", json!({ "data": [] }));
    }

    fn hear(&mut self, outputs: Vec<Output>) {
        for output in &outputs {
            match output {
                Output::Write(line) => {
                    let message: Value = serde_json::from_str(line).unwrap();
                    if message.get("id").is_some() && message.get("method").is_some() {
                        self.asked.push_back(message);
                    }
                }
                Output::Remember(line) => {
                    self.notes.push_str(line);
                    self.notes.push('\n');
                }
                Output::Spawn(_) => self.asked.clear(),
                Output::LookedUp { .. }
                | Output::Report(_)
                | Output::Passing(..)
                | Output::Ready
                | Output::Unusable(_)
                | Output::End
                | Output::Read(_)
                | Output::File(_)
                | Output::Terminal(_)
                | Output::Keep(_)
                | Output::Panel(_) => {}
            }
        }
        self.outputs.extend(outputs);
    }

    pub(super) fn input(&mut self, input: Input) {
        let told = self.codex.on_input(input, self.now);
        self.hear(told);
    }

    pub(super) fn line(&mut self, line: &Value) {
        self.input(Input::Line(line.to_string()));
    }

    pub(super) fn order(&mut self, order: &Order) {
        let told = self.codex.on_order(order, self.now);
        self.hear(told);
    }

    pub(super) fn later(&mut self, ms: u64) {
        self.now = self.now.plus_ms(ms);
        let told = self.codex.on_deadline(self.now);
        self.hear(told);
    }

    pub(super) fn die(&mut self) {
        self.input(Input::Ended(Ended::Killed(9)));
    }

    pub(super) fn deliver(&mut self, id: &str, text: &str, mode: Option<Mode>) {
        let send = Send {
            id: id.into(),
            text: Content::Open(text.to_owned()),
            attachments: vec![],
            mode,
            by: "owner".to_owned(),
            created_at: self.now,
            digest: None,
        };
        self.order(&Order::Deliver { send, attempt: Sequence(7), files: vec![] });
    }

    pub(super) fn notify(&mut self, method: &str, params: Value) {
        self.line(&json!({ "method": method, "params": params }));
    }

    /// Codex shows a message of ours, as it does once it has written it down.
    pub(super) fn show(&mut self, id: &str) {
        let item = json!({
            "type": "userMessage",
            "id": format!("user-{id}"),
            "clientId": uuid_of(&"s1".into(), &id.into(), Sequence(7)),
            "content": [{ "type": "text", "text": "…" }],
        });
        self.notify("item/started", of_item(item.clone()));
        self.notify("item/completed", of_item(item));
    }

    /// What was asked of Codex by this method and is not answered yet.
    pub(super) fn asked(&mut self, method: &str) -> Option<Value> {
        let at = self.asked.iter().position(|asked| asked["method"] == method)?;
        self.asked.remove(at)
    }

    /// Answers a request, and returns what it asked.
    pub(super) fn answer(&mut self, method: &str, result: Value) -> Value {
        let asked = self.asked(method).unwrap_or_else(|| panic!("nobody asked {method}"));
        self.line(&json!({ "id": asked["id"], "result": result }));
        asked["params"].clone()
    }

    pub(super) fn refuse(&mut self, method: &str, code: i64, message: &str) {
        let asked = self.asked(method).unwrap_or_else(|| panic!("nobody asked {method}"));
        self.line(&json!({ "id": asked["id"], "error": { "code": code, "message": message } }));
    }

    /// Everything told since the last time.
    pub(super) fn told(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }

    pub(super) fn reports(&mut self) -> Vec<Report> {
        let report = |output| match output {
            Output::Report(report) => Some(report),
            _ => None,
        };
        self.told().into_iter().filter_map(report).collect()
    }

    /// The lines written since the last time.
    pub(super) fn written(&mut self) -> Vec<Value> {
        let line = |output| match output {
            Output::Write(line) => Some(serde_json::from_str(&line).unwrap()),
            _ => None,
        };
        self.told().into_iter().filter_map(line).collect()
    }
}

pub(super) fn opened(thread: &str) -> Value {
    json!({
        "thread": { "id": thread },
        "model": "fake-a",
        "modelProvider": "fake",
        "approvalPolicy": "on-request",
        "sandbox": { "type": "workspaceWrite", "networkAccess": true },
        "reasoningEffort": null,
    })
}

pub(super) fn of_item(item: Value) -> Value {
    json!({ "threadId": THREAD, "turnId": TURN, "item": item })
}

pub(super) fn completed(status: &str) -> Value {
    json!({ "threadId": THREAD, "turn": { "id": TURN, "status": status } })
}

pub(super) fn request(name: &str) -> RequestId {
    name.into()
}

pub(super) fn delivered(reports: &[Report]) -> Vec<MessageId> {
    let id = |report: &Report| match report {
        Report::SendDelivered { id, .. } => Some(id.clone()),
        _ => None,
    };
    reports.iter().filter_map(id).collect()
}

pub(super) fn failed(reports: &[Report]) -> Vec<(MessageId, String)> {
    let id = |report: &Report| match report {
        Report::SendFailed { id, failure, .. } => {
            Some((id.clone(), failure.code.as_str().to_owned()))
        }
        _ => None,
    };
    reports.iter().filter_map(id).collect()
}
