//! One Agent Blob client across its connections.
//!
//! **Invariant**: nothing is requested before the relay accepted the `connect`. Every request is
//! known by its id until it is answered or its connection is gone. A message whose answer was lost
//! with a connection is not sent again, because this protocol cannot recognise a repeat; the
//! person is told instead. A message that was already shown is not shown again from the history.
//!
//! Not here: the relay's end of the dialect (`wire`), sockets.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};

use crate::{Seen, Speaker};

/// The version that this client speaks.
pub const VERSION: &str = "1";
/// Requests that may wait for their answers; more are not made.
pub const UNANSWERED_MAX: usize = 1_024;
/// Messages that are recognised when they are told again.
const TOLD_MAX: usize = 1_024;
/// Questions that may be open; the relay holds fewer.
const ASKED_MAX: usize = 64;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happening {
    /// The relay took the `connect`, and says which version it is.
    Connected {
        /// As the relay says.
        gateway_version: String,
    },
    /// The relay does not speak this client's version: dialling again is of no use.
    WrongVersion(String),
    /// A request of this client is answered.
    Answered {
        /// What was asked.
        method: String,
        /// What for, or why not.
        answer: Result<Value, String>,
    },
    /// An event of the session.
    Event {
        /// Its name.
        name: String,
        /// What it says.
        payload: Value,
    },
    /// These words may or may not have reached the relay.
    Unknown(String),
}

/// Why a request is not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsaid {
    /// The relay did not take the `connect` yet, or will never.
    #[error("the relay has not accepted the connect request")]
    NotConnected,
    /// The relay does not offer this method.
    #[error("the relay does not offer this method")]
    NotOffered,
    /// Too much is unanswered.
    #[error("too many requests are waiting for the relay's answer")]
    TooMuch,
}

/// One client across its connections.
#[derive(Debug)]
pub struct Machine {
    session: String,
    stage: Stage,
    methods: Vec<String>,
    unanswered: BTreeMap<String, Asked>,
    /// Said before the relay took the connect.
    early: VecDeque<(&'static str, Value)>,
    told: VecDeque<String>,
    /// Whether the history was shown before: what is new in it was missed.
    has_history: bool,
    run: Option<String>,
    words: String,
    count: u64,
    asked: Vec<String>,
    /// The message whose tokens come in.
    speaking: Option<String>,
    /// Whether the last event ended the run.
    has_ended: bool,
    /// What there is to tell since the connection was lost.
    lost: Vec<Seen>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Closed,
    Connecting,
    Connected,
    WrongVersion,
}

#[derive(Debug)]
struct Asked {
    method: &'static str,
    /// The words of an `agent`.
    words: Option<String>,
}

impl Machine {
    /// A client of this session.
    pub fn new(session: &str) -> Self {
        Self {
            session: session.to_owned(),
            stage: Stage::Closed,
            methods: vec![],
            unanswered: BTreeMap::new(),
            early: VecDeque::new(),
            told: VecDeque::new(),
            has_history: false,
            run: None,
            words: String::new(),
            count: 0,
            asked: vec![],
            speaking: None,
            has_ended: false,
            lost: vec![],
        }
    }

    /// Whether dialling again is of use.
    pub fn may_dial(&self) -> bool {
        self.stage != Stage::WrongVersion
    }

    /// The run that goes on, as far as this client knows.
    pub fn run(&self) -> Option<&str> {
        self.run.as_deref()
    }

    /// A new connection is open: what to say on it, and which words have no fate.
    pub fn again(&mut self) -> (Vec<Happening>, Value) {
        let lost = std::mem::take(&mut self.unanswered);
        let lost = lost.into_values().filter_map(|asked| asked.words.map(Happening::Unknown));
        let lost = lost.collect();
        self.stage = Stage::Connecting;
        self.run = None;
        self.words.clear();
        self.speaking = None;
        let params = json!({ "version": VERSION, "clientType": "cli" });
        (lost, self.frame("connect", &params, None))
    }

    /// A request. Before the relay took the connect, only that may be said.
    pub fn request(&mut self, method: &'static str, params: &Value) -> Result<Value, Unsaid> {
        match self.stage {
            Stage::Connected => {}
            Stage::Closed | Stage::Connecting | Stage::WrongVersion => {
                return Err(Unsaid::NotConnected);
            }
        }
        if !self.methods.iter().any(|offered| offered == method) {
            return Err(Unsaid::NotOffered);
        }
        if self.unanswered.len() >= UNANSWERED_MAX {
            return Err(Unsaid::TooMuch);
        }
        let words = params["message"].as_str().filter(|_| method == "agent");
        let words = words.map(str::to_owned);
        Ok(self.frame(method, params, words))
    }

