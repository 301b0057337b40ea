//! One client of pi's web frontend across its connections.
//!
//! **Invariant**: a request has its own id and is answered or given up once. A dialog is answered
//! at most once. A prompt whose answer was lost is never resent automatically, because this
//! protocol cannot tell whether it arrived.
//!
//! Not here: the relay's end of the dialect (`wire`), sockets.

mod speaking;

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};

/// After how long a client no longer waits for an answer.
pub const REQUEST_TIMEOUT_MS: u64 = 30_000;
/// Requests that may wait for their answers; more are not said.
pub const UNANSWERED_MAX: usize = 1_024;
/// Dialogs that may be open; the relay holds fewer.
pub const DIALOGS_MAX: usize = 64;
/// Frames that wait until what was missed is told; more are dropped.
const HELD_MAX: usize = 4_096;

/// A person's answer to a dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Yes or no, to a `confirm`.
    Confirmed(bool),
    /// Words, or an option, to the others.
    Value(String),
    /// None.
    Cancelled,
}

/// Something that the person, or the program, should know.
#[derive(Debug, Clone, PartialEq)]
pub enum Happening {
    /// An event of the session, as it came.
    Event(Value),
    /// The answer to a request of this client.
    Answer(Value),
    /// A request of this client was not answered in time, or its connection is gone.
    Unanswered {
        /// Its id.
        id: String,
        /// What it asked for.
        command: String,
    },
    /// A message that was said while this client was away.
    Missed(Value),
    /// A dialog wants an answer.
    Asked {
        /// What an answer names.
        id: String,
        /// The dialog.
        request: Value,
    },
    /// It no longer does.
    Resolved(String),
    /// Shown as a message of the system.
    System(String),
    /// Shown as an error.
    Trouble(String),
}

/// Why something is not said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsaid {
    /// No such dialog is open.
    #[error("no dialog has this id")]
    UnknownDialog,
    /// The answer does not fit the dialog.
    #[error("this answer does not fit the dialog")]
    WrongAnswer,
    /// Too much is unanswered.
    #[error("too many requests are waiting for the relay's answer")]
    TooMuch,
}

/// One client across its connections.
#[derive(Debug)]
pub struct Machine {
    session: Option<String>,
    count: u64,
    requests: BTreeMap<String, Waiting>,
    dialogs: BTreeMap<String, Value>,
    scheduled: Vec<String>,
    /// Messages with words that were heard or are known; `None` before the first history.
    known: Option<usize>,
    /// The history that is asked for, and what is heard before it comes.
    history: Option<String>,
    held: VecDeque<Value>,
    is_streaming: bool,
    /// How the agent's last message of the run ended, where that was not well.
    ended: Option<String>,
}

#[derive(Debug)]
struct Waiting {
    command: String,
    due_ms: u64,
}

impl Machine {
    /// A client of this session, by its id or path; of the latest one, if none is named.
    pub fn new(session: Option<&str>) -> Self {
        Self {
            session: session.map(str::to_owned),
            count: 0,
            requests: BTreeMap::new(),
            dialogs: BTreeMap::new(),
            scheduled: vec![],
            known: None,
            history: None,
            held: VecDeque::new(),
            is_streaming: false,
            ended: None,
        }
    }

    /// The path to dial, this time.
    pub fn path(&self) -> String {
        match &self.session {
            Some(session) => format!("/ws/pi?session={}", session.replace('/', "%2F")),
            None => "/ws/pi".to_owned(),
        }
    }

    /// A new connection is open: what became of the old one's requests, and what to say first.
    pub fn opened(&mut self, now_ms: u64) -> (Vec<Happening>, Vec<Value>) {
        let lost = std::mem::take(&mut self.requests);
        let lost = lost.into_iter().filter(|(id, _)| self.history.as_ref() != Some(id));
        let lost = lost.map(|(id, it)| Happening::Unanswered { id, command: it.command }).collect();
        // The relay asks again what is still open, and tells again what still waits.
        self.dialogs.clear();
        self.scheduled.clear();
        self.held.clear();
        self.is_streaming = false;
        let asked = self.request("get_messages", json!({}), now_ms);
        self.history = asked.as_ref().ok().and_then(|it| it["id"].as_str().map(str::to_owned));
        (lost, asked.into_iter().collect())
    }

