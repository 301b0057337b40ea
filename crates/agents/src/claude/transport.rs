//! Communication with the program: how it is started, what is written to it, and which of our
//! requests are still unanswered.
//!
//! Not here: its output (`frames`).

use std::collections::BTreeMap;

use domain::{ModelId, RequestId, RunId, Timestamp};
use serde_json::{Value, json};

use crate::File;
use crate::words_with_files;

/// Makes the program speak its protocol on standard input and output.
const ARGUMENTS: [&str; 10] = [
    "-p",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--verbose",
    "--include-partial-messages",
    "--permission-prompt-tool",
    "stdio",
    "--replay-user-messages",
];
/// How long it may take to answer a request.
const ANSWERS_WITHIN_MS: u64 = 20_000;

/// With which conversation it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Conversation {
    /// A new one of this id.
    New(String),
    /// This one.
    Resumed(String),
    /// A copy of one, under a new id.
    Forked { from: String, to: String },
}

/// With which settings it begins.
#[derive(Debug, Clone, Default)]
pub(super) struct Wishes<'a> {
    pub(super) model: Option<&'a str>,
    pub(super) mode: Option<&'a str>,
    pub(super) effort: Option<&'a str>,
}

/// The program's arguments.
pub(super) fn arguments(conversation: &Conversation, wishes: &Wishes) -> Vec<String> {
    let mut arguments: Vec<String> = ARGUMENTS.map(str::to_owned).to_vec();
    let mut add = |name: &str, value: &str| arguments.extend([name.to_owned(), value.to_owned()]);
    match conversation {
        Conversation::New(id) => add("--session-id", id),
        Conversation::Resumed(id) => add("--resume", id),
        Conversation::Forked { from, to } => {
            add("--resume", from);
            add("--session-id", to);
        }
    }
    if let Some(model) = wishes.model {
        add("--model", model);
    }
    if let Some(mode) = wishes.mode {
        add("--permission-mode", mode);
    }
    if let Some(effort) = wishes.effort {
        add("--effort", effort);
    }
    if matches!(conversation, Conversation::Forked { .. }) {
        arguments.push("--fork-session".to_owned());
    }
    arguments
}

/// When the agent takes a message that comes while it works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Urgency {
    /// At its next opportunity within the run.
    Steer,
    /// After the run.
    FollowUp,
}

/// A person's message.
pub(super) fn user(uuid: &str, words: &str, files: &[File], urgency: Urgency) -> String {
    let pictures: Vec<_> = files.iter().filter_map(|file| file.image.as_ref()).collect();
    let others = files.iter().filter(|file| file.image.is_none());
    let mut content = vec![json!({"type": "text", "text": words_with_files(words, others)})];
    content.extend(pictures.iter().map(|image| {
        let (kind, data) = (&image.media_type, &image.base64);
        json!({"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}})
    }));
    let priority = match urgency {
        Urgency::Steer => "next",
        Urgency::FollowUp => "later",
    };
    json!({
        "type": "user",
        "message": {"role": "user", "content": content},
        "parent_tool_use_id": null,
        "session_id": "",
        "uuid": uuid,
        "priority": priority,
    })
    .to_string()
}

/// Our answer to a request of the agent's.
pub(super) fn answer(request_id: &str, response: &Value) -> String {
    let response = json!({"subtype": "success", "request_id": request_id, "response": response});
    json!({"type": "control_response", "response": response}).to_string()
}

/// We cannot answer a request of the agent's.
pub(super) fn refuse(request_id: &str, words: &str) -> String {
    let response = json!({"subtype": "error", "request_id": request_id, "error": words});
    json!({"type": "control_response", "response": response}).to_string()
}

/// Why we asked something of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To begin.
    Initialize,
    /// To know its settings, at the beginning or because somebody asks.
    Settings(Option<RequestId>),
    /// To stop a run. Answered when the run is over.
    Interrupt,
    SetModel(RequestId, ModelId),
    SetMode(RequestId, String),
    SetEffort(RequestId, String),
    /// To know how full the context is.
    Context,
}

impl Purpose {
    /// The order that waits for it.
    pub(super) fn request(&self) -> Option<&RequestId> {
        match self {
            Self::Settings(request) => request.as_ref(),
            Self::SetModel(request, _)
            | Self::SetMode(request, _)
            | Self::SetEffort(request, _) => Some(request),
            Self::Initialize | Self::Interrupt | Self::Context => None,
        }
    }
}

/// Requests of ours that are not answered. Each is asked for an order or at an end of a run, and
/// forgotten when its time is up, so they are few.
#[derive(Debug, Default)]
pub(super) struct Requests {
    asked: u64,
    open: BTreeMap<String, (Purpose, Timestamp)>,
}

impl Requests {
    /// The line that asks.
    pub(super) fn ask(&mut self, purpose: Purpose, request: &Value, now: Timestamp) -> String {
        self.asked += 1;
        let id = format!("farhelm-{}", self.asked);
        self.open.insert(id.clone(), (purpose, now.plus_ms(ANSWERS_WITHIN_MS)));
        json!({"type": "control_request", "request_id": id, "request": request}).to_string()
    }

    /// How many were asked.
    #[cfg(test)]
    pub(super) fn asked(&self) -> u64 {
        self.asked
    }

    /// What an answer is for. `None` for one that nobody waits for: our own, echoed.
    pub(super) fn answered(&mut self, id: &str) -> Option<Purpose> {
        self.open.remove(id).map(|(purpose, _)| purpose)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// When the first of them is late.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.open.values().map(|(_, until)| *until).min()
    }

    /// What was asked so far may take until then: the program is only starting.
    pub(super) fn wait_until(&mut self, at: Timestamp) {
        for (_, until) in self.open.values_mut() {
            *until = at;
        }
    }

    /// Takes out what is late.
    pub(super) fn late(&mut self, now: Timestamp) -> Vec<Purpose> {
        let late = self.open.iter().filter(|(_, (_, until))| *until <= now);
        let late: Vec<String> = late.map(|(id, _)| id.clone()).collect();
        late.iter().filter_map(|id| self.answered(id)).collect()
    }

    /// Takes out everything: the program is no more.
    pub(super) fn take(&mut self) -> Vec<Purpose> {
        std::mem::take(&mut self.open).into_values().map(|(purpose, _)| purpose).collect()
    }
}

/// The run of work that nobody asked for: a task in the background came to its end.
pub(super) fn own_run(message: &str) -> RunId {
    format!("run-{}", message.chars().take(64).collect::<String>()).into()
}
