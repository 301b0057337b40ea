//! `OpenAI` Chat Completions.

use serde_json::{Value, json};

use super::{Answer, Beat, list, string, text_of};
use crate::pace::Pause;
use crate::script::{Asked, Input, Offer, Reply, joined, spaced, without_wrappings};

pub(super) fn asked(body: &Value) -> Asked {
    let mut asked = Asked { model: string(&body["model"]), ..Asked::default() };
    for message in list(&body["messages"]) {
        match message["role"].as_str() {
            Some("tool") => {
                asked.tool_result = Some(text_of(&message["content"]));
                asked.texts.clear();
            }
            Some("user") => asked.texts.push(text_of(&message["content"])),
            Some("assistant") => (asked.texts, asked.tool_result) = (Vec::new(), None),
            _ => {}
        }
    }
    asked.texts.retain(|text| !without_wrappings(text).is_empty());
    asked.tools = list(&body["tools"])
        .iter()
        .map(|tool| &tool["function"])
        .filter(|function| function["name"].is_string())
        .map(|function| {
            (string(&function["name"]), Offer::Function(function["parameters"].clone()))
        })
        .collect();
    asked
}

fn usage() -> Value {
    json!({"prompt_tokens": 10, "completion_tokens": 12, "total_tokens": 22})
}

fn call(answer: &Answer, name: &str, input: &Input) -> Value {
    let arguments = match input {
        Input::Json(input) => input.to_string(),
        Input::Text(text) => json!({ "input": text }).to_string(),
    };
    json!({
        "id": answer.id("call_"),
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    })
}

pub(super) fn whole(answer: &Answer, reply: &Reply) -> Value {
    let (message, finish) = match reply {
        Reply::Say { thinking, words, .. } => {
            let mut message = json!({"role": "assistant", "content": joined(words)});
            if let Some(thinking) = thinking {
                message["reasoning_content"] = thinking.as_str().into();
            }
            (message, "stop")
        }
        Reply::Call { name, input } => {
            let calls = [call(answer, name, input)];
            (json!({"role": "assistant", "content": null, "tool_calls": calls}), "tool_calls")
        }
    };
    let choice = json!({"index": 0, "message": message, "finish_reason": finish});
    json!({
        "id": answer.id("chatcmpl-"),
        "object": "chat.completion",
        "created": answer.now_seconds,
        "model": answer.model,
        "choices": [choice],
        "usage": usage(),
    })
}

pub(super) fn stream(answer: &Answer, reply: &Reply) -> Vec<Beat> {
    let chunk = |choices: Value| {
        json!({
            "id": answer.id("chatcmpl-"),
            "object": "chat.completion.chunk",
            "created": answer.now_seconds,
            "model": answer.model,
            "choices": choices,
        })
    };
    let mut beats = Vec::new();
    let mut push = |delta: Value, finish: Option<&str>, pause: Pause| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        beats.push(Beat::new(None, &chunk(json!([choice])), pause));
    };
    push(json!({"role": "assistant", "content": ""}), None, Pause::None);
    match reply {
        Reply::Say { thinking, words, pause } => {
            for word in thinking.iter().flat_map(|thinking| thinking.split_inclusive(' ')) {
                push(json!({ "reasoning_content": word }), None, Pause::Word);
            }
            for word in spaced(words) {
                push(json!({ "content": word }), None, *pause);
            }
            push(json!({}), Some("stop"), Pause::None);
        }
        Reply::Call { name, input } => {
            let mut call = call(answer, name, input);
            call["index"] = 0.into();
            push(json!({ "tool_calls": [call] }), None, Pause::None);
            push(json!({}), Some("tool_calls"), Pause::None);
        }
    }
    let mut last = chunk(json!([]));
    last["usage"] = usage();
    beats.push(Beat::new(None, &last, Pause::None));
    beats.push(Beat { event: None, data: "[DONE]".into(), pause: Pause::None });
    beats
}
