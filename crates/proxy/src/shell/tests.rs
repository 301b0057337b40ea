//! The whole proxy on loopback, against a relay of a few lines.

use std::path::Path;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::StatusCode;

use super::*;

/// Everything here is done in a moment; a test that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(20);

const ACK: &str = r#"{"type":"connection_ack","protocol_version":1,"connection_id":"c1","server_ts":"2026-01-01T00:00:00.000Z","heartbeat_interval_ms":200,"heartbeat_timeout_ms":1000,"features":["link"]}"#;

#[tokio::test]
async fn a_proxy_shows_its_token_greets_and_delivers() {
    let data = tempfile::tempdir().unwrap();
    let relay = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (proxy, stop) = start(&relay, data.path());

    let mut socket = accept(&relay).await;
    let hello = hear(&mut socket, "connection_hello").await;
    assert_eq!((&hello["peer_role"], &hello["machine_label"]), (&"proxy".into(), &"attic".into()));
    say(&mut socket, ACK).await;
    let snapshot = hear(&mut socket, "proxy_session_snapshot").await;
    let session = snapshot["sessions"][0]["session_id"].as_str().unwrap().to_owned();
    hear(&mut socket, "proxy_resumed").await;

    say(&mut socket, &order(&session, "m1", "say: one two")).await;
    let result = hear(&mut socket, "proxy_send_result").await;
    assert_eq!((&result["result"], &result["attempt"]), (&"delivered".into(), &3.into()));
    let delta = hear(&mut socket, "message_delta").await;
    assert_eq!(delta["content"], "one ");
    let message = hear(&mut socket, "proxy_message").await;
    assert_eq!(message["message"]["content"], "one two");
    hear(&mut socket, "heartbeat").await;

    let record = data.path().join(format!("demo/{session}.received"));
    assert_eq!(std::fs::read_to_string(record).unwrap().lines().count(), 1);
    stop.send(()).unwrap();
    finish(proxy).await.unwrap();
}

#[tokio::test]
async fn it_comes_back_to_a_relay_that_went_away_and_tells_what_it_owes() {
    let data = tempfile::tempdir().unwrap();
    let relay = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (proxy, stop) = start(&relay, data.path());
    let mut socket = accept(&relay).await;
    say(&mut socket, ACK).await;
    let snapshot = hear(&mut socket, "proxy_session_snapshot").await;
    let session = snapshot["sessions"][0]["session_id"].as_str().unwrap().to_owned();
    say(&mut socket, &order(&session, "m1", "hello")).await;
    let first = hear(&mut socket, "proxy_send_result").await;
    drop(socket);

    let mut socket = accept(&relay).await;
    say(&mut socket, ACK).await;
    let again = hear(&mut socket, "proxy_send_result").await;
    assert_eq!(again["link_number"], first["link_number"]);
    stop.send(()).unwrap();
    finish(proxy).await.unwrap();

    // Another process finds the same session and the same debt.
    let (proxy, stop) = start(&relay, data.path());
    let mut socket = accept(&relay).await;
    say(&mut socket, ACK).await;
    let snapshot = hear(&mut socket, "proxy_session_snapshot").await;
    assert_eq!(snapshot["sessions"][0]["session_id"], session.as_str());
    let later = hear(&mut socket, "proxy_send_result").await;
    assert_eq!(later["link_number"], first["link_number"]);
    stop.send(()).unwrap();
    finish(proxy).await.unwrap();
}

#[tokio::test]
async fn it_leaves_a_relay_that_went_silent_and_tries_again() {
    let data = tempfile::tempdir().unwrap();
    let relay = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (proxy, stop) = start(&relay, data.path());
    let mut silent = accept(&relay).await;
    say(&mut silent, ACK).await;
    // Held open, but nothing is said: the second connection comes all the same.
    let mut socket = accept(&relay).await;
    hear(&mut socket, "connection_hello").await;
    stop.send(()).unwrap();
    finish(proxy).await.unwrap();
}

#[tokio::test]
async fn a_flood_both_ways_does_not_stop_it() {
    const MANY: u64 = 6_000;
    let data = tempfile::tempdir().unwrap();
    let relay = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (proxy, stop) = start(&relay, data.path());
    let mut socket = accept(&relay).await;
    say(&mut socket, ACK).await;
    let (mut to_proxy, mut from_proxy) = socket.split();
    // More requests than any queue holds, each of which is answered.
    let flood = async {
        for n in 0..MANY {
            let ask = format!(
                r#"{{"type":"agent_config_request","protocol_version":1,"request_id":"r{n}","session_id":"no-such-session"}}"#
            );
            to_proxy.send(Message::text(ask)).await.unwrap();
        }
    };
    let answers = async {
        let mut answered = 0;
        while answered < MANY {
            let message = from_proxy.next().await.expect("the proxy left").unwrap();
            let is_answer =
                matches!(&message, Message::Text(text) if text.contains("agent_control_result"));
            answered += u64::from(is_answer);
        }
    };
    timeout(PATIENCE, async { tokio::join!(flood, answers) }).await.unwrap();
    stop.send(()).unwrap();
    finish(proxy).await.unwrap();
}

