//! Gemini `generateContent` and `streamGenerateContent`.

use serde_json::{Map, Value, json};

use super::{Answer, Beat, list, string};
use crate::pace::Pause;
use crate::script::{Asked, Input, Offer, Reply, joined, spaced, without_wrappings};

/// The model is in the path: `/v1beta/models/NAME:streamGenerateContent`.
pub(super) fn asked(path: &str, body: &Value) -> Asked {
    let name = path.rsplit('/').next().unwrap_or_default();
    let model = name.split(':').next().unwrap_or_default().to_owned();
    let mut asked = Asked { model, ..Asked::default() };
    for content in list(&body["contents"]) {
        if content["role"] == "model" {
            (asked.texts, asked.tool_result) = (Vec::new(), None);
            continue;
        }
        for part in list(&content["parts"]) {
            if part["functionResponse"].is_object() {
                let response = &part["functionResponse"]["response"];
                let told = ["output", "error"].iter().find_map(|field| response[field].as_str());
                asked.tool_result = Some(told.map_or_else(|| response.to_string(), str::to_owned));
            } else if let Some(text) = part["text"].as_str() {
                asked.texts.push(text.to_owned());
            }
        }
    }
    asked.texts.retain(|text| !without_wrappings(text).is_empty());
    asked.tools = list(&body["tools"])
        .iter()
        .flat_map(|tool| list(&tool["functionDeclarations"]))
        .map(|function| {
            let schema = ["parametersJsonSchema", "parameters"]
                .into_iter()
                .find_map(|field| function.get(field).filter(|schema| schema.is_object()));
            (string(&function["name"]), Offer::Function(schema.cloned().unwrap_or_default()))
        })
        .collect();
    asked
}

/// Requests that the agent makes for itself, in JSON (which model to use, who speaks next): the
/// least that fits their schema.
pub(super) fn aside(body: &Value) -> Option<Reply> {
    let config = &body["generationConfig"];
    let schema = ["responseJsonSchema", "responseSchema"]
        .into_iter()
        .find_map(|field| config.get(field).filter(|schema| schema.is_object()));
    if config["responseMimeType"] != "application/json" && schema.is_none() {
        return None;
    }
    let fields = schema.and_then(|schema| schema["properties"].as_object());
    let least = |(name, field): (&String, &Value)| (name.clone(), least(field));
    let answer: Map<String, Value> = fields.into_iter().flatten().map(least).collect();
    let words = vec![Value::from(answer).to_string()];
    Some(Reply::Say { thinking: None, words, pause: Pause::None })
}

fn least(schema: &Value) -> Value {
    if let Some(first) = list(&schema["enum"]).first() {
        return first.clone();
    }
    match schema["type"].as_str().unwrap_or_default().to_ascii_lowercase().as_str() {
        "boolean" => false.into(),
        "integer" | "number" => 1.into(),
        "array" => json!([]),
        "object" => json!({}),
        _ => "x".into(),
    }
}

fn chunk(answer: &Answer, parts: &[Value], last: Last) -> Value {
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
    if last == Last::Yes {
        candidate["finishReason"] = "STOP".into();
    }
    let counts = json!({
        "promptTokenCount": 10, "candidatesTokenCount": 12, "totalTokenCount": 22,
    });
    json!({
        "candidates": [candidate],
        "usageMetadata": counts,
        "modelVersion": answer.model,
        "responseId": answer.id(""),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Yes,
    No,
}

fn call(answer: &Answer, name: &str, input: &Input) -> Value {
    let input = match input {
        Input::Json(input) => input.clone(),
        Input::Text(text) => json!({ "input": text }),
    };
    let call = json!({"id": answer.id("fc_"), "name": name, "args": input});
    json!({"functionCall": call, "thoughtSignature": "ZmFrZQ=="})
}

pub(super) fn whole(answer: &Answer, reply: &Reply) -> Value {
    let parts = match reply {
        Reply::Say { thinking, words, .. } => {
            let thinking = thinking.iter().map(|text| json!({"text": text, "thought": true}));
            thinking.chain([json!({ "text": joined(words) })]).collect()
        }
        Reply::Call { name, input } => vec![call(answer, name, input)],
    };
    chunk(answer, &parts, Last::Yes)
}

pub(super) fn stream(answer: &Answer, reply: &Reply) -> Vec<Beat> {
    let parts: Vec<(Value, Pause)> = match reply {
        Reply::Say { thinking, words, pause } => {
            let thinking = thinking.iter().flat_map(|thinking| thinking.split_inclusive(' '));
            let thinking =
                thinking.map(|word| (json!({"text": word, "thought": true}), Pause::Word));
            thinking.chain(spaced(words).map(|word| (json!({ "text": word }), *pause))).collect()
        }
        Reply::Call { name, input } => vec![(call(answer, name, input), Pause::None)],
    };
    let count = parts.len();
    let beats = parts.into_iter().enumerate().map(|(index, (part, pause))| {
        let last = if index + 1 == count { Last::Yes } else { Last::No };
        Beat::new(None, &chunk(answer, &[part], last), pause)
    });
    beats.collect()
}
