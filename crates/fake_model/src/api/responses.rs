//! `OpenAI` Responses.

use serde_json::{Value, json};

use super::{Answer, Beat, list, string, text_of};
use crate::pace::Pause;
use crate::script::{Asked, Input, Offer, Reply, joined, spaced, without_wrappings};

/// Codex tells the model with this that the person stopped a turn.
const ABORTED: &str = "<turn_aborted";

pub(super) fn asked(body: &Value) -> Asked {
    let mut asked = Asked { model: string(&body["model"]), ..Asked::default() };
    if let Value::String(text) = &body["input"] {
        asked.texts.push(text.clone());
    }
    for item in list(&body["input"]) {
        match (item["type"].as_str().unwrap_or("message"), item["role"].as_str()) {
            ("function_call_output" | "custom_tool_call_output", _) => {
                asked.tool_result = Some(text_of(&item["output"]));
                asked.texts.clear();
            }
            ("message", Some("user")) => {
                let text = without_wrappings(&text_of(&item["content"]));
                if text.starts_with(ABORTED) {
                    (asked.texts, asked.tool_result) = (Vec::new(), None);
                } else if !text.starts_with('<') {
                    asked.texts.push(text);
                }
            }
            ("message", Some("assistant")) | ("function_call" | "custom_tool_call", _) => {
                (asked.texts, asked.tool_result) = (Vec::new(), None);
            }
            _ => {}
        }
    }
    asked.texts.retain(|text| !text.is_empty());
    asked.tools = list(&body["tools"])
        .iter()
        .filter_map(|tool| match (tool["type"].as_str()?, tool["name"].as_str()) {
            ("function", Some(name)) => {
                Some((name.to_owned(), Offer::Function(tool["parameters"].clone())))
            }
            ("local_shell", _) => Some(("local_shell".to_owned(), Offer::Function(Value::Null))),
            (_, Some(name)) => Some((name.to_owned(), Offer::Freeform)),
            (_, None) => None,
        })
        .collect();
    asked
}

fn usage() -> Value {
    json!({
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 12,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 22,
    })
}

fn response(answer: &Answer, status: &str, output: &[Value], usage: &Value) -> Value {
    json!({
        "id": answer.id("resp_"),
        "object": "response",
        "created_at": answer.now_seconds,
        "status": status,
        "model": answer.model,
        "output": output,
        "usage": usage,
    })
}

/// The finished items of a reply.
fn items(answer: &Answer, reply: &Reply) -> Vec<Value> {
    match reply {
        Reply::Say { thinking, words, .. } => {
            let reasoning = thinking.iter().map(|thinking| {
                json!({
                    "type": "reasoning",
                    "id": answer.id("rs_"),
                    "summary": [{"type": "summary_text", "text": thinking}],
                    "encrypted_content": null,
                })
            });
            let text = json!({"type": "output_text", "text": joined(words), "annotations": []});
            let message = json!({
                "type": "message",
                "id": answer.id("msg_"),
                "role": "assistant",
                "status": "completed",
                "content": [text],
            });
            reasoning.chain([message]).collect()
        }
        Reply::Call { name, input: Input::Json(input) } => vec![json!({
            "type": "function_call",
            "id": answer.id("fc_"),
            "call_id": answer.id("call_"),
            "name": name,
            "arguments": input.to_string(),
            "status": "completed",
        })],
        Reply::Call { name, input: Input::Text(input) } => vec![json!({
            "type": "custom_tool_call",
            "id": answer.id("ctc_"),
            "call_id": answer.id("call_"),
            "name": name,
            "input": input,
            "status": "completed",
        })],
    }
}

pub(super) fn whole(answer: &Answer, reply: &Reply) -> Value {
    response(answer, "completed", &items(answer, reply), &usage())
}

