//! Frames that break the rules, one by one.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::hostile::peer::{Peer, Scene, send};

const MAX_FRAME_BYTES: usize = 5 * 1024 * 1024;
const NOT_JSON: u16 = 1007;
const TOO_LARGE: u16 = 1009;
const BINARY: u16 = 1003;
const NO_HELLO: u16 = 4001;

/// A client's and a machine's socket, greeted.
async fn both(scene: &Scene) -> [Peer; 2] {
    let token = scene.up.told["proxy_token"].as_str();
    let mut machine = Peer::open(&scene.up, "/ws", token).await;
    machine.greet_as_machine("cellar").await;
    [scene.client().await, machine]
}

// spec: native/transport.1
#[tokio::test]
async fn text_that_is_not_json_closes_the_socket_with_1007() {
    let scene = Scene::new(&[]).await;
    for text in ["", "hello", "{\"type\":", "{} {}", "\u{0}", "{'type':'heartbeat'}"] {
        for mut peer in both(&scene).await {
            peer.text(text).await;
            assert_eq!(peer.close_code().await, NOT_JSON, "{text:?}");
        }
        let mut stranger = Peer::open(&scene.up, "/ws", None).await;
        stranger.text(text).await;
        assert_eq!(stranger.close_code().await, NOT_JSON, "{text:?} as the first frame");
    }
    scene.client().await.before_a_beat().await;
}

// spec: native/transport.1, native/limits.1
#[tokio::test]
async fn six_mebibytes_close_the_socket_with_1009_and_five_are_taken() {
    let scene = Scene::new(&[]).await;
    let padded = |bytes: usize| {
        let frame =
            json!({"type": "heartbeat", "protocol_version": 1, "request_id": "big", "x": ""});
        let bare = frame.to_string().len();
        frame.to_string().replace("\"x\":\"\"", &format!("\"x\":\"{}\"", "y".repeat(bytes - bare)))
    };
    for mut peer in both(&scene).await {
        peer.text(&padded(MAX_FRAME_BYTES)).await;
        assert_eq!(peer.hear("heartbeat_ack").await["request_id"], "big");
        peer.text(&padded(6 * 1024 * 1024)).await;
        assert_eq!(peer.close_code().await, TOO_LARGE);
    }
    let mut stranger = Peer::open(&scene.up, "/ws", None).await;
    stranger.text(&padded(MAX_FRAME_BYTES + 1)).await;
    assert_eq!(stranger.close_code().await, TOO_LARGE);
    scene.client().await.before_a_beat().await;
}

// spec: native/transport.1
#[tokio::test]
async fn a_binary_message_closes_the_socket_with_1003() {
    let scene = Scene::new(&[]).await;
    let stranger = Peer::open(&scene.up, "/ws", None).await;
    let native = Peer::open(&scene.up, "/ws/native", None).await;
    for mut peer in both(&scene).await.into_iter().chain([stranger, native]) {
        peer.message(Message::binary(&b"{\"type\":\"heartbeat\"}"[..])).await;
        assert_eq!(peer.close_code().await, BINARY);
    }
}

