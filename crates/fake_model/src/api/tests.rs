//! The shapes of every API's streams, as its clients read them.

use serde_json::{Value, json};

use super::*;
use crate::script::{Input, Offer};

const APIS: [Api; 4] = [Api::Anthropic, Api::Responses, Api::Chat, Api::Gemini];

fn answer() -> Answer {
    Answer { number: 7, model: "m".into(), now_seconds: 1 }
}

fn said(text: &str) -> Reply {
    let words = text.split(' ').map(str::to_owned).collect();
    Reply::Say { thinking: None, words, pause: Pause::Word }
}

fn thought() -> Reply {
    let words = vec!["so".into(), "there".into()];
    Reply::Say { thinking: Some("let me see".into()), words, pause: Pause::Word }
}

fn called() -> Reply {
    Reply::Call { name: "bash".into(), input: Input::Json(json!({"command": "ls ü"})) }
}

fn events(api: Api, reply: &Reply) -> Vec<Value> {
    let beats = api.stream(&answer(), reply);
    let parsed = beats.iter().filter(|beat| beat.data != "[DONE]");
    parsed.map(|beat| serde_json::from_str(&beat.data).unwrap()).collect()
}

/// The kinds of events, repetitions left out.
fn kinds(api: Api, reply: &Reply) -> Vec<&'static str> {
    let mut kinds: Vec<_> = api.stream(&answer(), reply).iter().filter_map(|b| b.event).collect();
    kinds.dedup();
    kinds
}

/// All strings at a pointer, one after the other.
fn collected(events: &[Value], pointer: &str) -> String {
    events.iter().filter_map(|event| event.pointer(pointer)?.as_str()).collect()
}

#[test]
fn paths_find_their_api_under_any_prefix() {
    let generate = |api, streamed| Some(Route::Generate { api, streamed });
    assert_eq!(route("/v1/messages"), generate(Api::Anthropic, Streamed::AsBodySays));
    assert_eq!(route("/x/v1/responses"), generate(Api::Responses, Streamed::AsBodySays));
    assert_eq!(route("/v1/chat/completions"), generate(Api::Chat, Streamed::AsBodySays));
    let model = "/v1beta/models/gemini-9";
    let streamed = route(&format!("{model}:streamGenerateContent"));
    assert_eq!(streamed, generate(Api::Gemini, Streamed::Yes));
    assert_eq!(route(&format!("{model}:generateContent")), generate(Api::Gemini, Streamed::No));
    assert_eq!(route("/v1/messages/count_tokens"), Some(Route::CountTokens));
    assert_eq!(route(&format!("{model}:countTokens")), Some(Route::CountTokens));
    assert_eq!(route("/v1/embeddings"), None);
}

#[test]
fn an_event_is_encoded_with_its_name_where_it_has_one() {
    let named = Beat::new(Some("ping"), &json!({"a": 1}), Pause::None);
    assert_eq!(named.encoded(), "event: ping\ndata: {\"a\":1}\n\n");
    let bare = Beat::new(None, &json!([]), Pause::None);
    assert_eq!(bare.encoded(), "data: []\n\n");
}

#[test]
fn words_come_one_by_one_with_pauses_in_every_api() {
    for (api, pointer) in [
        (Api::Anthropic, "/delta/text"),
        (Api::Responses, "/delta"),
        (Api::Chat, "/choices/0/delta/content"),
        (Api::Gemini, "/candidates/0/content/parts/0/text"),
    ] {
        let reply = said("one two three");
        assert_eq!(collected(&events(api, &reply), pointer), "one two three", "{api:?}");
        let beats = api.stream(&answer(), &reply);
        let paused = beats.iter().filter(|beat| beat.pause == Pause::Word).count();
        assert_eq!(paused, 3, "{api:?}");
    }
}

#[test]
fn thinking_comes_before_the_text_and_apart_from_it() {
    for (api, thinking, text) in [
        (Api::Anthropic, "/delta/thinking", "/delta/text"),
        (Api::Chat, "/choices/0/delta/reasoning_content", "/choices/0/delta/content"),
    ] {
        let events = events(api, &thought());
        assert_eq!(collected(&events, thinking), "let me see", "{api:?}");
        assert_eq!(collected(&events, text), "so there", "{api:?}");
        let first_text = events
            .iter()
            .position(|e| e.pointer(text).and_then(Value::as_str).is_some_and(|t| !t.is_empty()));
        let last_thinking = events.iter().rposition(|event| event.pointer(thinking).is_some());
        assert!(last_thinking < first_text, "{api:?}");
    }
    let parts = events(Api::Gemini, &thought());
    let thoughts: Vec<bool> = parts
        .iter()
        .map(|event| event.pointer("/candidates/0/content/parts/0/thought").is_some())
        .collect();
    assert_eq!(thoughts, [true, true, true, false, false]);
}