    /// A frame arrives.
    pub fn on_text(&mut self, text: &str) -> Vec<Happening> {
        let Ok(mut frame) = serde_json::from_str::<Value>(text) else { return vec![] };
        match frame["type"].as_str() {
            Some("res") => self.on_response(&mut frame).into_iter().collect(),
            Some("event") => self.on_event(&mut frame),
            Some(_) | None => vec![],
        }
    }

    fn frame(&mut self, method: &'static str, params: &Value, words: Option<String>) -> Value {
        self.count += 1;
        let id = format!("farhelm-{}", self.count);
        self.unanswered.insert(id.clone(), Asked { method, words });
        json!({ "type": "req", "id": id, "method": method, "params": params })
    }

    fn on_response(&mut self, frame: &mut Value) -> Option<Happening> {
        let asked = self.unanswered.remove(frame["id"].as_str()?)?;
        let answer = if frame["ok"] == true {
            Ok(frame["payload"].take())
        } else {
            Err(frame["error"].as_str().unwrap_or("no reason given").to_owned())
        };
        if asked.method != "connect" {
            return Some(Happening::Answered { method: asked.method.to_owned(), answer });
        }
        match answer {
            Ok(payload) => {
                let offered = payload["supportedMethods"].as_array().into_iter().flatten();
                let offered = offered.filter_map(|method| method.as_str().map(str::to_owned));
                self.methods = offered.collect();
                self.stage = Stage::Connected;
                let gateway_version =
                    payload["gatewayVersion"].as_str().unwrap_or_default().to_owned();
                Some(Happening::Connected { gateway_version })
            }
            Err(words) if words.contains("version") => {
                self.stage = Stage::WrongVersion;
                Some(Happening::WrongVersion(words))
            }
            Err(words) => {
                Some(Happening::Answered { method: "connect".to_owned(), answer: Err(words) })
            }
        }
    }

    fn on_event(&mut self, frame: &mut Value) -> Vec<Happening> {
        let name = frame["event"].as_str().unwrap_or_default().to_owned();
        let payload = frame["payload"].take();
        let run = payload["runId"].as_str().map(str::to_owned);
        self.has_ended = false;
        match name.as_str() {
            // A question is told again under its own name.
            "message" if payload["prompt"].is_null() && !self.is_news(&payload["messageId"]) => {
                return vec![];
            }
            "status" if payload["status"] != "done" && run.is_some() => self.run = run,
            "token" => self.speaks(&payload["messageId"]),
            "final" | "cancelled" if run.is_some() && run == self.run => self.end(),
            "error"
                if run.is_some() && run == self.run && payload["errorCode"] == "AGENT_ERROR" =>
            {
                self.end();
            }
            "session_changed" => return self.on_history(payload),
            _ => {}
        }
        vec![Happening::Event { name, payload }]
    }

    fn end(&mut self) {
        self.run = None;
        self.has_ended = true;
        self.speaks(&Value::Null);
    }

    /// A message that is followed by another, or by the end of the run, was shown whole.
    fn speaks(&mut self, message: &Value) {
        if self.speaking.as_deref() != message.as_str() {
            let next = message.as_str().map(str::to_owned);
            if let Some(whole) = std::mem::replace(&mut self.speaking, next) {
                self.is_news(&json!(whole));
            }
        }
    }

    /// What was said while this client was away is told as if it came now.
    fn on_history(&mut self, mut payload: Value) -> Vec<Happening> {
        let rows = payload.get_mut("messages").map(Value::take).unwrap_or_default();
        let mut missed = vec![];
        for row in rows.as_array().into_iter().flatten() {
            if self.is_news(&row["id"]) && self.has_history {
                let payload = json!({
                    "role": row["role"], "content": row["content"], "messageId": row["id"],
                    "timestamp": row["timestamp"], "fromSelf": false,
                });
                missed.push(Happening::Event { name: "message".to_owned(), payload });
            }
        }
        self.has_history = true;
        let name = "session_changed".to_owned();
        missed.insert(0, Happening::Event { name, payload });
        missed
    }

    /// Whether a message was not shown before. From then on it was.
    fn is_news(&mut self, id: &Value) -> bool {
        let Some(id) = id.as_str() else { return true };
        if self.told.iter().any(|told| told == id) {
            return false;
        }
        if self.told.len() >= TOLD_MAX {
            self.told.pop_front();
        }
        self.told.push_back(id.to_owned());
        true
    }
}

impl Speaker for Machine {
    fn path(&self) -> String {
        "/ws/blob".to_owned()
    }

    fn on_open(&mut self) -> Vec<String> {
        let (unknown, connect) = self.again();
        for happening in unknown {
            if let Happening::Unknown(words) = happening {
                self.lost.push(Seen::Trouble(format!("may not have been sent: {words}")));
            }
        }
        // The relay asks again what is still open.
        let asked = std::mem::take(&mut self.asked);
        self.lost.extend(asked.into_iter().map(|id| Seen::Settled { id }));
        vec![connect.to_string()]
    }

