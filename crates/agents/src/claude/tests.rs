//! The driver, fed with lines as Claude Code prints them.

#![expect(clippy::wildcard_enum_match_arm, reason = "a test looks for one report among many")]
#![expect(clippy::needless_pass_by_value, reason = "frames are written where they are used")]

mod deliveries;
mod lives;
mod settings;
mod turns;

use std::collections::BTreeMap;

use domain::content::Failure;
use domain::session::Report;
use domain::session::controls::Control;
use domain::session::delivery::{Mode, Send};
use domain::session::prompts::{AnswerDetail, Prompt};
use domain::session::runs::Outcome;
use domain::{Content, PromptId, Sequence};
use serde_json::{Value, json};

use super::*;
use crate::{Ended, Launcher, Program, uuid_of};

const FILE: &str = "/home/ada/.claude/projects/-w/";

/// A driver, its clock and its notes.
struct Bench {
    driver: Claude,
    now: Timestamp,
    notes: Vec<String>,
}

fn setup(notes: &[String]) -> Setup {
    Setup {
        session: "sess_1".into(),
        notes: notes.join("\n"),
        launcher: Launcher { command: "claude".into(), ..Launcher::default() },
        workspace: "/w".into(),
        model: None,
        mode: None,
        earlier: None,
        ready_by: None,
        variables: BTreeMap::from([("HOME".to_owned(), "/home/ada".to_owned())]),
    }
}

impl Bench {
    fn new(setup: Setup) -> Self {
        Self { driver: Claude::new(setup), now: Timestamp(1_000), notes: vec![] }
    }

    /// A session whose program is up.
    fn up() -> Self {
        let mut bench = Self::new(setup(&[]));
        bench.start();
        bench.introduce();
        bench
    }

    /// As after a restart of the proxy.
    fn reborn(self) -> Self {
        let mut bench = Self::new(setup(&self.notes));
        bench.notes = self.notes;
        bench
    }

    fn note(&mut self, outputs: Vec<Output>) -> Vec<Output> {
        for output in &outputs {
            if let Output::Remember(line) = output {
                self.notes.push(line.clone());
            }
        }
        outputs
    }

    fn start(&mut self) -> Vec<Output> {
        let outputs = self.driver.start(self.now);
        self.note(outputs)
    }

    fn hear(&mut self, line: &Value) -> Vec<Output> {
        let outputs = self.driver.on_input(Input::Line(line.to_string()), self.now);
        self.note(outputs)
    }

    fn input(&mut self, input: Input) -> Vec<Output> {
        let outputs = self.driver.on_input(input, self.now);
        self.note(outputs)
    }

    fn order(&mut self, order: &Order) -> Vec<Output> {
        let outputs = self.driver.on_order(order, self.now);
        self.note(outputs)
    }

    /// Answers the handshake of the program that was started last.
    fn introduce(&mut self) -> Vec<Output> {
        let asked = self.driver.requests_asked();
        let mut outputs = self.hear(&answered(asked - 1, introduction()));
        let applied = json!({"applied": {"model": "claude-opus-5", "effort": "high"}});
        outputs.extend(self.hear(&answered(asked, applied)));
        outputs
    }

    fn send(&mut self, id: &str) -> Vec<Output> {
        self.order(&deliver(id, None))
    }

    /// A send that the agent took.
    fn begin(&mut self, id: &str) -> Vec<Output> {
        self.send(id);
        self.hear(&lifecycle(id, "queued"));
        self.hear(&lifecycle(id, "started"))
    }

    fn control(&mut self, request: &str, control: Control) -> Vec<Output> {
        self.order(&Order::Control { request: request.into(), control })
    }

    fn wait_until_due(&mut self) -> Vec<Output> {
        self.now = self.driver.deadline().expect("something is due");
        let outputs = self.driver.on_deadline(self.now);
        self.note(outputs)
    }
}

impl Claude {
    fn requests_asked(&self) -> u64 {
        self.requests.asked()
    }
}

fn answered(number: u64, response: Value) -> Value {
    let id = format!("farhelm-{number}");
    let response = json!({"subtype": "success", "request_id": id, "response": response});
    json!({"type": "control_response", "response": response})
}

fn introduction() -> Value {
    json!({
        "models": [
            {"value": "default", "resolvedModel": "claude-opus-5", "supportedEffortLevels": ["low", "high"]},
            {"value": "haiku", "resolvedModel": "claude-haiku-5"},
        ],
        "account": {"tokenSource": "none", "apiKeySource": "ANTHROPIC_API_KEY", "apiProvider": "firstParty"},
        "current_permission_mode": "default",
    })
}

fn uuid(id: &str) -> String {
    uuid_of(&"sess_1".into(), &id.into(), Sequence(7))
}

fn lifecycle(id: &str, state: &str) -> Value {
    json!({"type": "command_lifecycle", "command_uuid": uuid(id), "state": state})
}

fn deliver(id: &str, mode: Option<Mode>) -> Order {
    let send = Send {
        id: id.into(),
        text: Content::Open(format!("words of {id}")),
        attachments: vec![],
        mode,
        by: "ada".into(),
        created_at: Timestamp(1),
        digest: None,
    };
    Order::Deliver { send, attempt: Sequence(7), files: vec![] }
}

fn result(more: Value) -> Value {
    let mut result = json!({"subtype": "success", "is_error": false, "type": "result"});
    result.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    result
}

fn stream(event: Value) -> Value {
    json!({"type": "stream_event", "event": event, "parent_tool_use_id": null})
}

fn said(id: &str, block: Value) -> Value {
    let message = json!({"id": id, "role": "assistant", "content": [block]});
    json!({"type": "assistant", "message": message, "parent_tool_use_id": null})
}

fn reports(outputs: &[Output]) -> Vec<&Report> {
    let reports = outputs.iter().filter_map(|output| {
        let Output::Report(report) = output else { return None };
        Some(report)
    });
    reports.collect()
}

fn written(outputs: &[Output]) -> Vec<Value> {
    let lines = outputs.iter().filter_map(|output| {
        let Output::Write(line) = output else { return None };
        Some(serde_json::from_str(line).unwrap())
    });
    lines.collect()
}

fn spawned(outputs: &[Output]) -> Option<&Program> {
    outputs.iter().find_map(|output| {
        let Output::Spawn(program) = output else { return None };
        Some(program)
    })
}

fn failure_of<'a>(outputs: &'a [Output], request: &str) -> Option<&'a Failure> {
    let results = reports(outputs);
    let of_it = results.into_iter().find_map(|report| match report {
        Report::ControlResult { request: of, failure } if of.as_str() == request => Some(failure),
        _ => None,
    });
    of_it.expect("it is answered").as_ref()
}

fn asked(outputs: &[Output]) -> Prompt {
    let prompts = reports(outputs).into_iter().find_map(|report| match report {
        Report::Asked(prompt) => Some(prompt.clone()),
        _ => None,
    });
    prompts.expect("it is asked")
}
