//! Many who say nothing, and some who never listen.

use std::time::Instant;

use futures_util::future::join_all;
use serde_json::json;

use crate::frames::message;
use crate::peer::{Peer, Scene, resident_kib, send};

const NO_HELLO: u16 = 4001;
const SILENT_SOCKETS: usize = 1_000;
const SILENT_KIB_EACH_MAX: u64 = 64;

const DEAF_CLIENTS: u64 = 20;
const EVENTS: u64 = 3_000;
const EVENT_BYTES: usize = 16 * 1024;
/// What one deaf client did not take is more than this, and there are many.
const DEAF_KIB_MAX: u64 = 256 * 1024;
/// Small, so that it is full at once.
const DEAF_BUFFER_BYTES: u32 = 4 * 1024;

// spec: native/connection_hello.4, native/close_codes.1
#[tokio::test]
async fn a_thousand_sockets_that_never_say_hello_disturb_nobody_and_are_closed_with_4001() {
    let mut scene = Scene::new(&[]).await;
    let mut client = scene.client().await;
    let before_kib = resident_kib(&scene.up);
    let mut silent = vec![];
    for number in 0..SILENT_SOCKETS {
        let path = if number % 2 == 0 { "/ws" } else { "/ws/native" };
        silent.push(Peer::open(&scene.up, path, None).await);
    }
    let grown_kib = resident_kib(&scene.up).saturating_sub(before_kib);
    assert!(grown_kib < SILENT_KIB_EACH_MAX * SILENT_SOCKETS as u64, "grew by {grown_kib} KiB");

    client.say(send("m1", "meanwhile")).await;
    assert_eq!(scene.proxy.hear("send_message").await["client_message_id"], "m1");
    scene
        .proxy
        .say(json!({"type": "proxy_send_result", "session_id": "sess_1",
        "client_message_id": "m1", "result": "delivered"}))
        .await;
    client.hear("message_delivered").await;
    scene.client().await.before_a_beat().await;

    let codes = join_all(silent.iter_mut().map(Peer::close_code)).await;
    assert!(codes.iter().all(|code| *code == NO_HELLO), "{codes:?}");
    client.before_a_beat().await;
}

// spec: native/history_delta.3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_never_read_cost_little_and_the_others_hear_everything_in_order() {
    let Scene { place: _place, up, mut proxy } = Scene::new(&[]).await;
    let token = up.told["token"].as_str().unwrap().to_owned();
    let mut listener = Peer::open(&up, "/ws", Some(&token)).await;
    listener.greet(&json!({})).await;
    let mut deaf = vec![];
    for _ in 0..DEAF_CLIENTS {
        let mut peer = Peer::open_with(&up, "/ws", Some(&token), Some(DEAF_BUFFER_BYTES)).await;
        peer.greet(&json!({})).await;
        deaf.push(peer);
    }
    let body = |number: u64| format!("{number} {}", "x".repeat(EVENT_BYTES));
    let before_kib = resident_kib(&up);
    let flood = async {
        for number in 0..EVENTS {
            proxy.say(message(&format!("a{number}"), &body(number))).await;
        }
    };
    let listen = async {
        let (mut most_kib, mut last) = (0, 0);
        for number in 0..EVENTS {
            let told = listener.hear("message_event").await;
            assert_eq!(told["message"]["message_id"], format!("a{number}"));
            let sequence = told["sequence"].as_u64().unwrap();
            assert!(sequence > last, "{sequence} after {last}");
            last = sequence;
            if number % 50 == 0 {
                most_kib = most_kib.max(resident_kib(&up));
            }
        }
        most_kib.max(resident_kib(&up))
    };
    let begun = Instant::now();
    let ((), most_kib) = tokio::join!(flood, listen);
    let grown_kib = most_kib.saturating_sub(before_kib);
    eprintln!("grew by {grown_kib} KiB in {:?}", begun.elapsed());
    assert!(grown_kib < DEAF_KIB_MAX, "grew by {grown_kib} KiB");
    let untaken_kib = DEAF_CLIENTS * EVENTS * EVENT_BYTES as u64 / 1024;
    assert!(untaken_kib > 3 * DEAF_KIB_MAX, "this would not show that they are not waited for");
}
