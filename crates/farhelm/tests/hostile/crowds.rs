//! Many who say nothing, and some who never listen.

use futures_util::future::join_all;
use serde_json::json;

use crate::hostile::frames::message;
use crate::hostile::peer::{Peer, Scene, resident_kib, send};
use crate::support::Up;

const NO_HELLO: u16 = 4001;
const SILENT_SOCKETS: usize = 1_000;
const SILENT_KIB_EACH_MAX: u64 = 64;

const DEAF_CLIENTS: u64 = 20;
const EVENTS: u64 = 2_500;
const EVENT_BYTES: usize = 16 * 1024;
/// What all deaf clients together may cost.
const DEAF_KIB_MAX: u64 = 64 * 1024;
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

/// The machine says what it has to say, and the listener hears it, all and in order. Gives the
/// most memory that the relay took meanwhile.
async fn flood(up: &Up, proxy: &mut Peer, listener: &mut Peer, first: u64) -> u64 {
    let numbers = first..first + EVENTS;
    let speak = async {
        for number in numbers.clone() {
            let words = "x".repeat(EVENT_BYTES);
            proxy.say(message(&format!("a{number}"), &words)).await;
        }
    };
    let listen = async {
        let (mut most_kib, mut last) = (0, 0);
        for number in numbers.clone() {
            let told = listener.hear("message_event").await;
            assert_eq!(told["message"]["message_id"], format!("a{number}"));
            let sequence = told["sequence"].as_u64().unwrap();
            assert!(sequence > last, "{sequence} after {last}");
            last = sequence;
            if number % 50 == 0 {
                most_kib = most_kib.max(resident_kib(up));
            }
        }
        most_kib.max(resident_kib(up))
    };
    tokio::join!(speak, listen).1
}

// spec: native/history_delta.3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_never_read_cost_little_and_the_others_hear_everything_in_order() {
    let untaken_kib = DEAF_CLIENTS * EVENTS * EVENT_BYTES as u64 / 1024;
    assert!(untaken_kib > 10 * DEAF_KIB_MAX, "it would not show if the relay kept it all");
    let Scene { place: _place, up, mut proxy } = Scene::new(&[]).await;
    let token = up.told["token"].as_str().unwrap().to_owned();
    let mut listener = Peer::open(&up, "/ws", Some(&token)).await;
    listener.greet(&json!({})).await;
    let without_kib = flood(&up, &mut proxy, &mut listener, 0).await;

    let mut deaf = vec![];
    for _ in 0..DEAF_CLIENTS {
        let mut peer = Peer::open_with(&up, "/ws", Some(&token), Some(DEAF_BUFFER_BYTES)).await;
        peer.greet(&json!({})).await;
        deaf.push(peer);
    }
    let with_kib = flood(&up, &mut proxy, &mut listener, EVENTS).await;
    let grown_kib = with_kib.saturating_sub(without_kib);
    assert!(grown_kib < DEAF_KIB_MAX, "they cost {grown_kib} KiB");

    // Whoever listens at last hears all of it too, from the ledger.
    for number in EVENTS..2 * EVENTS {
        let told = deaf[0].hear("message_event").await;
        assert_eq!(told["message"]["message_id"], format!("a{number}"));
    }
}