    fn send(&mut self, text: &str) -> Vec<String> {
        self.say_or_keep("agent", json!({ "sessionId": self.session, "message": text }))
    }

    fn decide(&mut self, id: &str, allow: bool) -> Vec<String> {
        let word = if allow { "/approve" } else { "/deny" };
        self.say_or_keep("agent", json!({ "message": format!("{word} {id}") }))
    }

    fn interrupt(&mut self) -> Vec<String> {
        let Some(run) = self.run.clone() else { return vec![] };
        self.say_or_keep("agent.cancel", json!({ "runId": run }))
    }

    fn on_text(&mut self, text: &str) -> (Vec<Seen>, Vec<String>) {
        let (mut seen, mut said) = (std::mem::take(&mut self.lost), vec![]);
        for happening in Machine::on_text(self, text) {
            match happening {
                Happening::Connected { .. } => {
                    let params = json!({ "sessionId": self.session });
                    let switch = self.request("sessions.switch", &params);
                    said.extend(switch.ok().map(|frame| frame.to_string()));
                    for (method, params) in std::mem::take(&mut self.early) {
                        let frame = self.request(method, &params);
                        said.extend(frame.ok().map(|frame| frame.to_string()));
                    }
                }
                Happening::WrongVersion(words) | Happening::Answered { answer: Err(words), .. } => {
                    seen.push(Seen::Trouble(words));
                }
                Happening::Answered { answer: Ok(_), .. } => {}
                Happening::Event { name, payload } => seen.extend(self.see(&name, &payload)),
                Happening::Unknown(words) => {
                    seen.push(Seen::Trouble(format!("may not have been sent: {words}")));
                }
            }
        }
        (seen, said)
    }
}

impl Machine {
    fn say_or_keep(&mut self, method: &'static str, params: Value) -> Vec<String> {
        match self.request(method, &params) {
            Ok(frame) => vec![frame.to_string()],
            Err(Unsaid::NotConnected) if self.may_dial() && self.early.len() < UNANSWERED_MAX => {
                self.early.push_back((method, params));
                vec![]
            }
            Err(Unsaid::NotConnected | Unsaid::NotOffered | Unsaid::TooMuch) => vec![],
        }
    }

    /// An event in the common words.
    fn see(&mut self, name: &str, payload: &Value) -> Vec<Seen> {
        let text = |key: &str| payload[key].as_str().unwrap_or_default().to_owned();
        match name {
            "message" => match (payload["role"].as_str(), payload["prompt"]["id"].as_str()) {
                (Some("user"), _) => vec![Seen::Person(text("content"))],
                (Some("assistant"), _) => vec![Seen::Agent(text("content"))],
                (_, Some(id)) => self.see_prompt(id, payload),
                (Some(_) | None, None) => vec![],
            },
            "token" => {
                self.words.push_str(payload["content"].as_str().unwrap_or_default());
                vec![Seen::Piece(text("content"))]
            }
            "tool_call" => {
                let mut seen = self.spoken();
                seen.push(Seen::Tool(text("toolName")));
                seen
            }
            // Sends that were taken up by another's run have finals of their own.
            "final" if self.has_ended => self.ended(None),
            "cancelled" | "error" if self.has_ended => self.ended(Some(text("message"))),
            "cancelled" | "error" => vec![Seen::Trouble(text("message"))],
            _ => vec![],
        }
    }

    fn see_prompt(&mut self, id: &str, payload: &Value) -> Vec<Seen> {
        let was_open = self.asked.iter().any(|asked| asked == id);
        match (payload["prompt"]["state"].as_str(), was_open) {
            (Some("open"), false) if self.asked.len() < ASKED_MAX => {
                self.asked.push(id.to_owned());
                let what = payload["prompt"]["text"].as_str().unwrap_or_default().to_owned();
                vec![Seen::Asked { id: id.to_owned(), what }]
            }
            (Some("closed"), true) => {
                self.asked.retain(|asked| asked != id);
                vec![Seen::Settled { id: id.to_owned() }]
            }
            (Some(_) | None, true | false) => vec![],
        }
    }

    fn ended(&mut self, why: Option<String>) -> Vec<Seen> {
        let mut seen = self.spoken();
        seen.push(Seen::Ended(why));
        seen
    }

    /// The agent's words since it last did something else.
    fn spoken(&mut self) -> Vec<Seen> {
        let words = std::mem::take(&mut self.words);
        if words.is_empty() { vec![] } else { vec![Seen::Agent(words)] }
    }
}

#[cfg(test)]
mod tests;
