//! How a client interprets the relay's envelopes.

use serde_json::Value;
use wire::webchannel::seal::{self, Key};

use super::{APPROVALS_OPEN_MAX, Auth, Machine, State, TOKEN_LIFETIME_DEFAULT_S, TOOLS_OPEN_MAX};
use crate::{Seen, Speaker};

/// What the name of a tool is whose call was never heard.
const UNKNOWN_TOOL: &str = "unknown_tool";
const TYPES: [&str; 10] = [
    "pairing_request",
    "user_message",
    "approval_response",
    "pairing_result",
    "assistant_chunk",
    "assistant_final",
    "tool_call",
    "tool_result",
    "approval_request",
    "error",
];

/// Something that the person, or the program, should know.
#[derive(Debug, Clone, PartialEq)]
pub enum Happening {
    /// This client is in: what to keep.
    Paired(Auth),
    /// A person said something, in any client.
    Person(String),
    /// The next words of the agent's message in the making.
    Chunk(String),
    /// The agent's message is over: whole, or what had come of it when it was cut.
    Final(Option<String>),
    /// The agent calls a tool.
    ToolCall {
        /// Recognises its result.
        request: String,
        /// The tool.
        name: String,
        /// What it is given.
        arguments: Value,
    },
    /// It is done.
    ToolResult {
        /// Of which call; the latest open one where the relay does not say.
        request: Option<String>,
        /// The tool.
        name: String,
        /// Whether it went well.
        ok: bool,
        /// What came of it.
        result: Value,
    },
    /// The agent waits for a decision.
    Asked {
        /// What a decision names.
        request: String,
        /// What for.
        action: String,
        /// Why, where that is said.
        reason: Option<String>,
    },
    /// It no longer does: somebody else decided.
    Decided {
        /// Which question.
        request: String,
        /// How.
        approved: bool,
    },
    /// Something went wrong.
    Error {
        /// In words.
        message: String,
        /// The relay's code, or this client's own.
        code: Option<String>,
    },
    /// The token is no longer good: it and the key are forgotten, and so should be what was kept.
    LoggedOut,
}

impl Machine {
    /// A frame arrives.
    pub fn on_frame(&mut self, text: &str) -> Vec<Happening> {
        let Ok(envelope) = serde_json::from_str::<Value>(text) else { return vec![] };
        let kind = envelope["type"].as_str().unwrap_or_default();
        let names_session = envelope["session_id"].as_str().is_some_and(|it| !it.is_empty());
        if envelope["v"] != 1 || !names_session || !TYPES.contains(&kind) {
            return vec![];
        }
        let request = envelope["request_id"].as_str();
        let payload = &envelope["payload"];
        match kind {
            "pairing_result" => vec![self.on_pairing_result(payload)],
            "user_message" => self.words(payload).map(Happening::Person).into_iter().collect(),
            "assistant_chunk" => self.on_chunk(payload).into_iter().collect(),
            "assistant_final" => vec![self.on_final(payload)],
            "tool_call" => self.on_tool_call(request, payload).into_iter().collect(),
            "tool_result" => vec![self.on_tool_result(request, payload)],
            "approval_request" => self.on_asked(request, payload).into_iter().collect(),
            "approval_response" => self.on_decided(request, payload).into_iter().collect(),
            "error" => self.on_error(payload),
            _ => vec![],
        }
    }

    fn on_pairing_result(&mut self, payload: &Value) -> Happening {
        let agreed = match (&payload["e2e"]["agent_pub"], self.secret.take()) {
            (Value::String(public), Some(secret)) => {
                let key = seal::decode_exactly(public).and_then(|it| Key::agree(&secret, &it));
                key.map(Some)
            }
            (_, _) => Some(None),
        };
        // A core behind somebody else's relay says under the key what others say openly.
        let sealed = match &agreed {
            Some(Some(key)) if payload["access_token"].is_null() => open(key, &payload["e2e"]),
            Some(_) | None => None,
        };
        let credentials = sealed.as_ref().unwrap_or(payload);
        let (Some(token), Some(key)) = (credentials["access_token"].as_str(), agreed) else {
            return trouble(
                "The relay's answer to the pairing request is malformed",
                "malformed_pairing_result",
            );
        };
        let expires_in_s = credentials["expires_in"].as_u64().unwrap_or(TOKEN_LIFETIME_DEFAULT_S);
        let access_token = token.to_owned();
        let auth = Auth { access_token, key: key.as_ref().map(Key::bytes), expires_in_s };
        (self.key, self.auth, self.state) = (key, Some(auth.clone()), State::Paired);
        Happening::Paired(auth)
    }

    /// What an envelope says, openly or sealed. What cannot be opened says nothing.
    fn words(&self, payload: &Value) -> Option<String> {
        let sealed = &payload["e2e"];
        if sealed.is_null() {
            return payload["content"].as_str().map(str::to_owned);
        }
        let matter = open(self.key.as_ref()?, sealed)?;
        matter["content"].as_str().map(str::to_owned)
    }

    fn on_chunk(&mut self, payload: &Value) -> Option<Happening> {
        let words = self.words(payload).filter(|words| !words.is_empty())?;
        self.streaming.get_or_insert_default().push_str(&words);
        Some(Happening::Chunk(words))
    }

