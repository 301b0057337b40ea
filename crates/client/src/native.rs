//! A native client of one session behind the interface that all dialects share.
//!
//! Not here: resuming without loss or repeats (`machine`).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::machine::{Event, Happening, Machine, Settings, control};
use crate::{Seen, Speaker};

/// Questions that may be open; the relay holds fewer.
const ASKED_MAX: usize = 64;

/// One native client that looks at one session.
#[derive(Debug)]
pub struct OneSession {
    machine: Machine,
    session: String,
    name: String,
    created_at: String,
    count: u64,
    /// The choices of the questions that are open.
    asked: BTreeMap<String, Vec<Value>>,
}

impl OneSession {
    /// A client of this session that hears what comes after this event. The ids of its messages
    /// begin with its name; all of them say that they were made at this time.
    pub fn new(session: &str, after: u64, name: &str, created_at: &str) -> Self {
        let mut machine = Machine::new(Settings::full(name, name));
        machine.follow(session, after);
        Self {
            machine,
            session: session.to_owned(),
            name: name.to_owned(),
            created_at: created_at.to_owned(),
            count: 0,
            asked: BTreeMap::new(),
        }
    }

    fn next_id(&mut self) -> String {
        self.count += 1;
        format!("{}-{}", self.name, self.count)
    }

    fn command(&mut self, kind: &str, more: Value) -> Vec<String> {
        let id = self.next_id();
        let more = if let Value::Object(more) = more { more } else { Map::new() };
        vec![control(kind, &self.session, &id, &more).to_string()]
    }

    fn seen(&mut self, happening: Happening) -> Option<Seen> {
        match happening {
            Happening::Event(event) if event.session == self.session => self.seen_event(&event),
            Happening::Delta(delta)
                if delta["session_id"] == *self.session && delta["kind"] == "text" =>
            {
                Some(Seen::Piece(word(&delta["content"])))
            }
            Happening::Answer(frame) if frame["type"] == "connection_error" => {
                Some(Seen::Trouble(word(&frame["message"])))
            }
            Happening::Connected(_)
            | Happening::Sessions(_)
            | Happening::Event(_)
            | Happening::Delta(_)
            | Happening::Anew { .. }
            | Happening::Page { .. }
            | Happening::Answer(_) => None,
        }
    }

    fn seen_event(&mut self, event: &Event) -> Option<Seen> {
        let frame = &event.frame;
        match event.kind.as_str() {
            "message_event" => {
                let (role, words) = (&frame["message"]["role"], word(&frame["message"]["content"]));
                match role.as_str() {
                    Some("user") => Some(Seen::Person(words)),
                    Some("assistant") => Some(Seen::Agent(words)),
                    Some(_) | None => None,
                }
            }
            "tool_call" => Some(Seen::Tool(word(&frame["tool"]))),
            "permission_prompt" => {
                let id = word(&frame["prompt_id"]);
                let choices = frame["choices"].as_array().cloned().unwrap_or_default();
                if self.asked.len() < ASKED_MAX {
                    self.asked.insert(id.clone(), choices);
                }
                Some(Seen::Asked { id, what: word(&frame["prompt_text"]) })
            }
            "permission_prompt_resolved" => {
                let id = word(&frame["prompt_id"]);
                self.asked.remove(&id);
                Some(Seen::Settled { id })
            }
            "run_ended" => {
                let (outcome, reason) = (word(&frame["outcome"]), word(&frame["reason"]));
                Some(Seen::Ended(match (outcome.as_str(), reason.as_str()) {
                    ("completed", _) => None,
                    (_, "") => Some(outcome),
                    (_, _) => Some(format!("{outcome}: {reason}")),
                }))
            }
            "message_failed" => Some(Seen::Trouble(word(&frame["error"]["message"]))),
            _ => None,
        }
    }
}

impl Speaker for OneSession {
    fn path(&self) -> String {
        "/ws/native".to_owned()
    }

