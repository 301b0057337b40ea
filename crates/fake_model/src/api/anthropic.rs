//! Anthropic Messages.

use serde_json::{Value, json};

use super::{Answer, Beat, list, string, text_of};
use crate::pace::Pause;
use crate::script::{Asked, Input, Offer, Reply, joined, spaced, without_wrappings};

pub(super) fn asked(body: &Value) -> Asked {
    let mut asked = Asked { model: string(&body["model"]), ..Asked::default() };
    let spoken = list(&body["messages"]).iter().filter(|message| message["role"] != "system");
    // Several messages of the person may stand in a row.
    for message in spoken {
        if message["role"] == "assistant" {
            (asked.texts, asked.tool_result) = (Vec::new(), None);
            continue;
        }
        if let Value::String(text) = &message["content"] {
            asked.texts.push(text.clone());
        }
        for block in list(&message["content"]) {
            if block["type"] == "tool_result" {
                asked.tool_result = Some(text_of(&block["content"]));
                asked.texts.clear();
            } else if let Some(text) = block["text"].as_str() {
                asked.texts.push(text.to_owned());
            }
        }
    }
    asked.texts.retain(|text| !without_wrappings(text).is_empty());
    asked.tools = list(&body["tools"])
        .iter()
        .filter(|tool| tool["name"].is_string())
        .map(|tool| (string(&tool["name"]), Offer::Function(tool["input_schema"].clone())))
        .collect();
    asked
}

fn usage(output_tokens: u32) -> Value {
    json!({
        "input_tokens": 10,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": output_tokens,
    })
}

/// The finished content blocks of a reply.
fn blocks(answer: &Answer, reply: &Reply) -> Vec<Value> {
    match reply {
        Reply::Say { thinking, words, .. } => {
            let thinking = thinking.iter().map(|thinking| {
                json!({"type": "thinking", "thinking": thinking, "signature": "ZmFrZQ=="})
            });
            thinking.chain([json!({"type": "text", "text": joined(words)})]).collect()
        }
        Reply::Call { name, input } => {
            let input = match input {
                Input::Json(input) => input.clone(),
                Input::Text(text) => json!({ "input": text }),
            };
            vec![
                json!({"type": "text", "text": format!("I will use {name}.")}),
                json!({"type": "tool_use", "id": answer.id("toolu_"), "name": name, "input": input}),
            ]
        }
    }
}

fn stop_reason(reply: &Reply) -> &'static str {
    match reply {
        Reply::Say { .. } => "end_turn",
        Reply::Call { .. } => "tool_use",
    }
}

fn message(answer: &Answer, content: &[Value], stop_reason: Option<&str>, usage: &Value) -> Value {
    json!({
        "id": answer.id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": null,
        "usage": usage,
    })
}

pub(super) fn whole(answer: &Answer, reply: &Reply) -> Value {
    message(answer, &blocks(answer, reply), Some(stop_reason(reply)), &usage(12))
}

pub(super) fn stream(answer: &Answer, reply: &Reply) -> Vec<Beat> {
    let pause = match reply {
        Reply::Say { pause, .. } => *pause,
        Reply::Call { .. } => Pause::None,
    };
    let mut beats = Beats(Vec::new());
    let start = message(answer, &[], None, &usage(1));
    beats.push("message_start", json!({ "message": start }), Pause::None);
    for (index, block) in blocks(answer, reply).iter().enumerate() {
        beats.block(index, block, reply, pause);
    }
    let delta = json!({"stop_reason": stop_reason(reply), "stop_sequence": null});
    let usage = json!({"output_tokens": 12});
    beats.push("message_delta", json!({"delta": delta, "usage": usage}), Pause::None);
    beats.push("message_stop", json!({}), Pause::None);
    beats.0
}

struct Beats(Vec<Beat>);

impl Beats {
    /// Every event carries its name in its data too.
    fn push(&mut self, event: &'static str, mut data: Value, pause: Pause) {
        data["type"] = event.into();
        self.0.push(Beat::new(Some(event), &data, pause));
    }

    fn delta(&mut self, index: usize, delta: &Value, pause: Pause) {
        self.push("content_block_delta", json!({"index": index, "delta": delta}), pause);
    }

    /// A block begins empty and is filled by its deltas.
    fn block(&mut self, index: usize, block: &Value, reply: &Reply, pause: Pause) {
        let mut empty = block.clone();
        match block["type"].as_str() {
            Some("thinking") => (empty["thinking"], empty["signature"]) = ("".into(), "".into()),
            Some("tool_use") => empty["input"] = json!({}),
            _ => empty["text"] = "".into(),
        }
        let start = json!({"index": index, "content_block": empty});
        self.push("content_block_start", start, Pause::None);
        match (block["type"].as_str(), reply) {
            (Some("thinking"), _) => {
                for word in string(&block["thinking"]).split_inclusive(' ') {
                    let delta = json!({"type": "thinking_delta", "thinking": word});
                    self.delta(index, &delta, Pause::Word);
                }
                let delta = json!({"type": "signature_delta", "signature": block["signature"]});
                self.delta(index, &delta, Pause::None);
            }
            (Some("tool_use"), _) => {
                for part in halves(&block["input"].to_string()) {
                    let delta = json!({"type": "input_json_delta", "partial_json": part});
                    self.delta(index, &delta, Pause::None);
                }
            }
            (_, Reply::Say { words, .. }) => {
                for word in spaced(words) {
                    self.delta(index, &json!({"type": "text_delta", "text": word}), pause);
                }
            }
            (_, Reply::Call { .. }) => {
                let delta = json!({"type": "text_delta", "text": block["text"]});
                self.delta(index, &delta, Pause::None);
            }
        }
        self.push("content_block_stop", json!({ "index": index }), Pause::None);
    }
}

/// Input arrives in pieces that are not JSON by themselves.
fn halves(text: &str) -> [String; 2] {
    let middle = text.chars().count() / 2;
    [text.chars().take(middle).collect(), text.chars().skip(middle).collect()]
}
