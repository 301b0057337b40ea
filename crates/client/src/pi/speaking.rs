//! The pi client behind the interface that all dialects share.

use serde_json::{Value, json};

use super::{Happening, Machine, Reply, words_of};
use crate::{Seen, Speaker};

impl Speaker for Machine {
    fn path(&self) -> String {
        Self::path(self)
    }

    fn on_open(&mut self) -> Vec<String> {
        // Nobody here watches the clock: what is not answered by then stays unanswered.
        let (_, said) = self.opened(0);
        said.iter().map(Value::to_string).collect()
    }

    fn send(&mut self, text: &str) -> Vec<String> {
        self.prompt(text, 0).iter().map(Value::to_string).collect()
    }

    fn decide(&mut self, id: &str, allow: bool) -> Vec<String> {
        let Some(request) = self.dialogs.get(id) else { return vec![] };
        let reply = match (request["method"].as_str(), allow) {
            (Some("confirm"), allow) => Reply::Confirmed(allow),
            (Some("select"), true) => Reply::Value(plain_yes(&request["options"])),
            (_, true) => Reply::Value(String::new()),
            (_, false) => Reply::Cancelled,
        };
        self.reply(id, reply).iter().map(Value::to_string).collect()
    }

    fn interrupt(&mut self) -> Vec<String> {
        self.request("abort", json!({}), 0).iter().map(Value::to_string).collect()
    }

    fn on_text(&mut self, text: &str) -> (Vec<Seen>, Vec<String>) {
        let told = Self::on_text(self, text);
        (told.iter().filter_map(|it| self.seen(it)).collect(), vec![])
    }
}

impl Machine {
    fn seen(&self, happening: &Happening) -> Option<Seen> {
        match happening {
            Happening::Event(event) => self.seen_event(event),
            Happening::Missed(message) => {
                let words = words_of(message);
                Some(if message["role"] == "user" {
                    Seen::Person(words)
                } else {
                    Seen::Agent(words)
                })
            }
            Happening::Asked { id, request } => {
                let [title, message] =
                    ["title", "message"].map(|name| request[name].as_str().unwrap_or_default());
                let what = if message.is_empty() { title } else { message }.to_owned();
                Some(Seen::Asked { id: id.clone(), what })
            }
            Happening::Trouble(words) => Some(Seen::Trouble(words.clone())),
            Happening::Unanswered { command, .. } => {
                Some(Seen::Trouble(format!("no answer to {command}")))
            }
            Happening::Answer(_) | Happening::Resolved(_) | Happening::System(_) => None,
        }
    }

    fn seen_event(&self, event: &Value) -> Option<Seen> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (message, update) = (&event["message"], &event["assistantMessageEvent"]);
        match event["type"].as_str()? {
            "message_start" if message["role"] == "user" => Some(Seen::Person(words_of(message))),
            "message_update" if update["type"] == "text_delta" => {
                Some(Seen::Piece(text(&update["delta"])))
            }
            "message_end" if message["role"] == "assistant" => {
                Some(words_of(message)).filter(|words| !words.is_empty()).map(Seen::Agent)
            }
            "tool_execution_start" => Some(Seen::Tool(text(&event["toolName"]))),
            "extension_ui_resolved" => Some(Seen::Settled { id: text(&event["id"]) }),
            "agent_end" => Some(Seen::Ended(self.ended.clone())),
            _ => None,
        }
    }
}

/// The option that allows this once, as far as its words tell.
fn plain_yes(options: &Value) -> String {
    let options: Vec<&str> =
        options.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let is_yes = |option: &&&str| {
        let word = option.to_lowercase();
        let begins = ["yes", "allow", "approve", "accept", "ok"];
        begins.iter().any(|begin| word.starts_with(begin)) && !word.contains("always")
    };
    let yes = options.iter().find(is_yes).or_else(|| options.first());
    yes.copied().unwrap_or_default().to_owned()
}