    fn on_open(&mut self) -> Vec<String> {
        self.machine.on_disconnected();
        vec![self.machine.hello().to_string()]
    }

    fn send(&mut self, text: &str) -> Vec<String> {
        let id = self.next_id();
        let frame = self.machine.send(&self.session, &id, text, &self.created_at);
        frame.iter().map(Value::to_string).collect()
    }

    fn decide(&mut self, id: &str, allow: bool) -> Vec<String> {
        let effect = if allow { "allow_once" } else { "reject" };
        let choices = self.asked.get(id).into_iter().flatten();
        let choice = choices.into_iter().find(|choice| choice["effect"] == effect);
        let Some(choice) = choice.map(|choice| choice["choice_id"].clone()) else { return vec![] };
        self.command("permission_response", json!({"prompt_id": id, "choice_id": choice}))
    }

    fn interrupt(&mut self) -> Vec<String> {
        self.command("agent_interrupt", json!({}))
    }

    fn on_text(&mut self, text: &str) -> (Vec<Seen>, Vec<String>) {
        let (happened, replies) = self.machine.on_text(text);
        let seen = happened.into_iter().filter_map(|it| self.seen(it)).collect();
        (seen, replies.iter().map(Value::to_string).collect())
    }
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_decided_by_the_choice_that_has_the_plain_effect() {
        let mut client = OneSession::new("s", 0, "ada", "2026-01-01T00:00:00.000Z");
        let prompt = json!({"type": "permission_prompt", "session_id": "s", "sequence": 1,
            "prompt_id": "p", "prompt_text": "Run ls?", "choices": [
                {"choice_id": "always", "effect": "allow_always"},
                {"choice_id": "yes", "effect": "allow_once"},
                {"choice_id": "no", "effect": "reject"}]});
        let (seen, _) = client.on_text(&prompt.to_string());
        let (id, what) = ("p".to_owned(), "Run ls?".to_owned());
        assert_eq!(seen, [Seen::Asked { id: id.clone(), what }]);
        let said: Value = serde_json::from_str(&client.decide("p", true)[0]).unwrap();
        assert_eq!((&said["choice_id"], &said["prompt_id"]), (&json!("yes"), &json!("p")));
        let settled = json!({"type": "permission_prompt_resolved", "session_id": "s",
            "sequence": 2, "prompt_id": "p"});
        assert_eq!(client.on_text(&settled.to_string()).0, [Seen::Settled { id }]);
        assert!(client.decide("p", true).is_empty(), "it is closed");
    }

    #[test]
    fn a_run_that_did_not_complete_says_how_it_ended_and_why() {
        let mut client = OneSession::new("s", 0, "ada", "2026-01-01T00:00:00.000Z");
        let cut = ("interrupted", Some("Farhelm stopped"), Some("interrupted: Farhelm stopped"));
        let stopped = ("interrupted", None, Some("interrupted"));
        let ends = [cut, stopped, ("completed", None, None)];
        for (sequence, (outcome, reason, told)) in (1..).zip(ends) {
            let mut ended = json!({"type": "run_ended", "session_id": "s", "sequence": sequence,
                "run_id": "r", "outcome": outcome});
            if let Some(reason) = reason {
                ended["reason"] = json!(reason);
            }
            let told = Seen::Ended(told.map(str::to_owned));
            assert_eq!(client.on_text(&ended.to_string()).0, [told]);
        }
    }

    #[test]
    fn a_message_that_failed_says_why() {
        let mut client = OneSession::new("s", 0, "ada", "2026-01-01T00:00:00.000Z");
        let failed = json!({"type": "message_failed", "session_id": "s", "sequence": 1,
            "error": {"code": "selector_failure", "message": "There is no composer"}});
        let told = Seen::Trouble("There is no composer".to_owned());
        assert_eq!(client.on_text(&failed.to_string()).0, [told]);
    }
}
