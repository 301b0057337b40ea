//! What an agent of one's own is served, through the real binary: a file, a terminal, a picture.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::json;

use crate::support::{Lines, PATIENCE, Place, Up};

/// Speaks ACP in a few lines of shell; `QUJD` is what it says is a picture.
const PAINTER: &str = r#"
say() { printf '%s\n' "$1"; }
ask() { say "{\"jsonrpc\":\"2.0\",\"id\":\"$1\",\"method\":\"$2\",\"params\":{\"sessionId\":\"c1\",$3}}"; read -r answer; printf '%s\n' "$answer" >> heard; }
read -r line; say '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
read -r line; say '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"c1"}}'
read -r line
ask w fs/write_text_file '"path":"made.txt","content":"by the proxy"'
ask t terminal/create '"command":"cat made.txt"'
say '{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"tool_call","toolCallId":"t1","title":"cat","kind":"execute","status":"in_progress","content":[{"type":"terminal","terminalId":"terminal-1"}]}}}'
ask e terminal/wait_for_exit '"terminalId":"terminal-1"'
say '{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed"}}}'
say '{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"image","mimeType":"image/png","data":"QUJD"}}}}'
say '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
while read -r line; do :; done
"#;

fn get(up: &Up, path: &str) -> String {
    let (url, token) = (up.told["url"].as_str().unwrap(), up.told["token"].as_str().unwrap());
    let host = url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n");
    write!(stream, "{head}Connection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn an_agent_s_file_terminal_and_picture_reach_whoever_watches() {
    let place = Place::new();
    let work = place.path("work");
    std::fs::create_dir(&work).unwrap();
    let painter = json!({"name": "painter", "command": "sh", "args": ["-c", PAINTER]});
    let up = place.up(&["--agents", &painter.to_string()]);
    let words = ["launch", "painter", "--workspace", work.to_str().unwrap(), "--json"];
    let session = place.json(&words)["session_id"].as_str().unwrap().to_owned();
    place.told(&["send", &session, "paint"]);

    let tail = Lines::of(place.farhelm(&["tail", &session, "--json"]));
    let seen = tail.until(|event| event["message"]["parts"][0]["kind"] == "image");
    let picture = &seen.last().unwrap()["message"]["parts"][0];
    assert_eq!(picture["media_type"], "image/png", "{picture}");
    let got = get(&up, &format!("/v1/uploads/{}", picture["attachment_id"].as_str().unwrap()));
    assert!(got.to_lowercase().contains("content-type: image/png"), "{got}");
    assert!(got.ends_with("ABC"), "{got}");
    assert_eq!(std::fs::read_to_string(work.join("made.txt")).unwrap(), "by the proxy");
    let printed = seen.iter().any(|event| event["output"] == "by the proxy");
    assert!(printed, "what the terminal printed is not shown: {seen:#?}");
}
