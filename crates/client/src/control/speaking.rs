//! The control client behind the interface that all dialects share.

use serde_json::{Value, json};

use super::{Happening, Machine, Permission, Unsaid};
use crate::{Seen, Speaker};

impl Speaker for Machine {
    fn path(&self) -> String {
        Self::path(self)
    }

    fn on_open(&mut self) -> Vec<String> {
        self.again().iter().map(Value::to_string).collect()
    }

    fn send(&mut self, text: &str) -> Vec<String> {
        self.count += 1;
        let uuid = format!("{}-{}", self.name, self.count);
        frames(self.user(&uuid, text))
    }

    fn decide(&mut self, id: &str, allow: bool) -> Vec<String> {
        let permission = if allow {
            Permission::Allow { updated_input: None, always: false }
        } else {
            Permission::Deny { message: "No".to_owned(), interrupt: false }
        };
        frames(self.respond(id, permission))
    }

    fn interrupt(&mut self) -> Vec<String> {
        frames(self.cancel_session())
    }

    fn on_text(&mut self, text: &str) -> (Vec<Seen>, Vec<String>) {
        let (happened, reply) = Self::on_text(self, text);
        let seen = match happened {
            None => vec![],
            Some(Happening::Message(frame)) => seen(&frame),
            Some(Happening::Asked { id, request }) => {
                let what = format!("{} {}", word(&request["tool_name"]), request["input"]);
                vec![Seen::Asked { id, what }]
            }
            Some(Happening::Withdrawn(id)) => vec![Seen::Settled { id }],
            Some(Happening::Answer(frame)) => {
                let error = frame["response"]["error"].as_str();
                error.map(|words| Seen::Trouble(words.to_owned())).into_iter().collect()
            }
        };
        (seen, reply.iter().map(Value::to_string).collect())
    }
}

/// What cannot be said now is not said: whoever uses it sees that nothing comes of it.
fn frames(said: Result<Value, Unsaid>) -> Vec<String> {
    said.into_iter().map(|frame| frame.to_string()).collect()
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn seen(frame: &Value) -> Vec<Seen> {
    let content = &frame["message"]["content"];
    match frame["type"].as_str().unwrap_or_default() {
        "user" => {
            let words = text_of(content);
            if words.is_empty() { vec![] } else { vec![Seen::Person(words)] }
        }
        "stream_event" => {
            let delta = &frame["event"]["delta"];
            delta["text"].as_str().map(|words| Seen::Piece(words.to_owned())).into_iter().collect()
        }
        "assistant" => {
            let tools = content.as_array().into_iter().flatten();
            let tools = tools.filter(|block| block["type"] == "tool_use");
            let tools = tools.map(|block| Seen::Tool(word(&block["name"])));
            let words = Some(text_of(content)).filter(|words| !words.is_empty());
            words.map(Seen::Agent).into_iter().chain(tools).collect()
        }
        "result" => {
            let words = || word(frame["errors"].get(0).unwrap_or(&frame["subtype"]));
            let why = (frame["subtype"] != json!("success")).then(words);
            // About a message that did not arrive, not about a run.
            let is_of_send = frame["user_message_uuid"].is_string();
            vec![why.clone().filter(|_| is_of_send).map_or(Seen::Ended(why), Seen::Trouble)]
        }
        _ => vec![],
    }
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter(|block| block["type"] == "text");
            texts.filter_map(|block| block["text"].as_str()).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}