    fn on_final(&mut self, payload: &Value) -> Happening {
        let streamed = self.streaming.take();
        let whole = self.words(payload).filter(|words| !words.is_empty());
        Happening::Final(whole.or(streamed))
    }

    fn on_tool_call(&mut self, request: Option<&str>, payload: &Value) -> Option<Happening> {
        let name = payload["name"].as_str()?.to_owned();
        let request = request.unwrap_or_default().to_owned();
        if self.tools.len() >= TOOLS_OPEN_MAX {
            self.tools.pop_front();
        }
        self.tools.push_back((request.clone(), name.clone()));
        Some(Happening::ToolCall { request, name, arguments: payload["arguments"].clone() })
    }

    fn on_tool_result(&mut self, request: Option<&str>, payload: &Value) -> Happening {
        let place = |request| self.tools.iter().position(|(id, _)| id == request);
        let known = request.and_then(place);
        // One that names no call we know is taken for the latest that is open.
        let place = known.or_else(|| self.tools.len().checked_sub(1));
        let call = place.and_then(|place| self.tools.remove(place));
        let ok = payload["ok"].as_bool().unwrap_or(false);
        let result = if ok { &payload["result"] } else { &payload["error"] };
        let (request, name) = match call {
            Some((request, name)) => (Some(request), name),
            None => (request.map(str::to_owned), UNKNOWN_TOOL.to_owned()),
        };
        Happening::ToolResult { request, name, ok, result: result.clone() }
    }

    fn on_asked(&mut self, request: Option<&str>, payload: &Value) -> Option<Happening> {
        let action = payload["action"].as_str()?.to_owned();
        let request = request.unwrap_or_default().to_owned();
        let is_full = self.approvals.len() >= APPROVALS_OPEN_MAX;
        if is_full || self.approvals.contains_key(&request) {
            return None;
        }
        self.approvals.insert(request.clone(), action.clone());
        let reason = payload["reason"].as_str().map(str::to_owned);
        Some(Happening::Asked { request, action, reason })
    }

    fn on_decided(&mut self, request: Option<&str>, payload: &Value) -> Option<Happening> {
        let request = request?.to_owned();
        self.approvals.remove(&request)?;
        let approved = payload["approved"].as_bool().unwrap_or(false);
        Some(Happening::Decided { request, approved })
    }

    fn on_error(&mut self, payload: &Value) -> Vec<Happening> {
        let code = payload["code"].as_str();
        let is_code = payload["code"].is_null() || code.is_some();
        let Some(message) = payload["message"].as_str().filter(|_| is_code) else {
            return vec![trouble("The relay sent a malformed error", "malformed_error_payload")];
        };
        let code = code.map(str::to_owned);
        let is_out = code.as_deref() == Some("unauthorized");
        let mut told = vec![Happening::Error { message: message.to_owned(), code }];
        if is_out {
            (self.auth, self.key) = (None, None);
            self.tools.clear();
            self.approvals.clear();
            self.streaming = None;
            if matches!(self.state, State::Paired | State::Chatting) {
                self.state = State::Pairing;
            }
            told.push(Happening::LoggedOut);
        }
        told
    }
}

fn trouble(message: &str, code: &str) -> Happening {
    Happening::Error { message: message.to_owned(), code: Some(code.to_owned()) }
}

impl Speaker for Machine {
    fn path(&self) -> String {
        // Only a client that was let in by another credential can say that it has no key.
        let plain = if self.is_let_in { "&plain=1" } else { "" };
        format!("/ws/webchannel?session_id={}{plain}", self.session)
    }

    fn on_open(&mut self) -> Vec<String> {
        self.on_opened();
        vec![]
    }

    fn send(&mut self, text: &str) -> Vec<String> {
        vec![self.say(text).to_string()]
    }

    fn decide(&mut self, id: &str, allow: bool) -> Vec<String> {
        self.decide_on(id, allow).map(|frame| frame.to_string()).into_iter().collect()
    }

    /// The dialect has no word for it.
    fn interrupt(&mut self) -> Vec<String> {
        vec![]
    }

    fn on_text(&mut self, text: &str) -> (Vec<Seen>, Vec<String>) {
        let seen = |happening| match happening {
            Happening::Paired(_) | Happening::ToolResult { .. } | Happening::LoggedOut => None,
            Happening::Person(words) => Some(Seen::Person(words)),
            Happening::Chunk(words) => Some(Seen::Piece(words)),
            Happening::Final(words) => words.map(Seen::Agent),
            Happening::ToolCall { name, .. } => Some(Seen::Tool(name)),
            Happening::Asked { request, action, .. } => {
                Some(Seen::Asked { id: request, what: action })
            }
            Happening::Decided { request, .. } => Some(Seen::Settled { id: request }),
            Happening::Error { message, code } => Some(match code.as_deref() {
                Some("agent_error") => Seen::Ended(Some(message)),
                Some(_) | None => Seen::Trouble(message),
            }),
        };
        (self.on_frame(text).into_iter().filter_map(seen).collect(), vec![])
    }
}

/// What was sealed under this key; `None` where it was not.
fn open(key: &Key, sealed: &Value) -> Option<Value> {
    let nonce = seal::decode_exactly(sealed["nonce"].as_str()?)?;
    let ciphertext = seal::decode(sealed["ciphertext"].as_str()?)?;
    serde_json::from_slice(&key.open(nonce, &ciphertext)?).ok()
}