#[tokio::test]
async fn a_relay_that_does_not_read_holds_no_agent_up() {
    const MANY: usize = 30_000;
    let data = tempfile::tempdir().unwrap();
    let relay = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (proxy, stop) = start(&relay, data.path());
    let mut socket = accept(&relay).await;
    say(&mut socket, &ACK.replace(":1000,", ":60000,").replace(":200,", ":60000,")).await;
    let snapshot = hear(&mut socket, "proxy_session_snapshot").await;
    let session = snapshot["sessions"][0]["session_id"].as_str().unwrap().to_owned();
    // More is answered than sockets and queues hold, and nothing of it is read.
    let long = "r".repeat(200);
    let all = async {
        for n in 0..MANY {
            let ask = format!(
                r#"{{"type":"agent_config_request","protocol_version":1,"request_id":"{long}{n}","session_id":"no-such-session"}}"#
            );
            say(&mut socket, &ask).await;
        }
        say(&mut socket, &order(&session, "m1", "hello")).await;
        let record = data.path().join(format!("demo/{session}.received"));
        while std::fs::read_to_string(&record).unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, all).await.unwrap();
    // Everything arrives in its order once it is read.
    for n in 0..MANY {
        let answer = hear(&mut socket, "agent_control_result").await;
        assert_eq!(answer["request_id"], format!("{long}{n}"));
    }
    hear(&mut socket, "proxy_send_result").await;
    stop.send(()).unwrap();
    finish(proxy).await.unwrap();
}

#[tokio::test]
async fn a_refused_token_ends_it_with_a_sentence() {
    let data = tempfile::tempdir().unwrap();
    let relay = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (proxy, _stop) = start(&relay, data.path());
    let (stream, _) = timeout(PATIENCE, relay.accept()).await.unwrap().unwrap();
    #[expect(clippy::result_large_err, reason = "the library's own type")]
    let refuse = |_: &Request, _: Response| -> Result<Response, ErrorResponse> {
        let mut response = ErrorResponse::new(None);
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        Err(response)
    };
    assert!(tokio_tungstenite::accept_hdr_async(stream, refuse).await.is_err());
    let fault = finish(proxy).await.unwrap_err();
    assert!(matches!(fault, Fault::Refused { status: 401, .. }), "{fault}");
    assert!(fault.to_string().contains("farhelm token create"), "{fault}");
}

#[test]
fn settings_are_shown_without_the_token() {
    let config = config("ws://127.0.0.1:1".to_owned(), Path::new("/tmp"));
    assert!(!format!("{config:?}").contains(&config.token));
}

type Peer = WebSocketStream<TcpStream>;

fn config(relay: String, data: &Path) -> ProxyConfig {
    ProxyConfig {
        relay,
        token: "s3cret-token".to_owned(),
        tls_ca: None,
        machine: Some("attic".to_owned()),
        data: data.to_owned(),
        has_demo: true,
        workspaces: vec![],
        allowed_roots: vec![],
        agents: vec![],
        guards: crate::config::Guards::default(),
        ide: crate::panels::IdeConfig::default(),
    }
}

fn start(relay: &TcpListener, data: &Path) -> (JoinHandle<Result<(), Fault>>, oneshot::Sender<()>) {
    let address = format!("http://{}", relay.local_addr().unwrap());
    let (stop, stopped) = oneshot::channel();
    let shutdown = async {
        let _ = stopped.await;
    };
    (tokio::spawn(run(config(address, data), shutdown)), stop)
}

async fn finish(proxy: JoinHandle<Result<(), Fault>>) -> Result<(), Fault> {
    timeout(PATIENCE, proxy).await.unwrap().unwrap()
}

async fn accept(relay: &TcpListener) -> Peer {
    let (stream, _) = timeout(PATIENCE, relay.accept()).await.unwrap().unwrap();
    #[expect(clippy::result_large_err, reason = "the library's own type")]
    let check = |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
        assert_eq!(request.uri().path(), "/ws/proxy");
        assert_eq!(request.headers()["authorization"], "Bearer s3cret-token");
        Ok(response)
    };
    tokio_tungstenite::accept_hdr_async(stream, check).await.unwrap()
}

async fn say(socket: &mut Peer, text: &str) {
    socket.send(Message::text(text)).await.unwrap();
}

/// The next frame of this type; others before it are passed over.
async fn hear(socket: &mut Peer, kind: &str) -> Value {
    let frame = async {
        loop {
            let message = socket.next().await.expect("the proxy left").unwrap();
            let Message::Text(text) = message else { continue };
            let frame: Value = serde_json::from_str(&text).unwrap();
            if frame["type"] == kind {
                return frame;
            }
        }
    };
    timeout(PATIENCE, frame).await.unwrap_or_else(|_| panic!("{kind} never came"))
}

fn order(session: &str, id: &str, text: &str) -> String {
    format!(
        r#"{{"type":"send_message","protocol_version":1,"session_id":"{session}","client_message_id":"{id}","content":"{text}","created_at":"2026-01-01T00:00:00.000Z","attempt":3}}"#
    )
}