pub(super) fn stream(answer: &Answer, reply: &Reply) -> Vec<Beat> {
    let mut beats = Beats(Vec::new());
    let begun = response(answer, "in_progress", &[], &Value::Null);
    beats.push("response.created", json!({ "response": begun }), Pause::None);
    let items = items(answer, reply);
    for (index, item) in items.iter().enumerate() {
        beats.item(index, item, reply);
    }
    let ended = response(answer, "completed", &items, &usage());
    beats.push("response.completed", json!({ "response": ended }), Pause::None);
    beats.0
}

struct Beats(Vec<Beat>);

impl Beats {
    fn push(&mut self, event: &'static str, mut data: Value, pause: Pause) {
        data["type"] = event.into();
        data["sequence_number"] = self.0.len().into();
        self.0.push(Beat::new(Some(event), &data, pause));
    }

    /// An event within an item, which it names.
    fn within(
        &mut self,
        event: &'static str,
        (index, item): (usize, &Value),
        mut data: Value,
        pause: Pause,
    ) {
        data["item_id"] = item["id"].clone();
        data["output_index"] = index.into();
        self.push(event, data, pause);
    }

    /// An item is added empty, filled, and repeated whole when it is done.
    fn item(&mut self, index: usize, item: &Value, reply: &Reply) {
        let at = (index, item);
        let mut empty = item.clone();
        match item["type"].as_str() {
            Some("reasoning") => empty["summary"] = json!([]),
            Some("function_call") => empty["arguments"] = "".into(),
            Some("custom_tool_call") => empty["input"] = "".into(),
            _ => empty["content"] = json!([]),
        }
        if empty["status"].is_string() {
            empty["status"] = "in_progress".into();
        }
        let added = json!({"output_index": index, "item": empty});
        self.push("response.output_item.added", added, Pause::None);
        match (item["type"].as_str(), reply) {
            (Some("reasoning"), _) => self.reasoning(at),
            (Some("function_call"), _) => {
                let delta = json!({"delta": item["arguments"]});
                self.within("response.function_call_arguments.delta", at, delta, Pause::None);
                let done = json!({"arguments": item["arguments"]});
                self.within("response.function_call_arguments.done", at, done, Pause::None);
            }
            (Some("custom_tool_call"), _) => {
                let delta = json!({"delta": item["input"]});
                self.within("response.custom_tool_call_input.delta", at, delta, Pause::None);
                let done = json!({"input": item["input"]});
                self.within("response.custom_tool_call_input.done", at, done, Pause::None);
            }
            (_, Reply::Say { words, pause, .. }) => self.text(at, words, *pause),
            (_, Reply::Call { .. }) => {}
        }
        let done = json!({"output_index": index, "item": item});
        self.push("response.output_item.done", done, Pause::None);
    }

    fn reasoning(&mut self, at: (usize, &Value)) {
        let text = string(&at.1["summary"][0]["text"]);
        let part = json!({"summary_index": 0, "part": {"type": "summary_text", "text": ""}});
        self.within("response.reasoning_summary_part.added", at, part, Pause::None);
        for word in text.split_inclusive(' ') {
            let delta = json!({"summary_index": 0, "delta": word});
            self.within("response.reasoning_summary_text.delta", at, delta, Pause::Word);
        }
        let done = json!({"summary_index": 0, "text": text});
        self.within("response.reasoning_summary_text.done", at, done, Pause::None);
        let part = json!({"summary_index": 0, "part": {"type": "summary_text", "text": text}});
        self.within("response.reasoning_summary_part.done", at, part, Pause::None);
    }

    fn text(&mut self, at: (usize, &Value), words: &[String], pause: Pause) {
        let part = |text: &str| {
            let part = json!({"type": "output_text", "text": text, "annotations": []});
            json!({"content_index": 0, "part": part})
        };
        self.within("response.content_part.added", at, part(""), Pause::None);
        for word in spaced(words) {
            let delta = json!({"content_index": 0, "delta": word});
            self.within("response.output_text.delta", at, delta, pause);
        }
        let text = joined(words);
        let done = json!({"content_index": 0, "text": text});
        self.within("response.output_text.done", at, done, Pause::None);
        self.within("response.content_part.done", at, part(&text), Pause::None);
    }
}
