//! One client of Claude Code's remote control across its connections.
//!
//! **Invariant**: a permission request is answered at most once, under its own id. A request that
//! was answered elsewhere is no longer shown. A message without an outcome, and a request without
//! an answer, are sent again on the next connection, under their own ids.
//!
//! Not here: the relay's end of the dialect (`wire`), sockets.

mod speaking;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Value, json};

/// Permission requests that may wait; beyond it the newest are not asked. The relay holds fewer.
pub const PENDING_MAX: usize = 64;
/// Requests and messages of this client that may wait for the relay; more are refused.
pub const UNANSWERED_MAX: usize = 1_024;
/// Messages that are recognised when they are told again.
const TOLD_MAX: usize = 256;
/// Where this client's own requests begin their ids.
const REQUEST_PREFIX: &str = "req";

/// What a person says to a permission request.
#[derive(Debug, Clone, PartialEq)]
pub enum Permission {
    /// Let it happen.
    Allow {
        /// With this input in place of the agent's.
        updated_input: Option<Value>,
        /// And its like from now on, as the agent suggested.
        always: bool,
    },
    /// Do not.
    Deny {
        /// Words for the agent.
        message: String,
        /// Whether the agent stops altogether.
        interrupt: bool,
    },
}

/// Something that the person, or the program, should know.
#[derive(Debug, Clone, PartialEq)]
pub enum Happening {
    /// An SDK message, of whatever type.
    Message(Value),
    /// The agent waits for a permission.
    Asked {
        /// What an answer names.
        id: String,
        /// What for.
        request: Value,
    },
    /// It no longer does: somebody else answered, or the question went away.
    Withdrawn(String),
    /// The answer to a request of this client.
    Answer(Value),
}

/// Why something is not said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsaid {
    /// No such permission request waits.
    #[error("no permission request has this id")]
    UnknownRequest,
    /// Too much is unanswered.
    #[error("too many requests are waiting for the relay's answer")]
    TooMuch,
}

/// One client across its connections.
#[derive(Debug)]
pub struct Machine {
    session: String,
    /// What the ids of its messages begin with.
    name: String,
    partial: bool,
    /// The last event that was told whole.
    cursor: Option<u64>,
    pending: BTreeMap<String, Value>,
    unanswered: BTreeMap<String, Value>,
    /// Messages that are not known to be with the agent, in their order.
    unsettled: Vec<(String, Value)>,
    /// Messages that are with the agent, whose run has not ended.
    at_work: BTreeSet<String>,
    told: VecDeque<String>,
    count: u64,
}

impl Machine {
    /// A client of this session that hears what comes after this event, or from now on.
    pub fn new(session: &str, after: Option<u64>, partial: bool) -> Self {
        Self {
            session: session.to_owned(),
            name: String::new(),
            partial,
            cursor: after,
            pending: BTreeMap::new(),
            unanswered: BTreeMap::new(),
            unsettled: vec![],
            at_work: BTreeSet::new(),
            told: VecDeque::new(),
            count: 0,
        }
    }