/// Each with the request that the answer must name.
fn nonsense() -> Vec<(String, Option<&'static str>)> {
    let deep = |count: usize| format!("{}{}", "[".repeat(count), "]".repeat(count));
    let deep_object = format!("{}1{}", "{\"a\":".repeat(20_000), "}".repeat(20_000));
    let interrupt = |session: &str| {
        format!(
            r#"{{"type":"agent_interrupt","protocol_version":1,"request_id":"r","session_id":{session}}}"#
        )
    };
    let history = |after: &str| {
        format!(
            r#"{{"type":"history_request","protocol_version":1,"request_id":"r","session_id":"sess_1","after_sequence":{after}}}"#
        )
    };
    let words = |content: &str| {
        format!(
            r#"{{"type":"send_message","protocol_version":1,"request_id":"r","session_id":"sess_1","client_message_id":"m","created_at":"2026-03-19T10:16:30.000Z","content":{content}}}"#
        )
    };
    let mut all = vec![
        ("null".to_owned(), None),
        ("7".to_owned(), None),
        ("\"hello\"".to_owned(), None),
        ("[]".to_owned(), None),
        ("{}".to_owned(), None),
        (deep(100_000), None),
        (r#"{"type":"\ud800","protocol_version":1}"#.to_owned(), None),
        (r#"{"type":"no_such","protocol_version":1,"request_id":"r"}"#.to_owned(), Some("r")),
        (r#"{"type":null,"protocol_version":1,"request_id":"r"}"#.to_owned(), Some("r")),
        (r#"{"protocol_version":1,"request_id":"r"}"#.to_owned(), Some("r")),
        (
            r#"{"type":"agent_interrupt","request_id":"r","session_id":"sess_1"}"#.to_owned(),
            Some("r"),
        ),
        (r#"{"type":"heartbeat","protocol_version":1e400,"request_id":"r"}"#.to_owned(), Some("r")),
    ];
    for session in
        ["7", "{}", "[\"sess_1\"]", "\"\"", "\"..\"", "\"a/b\"", "\"\\udc00sess\"", "\"\\u0000\""]
    {
        all.push((interrupt(session), Some("r")));
    }
    all.extend([(interrupt(&deep(60_000)), Some("r")), (interrupt(&deep_object), Some("r"))]);
    for after in ["-1", "1.5", "\"1\"", "1e999", "18446744073709551616", "{}"] {
        all.push((history(after), Some("r")));
    }
    for content in ["7", "[]", "\"\"", "\"lone \\ud800\"", "\"\\udfff\"", "\"\\ud800\\ud800\""] {
        all.push((words(content), Some("r")));
    }
    all
}

// spec: native/transport.2, native/transport.4, native/connection_error.1
#[tokio::test]
async fn nonsense_in_json_is_answered_invalid_message_and_the_socket_stays_open() {
    let scene = Scene::new(&["--frames-per-minute", "1000"]).await;
    let [mut client, mut machine] = both(&scene).await;
    for (text, request) in nonsense() {
        let start: String = text.chars().take(160).collect();
        client.text(&text).await;
        let heard = client.before_a_beat().await;
        let [told] = heard.as_slice() else { panic!("{start}: {heard:?}") };
        assert_eq!(
            (&told["type"], &told["code"]),
            (&json!("connection_error"), &json!("invalid_message")),
            "{start}"
        );
        assert_eq!(told["request_id"].as_str(), request, "{start}: {told}");
        assert!(told["message"].as_str().is_some_and(|words| words.len() < 1_000), "{told}");

        machine.text(&text).await;
        let heard = machine.before_a_beat().await;
        let [told] = heard.as_slice() else { panic!("a machine: {start}: {heard:?}") };
        assert_eq!(told["code"], "invalid_message", "a machine: {start}: {told}");
    }
    // Nothing of it happened.
    client.say(json!({"type": "history_request", "session_id": "sess_1"})).await;
    assert_eq!(client.hear("history_snapshot").await["messages"], json!([]));
}

// spec: native/transport.4, native/session_identifiers.3
#[tokio::test]
async fn a_machines_reports_in_wrong_types_are_answered_and_show_nothing() {
    let mut scene = Scene::new(&[]).await;
    let mut client = scene.client().await;
    for text in [
        r#"{"type":"proxy_message","protocol_version":1,"session_id":"sess_1","message":"words"}"#,
        r#"{"type":"proxy_message","protocol_version":1,"session_id":"sess_1","message":{"role":"assistant","content":"lone \ud83d","created_at":"2026-03-19T10:16:30.000Z"}}"#,
        r#"{"type":"proxy_message","protocol_version":1,"session_id":"sess_1","message":{"role":7,"content":"x","created_at":"2026-03-19T10:16:30.000Z"}}"#,
        r#"{"type":"proxy_message","protocol_version":1,"session_id":"sess_1","message":{"role":"assistant","content":"x","created_at":"yesterday"}}"#,
        r#"{"type":"proxy_send_result","protocol_version":1,"session_id":"sess_1","client_message_id":"m","result":"perhaps"}"#,
        r#"{"type":"proxy_session_snapshot","protocol_version":1,"sessions":{"sess_1":{}}}"#,
        r#"{"type":"proxy_session_snapshot","protocol_version":1,"sessions":[{"session_id":"../sess","agent_type":"codex","status":"healthy"}]}"#,
        r#"{"type":"permission_prompt","protocol_version":1,"session_id":"sess_1","prompt_id":"p","prompt_text":"?","choices":[]}"#,
        r#"{"type":"permission_prompt","protocol_version":1,"session_id":"sess_1","prompt_id":"p","prompt_text":"?","choices":[{"choice_id":"y","label":"Y","is_default":true}],"timeout_ms":-1}"#,
        r#"{"type":"agent_config","protocol_version":1,"session_id":"sess_1","model_id":7}"#,
    ] {
        scene.proxy.text(text).await;
        let heard = scene.proxy.before_a_beat().await;
        let codes: Vec<_> = heard.iter().map(|frame| &frame["code"]).collect();
        assert_eq!(codes, ["invalid_message"], "{text}: {heard:?}");
    }
    // The first thing that a client hears is what makes sense.
    scene.proxy.say(message("a1", "sense")).await;
    let told = client.next().await;
    assert_eq!(told["message"]["content"], "sense", "{told}");
}

// spec: native/permission_prompt_relay_behavior.5
#[tokio::test]
async fn numbers_at_the_end_of_their_range_do_no_harm() {
    let mut scene = Scene::new(&[]).await;
    let mut client = scene.client().await;
    let past = u64::MAX;
    client.say(json!({"type": "history_request", "request_id": "h", "session_id": "sess_1", "after_sequence": past})).await;
    assert_eq!(client.hear("connection_error").await["code"], "resume_cursor_invalid");
    assert_eq!(client.hear("history_snapshot").await["request_id"], "h");
    scene
        .proxy
        .say(json!({"type": "permission_prompt", "session_id": "sess_1", "prompt_id": "p1",
        "prompt_text": "?", "choices": [{"choice_id": "y", "label": "Y", "is_default": true}],
        "default_choice": "y", "timeout_ms": past}))
        .await;
    let asked = client.hear("permission_prompt").await;
    assert_eq!(asked["prompt_id"], "p1", "{asked}");
    let mut later = Peer::open(&scene.up, "/ws", scene.up.told["token"].as_str()).await;
    let ack = later
        .greet(&json!({"resume": {"sessions": [
        {"session_id": "sess_1", "last_sequence": past}]}}))
        .await;
    assert_eq!(ack["open_prompts"][0]["prompt_id"], "p1", "{ack}");
    assert_eq!(later.hear("connection_error").await["code"], "resume_cursor_invalid");
    later
        .say(json!({"type": "permission_response", "session_id": "sess_1", "prompt_id": "p1",
        "choice_id": "y"}))
        .await;
    assert_eq!(scene.proxy.hear("permission_response").await["choice_id"], "y");
}

// spec: native/connection_hello.3
#[tokio::test]
async fn whatever_comes_before_hello_is_answered_and_ends_the_socket() {
    let scene = Scene::new(&[]).await;
    let (owner, proxy) = (scene.up.told["token"].as_str(), scene.up.told["proxy_token"].as_str());
    for frame in [
        send("m1", "hello"),
        json!({"type": "heartbeat", "request_id": "h"}),
        json!({"type": "no_such"}),
        message("a1", "forged"),
        json!({"type": "proxy_session_snapshot", "sessions": []}),
    ] {
        for (path, token) in
            [("/ws", None), ("/ws", owner), ("/ws/native", owner), ("/ws/proxy", proxy)]
        {
            let mut peer = Peer::open(&scene.up, path, token).await;
            peer.say(frame.clone()).await;
            let (heard, code) = peer.ending().await;
            let codes: Vec<&Value> = heard.iter().map(|frame| &frame["code"]).collect();
            assert_eq!(codes, ["invalid_message"], "{path}: {frame}");
            assert!(code == NO_HELLO || code == 1002, "{path}: {frame}: {code}");
        }
    }
    let mut client = scene.client().await;
    client.say(json!({"type": "history_request", "session_id": "sess_1"})).await;
    assert_eq!(client.hear("history_snapshot").await["messages"], json!([]));
}

/// Transcript content of a machine.
pub(crate) fn message(id: &str, content: &str) -> Value {
    json!({"type": "proxy_message", "session_id": "sess_1", "message": {"message_id": id,
        "role": "assistant", "content": content, "created_at": "2026-03-19T10:16:30.000Z"}})
}