    /// A command with these further fields. Its id is in the frame.
    pub fn request(
        &mut self,
        command: &str,
        mut fields: Value,
        now_ms: u64,
    ) -> Result<Value, Unsaid> {
        if self.requests.len() >= UNANSWERED_MAX {
            return Err(Unsaid::TooMuch);
        }
        self.count += 1;
        let id = format!("req_{}", self.count);
        let due_ms = now_ms.saturating_add(REQUEST_TIMEOUT_MS);
        self.requests.insert(id.clone(), Waiting { command: command.to_owned(), due_ms });
        if !fields.is_object() {
            fields = json!({});
        }
        fields["id"] = json!(id);
        fields["type"] = json!(command);
        Ok(fields)
    }

    /// Words for the agent. While it works they wait for the end of its run.
    pub fn prompt(&mut self, text: &str, now_ms: u64) -> Result<Value, Unsaid> {
        let fields = json!({ "message": text, "streamingBehavior": "followUp" });
        let asked = self.request("prompt", fields, now_ms)?;
        if self.is_streaming {
            self.scheduled.push(text.to_owned());
        }
        Ok(asked)
    }

    /// Answers a dialog. It is no longer open afterwards.
    pub fn reply(&mut self, id: &str, reply: Reply) -> Result<Value, Unsaid> {
        let request = self.dialogs.get(id).ok_or(Unsaid::UnknownDialog)?;
        let method = request["method"].as_str().unwrap_or_default();
        let mut frame = json!({ "type": "extension_ui_response", "id": id });
        match reply {
            Reply::Cancelled => frame["cancelled"] = json!(true),
            Reply::Confirmed(confirmed) if method == "confirm" => {
                frame["confirmed"] = json!(confirmed);
            }
            Reply::Value(value) if method != "confirm" => {
                let options = request["options"].as_array();
                if options.is_some_and(|options| !options.contains(&json!(value))) {
                    return Err(Unsaid::WrongAnswer);
                }
                frame["value"] = json!(value);
            }
            Reply::Confirmed(_) | Reply::Value(_) => return Err(Unsaid::WrongAnswer),
        }
        self.dialogs.remove(id);
        Ok(frame)
    }

    /// The dialogs that want an answer.
    pub fn dialogs(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.dialogs.iter().map(|(id, request)| (id.as_str(), request))
    }

    /// Words that wait for the agent.
    pub fn scheduled(&self) -> &[String] {
        &self.scheduled
    }

    /// When [`Machine::on_tick`] has something to say.
    pub fn deadline_ms(&self) -> Option<u64> {
        self.requests.values().map(|waiting| waiting.due_ms).min()
    }

    /// Time passed: what is no longer waited for.
    pub fn on_tick(&mut self, now_ms: u64) -> Vec<Happening> {
        let is_late = |waiting: &Waiting| waiting.due_ms <= now_ms;
        let late: Vec<_> =
            self.requests.iter().filter(|(_, it)| is_late(it)).map(|(id, _)| id.clone()).collect();
        let mut told = vec![];
        for id in late {
            let Some(waiting) = self.requests.remove(&id) else { continue };
            let is_history = self.history.take_if(|history| *history == id).is_some();
            told.push(Happening::Unanswered { id, command: waiting.command });
            if is_history {
                told.extend(self.release());
            }
        }
        told
    }

    /// A frame arrives.
    pub fn on_text(&mut self, text: &str) -> Vec<Happening> {
        let Ok(frame) = serde_json::from_str::<Value>(text) else { return vec![] };
        if frame["type"] == "response" {
            return self.on_answer(frame);
        }
        if self.history.is_some() {
            // What was missed is told first.
            if self.held.len() < HELD_MAX {
                self.held.push_back(frame);
            }
            return vec![];
        }
        self.on_event(frame)
    }

    fn on_answer(&mut self, frame: Value) -> Vec<Happening> {
        let id = frame["id"].as_str().unwrap_or_default().to_owned();
        let was_asked = self.requests.remove(&id).is_some();
        if self.history.take_if(|history| *history == id).is_some() {
            let mut told = self.on_history(&frame);
            if frame["success"] == true {
                self.forget_unfinished();
            }
            told.extend(self.release());
            return told;
        }
        let trouble = (frame["success"] == false)
            .then(|| Happening::Trouble(frame["error"].as_str().unwrap_or_default().to_owned()));
        let answer = was_asked.then_some(Happening::Answer(frame));
        answer.into_iter().chain(trouble).collect()
    }

    fn on_history(&mut self, frame: &Value) -> Vec<Happening> {
        let messages = frame["data"]["messages"].as_array();
        let said: Vec<_> = messages.into_iter().flatten().filter(|it| counts(it)).collect();
        let known = self.known.replace(said.len()).unwrap_or(said.len());
        said.into_iter().skip(known).map(|it| Happening::Missed(it.clone())).collect()
    }

