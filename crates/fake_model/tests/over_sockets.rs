//! The model over real sockets: streams as they come, clients that leave, its end.

#![expect(clippy::unwrap_used, reason = "a test's own requests")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use fake_model::{End, FakeModel, Options, Pace};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(20);

/// Posts, and leaves the connection open for reading.
fn post(model: &FakeModel, path: &str, body: &Value) -> TcpStream {
    let address = SocketAddr::from(([127, 0, 0, 1], model.port()));
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let body = body.to_string();
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-api-key: secret\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

fn answer(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn anthropic(text: &str) -> Value {
    json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": text}]})
}

#[test]
fn a_stream_is_server_sent_events_to_its_end() {
    let model = FakeModel::start().unwrap();
    let text = answer(post(&model, "/v1/messages", &anthropic("hello")));
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    assert!(text.contains("content-type: text/event-stream\r\n"), "{text}");
    assert!(text.contains("event: message_start\ndata: {"), "{text}");
    assert!(text.contains("event: message_stop\ndata: {"), "{text}");
}

#[test]
fn every_api_answers_whole_too() {
    let model = FakeModel::start().unwrap();
    let chat = json!({"model": "m", "messages": [{"role": "user", "content": "hello"}]});
    let gemini = json!({"contents": [{"role": "user", "parts": [{"text": "hello"}]}]});
    for (path, body) in [
        ("/v1/messages", &chat),
        ("/v1/chat/completions", &chat),
        ("/v1/responses", &json!({"model": "m", "input": "hello"})),
        ("/v1beta/models/m:generateContent", &gemini),
    ] {
        let text = answer(post(&model, path, body));
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{path}: {text}");
        assert!(text.contains("echo(m): hello"), "{path}: {text}");
    }
}

#[test]
fn failures_have_their_status_and_unknown_paths_are_not_found() {
    let model = FakeModel::start().unwrap();
    let text = answer(post(&model, "/v1/messages", &anthropic("fail: 529")));
    assert!(text.starts_with("HTTP/1.1 529 "), "{text}");
    assert!(text.contains("overloaded_error"), "{text}");
    let text = answer(post(&model, "/v1/else", &json!({})));
    assert!(text.starts_with("HTTP/1.1 404 "), "{text}");
    let text = answer(post(&model, "/v1/messages/count_tokens", &anthropic("hello")));
    assert!(text.contains("\"input_tokens\":42"), "{text}");
}

#[tokio::test]
async fn a_client_that_leaves_is_seen() {
    let model = FakeModel::start().unwrap();
    let mut stream = post(&model, "/v1/messages", &anthropic("slow: 1000"));
    let mut some = [0; 64];
    stream.read_exact(&mut some).unwrap();
    assert_eq!(model.disconnected(), 0);
    drop(stream);
    let left = model.wait_for(PATIENCE, |seen| seen.end == Some(End::Disconnected)).await;
    let left = left.expect("the model did not notice");
    assert_eq!((left.number, left.path.as_str()), (1, "/v1/messages"));
    assert_eq!(left.body["messages"][0]["content"], "slow: 1000");
    assert_ne!(left.headers["x-api-key"], "secret");
    assert_eq!(model.disconnected(), 1);
}

#[tokio::test]
async fn an_answer_that_was_read_to_its_end_is_seen_as_answered() {
    let model = FakeModel::start().unwrap();
    answer(post(&model, "/v1/messages", &anthropic("hello")));
    let seen = model.wait_for(PATIENCE, |seen| seen.end.is_some()).await.unwrap();
    assert_eq!(seen.end, Some(End::Answered));
    assert_eq!(model.requests().len(), 1);
}

#[test]
fn words_arrive_while_the_model_still_speaks() {
    let slow_word = Duration::from_millis(200);
    let pace = Pace { slow_word, ..Pace::QUICK };
    let model = FakeModel::start_with(&Options { pace, ..Options::default() }).unwrap();
    let started = Instant::now();
    let mut stream = post(&model, "/v1/messages", &anthropic("slow: 3"));
    let mut text = String::new();
    let mut part = [0; 4096];
    let (mut first_word, mut length) = (None, 1);
    while length > 0 {
        length = stream.read(&mut part).unwrap();
        text.push_str(&String::from_utf8_lossy(&part[..length]));
        if text.contains("w0") {
            first_word.get_or_insert_with(Instant::now);
        }
    }
    assert!(text.contains("w2"), "{text}");
    assert!(started.elapsed() >= slow_word * 3);
    // The first word did not wait for the last.
    assert!(first_word.unwrap().elapsed() >= slow_word * 2);
}

#[test]
fn dropping_it_ends_its_answers_and_frees_its_port() {
    let model = FakeModel::start().unwrap();
    let port = model.port();
    let mut stream = post(&model, "/v1/messages", &anthropic("slow: 1000"));
    let mut some = [0; 64];
    stream.read_exact(&mut some).unwrap();
    drop(model);
    let mut rest = Vec::new();
    // Cut in the middle: an end or an error, but no waiting.
    let _ = stream.read_to_end(&mut rest);
    assert!(!String::from_utf8_lossy(&rest).contains("message_stop"));
    let again = Options { port, ..Options::default() };
    assert_eq!(FakeModel::start_with(&again).unwrap().port(), port);
}