#[test]
fn anthropic_streams_blocks_between_the_ends_of_a_message() {
    let expected = [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(kinds(Api::Anthropic, &said("a b")), expected);
    let events = events(Api::Anthropic, &called());
    assert!(events.iter().all(|event| event["type"].is_string()));
    let input = collected(&events, "/delta/partial_json");
    assert_eq!(serde_json::from_str::<Value>(&input).unwrap(), json!({"command": "ls ü"}));
    let start = events.iter().find(|e| e["content_block"]["type"] == "tool_use").unwrap();
    assert_eq!(start["content_block"]["input"], json!({}));
    assert_eq!(start["content_block"]["id"], "toolu_fake0007");
    assert_eq!(events[events.len() - 2]["delta"]["stop_reason"], "tool_use");
}

#[test]
fn responses_number_their_events_and_close_their_items() {
    let expected = [
        "response.created",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ];
    assert_eq!(kinds(Api::Responses, &said("a b")), expected);
    let events = events(Api::Responses, &thought());
    let numbers: Vec<u64> =
        events.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
    let last = events.last().unwrap();
    assert_eq!(last["response"]["output"][0]["type"], "reasoning");
    assert_eq!(last["response"]["output"][1]["content"][0]["text"], "so there");
    assert_eq!(last["response"]["usage"]["total_tokens"], 22);
}

#[test]
fn responses_call_functions_and_free_tools() {
    let call = events(Api::Responses, &called());
    let item = &call.last().unwrap()["response"]["output"][0];
    assert_eq!(item["type"], "function_call");
    assert_eq!(item["call_id"], "call_fake0007");
    let input: Value = serde_json::from_str(item["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(input, json!({"command": "ls ü"}));

    let free = Reply::Call { name: "apply_patch".into(), input: Input::Text("*** x".into()) };
    let call = events(Api::Responses, &free);
    let item = &call.last().unwrap()["response"]["output"][0];
    assert_eq!((&item["type"], &item["input"]), (&json!("custom_tool_call"), &json!("*** x")));
}

#[test]
fn chat_ends_with_a_reason_then_usage_then_done() {
    let beats = Api::Chat.stream(&answer(), &called());
    assert_eq!(beats.last().unwrap().data, "[DONE]");
    let events = events(Api::Chat, &called());
    let usage = events.last().unwrap();
    assert_eq!((&usage["choices"], &usage["usage"]["total_tokens"]), (&json!([]), &json!(22)));
    assert_eq!(events[events.len() - 2]["choices"][0]["finish_reason"], "tool_calls");
    let call = &events[1]["choices"][0]["delta"]["tool_calls"][0];
    assert_eq!((&call["index"], &call["function"]["name"]), (&json!(0), &json!("bash")));
}

#[test]
fn gemini_finishes_in_its_last_chunk_only() {
    for reply in [said("a b c"), called(), thought()] {
        let events = events(Api::Gemini, &reply);
        let finishing = |event: &Value| event["candidates"][0]["finishReason"] == "STOP";
        assert_eq!(events.iter().filter(|event| finishing(event)).count(), 1);
        assert!(finishing(events.last().unwrap()));
    }
    let call = &events(Api::Gemini, &called())[0]["candidates"][0]["content"]["parts"][0];
    assert_eq!(call["functionCall"]["args"], json!({"command": "ls ü"}));
}

#[test]
fn whole_answers_say_the_same() {
    for (api, pointer) in [
        (Api::Anthropic, "/content/0/text"),
        (Api::Responses, "/output/0/content/0/text"),
        (Api::Chat, "/choices/0/message/content"),
        (Api::Gemini, "/candidates/0/content/parts/0/text"),
    ] {
        let whole = api.whole(&answer(), &said("one two"));
        assert_eq!(whole.pointer(pointer), Some(&json!("one two")), "{api:?}");
    }
}

/// The same conversation in every API: hello, answered; then a command, its call and its result.
fn conversation(api: Api) -> (&'static str, Value) {
    match api {
        Api::Anthropic => (
            "/v1/messages",
            json!({
                "model": "m",
                "messages": [
                    {"role": "user", "content": "hello"},
                    {"role": "assistant", "content": [{"type": "text", "text": "hi"}]},
                    {"role": "user", "content": [
                        {"type": "text", "text": "<system-reminder>x</system-reminder>"},
                        {"type": "text", "text": "run: ls"},
                    ]},
                ],
                "tools": [{"name": "bash", "input_schema": {"properties": {"command": {}}}}],
            }),
        ),
        Api::Responses => (
            "/v1/responses",
            json!({
                "model": "m",
                "input": [
                    {"type": "message", "role": "user", "content": [{"text": "hello"}]},
                    {"type": "message", "role": "assistant", "content": [{"text": "hi"}]},
                    {"type": "message", "role": "user", "content": [{"text": "run: ls"}]},
                    {"type": "message", "role": "user",
                     "content": [{"text": "<environment_context>x</environment_context>"}]},
                ],
                "tools": [
                    {"type": "function", "name": "bash", "parameters": {"properties": {"command": {}}}},
                    {"type": "web_search"},
                ],
            }),
        ),
        Api::Chat => (
            "/v1/chat/completions",
            json!({
                "model": "m",
                "messages": [
                    {"role": "system", "content": "be good"},
                    {"role": "user", "content": "hello"},
                    {"role": "assistant", "content": "hi"},
                    {"role": "user", "content": [{"type": "text", "text": "run: ls"}]},
                ],
                "tools": [{"type": "function", "function":
                    {"name": "bash", "parameters": {"properties": {"command": {}}}}}],
            }),
        ),
        Api::Gemini => (
            "/v1beta/models/m:streamGenerateContent",
            json!({
                "contents": [
                    {"role": "user", "parts": [{"text": "hello"}]},
                    {"role": "model", "parts": [{"text": "hi"}]},
                    {"role": "user", "parts": [{"text": "run: ls"}]},
                ],
                "tools": [{"functionDeclarations": [
                    {"name": "bash", "parametersJsonSchema": {"properties": {"command": {}}}}]}],
            }),
        ),
    }
}

fn with_result(api: Api, body: &mut Value) {
    let (field, more) = match api {
        Api::Anthropic => (
            "messages",
            json!([
                {"role": "assistant", "content": [{"type": "tool_use", "name": "bash"}]},
                {"role": "user", "content": [{"type": "tool_result", "content": [{"text": "f.txt"}]}]},
            ]),
        ),
        Api::Responses => (
            "input",
            json!([
                {"type": "function_call", "name": "bash"},
                {"type": "function_call_output", "output": "f.txt"},
            ]),
        ),
        Api::Chat => (
            "messages",
            json!([
                {"role": "assistant", "tool_calls": [{}]},
                {"role": "tool", "content": "f.txt"},
            ]),
        ),
        Api::Gemini => (
            "contents",
            json!([
                {"role": "model", "parts": [{"functionCall": {}}]},
                {"role": "user", "parts": [{"functionResponse": {"response": {"output": "f.txt"}}}]},
            ]),
        ),
    };
    body[field].as_array_mut().unwrap().extend(more.as_array().unwrap().iter().cloned());
}

#[test]
fn a_request_is_read_as_its_last_words_and_its_tools() {
    for api in APIS {
        let (path, body) = conversation(api);
        let asked = api.asked(path, &body);
        assert_eq!(asked.model, "m", "{api:?}");
        assert_eq!(asked.texts, ["run: ls"], "{api:?}");
        assert_eq!(asked.tool_result, None, "{api:?}");
        let schema = json!({"properties": {"command": {}}});
        assert_eq!(asked.tools, [("bash".to_owned(), Offer::Function(schema))].into(), "{api:?}");
        let input = Input::Json(json!({"command": "ls"}));
        let call = Reply::Call { name: "bash".into(), input };
        assert_eq!(api.reply(&asked, &body), Ok(call), "{api:?}");
    }
}

#[test]
fn a_result_is_answered_in_every_api() {
    for api in APIS {
        let (path, mut body) = conversation(api);
        with_result(api, &mut body);
        let asked = api.asked(path, &body);
        assert_eq!(asked.tool_result.as_deref(), Some("f.txt"), "{api:?}");
        assert_eq!(api.reply(&asked, &body), Ok(said("done: f.txt")), "{api:?}");
    }
}

#[test]
fn an_aborted_turn_of_codex_takes_its_result_along() {
    let (path, mut body) = conversation(Api::Responses);
    with_result(Api::Responses, &mut body);
    let more = json!([
        {"type": "message", "role": "user", "content": [{"text": "<turn_aborted>x</turn_aborted>"}]},
        {"type": "message", "role": "user", "content": [{"text": "next"}]},
    ]);
    body["input"].as_array_mut().unwrap().extend(more.as_array().unwrap().iter().cloned());
    let asked = Api::Responses.asked(path, &body);
    assert_eq!(Api::Responses.reply(&asked, &body), Ok(said("echo(m): next")));
}

#[test]
fn gemini_asides_get_the_least_that_fits_their_schema() {
    let schema = json!({"properties": {
        "choice": {"type": "string", "enum": ["flash", "pro"]},
        "why": {"type": "STRING"},
        "sure": {"type": "boolean"},
        "score": {"type": "integer"},
    }});
    let body = json!({"generationConfig": {"responseJsonSchema": schema}});
    let asked = Api::Gemini.asked("/v1beta/models/m:generateContent", &body);
    let Ok(Reply::Say { words, .. }) = Api::Gemini.reply(&asked, &body) else { panic!("no words") };
    let told: Value = serde_json::from_str(&words.join(" ")).unwrap();
    assert_eq!(told, json!({"choice": "flash", "why": "x", "sure": false, "score": 1}));
}

#[test]
fn failures_are_told_in_each_apis_words() {
    assert_eq!(Api::Anthropic.failure(529)["error"]["type"], "overloaded_error");
    assert_eq!(Api::Chat.failure(500)["error"]["type"], "server_error");
    assert_eq!(Api::Gemini.failure(429)["error"]["status"], "RESOURCE_EXHAUSTED");
}