    /// The relay tells a message that streams once more after the history, from its beginning.
    fn forget_unfinished(&mut self) {
        let is = |frame: &Value, kind: &str| {
            frame["type"] == kind && frame["message"]["role"] == "assistant"
        };
        let Some(begun) = self.held.iter().rposition(|it| is(it, "message_start")) else { return };
        if self.held.iter().skip(begun).any(|it| is(it, "message_end")) {
            return;
        }
        let after = self.held.split_off(begun);
        let others = after.into_iter().skip(1).filter(|it| it["type"] != "message_update");
        self.held.extend(others);
    }

    fn release(&mut self) -> Vec<Happening> {
        let held = std::mem::take(&mut self.held);
        held.into_iter().flat_map(|frame| self.on_event(frame)).collect()
    }

    fn on_event(&mut self, frame: Value) -> Vec<Happening> {
        match frame["type"].as_str().unwrap_or_default() {
            "extension_ui_request" => return self.on_dialog(frame),
            "extension_ui_resolved" => {
                let id = frame["id"].as_str().unwrap_or_default();
                let resolved = self.dialogs.remove(id).map(|_| Happening::Resolved(id.to_owned()));
                // Also told of one that was answered here: now it is settled.
                return resolved.into_iter().chain([Happening::Event(frame)]).collect();
            }
            "extension_error" => {
                let words = frame["error"].as_str().unwrap_or_default().to_owned();
                return vec![Happening::Trouble(words)];
            }
            "agent_start" => {
                self.is_streaming = true;
                self.ended = None;
            }
            "agent_end" => self.is_streaming = false,
            "queue_update" => self.scheduled = texts(&frame),
            "message_start" if frame["message"]["role"] == "user" => {
                // A waiting message was interweaved: it is known by its words.
                let words = words_of(&frame["message"]);
                if let Some(at) = self.scheduled.iter().position(|it| *it == words) {
                    self.scheduled.remove(at);
                }
            }
            "message_end" => self.on_message(&frame["message"]),
            "session_changed" => {
                self.session = frame["sessionId"].as_str().map(str::to_owned);
                self.known = Some(0);
                self.scheduled.clear();
                self.dialogs.clear();
            }
            _ => {}
        }
        vec![Happening::Event(frame)]
    }

    fn on_message(&mut self, message: &Value) {
        if counts(message) {
            self.known = Some(self.known.unwrap_or(0) + 1);
        }
        if message["role"] == "assistant" {
            self.ended = message["errorMessage"].as_str().map(str::to_owned);
        }
    }

    fn on_dialog(&mut self, frame: Value) -> Vec<Happening> {
        let id = frame["id"].as_str().unwrap_or_default().to_owned();
        let text = |name: &str| frame[name].as_str().unwrap_or_default().to_owned();
        match frame["method"].as_str().unwrap_or_default() {
            "notify" => vec![match frame["notifyType"].as_str() {
                Some("error") => Happening::Trouble(text("message")),
                Some(_) | None => Happening::System(text("message")),
            }],
            "set_editor_text" => vec![Happening::System(text("text"))],
            "confirm" | "select" | "input" | "editor" => {
                if self.dialogs.len() >= DIALOGS_MAX || self.dialogs.contains_key(&id) {
                    return vec![];
                }
                self.dialogs.insert(id.clone(), frame.clone());
                vec![Happening::Asked { id, request: frame }]
            }
            // The rest furnishes a terminal that is not there.
            _ => vec![],
        }
    }
}

/// A person's or the agent's words. What a run that went wrong left unfinished is in no history;
/// what was finished has an id.
fn counts(message: &Value) -> bool {
    let is_said = message["role"] == "user" || message["role"] == "assistant";
    let is_kept = message["errorMessage"].is_null() || message["responseId"].is_string();
    is_said && is_kept && !words_of(message).is_empty()
}

/// The words of a message.
fn words_of(message: &Value) -> String {
    match &message["content"] {
        Value::String(words) => words.clone(),
        Value::Array(parts) => {
            let words = parts.iter().filter(|part| part["type"] == "text");
            let words: Vec<_> = words.filter_map(|part| part["text"].as_str()).collect();
            words.join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

fn texts(queue: &Value) -> Vec<String> {
    let lists = [&queue["steering"], &queue["followUp"]];
    let texts = lists.into_iter().filter_map(Value::as_array).flatten();
    texts.filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests;