    /// The same, whose messages have ids that begin like this: no other client's may.
    #[must_use]
    pub fn called(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// The path to dial, this time.
    pub fn path(&self) -> String {
        let partial = if self.partial { "&partial=1" } else { "" };
        let after = self.cursor.map(|cursor| format!("&from_sequence_num={cursor}"));
        format!("/ws/control?session={}{partial}{}", self.session, after.unwrap_or_default())
    }

    /// A new connection is open: what to say on it first.
    pub fn again(&mut self) -> Vec<Value> {
        if self.cursor.is_none() {
            // Nobody says what became of them; the relay asks again what is still open.
            self.pending.clear();
        }
        let requests = self.unanswered.values().cloned();
        requests.chain(self.unsettled.iter().map(|(_, frame)| frame.clone())).collect()
    }

    /// Words for the agent, under an id that a retry repeats.
    pub fn user(&mut self, uuid: &str, text: &str) -> Result<Value, Unsaid> {
        self.say(json!({
            "type": "user", "uuid": uuid, "session_id": self.session, "parent_tool_use_id": null,
            "message": { "role": "user", "content": text },
        }))
    }

    /// A request of this subtype, with these further fields. Its id is in the frame.
    pub fn request(&mut self, subtype: &str, mut fields: Value) -> Result<Value, Unsaid> {
        self.count += 1;
        if !fields.is_object() {
            fields = json!({});
        }
        fields["subtype"] = json!(subtype);
        let id = format!("{REQUEST_PREFIX}_{}", self.count);
        self.say(json!({ "type": "control_request", "request_id": id, "request": fields }))
    }

    /// Stops whatever happens right now.
    pub fn cancel_session(&mut self) -> Result<Value, Unsaid> {
        self.request("interrupt", json!({}))
    }

    /// Answers a permission request. It no longer waits afterwards.
    pub fn respond(&mut self, id: &str, permission: Permission) -> Result<Value, Unsaid> {
        let request = self.pending.remove(id).ok_or(Unsaid::UnknownRequest)?;
        let answer = match permission {
            Permission::Allow { updated_input, always } => {
                // Always with an input: an agent that gets none may refuse the answer.
                let input = updated_input.unwrap_or_else(|| request["input"].clone());
                let mut answer = json!({ "behavior": "allow", "updatedInput": input });
                if always {
                    answer["updatedPermissions"] = request["permission_suggestions"].clone();
                }
                answer
            }
            Permission::Deny { message, interrupt } => {
                let mut answer = json!({ "behavior": "deny", "message": message });
                if interrupt {
                    answer["interrupt"] = json!(true);
                }
                answer
            }
        };
        Ok(json!({
            "type": "control_response",
            "response": { "subtype": "success", "request_id": id, "response": answer },
        }))
    }

    /// Takes note of a frame that is about to be said, however it was made. A message must have
    /// its `uuid`.
    pub fn say(&mut self, frame: Value) -> Result<Value, Unsaid> {
        if self.unanswered.len() + self.unsettled.len() >= UNANSWERED_MAX {
            return Err(Unsaid::TooMuch);
        }
        match (frame["type"].as_str(), frame["request_id"].as_str(), frame["uuid"].as_str()) {
            (Some("user"), _, Some(uuid)) => {
                self.unsettled.push((uuid.to_owned(), frame.clone()));
            }
            (Some("control_request"), Some(id), _) => {
                self.unanswered.insert(id.to_owned(), frame.clone());
            }
            (Some("control_response"), _, _) => {
                let id = frame["response"]["request_id"].as_str().unwrap_or_default();
                self.pending.remove(id);
            }
            (Some("control_cancel_request"), Some(id), _) => {
                self.unanswered.remove(id);
            }
            (Some(_) | None, _, _) => {}
        }
        Ok(frame)
    }

    /// Whether every message of this client was answered, or failed. Where a machine reports no
    /// runs, a message counts as answered when the session is idle again.
    pub fn is_settled(&self) -> bool {
        self.unsettled.is_empty() && self.at_work.is_empty()
    }

    /// Whether a message of this client is with the agent, and its run has not ended.
    pub fn is_at_work(&self) -> bool {
        !self.at_work.is_empty()
    }

    /// Whether this is the id of such a message.
    pub fn has_at_work(&self, uuid: &str) -> bool {
        self.at_work.contains(uuid)
    }

    /// The permission requests that wait for an answer.
    pub fn pending(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.pending.iter().map(|(id, request)| (id.as_str(), request))
    }

    /// A frame arrives. Gives what happened, and what to say in turn.
    pub fn on_text(&mut self, text: &str) -> (Option<Happening>, Option<Value>) {
        let Ok(frame) = serde_json::from_str::<Value>(text) else { return (None, None) };
        let sequence = frame["sequence_num"].as_u64();
        let heard = self.on_frame(frame);
        if sequence > self.cursor {
            self.cursor = sequence;
        }
        heard
    }

    fn on_frame(&mut self, frame: Value) -> (Option<Happening>, Option<Value>) {
        match frame["type"].as_str().unwrap_or_default() {
            "control_request" => self.on_request(&frame),
            "control_cancel_request" => {
                let id = frame["request_id"].as_str().unwrap_or_default();
                let was_open = self.pending.remove(id).is_some();
                (was_open.then(|| Happening::Withdrawn(id.to_owned())), None)
            }
            "control_response" => {
                let id = frame["response"]["request_id"].as_str().unwrap_or_default();
                let was_asked = self.unanswered.remove(id).is_some();
                (was_asked.then_some(Happening::Answer(frame)), None)
            }
            "keep_alive" => (None, None),
            _ => (self.on_message(frame), None),
        }
    }

    fn on_request(&mut self, frame: &Value) -> (Option<Happening>, Option<Value>) {
        let (Some(id), request) = (frame["request_id"].as_str(), &frame["request"]) else {
            return (None, None);
        };
        if request["subtype"] != "can_use_tool" {
            // Answered, so that nobody waits for ever.
            let subtype = request["subtype"].as_str().unwrap_or_default();
            let words = format!("Unsupported control request subtype: {subtype}");
            let response = json!({ "subtype": "error", "request_id": id, "error": words });
            return (None, Some(json!({ "type": "control_response", "response": response })));
        }
        if self.pending.len() >= PENDING_MAX || self.pending.contains_key(id) {
            return (None, None);
        }
        self.pending.insert(id.to_owned(), request.clone());
        (Some(Happening::Asked { id: id.to_owned(), request: request.clone() }), None)
    }

    fn on_message(&mut self, frame: Value) -> Option<Happening> {
        let uuid = frame["uuid"].as_str().unwrap_or_default().to_owned();
        match frame["type"].as_str() {
            Some("user") => {
                if let Some(at) = self.unsettled.iter().position(|(own, _)| *own == uuid) {
                    self.unsettled.remove(at);
                    self.at_work.insert(uuid.clone());
                }
            }
            Some("result") => match frame["user_message_uuid"].as_str() {
                Some(failed) => {
                    self.unsettled.retain(|(own, _)| own != failed);
                    self.at_work.remove(failed);
                }
                None => self.at_work.clear(),
            },
            // The result of a run comes before this. A machine that reports no runs has none.
            Some("system") if frame["state"] == "idle" => self.at_work.clear(),
            Some(_) | None => {}
        }
        // Words in the making may come again; they are told by their offsets to the last.
        if frame["type"] != "stream_event" && !uuid.is_empty() {
            if self.told.contains(&uuid) {
                return None;
            }
            if self.told.len() >= TOLD_MAX {
                self.told.pop_front();
            }
            self.told.push_back(uuid);
        }
        Some(Happening::Message(frame))
    }
}

#[cfg(test)]
mod tests;
