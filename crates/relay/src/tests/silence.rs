//! A silent connection is closed at the agreed time, counted from its first second.

use std::sync::atomic::Ordering;

use wire::native::{Limits, ProxyLimits};

use super::world::{Settings, World, heartbeat};
use crate::ports::Clock as _;

const TIMEOUT_MS: u64 = 1_500;
const CLOSE_STALE: u16 = 4000;

#[tokio::test(start_paused = true)]
async fn a_silent_connection_is_closed_after_its_timeout_however_short_that_is() {
    let clients = Limits { heartbeat_timeout_ms: TIMEOUT_MS, ..Limits::default() };
    let proxies = ProxyLimits { heartbeat_timeout_ms: TIMEOUT_MS, ..ProxyLimits::default() };
    let world = World::with(Settings { clients, proxies, ..Settings::default() }).await;
    for role in ["client", "proxy"] {
        let is_client = role == "client";
        let mut peer = if is_client { world.client("ada").await } else { world.proxy(None).await };
        let greeted_at = world.clock.now();
        assert_eq!(peer.close_code().await, CLOSE_STALE, "{role}");
        let after_ms = world.clock.now().ms_since(greeted_at);
        assert!((TIMEOUT_MS..TIMEOUT_MS + 10).contains(&after_ms), "{role}: {after_ms}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_says_nothing_is_closed_and_one_heartbeat_keeps_it() {
    let world = World::new().await;
    let mut silent = world.stranger("ada");
    assert_eq!(silent.close_code().await, 4001);
    let mut quiet = world.client("ada").await;
    let mut alive = world.client("bob").await;
    world.pass_ms(29_000).await;
    assert!(quiet.is_open());
    alive.say(&heartbeat()).await;
    world.pass_ms(1_100).await;
    assert_eq!(quiet.close_code().await, 4000);
    assert!(alive.is_open());
    alive.hear("heartbeat_ack").await;
    world.pass_ms(30_000).await;
    assert_eq!(alive.close_code().await, 4000);
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_goes_silent_takes_its_sessions_down() {
    let world = World::new().await;
    let mut watcher = world.client("bob").await;
    let mut machine = world.machine().await;
    watcher.hear("session_up").await;
    for _ in 0..3 {
        world.pass_ms(15_000).await;
        machine.say(&heartbeat()).await;
        watcher.say(&heartbeat()).await;
    }
    assert!(machine.is_open());
    world.pass_ms(20_000).await;
    watcher.say(&heartbeat()).await;
    assert_eq!(machine.close_code().await, 4000);
    let down = watcher.hear("session_down").await;
    assert_eq!(down["reason"], "proxy_disconnected");
    assert_eq!(world.relay.metrics().proxies.load(Ordering::Relaxed), 0);
}
