//! A connection that says nothing is closed when it was agreed to be, from its first second on.

use serde_json::json;
use wire::native::{Limits, ProxyLimits};

use super::socket::{Socket, socket};
use super::*;
use crate::gate::{ClientGate, ProxyGate, Rates, Throttles, serve_client, serve_proxy};

const TIMEOUT_MS: u64 = 1_500;
const CLOSE_STALE: u16 = 4000;

impl Stage {
    fn serve_client(&self, socket: Socket) {
        let gate = ClientGate {
            relay: self.relay().clone(),
            throttles: Throttles::new(Rates { sends_per_10s: 30, frames_per_minute: 200 }),
            limits: Limits { heartbeat_timeout_ms: TIMEOUT_MS, ..Limits::default() },
            kick: Arc::default(),
        };
        let (_, tasks) = self.running.as_ref().unwrap();
        tasks.spawn("client", serve_client(gate, socket, Some(ada()), None));
    }

    pub(super) fn serve_proxy(&self, socket: Socket) {
        let limits = ProxyLimits { heartbeat_timeout_ms: TIMEOUT_MS, ..ProxyLimits::default() };
        let gate = ProxyGate { relay: self.relay().clone(), limits, kick: Arc::default() };
        let (_, tasks) = self.running.as_ref().unwrap();
        let principal = Principal { role: Role::Proxy, ..ada() };
        tasks.spawn("proxy", serve_proxy(gate, socket, principal, None));
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_connection_is_closed_after_its_timeout_however_short_that_is() {
    let stage = Stage::new(2_000).await;
    for role in ["browser", "proxy"] {
        let (mut peer, socket) = socket();
        if role == "proxy" {
            stage.serve_proxy(socket);
        } else {
            stage.serve_client(socket);
        }
        peer.say(&json!({"type": "connection_hello", "protocol_version": 1, "peer_role": role,
            "client_name": "t"}));
        peer.until("connection_ack").await;
        let greeted_at = stage.clock.now();
        let code = loop {
            if let Err(code) = peer.hear().await {
                break code;
            }
        };
        assert_eq!(code, CLOSE_STALE, "{role}");
        let after_ms = stage.clock.now().ms_since(greeted_at);
        assert!((TIMEOUT_MS..TIMEOUT_MS + 10).contains(&after_ms), "{role}: {after_ms}");
    }
}
